// The union of nodes with equal state, error and registers, of one event or of different ones (SASE+ 2008, 5.2.2), and
// the storage of new nodes for later events.
#include "nodes/nodes.hpp"

#include <bit>
#include <ranges>

namespace acep {
namespace {

// Lists of up to this length are searched linearly.
constexpr uint32_t few_alike = 8;

}  // namespace

// Unite equal nodes. If a sequence of events determines its run, the united node keeps all pasts; else one sequence
// may reach the node in several ways, and only the least error counts.
void NodeEngine::unite(Made& made, uint32_t this_state) {
    const State& state = tables_.states[this_state];
    const uint32_t slots = state.slots, first_slot = common(state), n = made.nodes.end;
    const auto registers = std::views::iota(0u, first_slot);
    const bool merges = merging_.unites;
    made.gone.assign(n, 0);
    made.united = false;
    if (merges) made.also.assign(n, NIL);
    if (n == 1) return;
    NodeList& nodes = made.nodes;
    auto alike = [&](uint32_t i, uint32_t j) {
        // In a hand-written automaton, arcs to one state may bind the event to several variables.
        bool first = merges ? nodes.errors()[i] == nodes.errors()[j]
                            : nodes.cells()[i] == nodes.cells()[j] && made.arcs[i]->history == made.arcs[j]->history &&
                                  made.arcs[i]->var == made.arcs[j]->var;
        return first && same(nodes, i, nodes, j, slots, registers);
    };
    auto join = [&](uint32_t leader, uint32_t i) {
        made.gone[i] = 1;
        made.united = true;
        if (merges) {
            if (shed_) {
                const Mark own = shed_->slots.mark(nodes, i, this_state);
                if (Mark first = shed_->slots.mark(nodes, leader, this_state);
                    !first.logged() && own.trajectory != first.trajectory) {
                    first.trajectory = std::min(first.trajectory, own.trajectory);
                    shed_->slots.set_mark(nodes, leader, this_state, first);
                }
            }
            if (int64_t* first = nodes.slot(first_slot); tables_.firsts)
                first[leader] = std::min(first[leader], first[i]);
            made.also[i] = made.also[leader];
            made.also[leader] = i;
            nodes.starts()[leader] = std::max(nodes.starts()[leader], nodes.starts()[i]);
        } else {
            nodes.errors()[leader] = std::min(nodes.errors()[leader], nodes.errors()[i]);
        }
    };
    if (n <= 8) {
        for (uint32_t i = 1; i < n; ++i) {
            for (uint32_t j = 0; j < i; ++j) {
                if (made.gone[j] == 0 && alike(j, i)) {
                    join(j, i);
                    break;
                }
            }
        }
        return;
    }
    const size_t size = std::bit_ceil(size_t{n} * 2);
    all_.assign(size, NIL);
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t own = merges ? static_cast<uint32_t>(nodes.errors()[i]) : nodes.cells()[i];
        const uint64_t hash = hashed(nodes, i, own, slots, registers);
        for (size_t k = hash & (size - 1);; k = (k + 1) & (size - 1)) {
            if (all_[k] == NIL) {
                all_[k] = i;
                break;
            }
            if (alike(all_[k], i)) {
                join(all_[k], i);
                break;
            }
        }
    }
}

// An expired node equals no other, as its text codes may have been reused.
uint32_t NodeEngine::like(NodeList& list, NodeList& made, uint32_t i, const State& s, size_t wanted,
                          int64_t low) const {
    const uint32_t slots = s.slots;
    const auto registers = std::views::iota(0u, common(s));
    const auto equal = [&](uint32_t k, NodeList& nodes, uint32_t row) {
        return list.errors()[k] == nodes.errors()[row] && same(list, k, nodes, row, slots, registers);
    };
    const auto alive = [&](uint32_t k) { return k != NIL && k >= list.head && list.starts()[k] >= low ? k : NIL; };
    // Rows that have not moved are found through the index. It is built once searches without it have cost as much.
    const uint32_t size = list.size(), missing = list.end - std::max(list.indexed, list.head);
    if (size <= few_alike || (missing > few_alike * wanted && list.scanned <= uint64_t{few_alike} * size)) {
        list.scanned += size;
        uint32_t k = list.end;  // of several equal ones the newest, as below
        while (k > list.head && !equal(k - 1, made, i)) --k;
        return k > list.head ? alive(k - 1) : NIL;
    }
    const size_t places = std::bit_ceil(size_t{list.capacity()} * 2);
    if (list.index.size() != places || list.indexed == 0) {
        list.index.assign(places, NIL);
        list.indexed = 0;
    }
    const auto place_of = [&](NodeList& nodes, uint32_t row) {
        size_t at = hashed(nodes, row, static_cast<uint32_t>(nodes.errors()[row]), slots, registers) & (places - 1);
        while (list.index[at] != NIL && !equal(list.index[at], nodes, row)) at = (at + 1) & (places - 1);
        return at;
    };
    // Of several equal ones the newest is in the index.
    for (uint32_t k = std::max(list.indexed, list.head); k < list.end; ++k) list.index[place_of(list, k)] = k;
    list.indexed = list.end;
    return alive(list.index[place_of(made, i)]);
}

