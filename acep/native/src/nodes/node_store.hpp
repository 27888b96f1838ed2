// The stored partial matches of the node engine: a list for each partition and state. Nodes that are removed are logged
// for shedding. What no node reaches any more is freed: cells and events of the arena, and frames.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/arena.hpp"
#include "common/output.hpp"
#include "completion/completion.hpp"
#include "nodes/frames.hpp"
#include "nodes/node_shedding.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"

namespace acep {

// The nodes of one partition.
struct PartitionNodes {
    std::vector<NodeList> lists;  // by state; empty before its first event
    std::vector<NodeList> shadow;  // the same for the shadow sample: nothing in them is dropped
    int64_t rematch = 0;  // the number of the rematch in which its events were matched again last
    Bundle bundle;
    int64_t last_position = -1;  // of its last event
    int64_t last_event = -1;  // number of that event in the stream
    bool shared = true;  // nodes in different lists may have the same cell

    // Return whether there are any nodes, from the last state back, which has them more often.
    bool has_nodes() const {
        const auto has_any = [](const NodeList& list) { return !list.empty(); };
        return std::any_of(lists.rbegin(), lists.rend(), has_any) ||
               std::any_of(shadow.rbegin(), shadow.rend(), has_any);
    }
    // Call visit(list, state) for all lists.
    template <class Visit>
    void each(Visit&& visit) {
        for (uint32_t s = 0; s < lists.size(); ++s) visit(lists[s], s);
        for (uint32_t s = 0; s < shadow.size(); ++s) visit(shadow[s], s);
    }
};

class NodeStore {
public:
    // All must outlive the store.
    NodeStore(const Tables& tables, Arena& arena, FrameStore& frames, const NodeShedding& shedding)
        : tables_(tables), arena_(arena), frames_(frames), shedding_(shedding) {}

    // Partitions -------------------------------------------------------------------------------------

    // Return all partitions that had an event, by number.
    std::vector<PartitionNodes>& partitions() { return partitions_; }
    const std::vector<PartitionNodes>& partitions() const { return partitions_; }
    // Return a partition, which is made if need be.
    PartitionNodes& make(uint32_t partition) {
        if (partitions_.size() <= partition) partitions_.resize(partition + size_t{1});
        return partitions_[partition];
    }
    // Return a partition; nullptr if it had no event.
    PartitionNodes* find(uint32_t partition) {
        return partition < partitions_.size() ? &partitions_[partition] : nullptr;
    }
    // Return the number in the stream of a partition's last event; -1: it had none.
    int64_t last_event(uint32_t partition) const {
        return partition < partitions_.size() ? partitions_[partition].last_event : -1;
    }
    // Make the lists of a partition, or those of its shadow sample. `tight`: as for NodeList.
    void make_lists(std::vector<NodeList>& lists, bool tight) const {
        lists.resize(tables_.states.size());
        for (NodeList& list : lists) list.tight = tight;
    }
    // Note an event as the last one of its partition. `number`: in the stream; `again`: it is matched again.
    void note_event(PartitionNodes& part, const Event& event, int64_t number, bool again) const {
        part.last_position = event.position;
        part.last_event = number;
        if (again) part.rematch = rematches_;
    }
    // Prepare for events that are matched again.
    void begin_rematch() { ++rematches_; }
    // Return the time before which no event will come, to be set or read.
    int64_t& clock() { return clock_; }
    const int64_t& clock() const { return clock_; }
    // Return the time or position that the last event of a partition has, where the time is `time`.
    int64_t now(const PartitionNodes& part, int64_t time) const { return tables_.counted ? part.last_position : time; }
    // Return the earliest start in the window that ends at the last event of a partition, or else at `time`.
    int64_t low(const PartitionNodes& part, int64_t time) const { return earliest(now(part, time), tables_.span); }

    // Removal of nodes, which is logged for shedding -------------------------------------------------

    // Keep the nodes of a list for which wanted(row) holds.
    template <class Wanted>
    void keep(NodeList& list, uint32_t state, int64_t when, EndReason how, Wanted&& wanted) {
        if (shedding_.logs()) {
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (!wanted(i)) shedding_.active()->log.log_end(list, i, state, when, how);
            }
        }
        list.keep(tables_.states[state].slots, wanted);
    }
    // Remove the nodes that began before `low`.
    void drop_expired(NodeList& list, uint32_t state, int64_t low, int64_t when) {
        keep(list, state, when, EndReason::expired, [&](uint32_t i) { return list.starts()[i] >= low; });
    }
    // Remove all nodes of a list.
    void drop_all(NodeList& list, uint32_t state, int64_t when, EndReason how) {
        if (shedding_.logs()) {
            keep(list, state, when, how, [](uint32_t) { return false; });
        } else {
            list.clear();
        }
    }
    // Remove the nodes that began before `low` if they are at the head of a list; return whether none of them is left.
    bool expire_head(NodeList& list, uint32_t state, int64_t low);
    // Remove expired nodes before a node is added, once the list has doubled.
    void make_room(NodeList& list, uint32_t state, int64_t low);
    // Remove the nodes of the shadow sample of a partition that began before `low`; return whether none is left.
    bool expire_shadow(PartitionNodes& part, int64_t low, int64_t when);
    // Give up the shadow sample of a partition.
    void drop_shadow(PartitionNodes& part, int64_t when);
    // End the nodes of a partition that began at position `upto` or before.
    void drop_begun(uint32_t partition, int64_t upto);
    // Remove all nodes of all partitions, without a log.
    void clear_all();

    // Remove the nodes of a partition that began before `low`, but for the shadow sample; return whether none is left.
    bool expire_all(PartitionNodes& part, int64_t low, int64_t when);

    // Facts about nodes ------------------------------------------------------------------------------

    // Return the number of slots in which equal nodes are equal: without those of shedding and the first position.
    uint32_t compared_slots(const State& state) const {
        return state.slots == 0 ? 0 : state.slots - shedding_.hidden() - (tables_.firsts ? 1 : 0);
    }
    // Return the position of the first event of a node, or where it is united with others the least one that is stored.
    int64_t first_position(NodeList& list, uint32_t state, uint32_t row) const;
    // Count the nodes in some states whose window is not over, without those of the shadow sample; no states: in all.
    int64_t count(const std::vector<uint32_t>& states, const Partitions& partitions, int64_t clock) const;
    // Mark the text codes that nodes hold.
    void used_texts(UsedTexts& used) const;
    // Add the matches that the nodes of a partition may become which began at `low` or later.
    void find_prospects(uint32_t partition, int64_t low, int64_t clock, Alive& prospects);

    // Memory -----------------------------------------------------------------------------------------

    // Free what no event from `clock` on needs, by its age.
    void free_by_age(int64_t clock);
    // Free what no node reaches, if much has been added since that was done last. There is no window in time.
    void free_unreached();
    // Keep the cells and events that live nodes reach, those that began at `oldest` or later, and remove other nodes.
    void compact_cells(int64_t oldest = NEVER + 1);
    // Keep the frames that nodes reach.
    void compact_frames();
    // Return the numbers of cells after the last compaction, to be written or read.
    uint32_t& compacted_size() { return compacted_size_; }
    const uint32_t& compacted_size() const { return compacted_size_; }

private:
    const Tables& tables_;
    Arena& arena_;
    FrameStore& frames_;
    const NodeShedding& shedding_;
    std::vector<PartitionNodes> partitions_;
    uint32_t compacted_size_ = 0;  // cells after the last compaction
    int64_t rematches_ = 0;  // how often older events were matched again
    int64_t clock_ = NEVER;
};

}  // namespace acep
