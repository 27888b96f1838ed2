// The processing of an event (nodes/event_matcher.hpp).
#include "nodes/event_matcher.hpp"

#include <algorithm>
#include <utility>

namespace acep {

EventMatcher::EventMatcher(const Tables& tables, const EventClassifier& classifier, const Partitions& partitions,
                           EngineOutput engine, NodeParts& parts)
    : tables_(tables),
      engine_(engine),
      parts_(parts),
      shedding_(parts.shedding),
      store_(parts.store),
      maker_(parts.maker),
      extender_(tables, parts.evaluator, parts.finder, parts.maker, parts.merging, parts.store, parts.shedding,
                parts.shedding_switch, parts.memory, parts.future, parts.dominance.get(), engine.work),
      ender_(tables, classifier, parts.evaluator, parts.store, parts.shedding, parts.shedding_switch, engine.work),
      replacement_(tables, parts.arena, parts.evaluator, parts.writer, parts.maker, parts.binder, parts.store,
                   parts.shedding, engine.work),
      emitter_(tables, partitions, engine, parts.arena, parts.binder, parts.evaluator, parts.store, parts.merging,
               parts.shedding, parts.memory, parts.completion),
      storer_(tables, parts.arena, parts.binder, parts.merging, parts.store, parts.shedding),
      point_storer_(tables, partitions, engine, parts.evaluator, parts.maker, parts.merging, parts.store,
                    parts.shedding, parts.dominance) {
    take_over_tables();
}

void EventMatcher::take_over_tables() {
    replaces_ = tables_.contiguous() && tables_.budget == 0 && !parts_.merging.unites() && !tables_.firsts &&
                !parts_.dominance && !parts_.completion &&
                std::ranges::all_of(tables_.states, [](const State& s) { return s.ignoring.empty(); });
    ender_.find_ended_states();
}

void EventMatcher::process(PartitionNodes& part, uint32_t partition, const Event& event) {
    const bool is_bounded = parts_.memory.is_bounded();
    if (replaces_ && !is_bounded && may_replace_all(part, partition, event) && replace(part, partition, event)) return;
    if (part.lists.empty()) store_.make_lists(part.lists, is_bounded);
    begin_event(part, event);
    part.shared = true;
    shedding_.begin_event();
    parts_.memory.begin_matches(engine_.output.given());
    if (shedding_.any() != nullptr) begin_shedding_event(partition, event);
    Shedding* const shed = shedding_.active();
    const bool is_watched =
        shed != nullptr && !engine_.again && (shed->budget.limited() || is_bounded) && shed->sample.any();
    const bool begins_shadow =
        is_watched && parts_.pattern_arcs.begins(event.pattern) && shed->sample.samples(partition, tables_.key(event));
    if (shed == nullptr || admits(part, event)) match(part, partition, event);
    if (is_watched) match_shadow(part, partition, event, begins_shadow);
}

inline void EventMatcher::begin_event(PartitionNodes& part, const Event& event) {
    store_.note_event(part, event, engine_.arrived, engine_.again);
    parts_.binder.begin_event();
    engine_.walks.begin();
}

void EventMatcher::begin_shedding_event(uint32_t partition, const Event& event) {
    const int64_t now = tables_.key(event);
    shedding_.any()->arrive(partition, engine_.arrived, engine_.work.touches, engine_.again);
    if (Shedding* const shed = shedding_.active()) {
        if (!parts_.memory.is_bounded() && !engine_.again && shed->sufficient_again()) parts_.shedding_switch.rest(now);
    }
    if (shedding_.resting() != nullptr) {
        shedding_.update_if_changed();
        parts_.shedding_switch.begin_if_insufficient(0, now);
    }
}

inline void EventMatcher::match(PartitionNodes& part, uint32_t partition, const Event& event) {
    Completion* const completion = parts_.completion.get();
    if (completion != nullptr) {
        completion->arrived = engine_.arrived;
        completion->before(partition, event);
    }
    const int64_t low = oldest_start(event);
    step(part, partition, event, low, true);
    if (shedding_.take_clears()) clear_before(part, event, low);
    if (emitter_.has_endings()) return resume(partition, event);
    if (completion != nullptr) completion->after(partition, event);
}

inline void EventMatcher::step(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low, bool begins) {
    for (const StateArcs& arcs : parts_.pattern_arcs.arcs_of(event.pattern)) {
        if (arcs.state != 0) {
            extender_.extend(part, arcs, event, low);
        } else if (begins) {
            if (Shedding* const shed = shedding_.active()) shedding_.set_first_mark(shed->first_mark(partition, event));
            extender_.begin(arcs, event);
        }
    }
    ender_.end(part, event);
    if (!maker_.states().empty()) store_new(part, partition, event, low);
}

void EventMatcher::store_new(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low) {
    if (parts_.dominance) return point_storer_.store(part, partition, event, low);
    emitter_.begin_event();
    for (const uint32_t state : maker_.states()) {
        NewNodes& new_nodes = maker_.new_nodes(state);
        parts_.merging.unite(new_nodes, state);
        if (shedding_.active() != nullptr) parts_.merging.count_united(new_nodes, state);
        if (!tables_.states[state].accepts.empty()) emitter_.complete(part, partition, state, new_nodes, event, low);
    }
    emitter_.end_event(partition);
    parts_.binder.forget_cells();
    for (const uint32_t state : maker_.states()) {
        NewNodes& new_nodes = maker_.new_nodes(state);
        if (!tables_.states[state].arcs.empty() || tables_.dynamic) {
            storer_.store(new_nodes, part, partition, state, event, low);
        }
        new_nodes.clear();
    }
    maker_.forget_states();
}

void EventMatcher::clear_before(PartitionNodes& part, const Event& event, int64_t low) {
    const int64_t now = tables_.key(event);
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        shedding_.active()->eviction.dropped += list.living(low) - list.living(now);
        store_.keep(list, s, now, EndReason::cleared, [&](uint32_t i) { return list.starts()[i] >= now; });
    }
}

