// The node engine under a bound on bytes. Before each event there must be room for the nodes that it makes, or the
// nodes of least utility in all partitions are given up. Nodes that the event makes beyond that room are not kept.
//
// Two numbers of bytes are tracked. *Charged* bytes are a function of the content, with each container at the most
// that it may reserve, so that decisions do not depend on how the stream is split into batches. *Reserved* bytes are
// the actual capacity; if they pass the bound, as emptied containers keep their room, all are shrunk to their content.

#include "nodes/nodes.hpp"

namespace acep {
namespace {

constexpr int64_t least = 8;  // nodes that every list has room for
constexpr int64_t cell_bytes = 2 * sizeof(Cell) + sizeof(int64_t) + sizeof(uint32_t);  // and compaction
constexpr int64_t event_bytes = 2 * sizeof(BoundEvent) + sizeof(uint32_t);
constexpr int64_t row_bytes = 2 * (sizeof(uint32_t) * 4 + 1) + 2 * sizeof(float);  // rows, errors, levels and scores
constexpr int64_t cells_each = 3;  // of a node at most, besides those of its pasts
constexpr int64_t small = 64;      // initial elements of a ring
constexpr int tries = 6;
constexpr int64_t given_every = 1024;  // events

}  // namespace

int64_t NodeEngine::node_bytes(uint32_t state) const { return 24 + 9 * int64_t{tables_.states[state].slots}; }

// Bytes of a node before it is in its list, with its arc and its share of the table of equal nodes.
int64_t NodeEngine::made_bytes(uint32_t state) const { return 2 * (node_bytes(state) + 13) + 16; }

int64_t NodeEngine::list_bytes(const NodeList& list, uint32_t state) const {
    if (list.empty()) return 0;
    const int64_t n = list.size();
    const int64_t index = dominance_ ? 40 : merging_.likes[state].possible ? 32 : 0;
    return std::max(least, 2 * n) * node_bytes(state) + n * (index + row_bytes);
}

HeldBytes NodeEngine::held(const Part& part) const {
    HeldBytes found;
    if (part.lists.empty()) return found;
    found.charged = found.reserved = heap_bytes(part.lists, part.shadow);
    const_cast<Part&>(part).each([&](const NodeList& list, uint32_t s) {  // only read
        found.charged += list_bytes(list, s);
        found.reserved += list.bytes();
    });
    return found;
}

void NodeEngine::recount() {
    memory_.held = {};
    for (const Part& part : parts_) memory_.held += held(part);
}

int64_t NodeEngine::charged() const {
    return memory_.held.charged + static_cast<int64_t>(parts_.size()) * part_bytes +
           int64_t{partitions_.size()} * partitions_.bytes_each() + int64_t{arena_.cells.size()} * cell_bytes +
           int64_t{arena_.events.size()} * event_bytes + int64_t{frames_.size()} * FrameStore::bytes_each;
}

int64_t NodeEngine::least_memory() const {
    int64_t fixed =
        small * static_cast<int64_t>(sizeof(Cell) + sizeof(BoundEvent) + sizeof(Frame)) + shed_->order_bytes() + 4096;
    for (uint32_t s = 0; s < tables_.states.size(); ++s)
        fixed += 2 * least * node_bytes(s) + static_cast<int64_t>(sizeof(NodeList));
    return fixed;
}

void NodeEngine::bound_memory(int64_t bytes) {
    if (completion_) throw std::invalid_argument("what waits beside nodes has no bound on its memory");
    if (bytes < 0) throw std::invalid_argument("memory");
    rouse();
    catch_up();
    memory_.most = bytes;
    finder_.forbid_index();
    shed().bound_log(bytes / 8);
    memory_.most_made = bytes / 8;
    memory_.most_given = bytes / 2;
    memory_.pool = std::max<int64_t>(0, bytes - bytes / 4 - least_memory());
    if (memory_.next == 0 || memory_.next > memory_.pool) memory_.next = memory_.pool - memory_.pool / 8;
    if (charged() > memory_.pool) give_up(clock_);
    if (this->bytes() + partitions_.bytes() > memory_.most) squeeze();
    memory_.peak = std::max(memory_.peak, this->bytes() + partitions_.bytes());
}

// Before an event, free what has expired, and give up nodes if little room is left.
void NodeEngine::make_way(int64_t clock) {
    free_expired(clock);
    if (charged() < memory_.pool - memory_.pool / 4) memory_.next = memory_.pool - memory_.pool / 8;
    if (charged() > memory_.next) give_up(clock);
    if (arrived / given_every != memory_.given_since) {
        memory_.given_since = arrived / given_every;
        memory_.given = 0;
    }
    memory_.coming = 0;
    const int64_t copies = shed_->sample().any ? 2 : 1;
    for (uint32_t s = 0; s < tables_.states.size(); ++s)
        memory_.coming += copies * (least * node_bytes(s) + static_cast<int64_t>(sizeof(NodeList)));
}

// Whether there is room for one more node of the current event, both while it is made and in its list.
bool NodeEngine::has_room(const Arc& arc) {
    const int64_t made = made_bytes(arc.target);
    if (memory_.coming_made + made > memory_.most_made) return false;
    int64_t coming = 0;
    if (!tables_.states[arc.target].arcs.empty()) {
        coming = 2 * node_bytes(arc.target) + row_bytes + 40 + (dominance_ ? 0 : cells_each * cell_bytes);
    }
    for (const Put& p : arc.puts) coming += p.write == Write::frames ? FrameStore::bytes_each : 0;
    if (coming > 0 && charged() + memory_.coming + event_bytes + coming > memory_.pool) return false;
    memory_.coming_made += made;
    memory_.coming += coming;
    return true;
}

// Whether one more match may be written: per `given_every` events as many as fit, and one per match point.
bool NodeEngine::may_give(size_t length) {
    const auto size = static_cast<int64_t>(5 * sizeof(int64_t) + partitions_.width() * sizeof(int64_t) +
                                           length * (sizeof(int64_t) + sizeof(uint16_t)));
    if (memory_.given + size > memory_.most_given && output_.given() > memory_.given_before) {
        if (walks.lacks_first()) ++shed_->withheld;
        return false;
    }
    memory_.given += size;
    memory_.given_peak = std::max(memory_.given_peak, memory_.given);
    return true;
}

bool NodeEngine::takes_partition(int64_t clock) {
    if (!bounded()) return true;
    make_way(clock);
    const int64_t place = partitions_.has_free() ? 0 : partitions_.bytes_each() + part_bytes;
    return charged() + memory_.coming + place <= memory_.pool;
}

void NodeEngine::give_up(int64_t clock) {
    memory_.gave_up = true;
    const int64_t target = memory_.pool - memory_.pool / 4;
    const int64_t low = tables_.counted ? NEVER + 1 : earliest(clock, tables_.span);
    for (Part& part : parts_) {
        const int64_t own = tables_.counted && part.last >= 0 ? earliest(part.last, tables_.span) : low;
        part.each([&](NodeList& list, uint32_t s) {
            if (!list.empty()) drop_expired(list, s, own, own + tables_.span);
        });
    }
    for (int k = 0;; ++k) {
        compact(low);
        compact_frames();
        recount();
        const int64_t all = charged();
        if (all <= target || k == tries) break;
        int64_t rows = 0, nodes = 0;
        for (Part& part : parts_) {
            part.each([&](const NodeList& list, uint32_t s) {
                rows += list_bytes(list, s);
                nodes += list.size();
            });
        }
        if (nodes == 0) break;
        const int64_t theirs = rows + int64_t{arena_.cells.size()} * cell_bytes +
                               int64_t{arena_.events.size()} * event_bytes +
                               int64_t{frames_.size()} * static_cast<int64_t>(sizeof(Frame));
        const double share = static_cast<double>(target - (all - theirs)) / static_cast<double>(theirs);
        keep_best(k + 1 == tries ? 0 : std::clamp(share, 0.0, 1.0) * (k == 0 ? 1 : 0.75), clock);
    }
    memory_.next = std::max(memory_.pool - memory_.pool / 8, charged() + memory_.pool / 16);
}

void NodeEngine::give_up_partition(uint32_t partition, int64_t clock) {
    if (partition >= parts_.size()) return;
    Part& part = parts_[partition];
    memory_.held.charged -= held(part).charged;
    const int64_t now = tables_.counted ? part.last : clock;
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        shed_->dropped += part.lists[s].size();
        drop_all(part.lists[s], s, now, EndReason::shed);
    }
    if (!part.shadow.empty()) {
        stop_sparing(part, now);
        shed_->lose(partition, now);
    }
    memory_.held.charged += held(part).charged;
    memory_.next = 0;  // its memory is freed before the next event
}

