// How an event extends the partial matches of a state, and begins new ones: which of them an arc looks at, and which of
// these pass.
#include <algorithm>

#include "common/hash.hpp"
#include "nodes/nodes.hpp"

namespace acep {
namespace {

// What a step costs beside its evaluations, as a number of nodes that could be looked at for the same.
constexpr uint64_t step_costs = 64;
// What it costs to look for equal nodes, as a number of nodes that are looked at.
constexpr size_t look_up_costs = 16;
// One node in so many has to end for the others to move.
constexpr size_t moved_for = 8;

// Return how many evaluations each node of a list is charged with where some of them were evaluated: all alike, as which
// of them an index reaches is not kept. Less than one is charged as a whole one, as rarely as it must be; a hash of the
// touches so far decides when, so that a stream that is resumed does the same.
int64_t charge(uint64_t evaluated, uint64_t nodes, int64_t touches) {
    const bool more = mixed(static_cast<uint64_t>(touches) + golden_step) % nodes < evaluated % nodes;
    return static_cast<int64_t>(evaluated / nodes) + (more ? 1 : 0);
}

}  // namespace

void NodeEngine::begin(const StateArcs& turn, const Event& event) {
    if (shedding_.resting() && !shedding_.suffices(turn.arcs.size())) wake(key(event));
    KnownFuture* const future = future_of(event);
    for (const Arc* arc : turn.arcs) {
        if (!arc->lifetime.has(event.ts)) continue;
        if (future != nullptr && future->least_start(event.row, *arc) > key(event)) {
            future->spare(0, true);
            continue;
        }
        if (shedding_.active() && shedding_.active()->limited() && !shedding_.active()->affords()) {
            if (shedding_.active()->shadow) {
                shedding_.active()->lose(key(event));
            } else {
                ++shedding_.active()->refused;
            }
            return shedding_.active()->deny();
        }
        // A node that is refused by the event alone costs no touch.
        const bool early =
            shedding_.active() && merging_.is_separate(arc->target) && shedding_.active()->foresees(*arc);
        const bool hindered = !arc->leaving.empty() || !arc->binding.empty();
        const auto error = static_cast<int32_t>(arc->weight);
        const uint32_t first = 0;
        const bool possible = arc->weight + tables_.states[arc->target].rest <= tables_.budget;
        if (early && !hindered && possible && !shedding_.admits_early(*arc, nothing_, 0, event, error)) continue;
        ++work_.touches;
        if (shedding_.active()) shedding_.active()->touched(work_.touches);
        if (!possible) continue;
        evaluator_.select(0, 1);
        if (evaluator_.keep_passing(arc->leaving, nothing_, 0, event, 1) == 0) continue;
        if (evaluator_.keep_passing(arc->binding, nothing_, 0, event, 1) == 0) continue;
        if (early && hindered && !shedding_.admits_early(*arc, nothing_, 0, event, error)) continue;
        maker_.make(*arc, nothing_, std::span(&first, 1), event, error, early);
    }
}

// Remove what has expired, where it is cheap to find. Looking at all nodes of a list for it is paid for by what was spent
// since on looking at some: only where nodes are shed, which depends on how many there are, it is done each time.
NodeEngine::Living NodeEngine::find_living(NodeList& list, const StateArcs& turn, const Event& event, int64_t low) {
    bool all = store_.expire_head(list, turn.state, low) || list.oldest >= low;
    if (!all) {
        list.unsure += step_costs;
        if (shedding_.active() || bounded() || list.unsure >= list.size()) {
            const auto [many, first_start] = list.survey(low);
            if (2 * many <= list.size()) store_.drop_expired(list, turn.state, low, low + tables_.span);
            all = many == list.size();
            if (all) list.oldest = first_start;
        }
    }
    if (list.empty()) return {};
    // Under contiguity without errors, all nodes of a list bound the same event last.
    const bool adjacent = !tables_.contiguous() || event.position - list.positions()[list.head] == 1;
    return {low, all, tables_.budget == 0 && adjacent};
}

// Put the next candidates into the block of the evaluator: all of them where they are uniform, else those that can pay for the arc, and
// those that it may take for good (`decides`). Return how many.
size_t NodeEngine::next_block(const Candidates& all, bool uniform, const Arc& arc, NodeList& list, const Event& event,
                              bool decides, size_t& at) {
    size_t count = 0;
    uint32_t* const rows = evaluator_.rows();
    evaluator_.set_contiguous(uniform && all.rows == nullptr);
    if (uniform) {
        count = std::min(all.size - at, block_rows);
        for (size_t i = 0; i < count; ++i) rows[i] = all.row(at + i);
        at += count;
        return count;
    }
    const int64_t rest = tables_.states[arc.target].rest;
    for (; at < all.size && count < block_rows; ++at) {
        const uint32_t row = all.row(at);
        const int64_t paid = list.errors()[row] + error_growth(tables_, arc, list, row, event);
        if (paid + rest <= tables_.budget || (decides && blocked_[row] == 0)) rows[count++] = row;
    }
    return count;
}

// Keep those of the first `count` rows of the block whose new node can be followed, and return their number.
size_t NodeEngine::leading(KnownFuture& future, const Arc& arc, NodeList& list, uint32_t slots, const Event& event,
                           size_t count) {
    uint32_t* const rows = evaluator_.rows();
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t row = rows[i];
        const int64_t paid = list.errors()[row] + error_growth(tables_, arc, list, row, event);
        rows[kept] = row;
        kept += future.leads(arc, list, slots, row, event, list.starts()[row], paid) ? 1 : 0;
    }
    return kept;
}

