// Choice of the nodes of a list that stay, by their utility buckets and their ranks.
#include "shedding/eviction.hpp"

#include <cmath>
#include <numeric>

namespace acep {
namespace {

constexpr uint32_t few = 32;           // lists of up to this length are sorted; in longer ones, buckets are counted
constexpr uint32_t least_limit = 2;    // lists of up to this length are not pruned for their growth
constexpr int64_t looks = 16;          // a list is pruned for its age at most so many times per window
constexpr uint32_t most_patience = 3;  // or less often, by up to 2 to the power of this

}  // namespace

void Eviction::evict(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low, int64_t arcs) {
    if (!budget_.limited()) return;
    if (budget_.sheds()) {
        drop_oldest(list, state, partition, now, low);
        if (list.empty()) return list.clear();
        const bool old =
            tables_.span >= 0 && apart(now, list.pruned_at) > tables_.span / looks * (int64_t{1} << list.patience);
        const bool grown =
            list.size() > std::max(list.limit, least_limit) || budget_.threshold() > list.pruned_threshold + 2;
        if (grown || old) prune(list, state, partition, now, low, grown);
    }
    if (!budget_.affords(list.size() * arcs + 1)) drop_unaffordable(list, state, partition, now, arcs);
}

// The oldest usually have the least utility: they are dropped first, without checking the others.
void Eviction::drop_oldest(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low) {
    while (list.popped != list.births && !list.empty() && list.starts()[list.head] >= low && budget_.tokens() >= 1) {
        const uint32_t row = list.head;
        budget_.count_decisions();
        const Mark mark = utilities_.complete_mark(list, row, state, partition);
        const uint32_t bucket = utilities_.bucket(list, row, state, mark, now);
        if (bucket != 0 && static_cast<double>(bucket) >= budget_.threshold()) break;
        drop(list, row, state, now);
        ++list.head;
    }
    list.popped = list.births;
}

void Eviction::drop_unaffordable(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t arcs) {
    const double most = std::max(0.0, budget_.afforded()) / static_cast<double>(arcs);
    if (static_cast<double>(list.size()) <= most) return;
    // The newest stay.
    if (budget_.in_sample()) sample_.record_loss(partition, now);
    budget_.count_shortfall(
        static_cast<int64_t>((static_cast<double>(list.size()) - most) * static_cast<double>(arcs)));
    const uint32_t from = list.end - static_cast<uint32_t>(most);
    for (uint32_t i = list.head; i < from; ++i) drop(list, i, state, now);
    list.keep(slots_.slots(state), [&](uint32_t i) { return i >= from; });
}

uint32_t Eviction::choose_few(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    const double decay = table_.decay[state], threshold = budget_.threshold();
    // One number ranks each node: by utility bucket, then by `ties`, then by age in the list (newest first, or oldest
    // first if `ties` is oldest).
    uint64_t order[few];
    uint32_t wanted = 0, least = SheddingTable::most_level;
    for (uint32_t i = 0; i < n; ++i) {
        if (static_cast<double>(buckets_[i]) < threshold) buckets_[i] = 0;
        if (buckets_[i] == 0) continue;
        least = std::min(least, buckets_[i]);
        ++wanted;
    }
    if (wanted == 0 || static_cast<double>(least) >= threshold + decay * (wanted - 1)) return wanted;
    wanted = 0;
    const int64_t* starts = list.starts() + list.head;
    const bool by_start = table_.ties != SheddingTable::random && !std::is_sorted(starts, starts + n);
    for (uint32_t i = 0; i < n; ++i) {
        if (buckets_[i] == 0) continue;
        uint64_t tie = 0;
        if (table_.ties == SheddingTable::random) {
            tie = uint64_t{slots_.mark(list, list.head + i, state).chance};
        } else if (by_start) {
            uint32_t earlier = 0;
            for (uint32_t k = 0; k < n; ++k) earlier += starts[k] < starts[i] ? 1u : 0u;
            tie = table_.ties == SheddingTable::newest ? earlier : n - earlier;
        }
        const uint64_t last = table_.ties == SheddingTable::oldest ? n - i : i;
        const uint64_t own = uint64_t{buckets_[i]} << 32 | tie << 16 | last << 8 | i;
        uint32_t at = wanted++;
        for (; at > 0 && order[at - 1] < own; --at) order[at] = order[at - 1];
        order[at] = own;
    }
    uint32_t rank = 0;
    while (rank < wanted && static_cast<double>(order[rank] >> 32) >= threshold + decay * rank) ++rank;
    for (uint32_t k = rank; k < wanted; ++k) buckets_[order[k] & 0xFF] = 0;
    return rank;
}

uint32_t Eviction::choose(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    if (n <= few) return choose_few(list, state);
    const double decay = table_.decay[state], threshold = budget_.threshold();
    const auto better = [&](uint32_t a, uint32_t b) {
        if (table_.ties == SheddingTable::random) {
            const uint8_t x = slots_.mark(list, list.head + a, state).chance,
                          y = slots_.mark(list, list.head + b, state).chance;
            return x != y ? x > y : a > b;
        }
        const int64_t x = list.starts()[list.head + a], y = list.starts()[list.head + b];
        const bool newest = table_.ties == SheddingTable::newest;
        return x != y ? (newest ? x > y : x < y) : (newest ? a > b : a < b);
    };
    uint32_t kept = 0, rank = 0;
    rows_.clear();
    uint32_t at_level[256] = {}, stays[256] = {};
    for (uint32_t i = 0; i < n; ++i) ++at_level[buckets_[i]];
    for (auto l = static_cast<uint32_t>(SheddingTable::most_level); l > 0 && static_cast<double>(l) >= threshold; --l) {
        if (at_level[l] == 0) continue;
        const double most =
            decay > 0 ? std::floor((static_cast<double>(l) - threshold) / decay) + 1 : static_cast<double>(n);
        const uint32_t room = most <= rank ? 0 : static_cast<uint32_t>(std::min(most, static_cast<double>(n))) - rank;
        stays[l] = std::min(at_level[l], room);
        rank += stays[l];
        kept += stays[l];
        if (stays[l] < at_level[l]) break;
    }
    // If only a part of a bucket stays, it is the first ones by `ties`.
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t l = buckets_[i];
        if (stays[l] == at_level[l] && l != 0) continue;
        if (stays[l] == 0) {
            buckets_[i] = 0;
        } else {
            rows_.push_back(i);
        }
    }
    if (rows_.empty()) return kept;
    const uint32_t wanted = stays[buckets_[rows_[0]]];
    std::nth_element(rows_.begin(), rows_.begin() + wanted, rows_.end(), better);
    for (size_t k = wanted; k < rows_.size(); ++k) buckets_[rows_[k]] = 0;
    return kept;
}