// Keep a share of all nodes, those of highest utility. Whole shadow-sampled partitions may take a quarter of it.
void NodeEngine::keep_best(double share, int64_t clock) {
    memory_.scores.clear();
    for (Part& part : parts_) {
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            if (!part.lists[s].empty())
                shed_->score(part.lists[s], s, tables_.counted ? part.last : clock, memory_.scores);
        }
    }
    const size_t n = memory_.scores.size(), wanted = static_cast<size_t>(static_cast<double>(n) * share);
    size_t room = wanted / 4;
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        size_t size = 0;
        for (const NodeList& list : parts_[p].shadow) size += list.size();
        if (size <= room) {
            room -= size;
            continue;
        }
        const int64_t now = tables_.counted ? parts_[p].last : clock;
        stop_sparing(parts_[p], now);
        shed_->lose(p, now);
    }
    float bound = 0;
    size_t equal = 0;  // how many nodes at the bound stay
    if (wanted > 0) {
        memory_.best = memory_.scores;
        const auto at = memory_.best.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
        std::nth_element(memory_.best.begin(), at, memory_.best.end(), std::greater<>());
        bound = *at;
        equal = wanted - static_cast<size_t>(std::count_if(memory_.best.begin(), memory_.best.end(),
                                                           [&](float x) { return x > bound; }));
    }
    size_t at = 0;
    for (Part& part : parts_) {
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            NodeList& list = part.lists[s];
            if (list.empty()) continue;
            taken_.assign(list.end, 0);
            for (uint32_t i = list.head; i < list.end; ++i, ++at) {
                bool stays = wanted > 0 && (memory_.scores[at] > bound || (memory_.scores[at] == bound && equal > 0));
                if (stays && memory_.scores[at] == bound) --equal;
                if (stays) continue;
                taken_[i] = 1;
                ++shed_->dropped;
            }
            keep(list, s, tables_.counted ? part.last : clock, EndReason::shed,
                 [&](uint32_t i) { return taken_[i] == 0; });
        }
    }
}

void NodeEngine::used_texts(UsedTexts& used) const {
    for (const Part& part : parts_) {
        const_cast<Part&>(part).each([&](NodeList& list, uint32_t s) {  // only read
            for (uint32_t k = 0; k < tables_.states[s].slots - (list.empty() ? 0 : admission_.hidden); ++k) {
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
    for (Part& part : parts_) {
        part.each([&](NodeList& list, uint32_t s) { list.shrink(tables_.states[s].slots); });
    }
    arena_.shrink();
    frames_.shrink();
    for (Made& made : made_) made = Made{};
    std::vector<uint32_t>().swap(all_);
    blocked_rows_.release();
    std::vector<uint8_t>().swap(blocked_);
    finder_.release();
    std::vector<uint8_t>().swap(taken_);
    std::vector<float>().swap(memory_.scores);
    std::vector<float>().swap(memory_.best);
    shed_->shrink();
    recount();
}

}  // namespace acep
