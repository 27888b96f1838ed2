// How an event extends partial matches (nodes/node_extender.hpp).
#include "nodes/node_extender.hpp"

#include <algorithm>
#include <span>

#include "common/hash.hpp"
#include "nodes/gap_cost.hpp"

namespace acep {
namespace {

// The cost of a step beside its evaluations, as a number of nodes that could be looked at for the same.
constexpr uint64_t step_costs = 64;
// The cost of a search for equal nodes, as a number of nodes that are looked at.
constexpr size_t look_up_costs = 16;
// One node in so many has to end for the others to move.
constexpr size_t moved_for = 8;

// Return how many evaluations each node of a list is charged with where some of them were evaluated: all alike, as
// which of them an index reaches is not kept. Less than one is charged as a whole one, as rarely as it must be; a hash
// of the touches so far decides when, so that a stream that is resumed does the same.
int64_t charge(uint64_t evaluated, uint64_t nodes, int64_t touches) {
    const bool more = mixed(static_cast<uint64_t>(touches) + golden_step) % nodes < evaluated % nodes;
    return static_cast<int64_t>(evaluated / nodes) + (more ? 1 : 0);
}

}  // namespace

NodeList start_node() {
    NodeList list;
    list.add(0, NEVER);
    list.starts()[0] = list.positions()[0] = 0;
    list.cells()[0] = NIL;
    list.errors()[0] = 0;
    return list;
}

void NodeExtender::begin(const StateArcs& arcs, const Event& event) {
    switch_.begin_if_insufficient(arcs.arcs.size(), tables_.key(event));
    KnownFuture* const future = future_of(event);
    for (const Arc* arc : arcs.arcs) {
        if (!arc->lifetime.has(event.ts)) continue;
        if (future != nullptr && future->least_start(event.row, *arc) > tables_.key(event)) {
            future->note_saved(0, true);
            continue;
        }
        if (!begin_by(*arc, event)) return;
    }
}

inline bool NodeExtender::begin_by(const Arc& arc, const Event& event) {
    Shedding* const shed = shedding_.active();
    if (shed != nullptr && shed->budget.limited() && !shed->budget.affords()) {
        if (shed->budget.in_sample()) {
            shed->record_loss(tables_.key(event));
        } else {
            ++shed->admission.refused;
        }
        shed->budget.count_shortfall();
        return false;
    }
    // A node that is refused by the event alone costs no touch.
    const bool early = admits_early(arc);
    const bool has_checks = !arc.leaving.empty() || !arc.binding.empty();
    const auto error = static_cast<int32_t>(arc.weight);
    const bool can_pay = arc.weight + tables_.states[arc.target].rest <= tables_.budget;
    if (early && !has_checks && can_pay && !shedding_.admits_early(arc, start_, 0, event, error)) return true;
    ++work_.touches;
    if (shed != nullptr) shed->budget.touched(work_.touches);
    if (!can_pay) return true;
    evaluator_.select(0, 1);
    if (evaluator_.keep_passing(arc.leaving, start_, 0, event, 1) == 0) return true;
    if (evaluator_.keep_passing(arc.binding, start_, 0, event, 1) == 0) return true;
    if (early && has_checks && !shedding_.admits_early(arc, start_, 0, event, error)) return true;
    const uint32_t row = 0;
    maker_.make(arc, start_, std::span(&row, 1), event, error, early);
    return true;
}

// Looking at all nodes of a list for what has expired is paid for by what was spent since on looking at some: only
// where nodes are shed, which depends on how many there are, it is done each time.
inline NodeExtender::LiveNodes NodeExtender::find_live(NodeList& list, uint32_t state, const Event& event,
                                                       int64_t low) {
    bool all = store_.expire_head(list, state, low) || list.oldest >= low;
    if (!all) {
        list.unsure += step_costs;
        if (shedding_.active() != nullptr || memory_.is_bounded() || list.unsure >= list.size()) {
            const auto [n_alive, first_start] = list.survey(low);
            if (2 * n_alive <= list.size()) store_.drop_expired(list, state, low, low + tables_.span);
            all = n_alive == list.size();
            if (all) list.oldest = first_start;
        }
    }
    if (list.empty()) return {};
    // Under contiguity without errors, all nodes of a list bound the same event last.
    const bool adjacent = !tables_.contiguous() || event.position - list.positions()[list.head] == 1;
    return {low, all, tables_.budget == 0 && adjacent};
}

void NodeExtender::extend(PartitionNodes& part, const StateArcs& arcs, const Event& event, int64_t low) {
    NodeList& list = part.lists[arcs.state];
    if (list.empty()) return;
    const int64_t now = tables_.key(event);
    const size_t n_arcs = arcs.arcs.size();
    if (Shedding* const shed = shedding_.active()) {
        shed->evict(list, arcs.state, now, low, static_cast<int64_t>(n_arcs));
    }
    const LiveNodes live = find_live(list, arcs.state, event, low);
    if (list.empty()) return;
    if (shedding_.resting() != nullptr && !shedding_.suffices(list.size() * n_arcs) &&
        switch_.begin_if_insufficient(list.living(low) * n_arcs, now)) {
        return extend(part, arcs, event, low);
    }
    if (arcs.blocks) {
        blocked_rows_.reset(list.end + size_t{1});
        if (is_blocked_.size() < list.end) is_blocked_.resize(list.end, 0);
    }
    for (size_t number = 0; number < n_arcs; ++number) {
        if (arcs.arcs[number]->lifetime.has(event.ts)) extend_by(arcs, number, list, event, live);
    }
    if (arcs.blocks && blocked_rows_.size() != 0) end_blocked(list, arcs.state, event);
}

inline void NodeExtender::extend_by(const StateArcs& arcs, size_t number, NodeList& list, const Event& event,
                                    const LiveNodes& live) {
    const Arc& arc = *arcs.arcs[number];
    const RegisterKey& key = arcs.keys[number];
    const uint32_t slots = tables_.states[arcs.state].slots;
    const bool decides = arcs.blocks && arc.blocking;
    KnownFuture* const future = future_of(event);
    // No run that began before it can end within its window.
    const int64_t least = future == nullptr || decides ? NEVER : future->least_start(event.row, arc);
    if (least > tables_.key(event)) {
        future->note_saved(key.empty() ? list.size() : look_up_costs);
        return;
    }
    const Candidates all =
        finder_.find(key, list, slots, event, std::max(live.low, least), live.all && least <= live.low);
    if (least > live.low && key.empty()) future->note_saved(list.size() - all.size);
    if (all.size == 0) return;
    list.touched += charge(all.size, list.size(), work_.touches);
    work_.touches += static_cast<int64_t>(all.size);
    if (Shedding* const shed = shedding_.active()) shed->budget.touched(work_.touches);
    const int64_t growth = gap_cost(tables_, arc, 0);  // for all rows where they are uniform
    if (live.uniform && growth + tables_.states[arc.target].rest > 0 && !decides) return;
    const Step step{arc, list, slots, event, live.uniform, decides, future};
    const auto &leaving = key.empty() ? arc.leaving : key.leaving, &binding = key.empty() ? arc.binding : key.binding;
    for (size_t next = 0; next < all.size;) {
        size_t count = fill_block(all, step, next);
        if (!leaving.empty()) count = evaluator_.keep_passing(leaving, list, slots, event, count);
        if (!binding.empty()) count = evaluator_.keep_passing(binding, list, slots, event, count);
        if (future != nullptr && !decides) count = keep_followed(step, count);
        if (count == 0) continue;
        if (live.uniform && shedding_.active() == nullptr && !decides) {
            maker_.make(arc, list, std::span(evaluator_.rows(), count), event, growth, false);
        } else {
            make_each(step, count);
        }
    }
}

inline size_t NodeExtender::fill_block(const Candidates& all, const Step& step, size_t& next) {
    size_t count = 0;
    uint32_t* const rows = evaluator_.rows();
    evaluator_.set_contiguous(step.uniform && all.rows == nullptr);
    if (step.uniform) {
        count = std::min(all.size - next, block_rows);
        for (size_t i = 0; i < count; ++i) rows[i] = all.row(next + i);
        next += count;
        return count;
    }
    const int64_t rest = tables_.states[step.arc.target].rest;
    for (; next < all.size && count < block_rows; ++next) {
        const uint32_t row = all.row(next);
        const int64_t error = step.list.errors()[row] + error_growth(tables_, step.arc, step.list, row, step.event);
        if (error + rest <= tables_.budget || (step.decides && is_blocked_[row] == 0)) rows[count++] = row;
    }
    return count;
}

inline size_t NodeExtender::keep_followed(const Step& step, size_t count) {
    NodeList& list = step.list;
    uint32_t* const rows = evaluator_.rows();
    size_t n_followed = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t row = rows[i];
        const int64_t error = list.errors()[row] + error_growth(tables_, step.arc, list, row, step.event);
        rows[n_followed] = row;
        const bool is_followed =
            step.future->may_be_followed(step.arc, list, step.slots, row, step.event, list.starts()[row], error);
        n_followed += is_followed ? 1 : 0;
    }
    return n_followed;
}

