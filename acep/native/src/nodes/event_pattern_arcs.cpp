// The arcs of event patterns (nodes/event_pattern_arcs.hpp), found when the first event of a pattern comes.
#include "nodes/event_pattern_arcs.hpp"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "nodes/gap_cost.hpp"

namespace acep {

std::vector<StateArcs> EventPatternArcs::find_arcs(uint32_t pattern) {
    std::vector<StateArcs> arcs_of_states;
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        StateArcs arcs;
        arcs.state = s;
        for (Arc& arc : tables_.states[s].arcs) {
            if (!classifier_.has(pattern, arc.event_class)) continue;
            for (Put& put : arc.puts) writer_.simplify(put);  // here, as programs come after the arcs that use them
            arcs.arcs.push_back(&arc);
            arcs.keys.push_back(s == 0 ? RegisterKey{} : finder_.key_of(arc));
            arcs.blocks = arcs.blocks || (arc.blocking && tables_.strategy == Strategy::next);
        }
        if (arcs.arcs.empty()) continue;
        find_replacing(arcs);
        arcs_of_states.push_back(std::move(arcs));
    }
    return arcs_of_states;
}

void EventPatternArcs::find_replacing(StateArcs& arcs) const {
    struct Group {
        uint32_t arcs = 0, number = NIL;
    };
    std::map<std::tuple<uint16_t, uint32_t>, Group> groups;  // by what their cells depend on
    std::set<std::tuple<uint32_t, uint16_t, uint32_t>> targets;
    for (const Arc* arc : arcs.arcs) {
        const State& target = tables_.states[arc->target];
        const bool is_kept = !target.arcs.empty() || tables_.dynamic, ends = !target.accepts.empty();
        if (is_kept && ends) arcs.distinct = false;
        if (!targets.emplace(arc->target, arc->var, arc->history).second) arcs.distinct = false;
        ++groups[{arc->var, arc->history}].arcs;
        const int64_t cost = arc->source == 0 ? arc->weight : gap_cost(tables_, *arc, 0);
        arcs.replacing.push_back(
            {cost + target.rest <= 0, !arc->leaving.empty() || !arc->binding.empty(), !is_kept, NIL});
    }
    for (auto& [cell, group] : groups) {
        if (group.arcs > 1) group.number = arcs.cell_groups++;
    }
    for (size_t k = 0; k < arcs.arcs.size(); ++k) {
        arcs.replacing[k].cell_group = groups.at({arcs.arcs[k]->var, arcs.arcs[k]->history}).number;
    }
}

}  // namespace acep
