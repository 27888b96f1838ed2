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
    if (resting_ && !suffices(turn.arcs.size())) wake(key(event));
    KnownFuture* const future = future_of(event);
    for (const Arc* arc : turn.arcs) {
        if (!arc->lifetime.has(event.ts)) continue;
        if (future != nullptr && future->least_start(event.row, *arc) > key(event)) {
            future->spare(0, true);
            continue;
        }
        if (shed_ && shed_->limited() && !shed_->affords()) {
            if (shed_->shadow) {
                shed_->lose(key(event));
            } else {
                ++shed_->refused;
            }
            return shed_->deny();
        }
        // A node that is refused by the event alone costs no touch.
        const bool early = shed_ && separate(arc->target) && shed_->foresees(*arc);
        const bool hindered = !arc->leaving.empty() || !arc->binding.empty();
        const auto error = static_cast<int32_t>(arc->weight);
        const uint32_t first = 0;
        const bool possible = arc->weight + tables_.states[arc->target].rest <= tables_.budget;
        if (early && !hindered && possible && !foreseen(*arc, nothing_, 0, event, error)) continue;
        ++work_.touches;
        if (shed_) shed_->touched(work_.touches);
        if (!possible) continue;
        evaluator_.select(0, 1);
        if (evaluator_.keep_passing(arc->leaving, nothing_, 0, event, 1) == 0) continue;
        if (evaluator_.keep_passing(arc->binding, nothing_, 0, event, 1) == 0) continue;
        if (early && hindered && !foreseen(*arc, nothing_, 0, event, error)) continue;
        make(*arc, nothing_, std::span(&first, 1), event, error, early);
    }
}

// Remove what has expired, where it is cheap to find. Looking at all nodes of a list for it is paid for by what was spent
// since on looking at some: only where nodes are shed, which depends on how many there are, it is done each time.
NodeEngine::Living NodeEngine::find_living(NodeList& list, const StateArcs& turn, const Event& event, int64_t low) {
    bool all = expire(list, turn.state, low) || list.oldest >= low;
    if (!all) {
        list.unsure += step_costs;
        if (shed_ || bounded() || list.unsure >= list.size()) {
            const auto [many, first_start] = list.survey(low);
            if (2 * many <= list.size()) drop_expired(list, turn.state, low, low + tables_.span);
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
    if (shed_) shed_->touched(work_.touches);
    const int64_t same = gap_cost(tables_, arc, 0);  // for all rows where they are uniform
    if (uniform && same + rest > 0 && !decides) return;
    for (size_t at = 0; at < all.size;) {
        size_t count = next_block(all, uniform, arc, list, event, decides, at);
        const auto &leaving = equal.empty() ? arc.leaving : equal.leaving,
                   &binding = equal.empty() ? arc.binding : equal.binding;
        if (!leaving.empty()) count = evaluator_.keep_passing(leaving, list, slots, event, count);
        if (!binding.empty()) count = evaluator_.keep_passing(binding, list, slots, event, count);
        if (future != nullptr && !decides) count = leading(*future, arc, list, slots, event, count);
        if (uniform && !shed_ && !decides) {
            if (count != 0) make(arc, list, std::span(evaluator_.rows(), count), event, same, false);
            continue;
        }
        const bool scored = shed_ && count != 0 && separate(arc.target) && shed_->foresees(arc);
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
            if (scored && !foreseen(arc, list, row, event, static_cast<int32_t>(paid))) continue;
            make(arc, list, std::span(&row, 1), event, paid - list.errors()[row], scored);
        }
    }
}

void NodeEngine::make(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, int64_t price,
                      bool early) {
    if (bounded() && !has_room(arc)) {
        ++shed_->refused;
        return;
    }
    Made& made = made_[arc.target];
    if (made.arcs.empty()) touched_.push_back(arc.target);
    const uint32_t slots = tables_.states[arc.target].slots;
    const uint32_t i = made.nodes.extend(slots, rows.size());
    const size_t n = rows.size(), width = made.nodes.capacity();
    // Set rows [i, i + n) of a column.
    const auto each = [&](auto* column, auto&& content) {
        for (size_t k = 0; k < n; ++k) column[i + k] = content(rows[k]);
    };
    const int64_t now = key(event);
    {
        int64_t *starts = made.nodes.starts() + i, *positions = made.nodes.positions() + i;
        uint32_t* cells = made.nodes.cells() + i;
        int32_t* errors = made.nodes.errors() + i;
        const int64_t* begun = list.starts();
        const uint32_t* pasts = list.cells();
        const int32_t* paid = list.errors();
        for (size_t k = 0; k < n; ++k) {
            const uint32_t row = rows[k];
            starts[k] = arc.source == 0 ? now : begun[row];
            positions[k] = event.position;
            cells[k] = pasts[row];
            errors[k] = paid[row] + static_cast<int32_t>(price);
        }
    }
    writer_.write(arc, list, rows, event, made.nodes, i, admission_.hidden);
    if (shed_) {
        const size_t made_at = (slots - 2) * width, mark_at = made_at + width;
        int64_t* words = made.nodes.slot(0);
        uint8_t* tags = made.nodes.tags(0, slots);
        each(words + made_at, [&](uint32_t) { return now; });
        each(words + mark_at,
             [&](uint32_t row) { return (early ? admission_.own_mark : inherited(arc, list, row)).word(); });
        for (const size_t at : {made_at, mark_at}) each(tags + at, [](uint32_t) { return value; });
    }
    made.arcs.insert(made.arcs.end(), n, &arc);
    work_.nodes += static_cast<int64_t>(n);
}

// End the nodes of a list that the event took for good. Where they are few of many, they are only marked as expired, so
// that the others need not move.
void NodeEngine::end_blocked(NodeList& list, uint32_t state, const Event& event) {
    const bool few = moved_for * blocked_rows_.size() < list.size();
    const bool marks = few && dominance_ && !dominance_->states[state].front && tables_.timed() && !shed_ && !bounded();
    if (marks) {
        for (const uint32_t row : blocked_rows_) list.starts()[row] = NEVER;
        list.oldest = NEVER;
        list.sorted = false;
    } else {
        keep(list, state, key(event), EndReason::taken, [&](uint32_t i) { return blocked_[i] == 0; });
    }
    for (const uint32_t row : blocked_rows_) blocked_[row] = 0;
}

void NodeEngine::step(Part& part, const StateArcs& turn, const Event& event, int64_t low) {
    NodeList& list = part.lists[turn.state];
    if (list.empty()) return;
    if (shed_) shed_->tend(list, turn.state, key(event), low, static_cast<int64_t>(turn.arcs.size()));
    const Living living = find_living(list, turn, event, low);
    if (list.empty()) return;
    if (resting_ && !suffices(list.size() * turn.arcs.size()) && !suffices(list.living(low) * turn.arcs.size())) {
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
