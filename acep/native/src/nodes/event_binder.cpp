// The cells of new nodes (nodes/event_binder.hpp).
#include "nodes/event_binder.hpp"

namespace acep {

Chain EventBinder::bind_after(const NewNodes& new_nodes, uint32_t row, uint32_t past, const Event& event) {
    const Arc& arc = *new_nodes.arcs[row];
    const uint32_t cell = cells_.find(past, arc.var, arc.history);
    if (cell != NIL) return arena_.chain(cell);
    const Chain chain =
        arena_.bind(bind(event), event.id, arc.var, arc.number, arena_.chain(past), tables_.key(event), {});
    cells_.add(past, arc.var, arc.history, chain.cell);
    return chain;
}

Chain EventBinder::bind_group(NewNodes& new_nodes, uint32_t first, const Event& event, Chain chain) {
    const Arc& arc = *new_nodes.arcs[first];
    const int64_t now = tables_.key(event);
    for (uint32_t row = first; row != NIL; row = new_nodes.next_equal[row]) {
        if (new_nodes.arcs[row] == nullptr) continue;  // bound already
        const Arc& row_arc = *new_nodes.arcs[row];
        Chain past;
        bool begins = false;
        for (uint32_t k = row; k != NIL; k = new_nodes.next_equal[k]) {
            if (new_nodes.arcs[k] == nullptr || new_nodes.arcs[k]->history != row_arc.history) continue;
            new_nodes.arcs[k] = nullptr;
            const uint32_t cell = new_nodes.nodes.cells()[k];
            if (cell == NIL) {
                begins = true;
            } else {
                past = arena_.unite(past, arena_.chain(cell), bind(event));
            }
        }
        if (past.cell != NIL) chain = arena_.bind(bind(event), event.id, arc.var, row_arc.number, past, now, chain);
        if (begins) chain = arena_.bind(bind(event), event.id, arc.var, row_arc.number, {}, now, chain);
        if (tables_.negations.empty()) break;
    }
    return chain;
}

}  // namespace acep
