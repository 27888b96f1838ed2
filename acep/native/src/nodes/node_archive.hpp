// The state of stored partial matches as bytes. Everything read is checked, as it may be anything.
#pragma once

#include <cstdint>

#include "common/arena.hpp"
#include "common/state.hpp"
#include "nodes/frames.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "nodes/nodes_dominance.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"

namespace acep {

class NodeArchive {
public:
    // All must outlive it. `dominance`: nullptr if nodes have chains of events.
    NodeArchive(const Tables& tables, Arena& arena, FrameStore& frames, const NodeShedding& shedding, NodeStore& store,
                const Dominance* dominance)
        : tables_(tables), arena_(arena), frames_(frames), shedding_(shedding), store_(store), dominance_(dominance) {}

    // Check cells, events and frames that were read; links to freed ones are cut. Note the times of frames.
    void check_chains(Reader& in);
    // Write the partitions, whose numbers are those of `keys`. Only utilities that were put off change.
    void write(Writer& out, const Partitions& keys) const;
    // Read the partitions, and check them. `tight`: as for NodeList.
    void read(Reader& in, const Partitions& keys, bool tight);

private:
    // Check cells and events that were read.
    void check_cells();
    // Check the frames of all nodes that were read.
    void check_frame_ages();
    // Write or read what a partition has besides its lists, and whether it has any. `end`: the number above all
    // positions.
    template <class Archive>
    static void partition_fields(auto& part, Archive& archive, int64_t end, bool& has_lists);
    // Write the nodes of a list.
    void write_list(Writer& out, NodeList& list, uint32_t state) const;
    // Read the nodes of a list, and check them. `end`: the number above all positions.
    void read_list(Reader& in, NodeList& list, uint32_t state, int64_t end);
    // Keep the rows that were read in a list if their references are valid; those of expired ones may not be.
    void check_list(NodeList& list, uint32_t state, int64_t end);
    // Write or read what shedding keeps for a list, and whether it is sorted.
    static void shedding_fields(auto& list, auto& archive, bool& sorted);

    const Tables& tables_;
    Arena& arena_;
    FrameStore& frames_;
    const NodeShedding& shedding_;
    NodeStore& store_;
    const Dominance* const dominance_;
};

}  // namespace acep
