// The log of partial matches, from which policies learn: when each was made, how it ended, and what it led to.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "common/state.hpp"
#include "shedding/hidden_slots.hpp"
#include "shedding/mark.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/trajectories.hpp"
#include "shedding/utilities.hpp"

namespace acep {

// A partial match is logged if its mark has a trajectory number. Once the log is full, the partial matches that follow
// are not logged, and their marks say so.
class TrajectoryLog {
public:
    static constexpr size_t most_started = 1 << 14;  // at this length of the log no further starts are logged
    static constexpr size_t most_logged = 1 << 16;  // at this length no partial matches are logged at all
    static constexpr size_t most_points = 4 * most_logged;  // the most match points, and matches, in the log

    TrajectoryLog(const Tables& tables, const SheddingTable& table, Utilities& utilities, uint64_t seed)
        : slots_(tables), table_(table), utilities_(utilities), seed_(seed) {}

    // Start an event; `again`: it is matched again, so it is not logged, and its match points were counted.
    void arrive(int64_t arrived, bool again) {
        arrived_ = arrived;
        again_ = again;
    }
    // Bound the bytes of the log; partial matches beyond it are not logged.
    void bound(int64_t bytes) { most_bytes_ = bytes; }
    // Return whether any partial match may be logged, so that ends must be reported.
    bool logs() const { return !open_.empty() || table_.sample != 0 || table_.shadow != 0; }

    // Return the mark of partial matches that begin with an event: that they are logged, if it is in the sample.
    Mark first_mark(uint32_t partition, const Event& event, bool in_sample) const;
    // Log a new partial match, which is in its list with the mark inherited from its parent; set its own mark.
    void log_new(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark mark = slots_.mark(list, row, state);
        const int64_t age = mark.birth;
        mark.birth = static_cast<uint16_t>(list.births);
        list.births = (list.births + 1) & 0xFFFFu;
        if (mark.trajectory == Mark::unlogged || full()) {
            mark.trajectory = Mark::unlogged;
            return slots_.set_mark(list, row, state, mark);
        }
        open(list, row, state, partition, mark, age);
    }
    // Log that a new partial match, with mark `parent`, was united with the equal one in a row.
    void log_united(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now);
    // Log the end of a partial match, if it is logged.
    void log_end(NodeList& list, uint32_t row, uint32_t state, int64_t when, EndReason how) {
        if (const Mark mark = slots_.mark(list, row, state); mark.logged()) close(list, mark, when, how);
    }
    // Log a match that a partial match with mark `parent` led to, if that is logged.
    void log_match(Mark parent, uint32_t partition, int64_t when, int64_t error);
    // Return whether no further match points can be logged.
    bool full_of_points() const { return trajectories.points.size() >= most_points || crowded(); }
    // Count the current event as a match point, once, unless it was counted before.
    void count_match_point() { n_match_points += std::exchange(match_point_, arrived_) != arrived_ && !again_ ? 1 : 0; }
    // Log the end of none of the partial matches that are there.
    void abandon_open() { open_.clear(); }

    // Return the bytes of the log.
    int64_t bytes() const;
    // Write or read the log.
    template <class Archive>
    static void fields(auto& self, Archive& archive);

    Trajectories trajectories;  // since they were last taken
    int64_t n_match_points = 0;  // without those found by the shadow sample alone
    int64_t withheld = 0;  // match points for which some matches were not written

private:
    static constexpr size_t open_bytes = 64;  // of an entry of `open_`

    // Return a trajectory number that is not in use.
    uint32_t new_trajectory() { return std::exchange(next_trajectory_, (next_trajectory_ + 1) % Mark::fresh); }
    // Log a new partial match under a new number. `age`: how many were made in the parent's list after the parent.
    void open(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark mark, int64_t age);
    // Log the end of the trajectory of a mark, if it is still open.
    void close(const NodeList& list, Mark mark, int64_t when, EndReason how);
    // Log the numbers of a partial match's terms.
    void log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition);
    // Return whether no further partial matches can be logged.
    bool full() const { return trajectories.made.size() >= most_logged || crowded(); }
    // Return whether one more row of the log may exceed its bound, as vectors double.
    bool crowded() const {
        const size_t rows =
            trajectories.made.size() * (sizeof(Trajectories::Made) + sizeof(double) * table_.most_terms) +
            trajectories.ended.size() * sizeof(Trajectories::Ended) +
            trajectories.found.size() * sizeof(Trajectories::Found) +
            trajectories.points.size() * sizeof(Trajectories::Point);
        return static_cast<int64_t>(2 * rows + open_.size() * (open_bytes + 2 * sizeof(Trajectories::Ended)) + 1024) >
               most_bytes_;
    }

    const HiddenSlots slots_;
    const SheddingTable& table_;
    Utilities& utilities_;
    const uint64_t seed_;
    int64_t arrived_ = 0;
    bool again_ = false;
    int64_t match_point_ = -1;  // the last event that completed a match
    uint32_t next_trajectory_ = 0;
    std::unordered_map<uint32_t, int64_t> open_;  // by open trajectory: `touched` of its list when made
    int64_t most_bytes_ = std::numeric_limits<int64_t>::max();
};

template <class Archive>
void TrajectoryLog::fields(auto& self, Archive& archive) {
    archive.within(0, Mark::fresh, self.next_trajectory_);
    std::vector<std::pair<uint32_t, int64_t>> open(self.open_.begin(), self.open_.end());
    std::sort(open.begin(), open.end());
    std::vector<int64_t> words;
    for (const auto& [trajectory, touched] : open) words.insert(words.end(), {int64_t{trajectory}, touched});
    archive.items(words);
    if constexpr (Archive::reads) {
        self.open_.clear();
        if (words.size() % 2 != 0) bad_state("lives");
        for (size_t i = 0; i < words.size(); i += 2) {
            if (words[i] < 0 || words[i] >= Mark::fresh) bad_state("life");
            self.open_[static_cast<uint32_t>(words[i])] = words[i + 1];
        }
        self.match_point_ = -1;
    }
    auto& log = self.trajectories;
    archive.items(log.made);
    archive.items(log.ended);
    archive.items(log.found);
    archive.items(log.values);
    archive.items(log.points);
}

}  // namespace acep
