// Dominance between two match nodes of a state, so that one may be removed without loss (docs/internals/dominance.md): the
// condition, proved by acep/plan/dominance.py, and the node engine's search for such nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "nodes/nodes_merging.hpp"
#include "plan/tables.hpp"
#include "shedding/shedding.hpp"

namespace acep {

// The relation between a slot of the dominating node and that of the other one. Null ranks below all numbers; unbound,
// which drops predicates, above them.
enum class Relation : int64_t { any = 0, equal = 1, greater = 2, less = 3, greater_float = 4, less_float = 5 };

struct Demand {
    uint32_t slot;
    Relation relation;
    int64_t bound;  // a number beyond [-bound, bound] dominates nothing; the greatest integer: no bound
};

// The demands of a state.
struct Ranking {
    std::vector<uint32_t> equal;  // slots
    std::vector<Demand> ordered;
    // One ordered demand and no errors: by rising start nodes have falling ranks, so places are found by bisection.
    bool front = false;
    Trial trial;  // of comparisons: nodes that were dominated or dominated others
};

class Dominance {
public:
    static constexpr int64_t most_credit = 1 << 16;  // that can be saved

    // std::invalid_argument: the arrays are no demands for these tables.
    Dominance(const Arrays& arrays, const Tables& tables);

    std::vector<Ranking> states;
    // Comparisons of nodes are paid for by touches, so they never cost more than matching.
    int64_t credit = 0;
    int64_t paid = 0;  // touches already counted as credit
    // Best effort: the log of removed nodes, the state of the compared nodes, and the current time.
    Shedding* log = nullptr;
    uint32_t state = 0;
    int64_t now = 0;

    static void fields(auto& self, auto& archive, int64_t touches) {
        archive.at_most(most_credit, self.credit);
        archive.at_most(touches, self.paid);
        for (auto& state : self.states) Trial::fields(state.trial, archive, Trial::size - 1);
    }
    // Whether row `a` of `mine` dominates row `b` of `others`.
    bool dominates(const Ranking& r, NodeList& mine, uint32_t a, NodeList& others, uint32_t b, uint32_t slots) const;
    // Nodes that began before `alive` have expired; those that began before `room` may be removed to make room.
    struct Lows {
        int64_t alive, room;
    };
    // Make room for row `i` of `made` in `list`, unless it is dominated there, and remove the nodes that it dominates.
    // Return its row, which the caller fills in and which may be that of a removed node, or NIL.
    uint32_t place(Ranking& r, NodeList& list, NodeList& made, uint32_t i, uint32_t slots, Lows lows,
                   int64_t& compared);

private:
    // Whether the node is dominated; if not, a row that it dominates, or NIL.
    struct Met {
        bool dominated = false;
        uint32_t into = NIL;
    };
    uint32_t bisect(const Ranking& r, NodeList& list, NodeList& made, uint32_t i, uint32_t slots, int64_t low);
    Met scan(Ranking& r, NodeList& list, NodeList& made, uint32_t i, uint32_t slots, int64_t low, int64_t& compared);
    Met probe(Ranking& r, NodeList& list, NodeList& made, uint32_t i, uint32_t slots, int64_t low, int64_t& compared);
    void gone_from(NodeList& list, uint32_t row) const {
        if (log != nullptr) log->died(list, row, state, now, EndReason::taken);
    }
    bool positions_;  // a later last position is better, as missing events are paid by the gap
};

}  // namespace acep