// Let an event extend nodes of a list by an arc. Those that it takes for good are in `blocked_rows_`.
void NodeEngine::extend(const StateArcs& turn, size_t number, NodeList& list, const Event& event,
                        const Living& living) {
    const Arc& arc = *turn.arcs[number];
    const RegisterKey& equal = turn.keys[number];
    const uint32_t slots = tables_.states[turn.state].slots;
    const int64_t rest = tables_.states[arc.target].rest;
    const bool decides = turn.blocks && arc.blocking, uniform = living.uniform;
    KnownFuture* const future = future_of(event);
    // No run that began before it can end within its window.
    const int64_t least = future == nullptr || decides ? NEVER : future->least_start(event.row, arc);
    if (least > key(event)) {
        future->spare(equal.empty() ? list.size() : look_up_costs);
        return;
    }
    const Candidates all =
        finder_.find(equal, list, slots, event, std::max(living.low, least), living.all && least <= living.low);
    if (least > living.low && equal.empty()) future->spare(list.size() - all.size);
    if (all.size == 0) return;
    list.touched += charge(all.size, list.size(), work_.touches);
    work_.touches += static_cast<int64_t>(all.size);
    if (shedding_.active()) shedding_.active()->touched(work_.touches);
    const int64_t same = gap_cost(tables_, arc, 0);  // for all rows where they are uniform
    if (uniform && same + rest > 0 && !decides) return;
    for (size_t at = 0; at < all.size;) {
        size_t count = next_block(all, uniform, arc, list, event, decides, at);
        const auto &leaving = equal.empty() ? arc.leaving : equal.leaving,
                   &binding = equal.empty() ? arc.binding : equal.binding;
        if (!leaving.empty()) count = evaluator_.keep_passing(leaving, list, slots, event, count);
        if (!binding.empty()) count = evaluator_.keep_passing(binding, list, slots, event, count);
        if (future != nullptr && !decides) count = leading(*future, arc, list, slots, event, count);
        if (uniform && !shedding_.active() && !decides) {
            if (count != 0) maker_.make(arc, list, std::span(evaluator_.rows(), count), event, same, false);
            continue;
        }
        const bool scored =
            shedding_.active() && count != 0 && merging_.is_separate(arc.target) && shedding_.active()->foresees(arc);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = evaluator_.rows()[i];
            if (decides) {
                blocked_rows_.add_if(row, blocked_[row] == 0);
                blocked_[row] = 1;
            }
            const int64_t paid = list.errors()[row] + error_growth(tables_, arc, list, row, event);
            if (paid + rest > tables_.budget) continue;
            if (decides && future != nullptr &&
                !future->leads(arc, list, slots, row, event, list.starts()[row], paid)) {
                continue;
            }
            if (scored && !shedding_.admits_early(arc, list, row, event, static_cast<int32_t>(paid))) continue;
            maker_.make(arc, list, std::span(&row, 1), event, paid - list.errors()[row], scored);
        }
    }
}

// End the nodes of a list that the event took for good. Where they are few of many, they are only marked as expired, so
// that the others need not move.
void NodeEngine::end_blocked(NodeList& list, uint32_t state, const Event& event) {
    const bool few = moved_for * blocked_rows_.size() < list.size();
    const bool marks =
        few && dominance_ && !dominance_->states[state].front && tables_.timed() && !shedding_.active() && !bounded();
    if (marks) {
        for (const uint32_t row : blocked_rows_) list.starts()[row] = NEVER;
        list.oldest = NEVER;
        list.sorted = false;
    } else {
        store_.keep(list, state, key(event), EndReason::taken, [&](uint32_t i) { return blocked_[i] == 0; });
    }
    for (const uint32_t row : blocked_rows_) blocked_[row] = 0;
}

void NodeEngine::step(PartitionNodes& part, const StateArcs& turn, const Event& event, int64_t low) {
    NodeList& list = part.lists[turn.state];
    if (list.empty()) return;
    if (shedding_.active())
        shedding_.active()->tend(list, turn.state, key(event), low, static_cast<int64_t>(turn.arcs.size()));
    const Living living = find_living(list, turn, event, low);
    if (list.empty()) return;
    if (shedding_.resting() && !shedding_.suffices(list.size() * turn.arcs.size()) &&
        !shedding_.suffices(list.living(low) * turn.arcs.size())) {
        wake(key(event));
        return step(part, turn, event, low);
    }
    if (turn.blocks) {
        blocked_rows_.begin(list.end + size_t{1});
        if (blocked_.size() < list.end) blocked_.resize(list.end, 0);
    }
    for (size_t number = 0; number < turn.arcs.size(); ++number) {
        if (turn.arcs[number]->lifetime.has(event.ts)) extend(turn, number, list, event, living);
    }
    if (turn.blocks && blocked_rows_.size() != 0) end_blocked(list, turn.state, event);
}

}  // namespace acep
