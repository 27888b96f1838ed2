// The node engine as the session sees it (nodes/nodes.hpp). How an event is processed stands in event_matcher.cpp.
#include "nodes/nodes.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/prefetch.hpp"

namespace acep {

NodeEngine::NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
                       std::unique_ptr<Dominance> dominance)
    : Engine(std::move(tables), classifier, partitions),
      parts_(tables_, classifier_, partitions_, work_, std::move(dominance)),
      matcher_(tables_, classifier_, partitions_, {output_, work_, walks, full_, arrived, again}, parts_),
      changing_arcs_(tables_) {
    tells_live_ = true;
    if (tables_.completes() && !parts_.dominance) complete_in_steps();
}

void NodeEngine::complete_in_steps() {
    NodeStore& store = parts_.store;
    parts_.completion = std::make_unique<Completion>(tables_, classifier_, partitions_, parts_.arena, output_, work_,
                                                     [&](uint32_t p, int64_t low, int64_t clock, Alive& prospects) {
        store.find_prospects(p, low, clock, prospects);
    }, [&](uint32_t p, int64_t upto) { store.drop_begun(p, upto); });
    tells_live_ = false;
    matcher_.take_over_tables();
}

// Events -----------------------------------------------------------------------------------------

void NodeEngine::take_ways(Taking index, Taking future) {
    parts_.finder.set_index_use(index);
    if (parts_.future) parts_.future->taking = future;
}

void NodeEngine::expect(const Batch& batch, size_t from, int64_t stream_row, bool last) {
    if (!parts_.future) return;
    if (stream_row < 0 || parts_.memory.is_set()) return parts_.future->forget();
    parts_.future->prepare(batch, from, stream_row, last, work_, sifted);
}

void NodeEngine::fetch(uint32_t partition, uint32_t hop) const {
    const Arena& arena = parts_.arena;
    const auto& partitions = parts_.store.partitions();
    if (partition >= partitions.size()) return;
    const PartitionNodes& part = partitions[partition];
    if (hop == 0) return prefetch(&part, sizeof(PartitionNodes));
    const size_t most = std::min<size_t>(part.lists.size(), most_fetched);
    if (hop == 1) return prefetch(part.lists.data(), most * sizeof(NodeList));
    if (hop > 2 && arena.cells.empty()) return;
    for (size_t s = 0; s < most; ++s) {
        const NodeList& list = part.lists[s];
        if (hop == 2) list.fetch(tables_.states[s].slots);
        for (uint32_t i = list.head; hop > 2 && i < std::min(list.end, list.head + 4); ++i) {
            const uint32_t cell = list.cells()[i];
            if (cell == NIL) continue;
            const Cell& last = arena.cells[cell];
            if (hop == 3) prefetch(&last, sizeof(Cell));
            if (hop == 4 && last.past != NIL) prefetch(&arena.cells[last.past], sizeof(Cell));
        }
    }
}

void NodeEngine::event(uint32_t partition, const Event& event) {
    if (unfinished()) return matcher_.resume(partition, event);
    MemoryGuard& memory = parts_.memory;
    if (memory.distant_bound() >= 0) watch_distant_bound(partition, event);
    if (memory.is_bounded()) {
        const bool begins_epoch = memory.begins_epoch(arrived);
        memory.begin_stretch(arrived);
        memory.free_for_event(event.ts);
        if (begins_epoch && !again && memory.is_far()) parts_.rest_far_from_bound(tables_.key(event));
    } else if (!tables_.timed()) {
        parts_.store.free_unreached();
    }
    const bool is_bounded = memory.is_bounded();
    PartitionNodes& part = parts_.store.make(partition);
    const StoredBytes before = is_bounded ? memory.bytes_of(part) : StoredBytes{};
    matcher_.process(part, partition, event);
    if (tells_live_) {
        if (live_.size() <= partition) live_.resize(parts_.store.partitions().size());
        live_[partition] = part.has_nodes() ? 1 : 0;
    }
    if (!is_bounded) return;
    memory.update(part, before);
    if (memory.end_event()) parts_.maker.release();
    limit_bytes();
}

