// The bound on bytes (nodes/memory_guard.hpp).
#include "nodes/memory_guard.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace acep {
namespace {

constexpr int64_t least_rows = 8;  // nodes that every list has room for
constexpr int64_t cell_bytes = 2 * sizeof(Cell) + sizeof(int64_t) + sizeof(uint32_t);  // and compaction
constexpr int64_t event_bytes = 2 * sizeof(BoundEvent) + sizeof(uint32_t);
// While nodes are not watched, containers are charged with half more than their content: they may reserve twice as much
// before all are shrunk.
constexpr int64_t resting_cell_bytes = 3 * sizeof(Cell) / 2 + sizeof(int64_t) + sizeof(uint32_t);
constexpr int64_t resting_event_bytes = 3 * sizeof(BoundEvent) / 2 + sizeof(uint32_t);
constexpr int64_t row_bytes = 2 * (sizeof(uint32_t) * 4 + 1) + 2 * sizeof(float);  // rows, errors, levels and scores
constexpr int64_t partition_bytes = 2 * sizeof(PartitionNodes) + 2 + Shedding::unit_bytes;
constexpr int64_t cells_each = 3;  // of a node at most, besides those of its pasts
constexpr int64_t ring_size = 64;  // initial elements of a ring
constexpr int most_tries = 6;
// The content is weighed after at most `often` events and at least `rarely` nodes, and after more of both where more
// than so many lists have to be looked at for each of them.
constexpr int64_t rarely = 64, looks_a_step = 16;
constexpr int64_t cautious = 64;  // a part of the pool in so many is left free between two weighings

}  // namespace

int64_t MemoryGuard::list_bytes(const NodeList& list, uint32_t state) const {
    if (list.empty()) return 0;
    const int64_t n = list.size();
    const int64_t index = points_only_ ? 40 : merging_.may_equal_earlier(state) ? 32 : 0;
    if (!is_bounded()) return std::max(least_rows, n + n / 2) * node_bytes(state) + n * index;
    return std::max(least_rows, 2 * n) * node_bytes(state) + n * (index + row_bytes);
}

StoredBytes MemoryGuard::bytes_of(const PartitionNodes& part) const {
    StoredBytes total;
    if (part.lists.empty()) return total;
    total.charged = total.reserved = heap_bytes(part.lists, part.shadow);
    const_cast<PartitionNodes&>(part).each([&](const NodeList& list, uint32_t s) {  // only read
        total.charged += list_bytes(list, s);
        total.reserved += list.bytes();
    });
    return total;
}

void MemoryGuard::recount() {
    stored_ = {};
    for (const PartitionNodes& part : store_.partitions()) stored_ += bytes_of(part);
}

int64_t MemoryGuard::charged() const {
    const int64_t cell = is_bounded() ? cell_bytes : resting_cell_bytes;
    const int64_t event = is_bounded() ? event_bytes : resting_event_bytes;
    return stored_.charged + static_cast<int64_t>(store_.partitions().size()) * partition_bytes +
           int64_t{partitions_.size()} * partitions_.bytes_each() + int64_t{arena_.cells.size()} * cell +
           int64_t{arena_.events.size()} * event + int64_t{frames_.size()} * FrameStore::bytes_each;
}

int64_t MemoryGuard::least_bound() const {
    int64_t fixed = ring_size * static_cast<int64_t>(sizeof(Cell) + sizeof(BoundEvent) + sizeof(Frame)) +
                    shedding_.any()->table_bytes() + 4096;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        fixed += 2 * least_rows * watched_node_bytes(s) + static_cast<int64_t>(sizeof(NodeList));
    }
    return fixed;
}

void MemoryGuard::set_bound(int64_t bytes, int64_t clock) {
    bound_ = bytes;
    distant_bound_ = -1;
    recount();
    shedding_.active()->bound_log(bytes / 8);
    most_new_ = bytes / 8;
    most_matches_ = bytes / 2;
    pool_ = pool_of(bytes);
    if (give_up_above_ == 0 || give_up_above_ > pool_) give_up_above_ = pool_ - pool_ / 8;
    if (charged() > pool_) give_up(clock);
}

int64_t MemoryGuard::pool_of(int64_t bytes) const { return std::max<int64_t>(0, bytes - bytes / 4 - least_bound()); }

void MemoryGuard::set_distant_bound(int64_t bytes) {
    distant_bound_ = bytes;
    most_matches_ = bytes / 2;
    // To weigh takes a look at each list, and policies set the bound again at each epoch.
    const int64_t pool = std::max<int64_t>(0, bytes - bytes / 16 - least_bound());
    change_pool(std::exchange(pool_, pool), pool);
    node_charge_ = most_node_bytes() + first_nodes_bytes();
    new_charge_ = most_new_node_bytes();
    const auto lists = static_cast<int64_t>(tables_.states.size());
    partition_charge_ = partition_bytes + partitions_.bytes_each() +
                        lists * (2 * static_cast<int64_t>(sizeof(NodeList)) + first_nodes_bytes());
}

