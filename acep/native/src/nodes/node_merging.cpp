// The union of equal nodes (nodes/node_merging.hpp).
#include "nodes/node_merging.hpp"

#include <algorithm>
#include <bit>
#include <ranges>

namespace acep {
namespace {

// Up to so many new nodes of a state are compared with each other.
constexpr uint32_t few_new = 8;
// Lists of up to this length are searched linearly.
constexpr uint32_t few_alike = 8;

}  // namespace

// The choice among all matches needs the beginning of each run, which united nodes do not keep. Nodes of different
// events are not equal under contiguity (last positions differ), or with new lists of frames.
NodeMerging::NodeMerging(const Tables& tables, const NodeStore& store, const NodeShedding& shedding, bool points_only)
    : tables_(tables),
      store_(store),
      shedding_(shedding),
      points_only_(points_only),
      unites_(tables.unambiguous && tables.choice == Choice::all) {
    add_states();
    for (const State& state : tables_.states) {
        for (const Arc& arc : state.arcs) {
            const bool new_frames =
                std::ranges::any_of(arc.puts, [](const Put& p) { return p.write == Write::frames; });
            if (unites_ && !tables_.contiguous() && !new_frames) searches_[arc.target].possible = true;
        }
    }
}

void NodeMerging::add_states() {
    searches_.resize(tables_.states.size());
    unions_.resize(tables_.states.size());
}

// In a hand-written automaton, arcs to one state may bind the event to several variables.
inline bool NodeMerging::are_equal(NewNodes& new_nodes, uint32_t a, uint32_t b, uint32_t state) const {
    NodeList& nodes = new_nodes.nodes;
    const State& s = tables_.states[state];
    const bool is_alike = unites_ ? nodes.errors()[a] == nodes.errors()[b]
                                  : nodes.cells()[a] == nodes.cells()[b] &&
                                        new_nodes.arcs[a]->history == new_nodes.arcs[b]->history &&
                                        new_nodes.arcs[a]->var == new_nodes.arcs[b]->var;
    return is_alike && equal_registers(nodes, a, nodes, b, s.slots, std::views::iota(0u, store_.compared_slots(s)));
}

inline void NodeMerging::join(NewNodes& new_nodes, uint32_t first, uint32_t row, uint32_t state) const {
    NodeList& nodes = new_nodes.nodes;
    new_nodes.is_gone[row] = 1;
    new_nodes.has_gone = true;
    if (!unites_) {
        nodes.errors()[first] = std::min(nodes.errors()[first], nodes.errors()[row]);
        return;
    }
    if (Shedding* const shed = shedding_.active()) {
        const Mark row_mark = shed->slots.mark(nodes, row, state);
        if (Mark mark = shed->slots.mark(nodes, first, state);
            !mark.logged() && row_mark.trajectory != mark.trajectory) {
            mark.trajectory = std::min(mark.trajectory, row_mark.trajectory);
            shed->slots.set_mark(nodes, first, state, mark);
        }
    }
    if (tables_.firsts) {
        int64_t* positions = nodes.slot(store_.compared_slots(tables_.states[state]));
        positions[first] = std::min(positions[first], positions[row]);
    }
    new_nodes.next_equal[row] = new_nodes.next_equal[first];
    new_nodes.next_equal[first] = row;
    nodes.starts()[first] = std::max(nodes.starts()[first], nodes.starts()[row]);
}

void NodeMerging::unite(NewNodes& new_nodes, uint32_t state) {
    const State& s = tables_.states[state];
    const uint32_t n = new_nodes.nodes.end;
    NodeList& nodes = new_nodes.nodes;
    new_nodes.is_gone.assign(n, 0);
    new_nodes.has_gone = false;
    if (unites_) new_nodes.next_equal.assign(n, NIL);
    if (n == 1) return;
    if (n <= few_new) {
        for (uint32_t i = 1; i < n; ++i) {
            for (uint32_t j = 0; j < i; ++j) {
                if (new_nodes.is_gone[j] == 0 && are_equal(new_nodes, j, i, state)) {
                    join(new_nodes, j, i, state);
                    break;
                }
            }
        }
        return;
    }
    const auto registers = std::views::iota(0u, store_.compared_slots(s));
    const size_t size = std::bit_ceil(size_t{n} * 2);
    table_.assign(size, NIL);
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t seed = unites_ ? static_cast<uint32_t>(nodes.errors()[i]) : nodes.cells()[i];
        const uint64_t hash = hash_registers(nodes, i, seed, s.slots, registers);
        for (size_t k = hash & (size - 1);; k = (k + 1) & (size - 1)) {
            if (table_[k] == NIL) {
                table_[k] = i;
                break;
            }
            if (are_equal(new_nodes, table_[k], i, state)) {
                join(new_nodes, table_[k], i, state);
                break;
            }
        }
    }
}