// Time -------------------------------------------------------------------------------------------

void NodeEngine::advance(int64_t clock) {
    parts_.store.clock() = clock;
    if (parts_.completion) parts_.completion->settle(clock);
    // Otherwise done before each event, so that it does not depend on batches, as it shortens lists.
    if (!parts_.memory.is_bounded() && tables_.timed()) parts_.store.free_by_age(clock);
}

void NodeEngine::end() {
    parts_.store.clear_all();
    if (parts_.memory.is_bounded()) parts_.memory.recount();
    if (parts_.completion) parts_.completion->end();
}

bool NodeEngine::expire_partition(uint32_t partition, int64_t soonest) {
    NodeStore& store = parts_.store;
    MemoryGuard& memory = parts_.memory;
    PartitionNodes* const part = store.find(partition);
    if (part == nullptr) return true;
    const int64_t low = earliest(soonest, tables_.span);
    const StoredBytes before = memory.is_bounded() ? memory.bytes_of(*part) : StoredBytes{};
    const bool has_nodes = !store.expire_all(*part, low, soonest);
    const bool has_shadow = !store.expire_shadow(*part, low, soonest);
    if (memory.is_bounded()) memory.update_charged(*part, before);
    if (has_nodes || has_shadow) return false;
    // If another key got its number, the record of starts that were not fully followed would be lost.
    const Shedding* const shed = parts_.shedding.active();
    if (shed != nullptr && !memory.is_bounded() && shed->sample.blind_since(partition, low)) return false;
    if (parts_.completion && !parts_.completion->expire_partition(partition, low)) return false;
    return part->bundle.closed(low, tables_.counted);
}

void NodeEngine::forget(uint32_t partition) {
    if (PartitionNodes* const part = parts_.store.find(partition)) {
        if (parts_.memory.is_bounded()) parts_.memory.remove(*part);
        *part = PartitionNodes{};
    }
    if (Shedding* const shed = parts_.shedding.any()) shed->forget(partition);
    if (parts_.completion) parts_.completion->forget(partition);
}

void NodeEngine::restart(uint32_t partition) {
    Shedding* const shed = parts_.shedding.active();
    PartitionNodes* const part = parts_.store.find(partition);
    if (shed != nullptr && part != nullptr) {
        MemoryGuard& memory = parts_.memory;
        const int64_t now = parts_.store.now(*part, parts_.store.clock());
        const StoredBytes before = memory.is_bounded() ? memory.bytes_of(*part) : StoredBytes{};
        part->each([&](NodeList& list, uint32_t s) { parts_.store.drop_all(list, s, now, EndReason::cleared); });
        part->shadow.clear();
        if (memory.is_bounded()) memory.update(*part, before);
        shed->sample.give_up_unit(partition, now);
    }
    forget(partition);
}

void NodeEngine::begin_again() {
    NodeStore& store = parts_.store;
    store.begin_rematch();
    if (!parts_.memory.is_bounded() || !tables_.timed()) return;
    const int64_t low = earliest(store.clock(), tables_.span);
    for (PartitionNodes& part : store.partitions()) {
        part.each([&](NodeList& list, uint32_t s) {
            if (!list.empty()) store.drop_expired(list, s, low, store.clock());
        });
    }
    parts_.memory.recount();
}

// Budgets ----------------------------------------------------------------------------------------

// The seed has an effect only in the first call.
Shedding& NodeEngine::shed(uint64_t seed) {
    if (parts_.shedding.any() == nullptr) {
        if (arrived != 0 || !parts_.store.partitions().empty()) throw std::logic_error("events have come already");
        parts_.shedding.create(partitions_, seed);
    }
    return *parts_.shedding.any();
}

void NodeEngine::bound_memory(int64_t bytes) {
    if (parts_.completion) throw std::invalid_argument("what waits beside nodes has no bound on its memory");
    if (bytes < 0) throw std::invalid_argument("memory");
    shed();
    if (!parts_.memory.is_bounded()) {
        if (parts_.memory.distant_bound() < 0) parts_.memory.note_bytes(this->bytes() + partitions_.bytes());
        parts_.memory.set_distant_bound(bytes);
        return parts_.shedding.rest_without_budget();
    }
    parts_.bound_memory(bytes, parts_.store.clock());
    limit_bytes();
}

