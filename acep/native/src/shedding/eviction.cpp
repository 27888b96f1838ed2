// Choice of the nodes of a list that stay, by their utility buckets and their ranks.
#include "shedding/shedding.hpp"

#include <cmath>
#include <numeric>

namespace acep {
namespace {

constexpr uint32_t few = 32;           // lists of up to this length are sorted; in longer ones, buckets are counted
constexpr uint32_t least_limit = 2;    // lists of up to this length are not pruned for their growth
constexpr int64_t looks = 16;          // a list is pruned for its age at most so many times per window
constexpr uint32_t most_patience = 3;  // or less often, by up to 2 to the power of this

}  // namespace

double Shedding::number(NodeList& list, uint32_t row, uint32_t slots, const Term& term, uint32_t partition) const {
    return number(term, partition, [&](bool second, int64_t& word) {
        const uint32_t slot = second ? term.b : term.a;
        word = list.slot(slot)[row];
        return list.tags(slot, slots)[row] == value;
    });
}

uint8_t Shedding::worth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) const {
    double total = 0;
    for (const Term& term : table_.terms[state]) {
        if (!term.worth.empty())
            total += static_cast<double>(term.of(number(list, row, tables_.states[state].slots, term, partition)));
    }
    return added(total);
}

int64_t Shedding::utility(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, int64_t now) const {
    if (table_.level.empty()) return -1;
    Mark own = mark(list, row, state);
    if (own.put_off) own.feature = worth(list, row, state, partition);
    return level(state, list.errors()[row], list.starts()[row], made(list, row, state), own, now, list.births);
}

bool Shedding::weigh(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark own) {
    const bool free = price <= 0 || shadow;
    if (!table_.terms.empty()) {
        own.put_off = tells_[state] != 0 && free && !bounded();
        puts_off_ = puts_off_ || own.put_off;
        const bool computes = tells_[state] != 0 && !own.put_off;
        weighed += computes ? 1 : 0;
        own.feature = computes ? worth(made, row, state, partition) : 128;
    }
    if (table_.noise > 0) own.chance = chance() >> 2;
    set_mark(made, row, state, own);
    if (free) return true;
    if (!affords()) {
        ++refused;
        return false;
    }
    ++decided;
    const uint32_t found = level(state, made.errors()[row], made.starts()[row], now, own, now, own.birth);
    if (found != 0 && static_cast<double>(found) >= price) return true;
    ++refused;
    return false;
}

void Shedding::catch_up(NodeList& list, uint32_t state, uint32_t partition) {
    for (uint32_t row = list.head; row < list.end; ++row) whole_mark(list, row, state, partition);
}

void Shedding::drop(NodeList& list, uint32_t row, uint32_t state, int64_t now) {
    ++dropped;
    died(list, row, state, now, EndReason::shed);
}

void Shedding::tend(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs) {
    if (!limited()) return;
    if (price > 0 && !shadow) {
        // The oldest nodes usually have the least utility: they are dropped first, without checking the others.
        while (list.popped != list.births && !list.empty() && list.starts()[list.head] >= low && tokens() >= 1) {
            const uint32_t row = list.head;
            ++decided;
            const uint32_t own = level(state, list.errors()[row], list.starts()[row], made(list, row, state),
                                       whole_mark(list, row, state, here_), now, list.births);
            if (own != 0 && static_cast<double>(own) >= price) break;
            drop(list, row, state, now);
            ++list.head;
        }
        list.popped = list.births;
        if (list.empty()) return list.clear();
        const bool old =
            tables_.span >= 0 && apart(now, list.tended) > tables_.span / looks * (int64_t{1} << list.patience);
        const bool grown = list.size() > std::max(list.limit, least_limit) || price > list.price + 2;
        if (grown || old) prune(list, state, now, low, grown);
    }
    if (affords(list.size() * arcs + 1)) return;
    const double most = std::max(0.0, afforded()) / static_cast<double>(arcs);
    if (static_cast<double>(list.size()) <= most) return;
    // The newest stay.
    if (shadow) lose(now);
    pace_.denied += static_cast<int64_t>((static_cast<double>(list.size()) - most) * static_cast<double>(arcs));
    const uint32_t from = list.end - static_cast<uint32_t>(most);
    for (uint32_t i = list.head; i < from; ++i) {
        ++dropped;
        died(list, i, state, now, EndReason::shed);
    }
    list.keep(tables_.states[state].slots, [&](uint32_t i) { return i >= from; });
}

// The same as `choose` for short lists, by sorting.
uint32_t Shedding::choose_few(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    const double decay = table_.decay[state];
    // One number ranks each node: by utility bucket, then by `ties`, then by age in the list (newest first, or oldest
    // first if `ties` is oldest).
    uint64_t order[few];
    uint32_t wanted = 0, least = SheddingTable::most_level;
    for (uint32_t i = 0; i < n; ++i) {
        if (static_cast<double>(levels_[i]) < price) levels_[i] = 0;
        if (levels_[i] == 0) continue;
        least = std::min(least, levels_[i]);
        ++wanted;
    }
    if (wanted == 0 || static_cast<double>(least) >= price + decay * (wanted - 1)) return wanted;
    wanted = 0;
    const int64_t* starts = list.starts() + list.head;
    const bool by_start = table_.ties != SheddingTable::random && !std::is_sorted(starts, starts + n);
    for (uint32_t i = 0; i < n; ++i) {
        if (levels_[i] == 0) continue;
        uint64_t tie = 0;
        if (table_.ties == SheddingTable::random) {
            tie = uint64_t{mark(list, list.head + i, state).chance};
        } else if (by_start) {
            uint32_t earlier = 0;
            for (uint32_t k = 0; k < n; ++k) earlier += starts[k] < starts[i] ? 1u : 0u;
            tie = table_.ties == SheddingTable::newest ? earlier : n - earlier;
        }
        const uint64_t last = table_.ties == SheddingTable::oldest ? n - i : i;
        const uint64_t own = uint64_t{levels_[i]} << 32 | tie << 16 | last << 8 | i;
        uint32_t at = wanted++;
        for (; at > 0 && order[at - 1] < own; --at) order[at] = order[at - 1];
        order[at] = own;
    }
    uint32_t rank = 0;
    while (rank < wanted && static_cast<double>(order[rank] >> 32) >= price + decay * rank) ++rank;
    for (uint32_t k = rank; k < wanted; ++k) levels_[order[k] & 0xFF] = 0;
    return rank;
}

