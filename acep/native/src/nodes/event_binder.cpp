// The cells of new nodes (nodes/event_binder.hpp).
#include "nodes/event_binder.hpp"

namespace acep {

Chain EventBinder::bind_after(const NewNodes& made, uint32_t row, uint32_t past, const Event& event) {
    const Arc& arc = *made.arcs[row];
    const uint32_t known = cells_.find(past, arc.var, arc.history);
    if (known != NIL) return arena_.chain(known);
    const Chain chain =
        arena_.bind(bind(event), event.id, arc.var, arc.number, arena_.chain(past), tables_.key(event), {});
    cells_.add(past, arc.var, arc.history, chain.cell);
    return chain;
}

Chain EventBinder::bind_group(NewNodes& made, uint32_t first, const Event& event, Chain chain) {
    const Arc& arc = *made.arcs[first];
    const int64_t now = tables_.key(event);
    for (uint32_t row = first; row != NIL; row = made.next_equal[row]) {
        if (made.arcs[row] == nullptr) continue;  // bound already
        const Arc& same = *made.arcs[row];
        Chain past;
        bool begins = false;
        for (uint32_t k = row; k != NIL; k = made.next_equal[k]) {
            if (made.arcs[k] == nullptr || made.arcs[k]->history != same.history) continue;
            made.arcs[k] = nullptr;
            const uint32_t cell = made.nodes.cells()[k];
            if (cell == NIL) {
                begins = true;
            } else {
                past = arena_.unite(past, arena_.chain(cell), bind(event));
            }
        }
        if (past.cell != NIL) chain = arena_.bind(bind(event), event.id, arc.var, same.number, past, now, chain);
        if (begins) chain = arena_.bind(bind(event), event.id, arc.var, same.number, {}, now, chain);
        if (tables_.negations.empty()) break;
    }
    return chain;
}

}  // namespace acep