inline void NodeExtender::make_each(const Step& step, size_t count) {
    const Arc& arc = step.arc;
    NodeList& list = step.list;
    const int64_t rest = tables_.states[arc.target].rest;
    const bool early = admits_early(arc);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t row = evaluator_.rows()[i];
        if (step.decides) {
            blocked_rows_.add_if(row, is_blocked_[row] == 0);
            is_blocked_[row] = 1;
        }
        const int64_t growth = error_growth(tables_, arc, list, row, step.event);
        const int64_t error = list.errors()[row] + growth;
        if (error + rest > tables_.budget) continue;
        if (step.decides && step.future != nullptr &&
            !step.future->may_be_followed(arc, list, step.slots, row, step.event, list.starts()[row], error)) {
            continue;
        }
        if (early && !shedding_.admits_early(arc, list, row, step.event, static_cast<int32_t>(error))) continue;
        maker_.make(arc, list, std::span(&row, 1), step.event, growth, early);
    }
}

// Where the blocked nodes are few of many, they are only marked as expired, so that the others need not move.
inline void NodeExtender::end_blocked(NodeList& list, uint32_t state, const Event& event) {
    const bool few = moved_for * blocked_rows_.size() < list.size();
    const bool marks = few && dominance_ != nullptr && !dominance_->states[state].front && tables_.timed() &&
                       shedding_.active() == nullptr && !memory_.is_bounded();
    if (marks) {
        for (const uint32_t row : blocked_rows_) list.starts()[row] = NEVER;
        list.oldest = NEVER;
        list.sorted = false;
    } else {
        store_.keep(list, state, tables_.key(event), EndReason::taken, [&](uint32_t i) { return is_blocked_[i] == 0; });
    }
    for (const uint32_t row : blocked_rows_) is_blocked_[row] = 0;
}

}  // namespace acep
