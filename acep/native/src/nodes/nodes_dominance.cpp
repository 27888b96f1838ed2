// Match points without matches: a state keeps only the nodes that no other dominates (docs/internals/dominance.md). No
// sequences of events are kept; a complete run is a match point with its error.
#include "nodes/nodes_dominance.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace acep {
namespace {

constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();
// Lists of up to this length are searched linearly.
constexpr uint32_t few = 8;
// At most so many nodes with equal registers are compared.
constexpr uint32_t most_alike = 64;
// Start of a row whose node was removed.
constexpr int64_t gone = NEVER;

// The rank of a tag, in rising order: null, numbers, unbound.
int rank(uint8_t tag) { return tag == value ? 1 : tag == null ? 0 : 2; }

// Whether the slot of row `a` ranks at least as high as that of row `b`.
bool ranks(const Demand& d, NodeList& mine, uint32_t a, NodeList& others, uint32_t b, uint32_t slots) {
    const int x = rank(mine.tags(d.slot, slots)[a]), y = rank(others.tags(d.slot, slots)[b]);
    const int64_t v = mine.slot(d.slot)[a], w = others.slot(d.slot)[b];
    if (x == 1 && d.bound != unbounded && (v > d.bound || v < -d.bound)) return false;
    if (x != 1 || y != 1) return x >= y;
    switch (d.relation) {
        case Relation::greater: return v >= w;
        case Relation::less: return v <= w;
        case Relation::greater_float: return std::bit_cast<double>(v) >= std::bit_cast<double>(w);
        case Relation::less_float: return std::bit_cast<double>(v) <= std::bit_cast<double>(w);
        default: return v == w;
    }
}

// Move rows [from, end - 1) one further, so that row `from` is free.
void open_at(NodeList& list, uint32_t from, uint32_t slots) {
    const uint32_t last = list.end - 1;
    list.each_column(slots, [&](auto* column) { std::copy_backward(column + from, column + last, column + last + 1); });
    list.moved();
}

void close_rows(NodeList& list, uint32_t from, uint32_t to, uint32_t slots) {
    list.each_column(slots, [&](auto* column) { std::copy(column + to, column + list.end, column + from); });
    list.end -= to - from;
    list.moved();
}

}  // namespace

Dominance::Dominance(const Arrays& arrays, const Tables& tables) : positions_(tables.contiguous()) {
    if (!tables.negations.empty() || !tables.having.empty() || tables.choice != Choice::all || tables.firsts) {
        throw std::invalid_argument("dominance: what becomes of a run is not told by its registers");
    }
    const size_t n = tables.states.size();
    const auto words = arrays.at("demands");
    const auto at = arrays.offsets("demands_at", n, words.size());
    for (size_t s = 0; s < n; ++s) {
        const auto first = static_cast<size_t>(at[s]), size = static_cast<size_t>(at[s + 1]) - first;
        if (size != 2 * size_t{tables.states[s].slots}) throw std::invalid_argument("dominance: slots of a state");
        Ranking ranking;
        for (uint32_t slot = 0; slot < tables.states[s].slots; ++slot) {
            const int64_t relation = words[first + 2 * slot], bound = words[first + 2 * slot + 1];
            if (relation < 0 || relation > 5 || bound < 0) throw std::invalid_argument("dominance: a demand");
            const Demand demand{slot, static_cast<Relation>(relation), bound};
            if (demand.relation == Relation::equal) ranking.equal.push_back(slot);
            if (relation > 1) ranking.ordered.push_back(demand);
        }
        // Floats without a bound are totally ordered, as none of them is NaN.
        ranking.front = ranking.equal.empty() && ranking.ordered.size() == 1 && ranking.ordered[0].bound == unbounded &&
                        tables.budget == 0;
        states.push_back(std::move(ranking));
    }
}

bool Dominance::dominates(const Ranking& r, NodeList& mine, uint32_t a, NodeList& others, uint32_t b,
                          uint32_t slots) const {
    if (mine.starts()[a] < others.starts()[b] || mine.errors()[a] > others.errors()[b]) return false;
    if (positions_ && mine.positions()[a] < others.positions()[b]) return false;
    if (!equal_registers(mine, a, others, b, slots, r.equal)) return false;
    for (const Demand& d : r.ordered) {
        if (!ranks(d, mine, a, others, b, slots)) return false;
    }
    return true;
}

uint32_t Dominance::make_row(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots, Lows lows,
                             int64_t& compared) {
    if (r.front) return bisect(r, list, new_nodes, i, slots, lows.room);
    const bool sure = r.equal.empty() && r.ordered.empty();  // at most one node per error
    if (!sure) {
        if (r.trial.pauses() || credit <= 0) return list.add(slots, lows.room);
    }
    const int64_t before = compared;
    const Verdict verdict = r.equal.empty() ? scan(r, list, new_nodes, i, slots, lows.alive, compared)
                                            : probe(r, list, new_nodes, i, slots, lows.alive, compared);
    credit -= compared - before;
    if (!sure && compared != before) {
        if (verdict.is_dominated || verdict.into != NIL) ++r.trial.met;
        if (++r.trial.seen == Trial::size) r.trial.end(r.trial.met >= Trial::size / 8);
    }
    if (verdict.is_dominated) return NIL;
    return verdict.into == NIL ? list.add(slots, lows.room) : verdict.into;
}

