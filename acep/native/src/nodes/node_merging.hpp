// The union of nodes with equal state, error and registers, of one event or of different ones (SASE+ 2008, 5.2.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "nodes/equal_nodes.hpp"
#include "nodes/new_nodes.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "plan/tables.hpp"

namespace acep {

class NodeMerging {
public:
    // All must outlive it. `points_only`: only match points are asked for (nodes_dominance.hpp).
    NodeMerging(const Tables& tables, const NodeStore& store, const NodeShedding& shedding, bool points_only);

    // Return whether equal nodes are united; else each has one sequence of events.
    bool unites() const { return unites_; }
    // Go on with as many states as the tables have now.
    void add_states();
    // Return whether new nodes of a state may equal nodes of earlier events.
    bool may_equal_earlier(uint32_t state) const { return searches_[state].possible; }

    // Unite the equal ones among the new nodes of a state: the others of a group are gone. If a sequence of events
    // determines its run, the node that stays keeps all pasts; else one sequence may reach the node in several ways,
    // and only the least error counts.
    void unite(NewNodes& new_nodes, uint32_t state);
    // Return the stored node that a new one equals and that began at `low` or later; NIL: there is none, or none was
    // looked for, as it rarely pays. A list that is sorted stays so if the node takes over the start of the new one,
    // unless nearly all new nodes equal one.
    uint32_t find_equal(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, int64_t low);

    // Under a budget, count how many new nodes of a state are united, before they are stored.
    void count_united(const NewNodes& new_nodes, uint32_t state);
    // Under a budget, count a new node that is united with a stored one.
    void count_united_with_stored(uint32_t state);
    // Under a budget, return whether new nodes of a state are hardly ever united, so that they can be judged one by
    // one: united nodes have the utility of the best one, which is not known before all are made.
    bool is_separate(uint32_t state);

    // Write or read the trials of unions, which there are under a budget.
    static void union_fields(auto& self, auto& archive) {
        for (auto& trial : self.unions_) Trial::fields(trial, archive, 1 << 30);
    }
    // Write or read the trials of searches.
    static void search_fields(auto& self, auto& archive) {
        for (auto& search : self.searches_) EqualNodeSearch::fields(search, archive);
    }
    // Free the buffers.
    void release() { std::vector<uint32_t>().swap(table_); }
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(table_); }

private:
    // Make node `row` of a group part of its first node.
    void join(NewNodes& new_nodes, uint32_t first, uint32_t row, uint32_t state) const;
    // Return whether two new nodes are equal.
    bool are_equal(NewNodes& new_nodes, uint32_t a, uint32_t b, uint32_t state) const;
    // Return the stored node that a new one equals, through an index where the list is long and `wanted` nodes are
    // looked for. An expired node equals no other, as its text codes may have been reused.
    uint32_t look_up(NodeList& list, NodeList& new_nodes, uint32_t row, const State& state, size_t wanted,
                     int64_t low) const;

    const Tables& tables_;
    const NodeStore& store_;
    const NodeShedding& shedding_;
    const bool points_only_;
    bool unites_;
    std::vector<EqualNodeSearch> searches_;  // by state
    std::vector<Trial> unions_;  // by state, under a budget
    std::vector<uint32_t> table_;  // by hash: the first row of each group of equal new nodes
};

}  // namespace acep