void EventMatcher::match_shadow(PartitionNodes& part, uint32_t partition, const Event& event, bool begins) {
    if (part.shadow.empty()) {
        if (!begins) return;
        store_.make_lists(part.shadow, parts_.memory.is_bounded());
    }
    Shedding& shed = *shedding_.active();
    if (shed.sample.hopeless(partition)) return store_.drop_shadow(part, tables_.key(event));
    const int64_t low = oldest_start(event);
    std::swap(part.lists, part.shadow);
    shed.budget.enter_sample(engine_.work.touches);
    step(part, partition, event, low, begins);
    shed.budget.leave_sample(engine_.work.touches);
    std::swap(part.lists, part.shadow);
}

inline bool EventMatcher::admits(const PartitionNodes& part, const Event& event) {
    if (shedding_.active()->table().admit.empty()) return true;
    int64_t oldest = tables_.key(event);
    for (const NodeList& list : part.lists) {
        if (!list.empty()) oldest = std::min(oldest, const_cast<NodeList&>(list).starts()[list.head]);
    }
    return shedding_.admits(event, oldest);
}

inline bool EventMatcher::may_replace_all(PartitionNodes& part, uint32_t partition, const Event& event) {
    Shedding* const resting = shedding_.resting();
    if (resting == nullptr) return shedding_.active() == nullptr;
    shedding_.begin_event();
    resting->arrive(partition, engine_.arrived, engine_.work.touches, engine_.again);
    shedding_.update_if_changed();
    size_t touches = 0;
    for (const StateArcs& arcs : parts_.pattern_arcs.arcs_of(event.pattern)) {
        const size_t nodes = arcs.state == 0 ? 1 : part.lists.empty() ? 0 : part.lists[arcs.state].size();
        touches += nodes * arcs.arcs.size();
    }
    return shedding_.suffices(touches);
}

inline bool EventMatcher::replace(PartitionNodes& part, uint32_t partition, const Event& event) {
    const std::vector<StateArcs>& arcs = parts_.pattern_arcs.arcs_of(event.pattern);
    if (part.lists.empty()) part.lists.resize(tables_.states.size());
    if (!replacement_.may_replace(part, arcs, event)) return false;
    begin_event(part, event);
    const int64_t low = oldest_start(event);
    replacement_.make_all(part, arcs, event, low);
    if (!maker_.states().empty()) store_new(part, partition, event, low);
    replacement_.exchange(part);
    return true;
}

int64_t EventMatcher::oldest_start(const Event& event) const {
    const int64_t low = earliest(tables_.key(event), tables_.span);
    // Older cells may be freed, unless they are made again.
    const bool bounded_by_clock = shedding_.active() != nullptr && !tables_.counted && !engine_.again;
    return bounded_by_clock ? std::max(low, earliest(store_.clock(), tables_.span)) : low;
}

}  // namespace acep