// Choose nodes of a list: in order from the best, node r stays if its bucket is at least the threshold plus r times
// `decay`. Set the buckets of the others to 0, and return how many stay.
uint32_t Shedding::choose(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    if (n <= few) return choose_few(list, state);
    const double decay = table_.decay[state];
    const auto better = [&](uint32_t a, uint32_t b) {
        if (table_.ties == SheddingTable::random) {
            const uint8_t x = mark(list, list.head + a, state).chance, y = mark(list, list.head + b, state).chance;
            return x != y ? x > y : a > b;
        }
        const int64_t x = list.starts()[list.head + a], y = list.starts()[list.head + b];
        const bool newest = table_.ties == SheddingTable::newest;
        return x != y ? (newest ? x > y : x < y) : (newest ? a > b : a < b);
    };
    uint32_t kept = 0, rank = 0;
    rows_.clear();
    uint32_t at_level[256] = {}, stays[256] = {};
    for (uint32_t i = 0; i < n; ++i) ++at_level[levels_[i]];
    for (auto l = static_cast<uint32_t>(SheddingTable::most_level); l > 0 && static_cast<double>(l) >= price; --l) {
        if (at_level[l] == 0) continue;
        const double most =
            decay > 0 ? std::floor((static_cast<double>(l) - price) / decay) + 1 : static_cast<double>(n);
        const uint32_t room = most <= rank ? 0 : static_cast<uint32_t>(std::min(most, static_cast<double>(n))) - rank;
        stays[l] = std::min(at_level[l], room);
        rank += stays[l];
        kept += stays[l];
        if (stays[l] < at_level[l]) break;
    }
    // If only a part of a bucket stays, it is the first ones by `ties`.
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t l = levels_[i];
        if (stays[l] == at_level[l] && l != 0) continue;
        if (stays[l] == 0) {
            levels_[i] = 0;
        } else {
            rows_.push_back(i);
        }
    }
    if (rows_.empty()) return kept;
    const uint32_t wanted = stays[levels_[rows_[0]]];
    std::nth_element(rows_.begin(), rows_.begin() + wanted, rows_.end(), better);
    for (size_t k = wanted; k < rows_.size(); ++k) levels_[rows_[k]] = 0;
    return kept;
}

void Shedding::prune(NodeList& list, uint32_t state, int64_t now, int64_t low, bool grown) {
    const uint32_t n = list.size();
    if (tokens() < static_cast<double>(n) / decided_a_touch + 1) return;
    decided += n;
    list.tended = now;
    list.price = price;
    if (levels_.size() < n) levels_.resize(n);
    const uint32_t slots = tables_.states[state].slots;
    const int64_t *starts = list.starts(), *births = list.slot(slots - 2), *marks = list.slot(slots - 1);
    const int32_t* errors = list.errors();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t k = list.head + i;
        if (starts[k] < low) {
            levels_[i] = 0;
            continue;
        }
        if (marks[k] < 0) whole_mark(list, k, state, here_);
        levels_[i] = level(state, errors[k], starts[k], births[k], Mark::of(marks[k]), now, list.births);
    }
    const uint32_t kept = choose(list, state);
    // If pruning for age removed few nodes, the next one is later.
    list.patience = grown ? list.patience : 4 * (n - kept) > n ? 0 : std::min(list.patience + 1, most_patience);
    list.limit = 2 * kept;
    if (kept == n) return;
    const uint32_t head = list.head;
    for (uint32_t i = 0; i < n; ++i) {
        if (levels_[i] != 0) continue;
        if (list.starts()[head + i] < low) {
            died(list, head + i, state, expiry(list.starts()[head + i]), EndReason::expired);
        } else {
            drop(list, head + i, state, now);
        }
    }
    list.keep(tables_.states[state].slots, [&](uint32_t i) { return levels_[i - head] != 0; });
}

void Shedding::score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores) {
    const uint32_t n = list.size();
    const size_t from = scores.size();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t row = list.head + i;
        const Mark own = mark(list, row, state);
        const auto place = static_cast<float>(i) / static_cast<float>(n);  // rises from old to new
        const float tie = table_.ties == SheddingTable::newest   ? place
                          : table_.ties == SheddingTable::oldest ? 1 - place
                                                                 : static_cast<float>(own.chance) / 64;
        const uint32_t found =
            level(state, list.errors()[row], list.starts()[row], made(list, row, state), own, now, list.births);
        scores.push_back(static_cast<float>(found) + tie / 2);
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

}  // namespace acep
