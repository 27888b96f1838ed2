// Load shedding in the node engine, with the decisions of `shedding.hpp`.
#include "nodes/nodes.hpp"

namespace acep {

// The seed has an effect only in the first call.
Shedding& NodeEngine::shed(uint64_t seed) {
    if (!shed_ && !resting_) {
        if (arrived != 0 || !parts_.empty()) throw std::logic_error("events have come already");
        resting_ = std::make_unique<Shedding>(tables_, classifier_.texts, partitions_, seed);
    }
    return *shedding();
}

void NodeEngine::order(SheddingTable table) {
    catch_up();
    shed().set(std::move(table));
}

// Compute utilities that were put off by the shedding table under which the nodes were made.
void NodeEngine::catch_up() {
    if (!shed_ || !shed_->puts_off()) return;
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        parts_[p].each([&](NodeList& list, uint32_t s) { shed_->catch_up(list, s, p); });
    }
}

// With dominance, each evaluated node may make a new one, which may be compared with a few others.
double NodeEngine::each_touch() const { return dominance_ ? 20 : 1; }

// Update `admission_.sufficient`. While nothing else changes, the budget only grows, so this bound stays safe.
void NodeEngine::look_at_allowance() {
    const double room = (resting_->tokens() - resting_->kept_for_learning()) / each_touch();
    admission_.sufficient =
        resting_->may_rest() && room > 0 ? work_.touches + static_cast<int64_t>(std::min(room, most_room)) : -1;
}

bool NodeEngine::suffices_still(size_t touches) {
    resting_->touched(work_.touches);
    look_at_allowance();
    const auto made = static_cast<double>(work_.nodes - admission_.nodes_before);
    return resting_->may_rest() &&
           resting_->tokens() - resting_->kept_for_learning() >= each_touch() * (static_cast<double>(touches) + made);
}

// Start shedding, as the budget may be insufficient: nodes get the extra slots. Existing ones get default values there.
void NodeEngine::wake(int64_t now) {
    shed_ = std::move(resting_);
    shed_->alert();
    admission_.hidden = Shedding::hidden;
    admission_.woke = true;
    for (uint32_t p = 0; p < parts_.size(); ++p) shed_->note_unwatched(p, tables_.counted ? parts_[p].last : now);
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        for (Part& part : parts_) {
            if (!part.lists.empty())
                widen(part.lists[s], s, earliest(tables_.counted ? part.last : now, tables_.span), now);
        }
        widen(made_[s].nodes, s, NEVER, now);
        tables_.states[s].slots += admission_.hidden;
        frames_.resize_slots(s);
    }
}

// Stop shedding before an event at `now`, as the budget suffices again: nodes lose the extra slots.
void NodeEngine::rest(int64_t now) {
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        Part& part = parts_[p];
        const int64_t last = tables_.counted ? part.last : now;
        if (!part.shadow.empty()) stop_sparing(part, last);
        shed_->lose(p, last);
        for (uint32_t s = 0; s < part.lists.size(); ++s)
            drop_expired(part.lists[s], s, earliest(last, tables_.span), last);
    }
    shed_->rest();
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        const uint32_t slots = tables_.states[s].slots;
        for (Part& part : parts_) {
            if (!part.lists.empty()) part.lists[s].narrow(slots, admission_.hidden);
        }
        made_[s].nodes.narrow(slots, admission_.hidden);
        tables_.states[s].slots -= admission_.hidden;
        frames_.resize_slots(s);
    }
    admission_.hidden = 0;
    resting_ = std::move(shed_);
    look_at_allowance();
}

void NodeEngine::widen(NodeList& list, uint32_t state, int64_t low, int64_t now) {
    const uint32_t slots = tables_.states[state].slots;
    list.keep(slots, [&](uint32_t i) { return list.starts()[i] >= low; });
    list.sorted = std::is_sorted(list.starts(), list.starts() + list.end);
    list.widen(slots, admission_.hidden);
    for (uint32_t i = 0; i < list.end; ++i) {
        list.slot(slots)[i] = low == NEVER ? now : tables_.counted ? list.positions()[i] : list.starts()[i];
        list.slot(slots + 1)[i] = Mark().word();
        for (uint32_t k = slots; k < slots + admission_.hidden; ++k) list.tags(k, slots + admission_.hidden)[i] = value;
    }
    list.touched = list.tended = 0;
    list.births = list.limit = list.room = 0;
    list.popped = 1;
    list.price = 0;
}

