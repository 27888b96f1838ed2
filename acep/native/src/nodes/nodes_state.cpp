// The state of the node engine as bytes.
#include "nodes/nodes.hpp"

namespace acep {

template <class Archive>
void NodeEngine::last_fields(auto& self, Archive& archive) {
    archive.items(self.live_);
    if (Archive::reads && self.live_.size() > self.parts_.store.partitions().size()) bad_state("partitions");
    if (self.parts_.completion) self.parts_.completion->fields(archive);
    if (self.parts_.dominance) Dominance::fields(*self.parts_.dominance, archive, self.work_.touches);
    if (self.parts_.shedding.any() != nullptr) self.parts_.shedding.any()->fields(archive);
}

void NodeEngine::dump(Writer& out) const {
    out.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    NodeParts::fields(parts_, out, tables_);
    const_cast<NodeStore&>(parts_.store).write(out, partitions_);  // only utilities that were put off change
    last_fields(*this, out);
}

void NodeEngine::load(Reader& in) {
    in.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    NodeParts::fields(parts_, in, tables_);
    parts_.store.read(in, partitions_, parts_.memory.is_bounded());
    last_fields(*this, in);
    if (parts_.memory.is_bounded()) parts_.memory.recount();
}

}  // namespace acep