inline uint32_t NodeMerging::look_up(NodeList& list, NodeList& new_nodes, uint32_t row, const State& state,
                                     size_t wanted, int64_t low) const {
    const uint32_t slots = state.slots;
    const auto registers = std::views::iota(0u, store_.compared_slots(state));
    const auto equal = [&](uint32_t k, NodeList& nodes, uint32_t i) {
        return list.errors()[k] == nodes.errors()[i] && equal_registers(list, k, nodes, i, slots, registers);
    };
    const auto alive = [&](uint32_t k) { return k != NIL && k >= list.head && list.starts()[k] >= low ? k : NIL; };
    // Rows that have not moved are found through the index. It is built once searches without it have cost as much.
    const uint32_t size = list.size(), missing = list.end - std::max(list.indexed, list.head);
    if (size <= few_alike || (missing > few_alike * wanted && list.scanned <= uint64_t{few_alike} * size)) {
        list.scanned += size;
        uint32_t k = list.end;  // of several equal ones the newest, as below
        while (k > list.head && !equal(k - 1, new_nodes, row)) --k;
        return k > list.head ? alive(k - 1) : NIL;
    }
    const size_t places = std::bit_ceil(size_t{list.capacity()} * 2);
    if (list.index.size() != places || list.indexed == 0) {
        list.index.assign(places, NIL);
        list.indexed = 0;
    }
    const auto place_of = [&](NodeList& nodes, uint32_t i) {
        size_t place =
            hash_registers(nodes, i, static_cast<uint32_t>(nodes.errors()[i]), slots, registers) & (places - 1);
        while (list.index[place] != NIL && !equal(list.index[place], nodes, i)) place = (place + 1) & (places - 1);
        return place;
    };
    // Of several equal ones the newest is in the index.
    for (uint32_t k = std::max(list.indexed, list.head); k < list.end; ++k) list.index[place_of(list, k)] = k;
    list.indexed = list.end;
    return alive(list.index[place_of(new_nodes, row)]);
}

uint32_t NodeMerging::find_equal(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, int64_t low) {
    EqualNodeSearch& search = searches_[state];
    if (!search.possible || list.empty()) return NIL;
    const State& s = tables_.states[state];
    if (store_.compared_slots(s) == 0) return look_up(list, new_nodes.nodes, row, s, 1, low);
    if (search.pauses()) return NIL;
    const uint32_t equal = look_up(list, new_nodes.nodes, row, s, new_nodes.nodes.end, low);
    // A sorted list, which expires from its head, is kept sorted unless nearly all nodes meet an equal one.
    const bool joins = equal == NIL || search.often || !list.sorted || list.size() <= few_alike ||
                       equal + 1 == list.end || list.starts()[equal + 1] >= new_nodes.nodes.starts()[row];
    if (equal != NIL) ++search.met;
    if (equal != NIL && joins) ++search.joined;
    if (++search.seen == Trial::size) {
        search.often = search.met >= Trial::size - Trial::size / 16;
        search.end(search.often || search.joined >= Trial::size / 8);
        search.joined = 0;
    }
    return joins ? equal : NIL;
}

void NodeMerging::count_united(const NewNodes& new_nodes, uint32_t state) {
    Trial& trial = unions_[state];
    if (trial.rest > 0 || trial.seen >= Trial::size || shedding_.active()->budget.in_sample()) return;
    trial.seen += new_nodes.nodes.end;
    trial.met += static_cast<uint32_t>(std::count(new_nodes.is_gone.begin(), new_nodes.is_gone.end(), 1));
}

void NodeMerging::count_united_with_stored(uint32_t state) {
    if (unions_[state].seen < Trial::size) ++unions_[state].met;
}

bool NodeMerging::is_separate(uint32_t state) {
    if (points_only_) return true;
    Trial& trial = unions_[state];
    if (trial.pauses()) return true;
    if (trial.seen >= Trial::size) trial.end(trial.met >= Trial::size / 16);
    return false;
}

}  // namespace acep