void NodeEngine::watch_distant_bound(uint32_t partition, const Event& event) {
    MemoryGuard& memory = parts_.memory;
    memory.begin_stretch(arrived);
    int64_t stored = 0, made = 0;  // the most nodes that the event stores and makes
    const PartitionNodes* const part = parts_.store.find(partition);
    for (const StateArcs& arcs : parts_.pattern_arcs.arcs_of(event.pattern)) {
        size_t size = arcs.state == 0 ? 2 : 0;  // one of them in the shadow sample
        if (arcs.state != 0 && part != nullptr) {
            if (!part->lists.empty()) size += part->lists[arcs.state].size();
            if (!part->shadow.empty()) size += part->shadow[arcs.state].size();
        }
        for (const Arc* const arc : arcs.arcs) {
            made += static_cast<int64_t>(size);
            stored += tables_.states[arc->target].arcs.empty() ? 0 : static_cast<int64_t>(size);
        }
    }
    const int64_t bytes_of_event = memory.most_bytes(stored, made);
    if (!memory.may_be_near(arrived, work_.nodes, bytes_of_event)) return;
    const int64_t bound = memory.distant_bound();
    if (memory.is_near(event.ts, arrived, work_.nodes, bytes_of_event)) parts_.bound_memory(bound, event.ts);
    const int64_t reserved = bytes() + partitions_.bytes();
    if (memory.is_bounded() || memory.is_loose(reserved)) {
        matcher_.release();
        parts_.shrink(tables_);
    }
}

void NodeEngine::limit_bytes() {
    if (parts_.memory.exceeds(bytes() + partitions_.bytes())) {
        matcher_.release();
        parts_.shrink(tables_);
    }
    parts_.memory.note_bytes(bytes() + partitions_.bytes());
}

bool NodeEngine::takes_partition(int64_t clock) {
    if (!parts_.memory.is_bounded()) return true;
    parts_.memory.free_for_event(clock);
    return parts_.memory.has_room_for_partition();
}

void NodeEngine::used_texts(UsedTexts& used) const {
    parts_.store.used_texts(used);
    output_.used_texts(used);
    if (parts_.completion) parts_.completion->used_texts(used);
}

void NodeEngine::used_ids(std::vector<int64_t>& ids) const {
    parts_.arena.used_ids(ids);
    matcher_.used_ids(ids);
    output_.used_ids(ids);
    if (parts_.completion) parts_.completion->used_ids(ids);
}

// Changes ----------------------------------------------------------------------------------------

void NodeEngine::change(Tables tables) {
    if (!may_change() || !changing_arcs_.is_same_plan(tables)) {
        throw std::invalid_argument("tables: of another plan");
    }
    changing_arcs_.forget();
    tables_ = std::move(tables);
    parts_.take_over_tables();
    auto& partitions = parts_.store.partitions();
    if (parts_.completion) {
        parts_.completion->change();
    } else if (tables_.completes()) {
        complete_in_steps();
        for (uint32_t p = 0; p < partitions.size(); ++p) {
            parts_.completion->begin(p, partitions[p].bundle, partitions[p].last_position);
        }
    }
    matcher_.take_over_tables();
    for (PartitionNodes& part : partitions) {
        for (auto* lists : {&part.lists, &part.shadow}) {
            if (!lists->empty()) lists->resize(tables_.states.size());
        }
    }
}

void NodeEngine::extend(Tables tables) {
    if (!may_change() || !changing_arcs_.may_add(tables)) throw std::invalid_argument("tables: of another plan");
    changing_arcs_.add(tables);
    forget_patterns();
}

void NodeEngine::renew(const std::vector<ArcTimes>& times) {
    if (!tables_.dynamic || tables_.told == 0 || unfinished()) throw std::invalid_argument("arcs: no such number");
    if (changing_arcs_.set_times(times)) forget_patterns();
}

}  // namespace acep