uint32_t Dominance::bisect(const Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots,
                           int64_t low) {
    const Demand& d = r.ordered[0];
    const int64_t start = new_nodes.starts()[i];
    const auto first = [&](uint32_t from, uint32_t to, auto&& reached) {
        while (from < to) {
            const uint32_t middle = from + (to - from) / 2;
            if (reached(middle)) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        return from;
    };
    // Most nodes are added at the end of a list.
    const bool newest = list.empty() || list.starts()[list.end - 1] < start;
    const uint32_t same_start =
        newest ? list.end : first(list.head, list.end, [&](uint32_t k) { return list.starts()[k] >= start; });
    if (same_start < list.end && ranks(d, list, same_start, new_nodes, i, slots)) return NIL;
    const uint32_t later =
        newest ? list.end : first(same_start, list.end, [&](uint32_t k) { return list.starts()[k] > start; });
    const uint32_t worse = first(list.head, later, [&](uint32_t k) { return ranks(d, new_nodes, i, list, k, slots); });
    for (uint32_t k = worse; k < later; ++k) log_removal(list, k);
    if (worse < later) {  // the new node takes the first removed row
        if (later - worse > 1) close_rows(list, worse + 1, later, slots);
        return worse;
    }
    const uint32_t after = list.end - later;
    list.add(slots, low);
    const uint32_t to = list.end - 1 - after;
    if (after != 0) open_at(list, to, slots);
    return to;
}

// Expired nodes count as removed, as the time of their removal does not depend on the events alone.
Dominance::Verdict Dominance::scan(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots,
                                   int64_t low, int64_t& compared) {
    Verdict verdict;
    uint32_t more = 0;
    const bool sure = r.equal.empty() && r.ordered.empty();
    const int64_t most = compared + (sure ? list.size() : std::clamp<int64_t>(credit, few, most_credit));
    for (uint32_t k = list.end; k-- > list.head && compared < most;) {
        if (list.starts()[k] < low) continue;
        ++compared;
        if (dominates(r, list, k, new_nodes, i, slots)) return {true, NIL};
        if (!dominates(r, new_nodes, i, list, k, slots)) continue;
        log_removal(list, k);
        if (verdict.into != NIL) {
            list.starts()[verdict.into] = gone;
            ++more;
        }
        verdict.into = k;  // the earliest of them
    }
    if (more != 0) {
        list.starts()[verdict.into] = new_nodes.starts()[i];
        uint32_t kept = 0, to = 0;
        list.keep(slots, [&](uint32_t k) {
            if (k == verdict.into) to = kept;
            const bool stays = list.starts()[k] != gone;
            kept += stays ? 1u : 0u;
            return stays;
        });
        verdict.into = to;
    }
    return verdict;
}

// If registers must be equal, only nodes with equal registers are compared and counted: the positions of others depend
// on text codes, which depend on the batches. In long lists, an index leads to the last such node, and each of them to
// the one before it.
Dominance::Verdict Dominance::probe(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots,
                                    int64_t low, int64_t& compared) {
    Verdict verdict;
    const int64_t most = compared + std::min<int64_t>(credit + few, most_alike);
    // Whether row `k` dominates the node; if the node dominates row `k`, that row is removed.
    const auto is_dominated = [&](uint32_t k) {
        ++compared;
        if (dominates(r, list, k, new_nodes, i, slots)) return true;
        if (!dominates(r, new_nodes, i, list, k, slots)) return false;
        log_removal(list, k);
        if (verdict.into == NIL) {
            verdict.into = k;
        } else {
            list.starts()[k] = list.oldest = gone;
            list.sorted = false;
        }
        return false;
    };
    if (list.size() <= few) {
        for (uint32_t k = list.end; k-- > list.head && compared < most;) {
            if (list.starts()[k] < low || !equal_registers(list, k, new_nodes, i, slots, r.equal)) continue;
            if (is_dominated(k)) return {true, NIL};
        }
        return verdict;
    }
    const size_t places = std::bit_ceil(size_t{list.capacity()} * 2);
    if (list.index.size() != places || list.before.size() != list.capacity() || list.indexed == 0) {
        list.index.assign(places, NIL);
        list.before.assign(list.capacity(), NIL);
        list.indexed = 0;
    }
    const auto place_of = [&](NodeList& nodes, uint32_t row) {
        size_t at = hash_registers(nodes, row, 0, slots, r.equal) & (places - 1);
        while (list.index[at] != NIL && !equal_registers(list, list.index[at], nodes, row, slots, r.equal))
            at = (at + 1) & (places - 1);
        return at;
    };
    for (uint32_t k = std::max(list.indexed, list.head); k < list.end; ++k) {
        if (list.starts()[k] < low) continue;  // its text codes may have been reused
        const size_t at = place_of(list, k);
        list.before[k] = list.index[at];
        list.index[at] = k;
    }
    list.indexed = list.end;
    uint32_t* const first = &list.index[place_of(new_nodes, i)];
    for (uint32_t* link = first; *link != NIL && *link >= list.head && compared < most;) {
        const uint32_t k = *link;
        if (list.starts()[k] >= low) {
            if (is_dominated(k)) return {true, NIL};
            link = &list.before[k];
        } else if (link != first || list.before[k] != NIL) {
            *link = list.before[k];
        } else {
            break;  // an empty place would cut off other entries
        }
    }
    return verdict;
}

}  // namespace acep
