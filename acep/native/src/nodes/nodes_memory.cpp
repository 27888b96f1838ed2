// The memory of the node engine: its bound (memory_guard.hpp), and what it holds.
#include <stdexcept>

#include "nodes/nodes.hpp"

namespace acep {

void NodeEngine::bound_memory(int64_t bytes) {
    if (completion_) throw std::invalid_argument("what waits beside nodes has no bound on its memory");
    if (bytes < 0) throw std::invalid_argument("memory");
    rouse();
    catch_up();
    finder_.forbid_index();
    memory_.set_bound(bytes);
    limit_bytes();
}

bool NodeEngine::takes_partition(int64_t clock) {
    if (!bounded()) return true;
    memory_.free_for_event(clock, arrived);
    return memory_.has_room_for_partition();
}

void NodeEngine::give_up_partition(uint32_t partition, int64_t clock) { memory_.give_up_partition(partition, clock); }

void NodeEngine::used_texts(UsedTexts& used) const {
    for (const PartitionNodes& part : store_.partitions()) {
        const_cast<PartitionNodes&>(part).each([&](NodeList& list, uint32_t s) {  // only read
            for (uint32_t k = 0; k < tables_.states[s].slots - (list.empty() ? 0 : shedding_.hidden()); ++k) {
                for (uint32_t i = list.head; i < list.end; ++i) used.add(list.slot(k)[i]);
            }
        });
    }
    frames_.used_texts(used);
    output_.used_texts(used);
    if (completion_) completion_->used_texts(used);
}

void NodeEngine::used_ids(std::vector<int64_t>& ids) const {
    arena_.used_ids(ids);
    for (const Ending& ending : endings_.all) ids.push_back(ending.last.id);
    output_.used_ids(ids);
    if (completion_) completion_->used_ids(ids);
}

void NodeEngine::squeeze() {
    for (PartitionNodes& part : store_.partitions()) {
        part.each([&](NodeList& list, uint32_t s) { list.shrink(tables_.states[s].slots); });
    }
    arena_.shrink();
    frames_.shrink();
    maker_.release();
    merging_.release();
    blocked_rows_.release();
    std::vector<uint8_t>().swap(blocked_);
    finder_.release();
    std::vector<uint8_t>().swap(taken_);
    memory_.release();
    shedding_.active()->shrink();
    memory_.recount();
}

}  // namespace acep
