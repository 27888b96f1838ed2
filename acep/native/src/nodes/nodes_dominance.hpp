// Dominance between two match nodes of a state, so that one may be removed without loss (docs/internals/dominance.md).
// acep/plan/dominance.py proves the condition; the node engine searches for such nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "nodes/equal_nodes.hpp"
#include "plan/tables.hpp"
#include "shedding/shedding.hpp"

namespace acep {

// The relation that a slot of the dominating node must have to that of the other node. Null ranks below all numbers. An
// unbound slot ranks above them, as predicates on it are dropped.
enum class Relation : int64_t { any = 0, equal = 1, greater = 2, less = 3, greater_float = 4, less_float = 5 };

// The demand of a slot on the dominating node.
struct Demand {
    uint32_t slot;
    Relation relation;
    int64_t bound;  // a number beyond [-bound, bound] dominates nothing; the greatest integer: no bound
};

// The demands of a state.
struct Ranking {
    std::vector<uint32_t> equal;  // slots that must be equal
    std::vector<Demand> ordered;  // those of the others
    // Set for one ordered demand without errors: ranks fall as starts rise, so places are found by bisection.
    bool front = false;
    Trial trial;  // whether comparisons pay off: new nodes that were dominated, or dominated others
};

class Dominance {
public:
    static constexpr int64_t most_credit = 1 << 16;  // the most that can be saved up

    // Read the demands. Throw std::invalid_argument if the arrays are no demands for these tables.
    Dominance(const Arrays& arrays, const Tables& tables);

    std::vector<Ranking> states;  // the demands of each
    // Comparisons of nodes are paid for by touches, so they never cost more than matching.
    int64_t credit = 0;
    int64_t paid = 0;  // touches already counted as credit
    // For shedding: the log of removed nodes, the state of the compared nodes, and the current time.
    Shedding* log = nullptr;
    uint32_t state = 0;
    int64_t now = 0;

    // Write or read the trials and the credit, which fits so many touches.
    static void fields(auto& self, auto& archive, int64_t touches) {
        archive.at_most(most_credit, self.credit);
        archive.at_most(touches, self.paid);
        for (auto& state : self.states) Trial::fields(state.trial, archive, Trial::size - 1);
    }
    // Return whether row `a` of `mine` dominates row `b` of `others`.
    bool dominates(const Ranking& r, NodeList& mine, uint32_t a, NodeList& others, uint32_t b, uint32_t slots) const;
    // Nodes that began before `alive` have expired; those that began before `room` may be removed to make room.
    struct Lows {
        int64_t alive, room;
    };
    // Remove the nodes of `list` that row `i` of `new_nodes` dominates. Return a row of `list` for it (perhaps that of
    // a removed node), which the caller fills in; return NIL if it is dominated itself.
    uint32_t make_row(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots, Lows lows,
                      int64_t& compared);

private:
    // The result of a search for a new node.
    struct Verdict {
        bool is_dominated = false;
        uint32_t into = NIL;  // if it is not dominated: a row that it dominates, or NIL
    };
    // Do the same as `make_row` by bisection, where ranks fall as starts rise.
    uint32_t bisect(const Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots, int64_t low);
    // Compare a new node with the nodes of a list from the last one back, and remove those that it dominates.
    Verdict scan(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots, int64_t low,
                 int64_t& compared);
    // Compare it with the nodes whose registers are equal where they must be.
    Verdict probe(Ranking& r, NodeList& list, NodeList& new_nodes, uint32_t i, uint32_t slots, int64_t low,
                  int64_t& compared);
    // Log that a node was removed, as another one dominates it.
    void log_removal(NodeList& list, uint32_t row) const {
        if (log != nullptr) log->log.log_end(list, row, state, now, EndReason::taken);
    }
    bool positions_;  // a later last position is better, as a longer gap may cost more errors
};

}  // namespace acep
