// The state of the node engine as bytes.
#include "nodes/nodes.hpp"

namespace acep {

void NodeEngine::dump(Writer& out) const {
    out.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    NodeParts::first_fields(parts_, out);
    parts_.archive.write(out, partitions_);
    out.items(live_);
    NodeParts::last_fields(parts_, out, work_);
}

void NodeEngine::load(Reader& in) {
    in.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    NodeParts::first_fields(parts_, in);
    parts_.archive.read(in, partitions_, parts_.memory.is_bounded());
    in.items(live_);
    if (live_.size() > parts_.store.partitions().size()) bad_state("partitions");
    NodeParts::last_fields(parts_, in, work_);
    if (parts_.memory.is_bounded()) parts_.memory.recount();
}

}  // namespace acep