bool NodeEngine::expire(NodeList& list, uint32_t state, int64_t low) {
    if (shed_ && list.sorted && shed_->logs()) {
        for (uint32_t i = list.head; i < list.end && list.starts()[i] < low; ++i) {
            shed_->died(list, i, state, shed_->expiry(list.starts()[i]), EndReason::expired);
        }
    }
    return list.expire(low);
}

// Remove expired nodes before a node is added, once the list has doubled.
void NodeEngine::make_room(NodeList& list, uint32_t state, int64_t low) {
    if (list.size() < list.room) return;
    drop_expired(list, state, low, low + tables_.span);
    list.room = std::max(Shedding::least_room, 2 * list.size());
}

// Whether a node reaches the utility threshold, before it is made; set `admission_.own_mark` to its mark.
bool NodeEngine::foreseen(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error) {
    admission_.own_mark = inherited(arc, list, row);
    const int64_t now = key(event), start = arc.source == 0 ? now : list.starts()[row];
    if (shed_->foresee(arc, {list, row, tables_.states[arc.source].slots, event, start, error, now},
                       admission_.own_mark))
        return true;
    ++work_.nodes;
    return false;
}

// Count how many new nodes of a state are united. United nodes have the utility of the best one, which is not known
// before all are made.
void NodeEngine::apart(const Made& made, uint32_t state) {
    Trial& all = merging_.unions[state];
    if (all.rest > 0 || all.seen >= Trial::size || shed_->shadow) return;
    all.seen += made.nodes.end;
    all.met += static_cast<uint32_t>(std::count(made.gone.begin(), made.gone.end(), 1));
}

bool NodeEngine::separate(uint32_t state) {
    if (dominance_) return true;
    Trial& all = merging_.unions[state];
    if (all.pauses()) return true;
    if (all.seen >= Trial::size) all.end(all.met >= Trial::size / 16);
    return false;
}

// Whether an event begins nodes in a shadow-sampled unit.
bool NodeEngine::is_shadow(uint32_t partition, const Event& event) {
    return pattern_arcs_.begins(event.pattern) && shed_->is_shadow(partition, key(event));
}

// Process an event in the lists of the shadow sample. Nothing is dropped or output there, and other lists are not
// affected: matches that only these lists find are lost by shedding.
void NodeEngine::shadow_sample(Part& part, uint32_t partition, const Event& event, bool begins) {
    if (part.shadow.empty()) {
        if (!begins) return;
        part.shadow.resize(tables_.states.size());
        for (NodeList& list : part.shadow) list.tight = bounded();
    }
    if (shed_->sample().hopeless(partition)) return stop_sparing(part, key(event));
    const int64_t low = oldest_start(event);
    std::swap(part.lists, part.shadow);
    shed_->enter(work_.touches);
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        if (turn.state != 0) {
            step(part, turn, event, low);
        } else if (begins) {
            admission_.mark = shed_->begin(partition, event);
            begin(turn, event);
        }
    }
    if (tables_.contiguous()) contiguous_end(part, event);
    if (!ended_.empty()) end_broken(part, event);
    if (!touched_.empty()) finish(part, partition, event, low);
    shed_->leave(work_.touches);
    std::swap(part.lists, part.shadow);
}

void NodeEngine::stop_sparing(Part& part, int64_t now) {
    for (uint32_t s = 0; s < part.shadow.size(); ++s) drop_all(part.shadow[s], s, now, EndReason::shed);
    part.shadow.clear();
}

// Whether no shadow-sampled node of a partition is left.
bool NodeEngine::idle_shadow(Part& part, int64_t low, int64_t clock) {
    for (uint32_t s = 0; s < part.shadow.size(); ++s) {
        NodeList& list = part.shadow[s];
        if (!expire(list, s, low)) drop_expired(list, s, low, clock);
        if (!list.empty()) return false;
    }
    part.shadow.clear();
    return true;
}

// Whether an event is admitted, by its classes and its place in the window of its partition.
bool NodeEngine::admits(const Part& part, const Event& event) {
    if (shed_->table().admit.empty()) return true;
    while (admission_.classes.size() <= event.pattern) {
        const auto next = static_cast<uint32_t>(admission_.classes.size());
        admission_.classes.emplace_back();
        for (uint32_t c = 0; c < tables_.classes; ++c) {
            if (classifier_.has(next, c)) admission_.classes.back().push_back(c);
        }
    }
    int64_t oldest = key(event);
    for (const NodeList& list : part.lists) {
        if (!list.empty()) oldest = std::min(oldest, const_cast<NodeList&>(list).starts()[list.head]);
    }
    return shed_->admits(admission_.classes[event.pattern], key(event), oldest);
}

}  // namespace acep