void Eviction::look_up(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low) {
    const uint32_t n = list.size(), slots = slots_.slots(state);
    if (buckets_.size() < n) buckets_.resize(n);
    const int64_t *starts = list.starts(), *made = list.slot(slots - 2), *marks = list.slot(slots - 1);
    const int32_t* errors = list.errors();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t k = list.head + i;
        if (starts[k] < low) {
            buckets_[i] = 0;
            continue;
        }
        if (marks[k] < 0) utilities_.complete_mark(list, k, state, partition);
        buckets_[i] = utilities_.bucket(state, errors[k], starts[k], made[k], Mark::of(marks[k]), now, list.births);
    }
}

void Eviction::prune(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low, bool grown) {
    const uint32_t n = list.size();
    if (budget_.tokens() < static_cast<double>(n) / TouchBudget::decisions_a_touch + 1) return;
    budget_.count_decisions(n);
    list.pruned_at = now;
    list.pruned_threshold = budget_.threshold();
    look_up(list, state, partition, now, low);
    const uint32_t kept = choose(list, state);
    // If pruning for age removed few nodes, the next one is later.
    list.patience = grown ? list.patience : 4 * (n - kept) > n ? 0 : std::min(list.patience + 1, most_patience);
    list.limit = 2 * kept;
    if (kept == n) return;
    const uint32_t head = list.head;
    for (uint32_t i = 0; i < n; ++i) {
        if (buckets_[i] != 0) continue;
        if (const int64_t start = list.starts()[head + i]; start < low) {
            log_.log_end(list, head + i, state, tables_.expiry(start), EndReason::expired);
        } else {
            drop(list, head + i, state, now);
        }
    }
    list.keep(slots_.slots(state), [&](uint32_t i) { return buckets_[i - head] != 0; });
}

void Eviction::score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores) {
    const uint32_t n = list.size();
    const size_t from = scores.size();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t row = list.head + i;
        const Mark mark = slots_.mark(list, row, state);
        const auto place = static_cast<float>(i) / static_cast<float>(n);  // rises from old to new
        const float tie = table_.ties == SheddingTable::newest   ? place
                          : table_.ties == SheddingTable::oldest ? 1 - place
                                                                 : static_cast<float>(mark.chance) / 64;
        scores.push_back(static_cast<float>(utilities_.bucket(list, row, state, mark, now)) + tie / 2);
    }
    const auto decay = static_cast<float>(table_.decay[state]);
    if (decay == 0) return;
    rows_.resize(n);
    std::iota(rows_.begin(), rows_.end(), 0u);
    std::sort(rows_.begin(), rows_.end(), [&](uint32_t a, uint32_t b) {
        const float x = scores[from + a], y = scores[from + b];
        return x != y ? x > y : a > b;
    });
    for (uint32_t rank = 0; rank < n; ++rank) scores[from + rows_[rank]] -= decay * static_cast<float>(rank);
}

void Eviction::shrink() {
    std::vector<uint32_t>().swap(buckets_);
    std::vector<uint32_t>().swap(rows_);
}

}  // namespace acep
