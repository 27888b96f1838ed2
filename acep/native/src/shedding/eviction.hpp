// Eviction under a budget: the choice of the partial matches of a list that stay, by their utility and their rank.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "plan/tables.hpp"
#include "shedding/hidden_slots.hpp"
#include "shedding/shadow_sample.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/touch_budget.hpp"
#include "shedding/trajectory_log.hpp"
#include "shedding/utilities.hpp"

namespace acep {

// Dropped nodes are counted, and their ends logged.
class Eviction {
public:
    Eviction(const Tables& tables, const SheddingTable& table, TouchBudget& budget, Utilities& utilities,
             TrajectoryLog& log, ShadowSample& sample)
        : slots_(tables),
          tables_(tables),
          table_(table),
          budget_(budget),
          utilities_(utilities),
          log_(log),
          sample_(sample) {}

    // Before an event evaluates the partial matches of a list, at `arcs` touches each, drop those below the utility
    // threshold, and those for which the budget is insufficient. Those that began before `low` have expired.
    void evict(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low, int64_t arcs);
    // Append a score for each partial match of a list to `scores`, to choose among them if memory is short: its utility
    // bucket, less `decay` for each better one of the list; equal ones rank by `ties`.
    void score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores);

    // Return the bytes of what is reused from call to call.
    int64_t bytes() const { return heap_bytes(buckets_, rows_); }
    // Release what is reused from call to call.
    void shrink();

    int64_t dropped = 0;  // partial matches that were removed after they were kept

private:
    // Drop the oldest partial matches of a list as long as they are below the threshold.
    void drop_oldest(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low);
    // Prune a list, if the budget affords a look-up of each. `grown`: it has grown, or the threshold has risen; else it
    // is pruned for its age.
    void prune(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low, bool grown);
    // Drop the oldest partial matches of a list for which the budget is insufficient, whatever their utility.
    void drop_unaffordable(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t arcs);
    // Set `buckets_` to the utility buckets of a list's partial matches; 0 for expired ones.
    void look_up(NodeList& list, uint32_t state, uint32_t partition, int64_t now, int64_t low);
    // Choose by `buckets_`: in order from the best, number r stays if its bucket is at least the threshold plus r times
    // `decay`. Set the buckets of the others to 0, and return how many stay.
    uint32_t choose(NodeList& list, uint32_t state);
    // Do the same for short lists, by sorting.
    uint32_t choose_few(NodeList& list, uint32_t state);
    // Count and log a partial match that is dropped; the caller removes it.
    void drop(NodeList& list, uint32_t row, uint32_t state, int64_t now) {
        ++dropped;
        log_.log_end(list, row, state, now, EndReason::shed);
    }

    const HiddenSlots slots_;
    const Tables& tables_;
    const SheddingTable& table_;
    TouchBudget& budget_;
    Utilities& utilities_;
    TrajectoryLog& log_;
    ShadowSample& sample_;
    std::vector<uint32_t> buckets_, rows_;  // of the partial matches of a list
};

}  // namespace acep