uint32_t NodeEngine::earlier(NodeList& list, Made& made, uint32_t i, uint32_t state, int64_t low) {
    Likes& likes = merging_.likes[state];
    if (!likes.possible || list.empty()) return NIL;
    const State& s = tables_.states[state];
    if (common(s) == 0) return like(list, made.nodes, i, s, 1, low);
    if (likes.pauses()) return NIL;
    const uint32_t found = like(list, made.nodes, i, s, made.nodes.end, low);
    // A sorted list, which expires from its head, is kept sorted unless nearly all nodes meet an equal one.
    const bool kept = found == NIL || likes.often || !list.sorted || list.size() <= few_alike ||
                      found + 1 == list.end || list.starts()[found + 1] >= made.nodes.starts()[i];
    if (found != NIL) ++likes.met;
    if (found != NIL && kept) ++likes.joined;
    if (++likes.seen == Trial::size) {
        likes.often = likes.met >= Trial::size - Trial::size / 16;
        likes.end(likes.often || likes.joined >= Trial::size / 8);
        likes.joined = 0;
    }
    return kept ? found : NIL;
}

// Storage for later events ----------------------------------------------------------------------

// Bind the event for a new node. There is one cell for each past and variable, even if it is in several states.
Chain NodeEngine::bind_one(const Made& made, uint32_t past, uint32_t i, const Event& event) {
    const Arc& arc = *made.arcs[i];
    const uint32_t known = bound_to_.find(past, arc.var, arc.history);
    if (known != NIL) return arena_.chain(known);
    const Chain chain = arena_.bind(bound(event), event.id, arc.var, arc.number, arena_.chain(past), key(event), {});
    bound_to_.add(past, arc.var, arc.history, chain.cell);
    return chain;
}

// Make the new nodes of a state its list, if that is empty and has as much room; return whether this was done.
bool NodeEngine::takes_over(Made& made, NodeList& list, const Event& event) {
    if (!list.empty() || merging_.unites || shed_ || made.united || list.capacity() < made.nodes.capacity())
        return false;
    int64_t* starts = made.nodes.starts();
    uint32_t* cells = made.nodes.cells();
    for (uint32_t i = 0; i < made.nodes.end; ++i) {
        const Chain chain = bind_one(made, cells[i], i, event);
        starts[i] = chain.latest;
        cells[i] = chain.cell;
        if (i != 0 && starts[i - 1] > starts[i]) made.nodes.sorted = false;
    }
    list.exchange(made.nodes);
    list.apart = list.size() == 1;
    return true;
}

// Add the new nodes of a state to its list.
void NodeEngine::store(Made& made, Part& part, uint32_t partition, uint32_t state, const Event& event, int64_t low) {
    const State& s = tables_.states[state];
    NodeList& list = part.lists[state];
    const int64_t own = key(event);
    for (uint32_t i = 0; i < made.nodes.end; ++i) {
        if (made.gone[i] != 0) continue;
        // A node that equals one of an earlier event is united with it.
        uint32_t into = NIL;
        Chain chain;
        if (merging_.unites) {
            into = earlier(list, made, i, state, low);
            if (shed_ && into != NIL && merging_.unions[state].seen < Trial::size) ++merging_.unions[state].met;
            if (shed_ && into == NIL && !shed_->admission.admit(made.nodes, i, state, partition, own)) continue;
            if (into != NIL) chain = arena_.chain(list.cells()[into]);
            chain = bind_all(made, i, event, chain);
        } else {
            if (shed_ && !shed_->admission.admit(made.nodes, i, state, partition, own)) continue;
            chain = bind_one(made, made.nodes.cells()[i], i, event);
        }
        if (into != NIL) {
            list.cells()[into] = chain.cell;
            list.starts()[into] = chain.latest;
            if (into + 1 != list.end && list.starts()[into + 1] < chain.latest) list.sorted = false;
            if (shed_) {
                const Mark mark = shed_->slots.mark(made.nodes, i, state);
                list.slot(s.slots - 2)[into] = own;
                shed_->log.log_united(list, into, state, partition, mark, own);
            }
            if (tables_.firsts) {
                const uint32_t first = common(s);
                list.slot(first)[into] = std::min(list.slot(first)[into], made.nodes.slot(first)[i]);
            }
            continue;
        }
        if (shed_) make_room(list, state, low);
        const uint32_t to = list.add(s.slots, shed_ ? NEVER : low);
        list.take(to, made.nodes, i, s.slots, chain.latest, chain.cell);
        if (shed_) shed_->log.log_new(list, to, state, partition);
    }
}

}  // namespace acep
