// What must hold between two match nodes of a state so that one may go without loss (docs/internals/dominance.md), as acep/plan/dominance.py
// has proved it, and how hard the node engine looks for such nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "plan/tables.hpp"
#include "shedding/shedding.hpp"

namespace acep {

// Between a slot of the node that dominates and that of the other one. What is not a number ranks too: null below all
// numbers, unbound, which drops predicates, above.
enum class Relation : int64_t { any = 0, equal = 1, greater = 2, less = 3, greater_float = 4, less_float = 5 };

struct Demand {
    uint32_t slot;
    Relation relation;
    int64_t bound;  // a number beyond [-bound, bound] dominates nothing; the greatest integer: no bound
};

// A state's demands.
struct Ranking {
    std::vector<Demand> equal;
    std::vector<Demand> ordered;
    // One demand in order and no errors: nodes by rising start have falling ranks, and places are found by bisection.
    bool front = false;
    // Of the last nodes made, how many were dominated or dominated others; and how many more are not looked at.
    uint32_t seen = 0, met = 0, rest = 0;
};

class Dominance {
public:
    static constexpr uint32_t trial = 256;

    // std::invalid_argument where there are no demands for these tables.
    Dominance(const Arrays& arrays, const Tables& tables);

    std::vector<Ranking> states;
    // Comparisons of nodes are paid for by the touches that there were: so they never cost more than matching does.
    int64_t credit = 0;
    // Best effort: the log of what goes, the state whose nodes these are, and the present time.
    Shedding* log = nullptr;
    uint32_t state = 0;
    int64_t now = 0;

    // Whether row `a` of `mine` dominates row `b` of `others`.
    bool dominates(const Ranking& r, NodeList& mine, uint32_t a, NodeList& others, uint32_t b, uint32_t slots) const;
    // What began before `alive` has expired; what began before `room` may go where there is no room for a node.
    struct Lows {
        int64_t alive, room;
    };
    // Row `i` of `made` becomes one of `list`, unless it is dominated there; what it dominates goes. Returns its row, which
    // the caller fills in, or NIL; it may be that of a node that it dominates.
    uint32_t place(Ranking& r, NodeList& list, NodeList& made, uint32_t i, uint32_t slots, Lows lows, int64_t& compared);

private:
    // Whether it is dominated, or a row that it dominates, if there is one.
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
    bool positions_;  // a later last position is better: what is missing is paid by the gap
};

}  // namespace acep
