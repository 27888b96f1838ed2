// The log of partial matches.
#include "shedding/trajectory_log.hpp"

namespace acep {

Mark TrajectoryLog::first_mark(uint32_t partition, const Event& event, bool in_sample) const {
    Mark mark;
    if ((!in_sample && table_.sample == 0) || again_ || trajectories.made.size() >= most_started) return mark;
    const uint64_t draw = mixed(static_cast<uint64_t>(event.position) * golden_step + partition + seed_);
    if (in_sample || draw >> 32 < table_.sample) mark.trajectory = Mark::fresh;
    return mark;
}

void TrajectoryLog::open(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark mark, int64_t age) {
    const int64_t parent = mark.logged() ? int64_t{mark.trajectory} : -1;
    mark.trajectory = new_trajectory();
    slots_.set_mark(list, row, state, mark);
    mark = utilities_.complete_mark(list, row, state, partition);
    open_[mark.trajectory] = list.touched;
    trajectories.made.push_back({mark.trajectory, parent, partition, state, list.errors()[row], list.starts()[row],
                                 slots_.made_at(list, row, state), mark.feature, age});
    log_values(list, row, state, partition);
}

void TrajectoryLog::log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
    const size_t first = trajectories.values.size();
    trajectories.values.resize(first + table_.most_terms, std::numeric_limits<double>::quiet_NaN());
    if (table_.terms.empty()) return;
    size_t k = 0;
    for (const Term& term : table_.terms[state]) {
        trajectories.values[first + k++] = utilities_.number(list, row, state, term, partition);
    }
}

void TrajectoryLog::log_united(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent,
                               int64_t now) {
    Mark mark = slots_.mark(list, row, state);
    if (parent.trajectory == Mark::unlogged || full()) return;
    if (!mark.logged()) {
        mark.trajectory = parent.trajectory;
        mark.birth = parent.birth;
        slots_.set_mark(list, row, state, mark);
        log_new(list, row, state, partition);
        return;
    }
    const uint32_t trajectory = new_trajectory();
    trajectories.made.push_back({trajectory, parent.logged() ? int64_t{parent.trajectory} : -1, partition, state,
                                 list.errors()[row], list.starts()[row], now, mark.feature, parent.birth});
    log_values(list, row, state, partition);
    trajectories.ended.push_back({trajectory, now, static_cast<int64_t>(EndReason::merged_into), mark.trajectory, 0});
}

void TrajectoryLog::close(const NodeList& list, Mark mark, int64_t when, EndReason how) {
    const auto opened = open_.find(mark.trajectory);
    if (opened == open_.end()) return;
    trajectories.ended.push_back({mark.trajectory, when, static_cast<int64_t>(how), apart(list.touched, opened->second),
                                  static_cast<int64_t>((list.births - mark.birth) & 0xFFFFu)});
    open_.erase(opened);
}

void TrajectoryLog::log_match(Mark parent, uint32_t partition, int64_t when, int64_t error) {
    if (parent.trajectory == Mark::unlogged || trajectories.found.size() >= most_points || crowded()) return;
    trajectories.found.push_back(
        {parent.logged() ? int64_t{parent.trajectory} : -1, partition, when, error, parent.birth});
}

int64_t TrajectoryLog::bytes() const {
    const Trajectories& log = trajectories;
    return heap_bytes(log.made, log.ended, log.found, log.points, log.values) +
           static_cast<int64_t>(open_.size() * open_bytes);
}

}  // namespace acep
