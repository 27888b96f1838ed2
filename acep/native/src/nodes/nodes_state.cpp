// The state of the node engine as bytes.

#include "nodes/nodes.hpp"

namespace acep {

template <class Archive>
void NodeEngine::fields(auto& self, Archive& archive) {
    archive.within(0, most_positions, self.work_.nodes, self.work_.touches, self.work_.matches);
    if (self.shedding_.any() != nullptr) {
        bool rests = self.rests();
        archive.words(self.store_.clock(), rests);
        archive.saw(self.store_.clock());
        if constexpr (Archive::reads) {
            if (rests && !self.rests()) bad_state("nodes of another kind");
            if (!rests) self.rouse();
        }
        MemoryGuard::fields(self.memory_, archive);
        archive.within(0, int64_t{1} << 32, self.store_.compacted_size(), self.frames_.compacted_size());
        archive.within(0, most_positions, self.shedding_.any()->withheld);
        NodeMerging::union_fields(self.merging_, archive);
    }
    NodeMerging::search_fields(self.merging_, archive);
    Arena::fields(self.arena_, archive);
    FrameStore::fields(self.frames_, archive);
    if constexpr (Archive::reads) {
        self.store_.check_cells();
        self.frames_.check_links();
        if (self.tables_.timed()) self.frames_.note_times(archive);
    }
    archive.size(self.store_.partitions(), static_cast<int64_t>(self.partitions_.size()) + 1);
    for (uint32_t p = 0; p < self.store_.partitions().size(); ++p) {
        auto& part = const_cast<PartitionNodes&>(
            self.store_.partitions()[p]);  // only utilities that were put off change when it is written
        const int64_t end = self.partitions_.end(p, self.tables_.strict, archive);
        archive.within(-1, end, part.last_position);
        archive.within(-1, most_positions, part.last_event);
        if constexpr (Archive::reads) {
            if (part.last_event > archive.events) bad_state("number of an event");
        }
        Bundle::fields(part.bundle, archive);
        bool lists = !part.lists.empty(), shadow = !part.shadow.empty();
        archive.words(lists);
        if (self.shedding_.active()) archive.words(shadow);
        if constexpr (Archive::reads) {
            part.lists.resize(lists ? self.tables_.states.size() : 0);
            part.shadow.resize(shadow ? self.tables_.states.size() : 0);
        }
        part.each([&](NodeList& list, uint32_t s) {
            if constexpr (Archive::reads) {
                list.tight = self.bounded();
                self.store_.read_list(archive, list, s, end);
            } else {
                if (Shedding* const shed = self.shedding_.active()) shed->catch_up(list, s, p);
                self.store_.write_list(archive, list, s);
            }
        });
    }
    if constexpr (Archive::reads) self.store_.check_frame_ages();
    archive.items(self.live_);
    if (Archive::reads && self.live_.size() > self.store_.partitions().size()) bad_state("partitions");
    if (self.completion_) self.completion_->fields(archive);
    if (self.dominance_) Dominance::fields(*self.dominance_, archive, self.work_.touches);
    if (self.shedding_.any() != nullptr) self.shedding_.any()->fields(archive);
}

void NodeEngine::dump(Writer& out) const { fields(*this, out); }

void NodeEngine::load(Reader& in) {
    fields(*this, in);
    if (bounded()) memory_.recount();
}

}  // namespace acep
