// The budget and the marks of the node engine (nodes/node_shedding.hpp).
#include "nodes/node_shedding.hpp"

#include <algorithm>
#include <limits>

namespace acep {
namespace {

constexpr double most_room = 1e15;
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

}  // namespace

void NodeShedding::update_allowance() {
    if (!resting_->budget.limited()) {
        sufficient_ = rests_without_budget_ && resting_->may_rest() ? unlimited : -1;
        return;
    }
    const double room = (resting_->budget.tokens() - resting_->budget.kept_for_learning()) / touch_cost_;
    sufficient_ =
        resting_->may_rest() && room > 0 ? work_.touches + static_cast<int64_t>(std::min(room, most_room)) : -1;
}

bool NodeShedding::suffices_still(size_t touches) {
    resting_->budget.touched(work_.touches);
    update_allowance();
    if (!resting_->budget.limited()) return sufficient_ == unlimited;
    const double needed = touch_cost_ * (static_cast<double>(touches) + static_cast<double>(nodes_made()));
    return resting_->may_rest() && resting_->budget.tokens() - resting_->budget.kept_for_learning() >= needed;
}

bool NodeShedding::admits_early(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error) {
    early_mark_ = inherited_mark(arc, list, row);
    const int64_t now = tables_.key(event), start = arc.source == 0 ? now : list.starts()[row];
    const uint32_t slots = tables_.states[arc.source].slots;
    if (active_->admit_unmade(arc, {list, row, slots, event, start, error, now}, early_mark_)) return true;
    ++work_.nodes;
    return false;
}

bool NodeShedding::admits(const Event& event, int64_t oldest) {
    while (classes_.size() <= event.pattern) {
        const auto pattern = static_cast<uint32_t>(classes_.size());
        classes_.emplace_back();
        for (uint32_t c = 0; c < tables_.classes; ++c) {
            if (classifier_.has(pattern, c)) classes_.back().push_back(c);
        }
    }
    return active_->admission.admit_event(classes_[event.pattern], tables_.key(event), oldest);
}

}  // namespace acep