int64_t MemoryGuard::most_node_bytes() const {
    int64_t most = 0;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        int64_t puts = 0;
        for (const Arc& arc : tables_.states[s].arcs) puts = std::max(puts, static_cast<int64_t>(arc.puts.size()));
        const int64_t beside = cells_each * cell_bytes + event_bytes + puts * FrameStore::bytes_each;
        most = std::max(most, 2 * node_bytes(s) + row_bytes + 40 + beside);
    }
    return most;
}

int64_t MemoryGuard::most_new_node_bytes() const {
    int64_t most = 0;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) most = std::max(most, new_node_bytes(s));
    return most;
}

int64_t MemoryGuard::first_nodes_bytes() const {
    int64_t most = 0;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) most = std::max(most, least_rows * node_bytes(s));
    return most;
}

bool MemoryGuard::is_near(int64_t clock, int64_t number, int64_t nodes, int64_t bytes_of_event) {
    const bool was_near = next_weighing_ == 0 && weighed_nodes_ > 0;
    weighed_partitions_ = static_cast<int64_t>(store_.partitions().size());
    weighed_nodes_ = nodes;
    next_weighing_ = number + std::max(often, lists() / looks_a_step);
    // When it is weighed next must not depend on what has not expired yet, as that depends on batches.
    weighed_room_ = std::max(pool_ / cautious, std::max(rarely, lists() / looks_a_step) * node_charge_);
    const int64_t most =
        resting_pool(pool_) - weighed_room_ - partition_charge_ - std::max<int64_t>(0, bytes_of_event - pool_ / 16);
    recount();
    if (charged() > most) {
        free_expired(clock);
        recount();
    }
    note_bytes(charged() + least_bound());
    if (charged() <= most) return false;
    // Partitions that are done with are forgotten before the next event. If that does not help, the bound is near.
    if (!was_near) weigh_at_once();
    return was_near;
}

void MemoryGuard::begin_stretch(int64_t number) {
    if (number / stretch_events == stretch_) return;
    stretch_ = number / stretch_events;
    matches_bytes_ = 0;
}

void MemoryGuard::free_for_event(int64_t clock) {
    if (tables_.timed()) store_.free_by_age(clock);
    if (charged() < pool_ - pool_ / 4) give_up_above_ = pool_ - pool_ / 8;
    if (charged() > give_up_above_) give_up(clock);
    coming_ = 0;
    const int64_t copies = shedding_.active()->sample.any() ? 2 : 1;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        coming_ += copies * (least_rows * node_bytes(s) + static_cast<int64_t>(sizeof(NodeList)));
    }
}

bool MemoryGuard::has_room_for(const Arc& arc) {
    const int64_t new_bytes = new_node_bytes(arc.target);
    if (coming_new_ + new_bytes > most_new_) return false;
    int64_t coming = 0;
    if (!tables_.states[arc.target].arcs.empty()) {
        const int64_t cells = points_only_ ? 0 : cells_each * cell_bytes;
        coming = 2 * node_bytes(arc.target) + row_bytes + 40 + cells;
    }
    for (const Put& p : arc.puts) coming += p.write == Write::frames ? FrameStore::bytes_each : 0;
    if (coming > 0 && charged() + coming_ + event_bytes + coming > pool_) return false;
    coming_new_ += new_bytes;
    coming_ += coming;
    return true;
}

bool MemoryGuard::has_room_for_partition() const {
    const int64_t needed = partitions_.has_free() ? 0 : partitions_.bytes_each() + partition_bytes;
    return charged() + coming_ + needed <= pool_;
}

bool MemoryGuard::end_event() {
    const bool made_many = coming_new_ > most_new_ / 8;
    coming_ = coming_new_ = 0;
    return made_many;
}

bool MemoryGuard::may_write(size_t length, size_t written) {
    const auto size = static_cast<int64_t>(5 * sizeof(int64_t) + partitions_.width() * sizeof(int64_t) +
                                           length * (sizeof(int64_t) + sizeof(uint16_t)));
    if (matches_bytes_ + size > most_matches_ && written > matches_before_) return false;
    matches_bytes_ += size;
    matches_peak_ = std::max(matches_peak_, matches_bytes_);
    return true;
}

// Giving up --------------------------------------------------------------------------------------

