// The making of nodes (nodes/node_maker.hpp).
#include "nodes/node_maker.hpp"

namespace acep {

void NodeMaker::make(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, int64_t growth,
                     bool early) {
    if (memory_.is_bounded() && !memory_.has_room_for(arc)) {
        ++shedding_.active()->admission.refused;
        return;
    }
    NewNodes& new_nodes = made_[arc.target];
    if (new_nodes.arcs.empty()) states_.push_back(arc.target);
    const uint32_t first = new_nodes.nodes.extend(tables_.states[arc.target].slots, rows.size());
    const size_t n = rows.size();
    const int64_t now = tables_.key(event);
    {
        int64_t *starts = new_nodes.nodes.starts() + first, *positions = new_nodes.nodes.positions() + first;
        uint32_t* cells = new_nodes.nodes.cells() + first;
        int32_t* errors = new_nodes.nodes.errors() + first;
        const int64_t* old_starts = list.starts();
        const uint32_t* pasts = list.cells();
        const int32_t* old_errors = list.errors();
        for (size_t k = 0; k < n; ++k) {
            const uint32_t row = rows[k];
            starts[k] = arc.source == 0 ? now : old_starts[row];
            positions[k] = event.position;
            cells[k] = pasts[row];
            errors[k] = old_errors[row] + static_cast<int32_t>(growth);
        }
    }
    writer_.write(arc, list, rows, event, new_nodes.nodes, first, shedding_.hidden());
    if (shedding_.active() != nullptr) write_hidden(arc, list, rows, now, new_nodes.nodes, first, early);
    new_nodes.arcs.insert(new_nodes.arcs.end(), n, &arc);
    work_.nodes += static_cast<int64_t>(n);
}

inline void NodeMaker::write_hidden(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, int64_t now,
                                    NodeList& to, uint32_t first, bool early) const {
    const uint32_t slots = tables_.states[arc.target].slots;
    int64_t *times = to.slot(slots - 2) + first, *marks = to.slot(slots - 1) + first;
    uint8_t *time_tags = to.tags(slots - 2, slots) + first, *mark_tags = to.tags(slots - 1, slots) + first;
    for (size_t k = 0; k < rows.size(); ++k) {
        times[k] = now;
        marks[k] = (early ? shedding_.early_mark() : shedding_.inherited_mark(arc, list, rows[k])).word();
        time_tags[k] = mark_tags[k] = value;
    }
}

}  // namespace acep