void MemoryGuard::free_expired(int64_t clock) {
    const int64_t low = tables_.counted ? NEVER + 1 : earliest(clock, tables_.span);
    for (PartitionNodes& part : store_.partitions()) {
        const int64_t part_low =
            tables_.counted && part.last_position >= 0 ? earliest(part.last_position, tables_.span) : low;
        part.each([&](NodeList& list, uint32_t s) {
            if (!list.empty()) store_.drop_expired(list, s, part_low, part_low + tables_.span);
        });
    }
    store_.compact_cells(low);
    store_.compact_frames();
}

void MemoryGuard::give_up(int64_t clock) {
    gave_up_ = true;
    const int64_t target = pool_ - pool_ / 4;
    for (int tried = 0;; ++tried) {
        free_expired(clock);
        recount();
        if (charged() <= target || tried == most_tries) break;
        const double share = share_to_keep(target);
        if (share < 0) break;
        keep_best(tried + 1 == most_tries ? 0 : share * (tried == 0 ? 1 : 0.75), clock);
    }
    give_up_above_ = std::max(pool_ - pool_ / 8, charged() + pool_ / 16);
}

double MemoryGuard::share_to_keep(int64_t target) {
    int64_t rows = 0, nodes = 0;
    for (PartitionNodes& part : store_.partitions()) {
        part.each([&](const NodeList& list, uint32_t s) {
            rows += list_bytes(list, s);
            nodes += list.size();
        });
    }
    if (nodes == 0) return -1;
    const int64_t node_bytes_used = rows + int64_t{arena_.cells.size()} * cell_bytes +
                                    int64_t{arena_.events.size()} * event_bytes +
                                    int64_t{frames_.size()} * static_cast<int64_t>(sizeof(Frame));
    const double share =
        static_cast<double>(target - (charged() - node_bytes_used)) / static_cast<double>(node_bytes_used);
    return std::clamp(share, 0.0, 1.0);
}

void MemoryGuard::give_up_partition(uint32_t partition, int64_t clock) {
    PartitionNodes* const part = store_.find(partition);
    if (part == nullptr) return;
    Shedding& shed = *shedding_.active();
    const StoredBytes before = bytes_of(*part);
    const int64_t now = store_.now(*part, clock);
    for (uint32_t s = 0; s < part->lists.size(); ++s) {
        shed.eviction.dropped += part->lists[s].size();
        store_.drop_all(part->lists[s], s, now, EndReason::shed);
    }
    if (!part->shadow.empty()) {
        store_.drop_shadow(*part, now);
        shed.sample.record_loss(partition, now);
    }
    update_charged(*part, before);
    give_up_above_ = 0;  // its memory is freed before the next event
}

void MemoryGuard::keep_best(double share, int64_t clock) {
    scores_.clear();
    for (PartitionNodes& part : store_.partitions()) {
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            if (part.lists[s].empty()) continue;
            shedding_.active()->eviction.score(part.lists[s], s, store_.now(part, clock), scores_);
        }
    }
    const auto wanted = static_cast<size_t>(static_cast<double>(scores_.size()) * share);
    limit_shadow(wanted / 4, clock);
    keep_highest(wanted, clock);
}

void MemoryGuard::limit_shadow(size_t room, int64_t clock) {
    auto& partitions = store_.partitions();
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        size_t size = 0;
        for (const NodeList& list : partitions[p].shadow) size += list.size();
        if (size <= room) {
            room -= size;
            continue;
        }
        const int64_t now = store_.now(partitions[p], clock);
        store_.drop_shadow(partitions[p], now);
        shedding_.active()->sample.record_loss(p, now);
    }
}

void MemoryGuard::keep_highest(size_t wanted, int64_t clock) {
    float bound = 0;
    size_t equal = 0;  // how many nodes at the bound stay
    if (wanted > 0) {
        best_ = scores_;
        const auto last = best_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
        std::nth_element(best_.begin(), last, best_.end(), std::greater<>());
        bound = *last;
        equal = wanted - static_cast<size_t>(std::ranges::count_if(best_, [&](float x) { return x > bound; }));
    }
    size_t number = 0;
    for (PartitionNodes& part : store_.partitions()) {
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            NodeList& list = part.lists[s];
            if (list.empty()) continue;
            is_dropped_.assign(list.end, 0);
            for (uint32_t i = list.head; i < list.end; ++i, ++number) {
                const float score = scores_[number];
                const bool stays = wanted > 0 && (score > bound || (score == bound && equal > 0));
                if (stays && score == bound) --equal;
                if (stays) continue;
                is_dropped_[i] = 1;
                ++shedding_.active()->eviction.dropped;
            }
            store_.keep(list, s, store_.now(part, clock), EndReason::shed,
                        [&](uint32_t i) { return is_dropped_[i] == 0; });
        }
    }
}

}  // namespace acep
