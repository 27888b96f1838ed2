// The budget of shedding: the touches granted and spent, and the utility threshold that follows them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/state.hpp"
#include "session/partitions.hpp"
#include "shedding/allowance.hpp"
#include "shedding/shedding_table.hpp"

namespace acep {

// Touches are counted by the engine, which reports them (`arrive`, `touched`) before it asks what the budget affords.
// Utility look-ups are counted here, and charged too. The threshold is updated as events arrive.
class TouchBudget {
public:
    static constexpr int64_t decisions_a_touch = 4;  // utility look-ups that cost as much as a touch

    explicit TouchBudget(const SheddingTable& table) : table_(table) {}

    // Set the touches per event from now on (negative: unlimited), and the most unused ones to carry over. `credit`:
    // more of them at once.
    void allow(double rate, double most_carried, int64_t arrived, double credit = 0);
    // Take over a new shedding table: before the first event, its threshold.
    void use_table() {
        if (arrived_ == 0) threshold_ = table_.first_threshold;
        invalidate();
    }
    // Discard what was derived from the previous budget and table.
    void invalidate() {
        changed_ = true;
        sure_ = std::numeric_limits<int64_t>::min();
    }
    // Return whether, since the last call, the budget may have shrunk, or the table changed, other than by touches.
    bool take_changed() { return std::exchange(changed_, false); }

    // Start an event: `arrived` events have come, including it, and `touches` touches were spent before it.
    void arrive(int64_t arrived, int64_t touches) {
        arrived_ = arrived;
        touches_ = touches;
        if (arrived - pace_.events >= pace) update_threshold();
    }
    // Set the touches spent so far.
    void touched(int64_t touches) { touches_ = touches; }
    // Count utility look-ups.
    void count_decisions(int64_t count = 1) { decisions_ += count; }
    // Count touches for which no budget is left, so that the threshold rises at its next update.
    void count_shortfall(int64_t touches = 1) { pace_.shortfall += touches; }

    // Return the events that have come.
    int64_t arrived() const { return arrived_; }
    // Return the utility look-ups so far.
    int64_t decisions() const { return decisions_; }
    // Return the touches charged for utility look-ups.
    int64_t decision_touches() const { return decisions_ / decisions_a_touch; }
    // Return the touches spent, with those charged for look-ups.
    int64_t spent() const { return touches_ + decision_touches(); }
    // Return the touches left of the budget.
    double tokens() const { return granted() - static_cast<double>(spent()); }
    // Return whether there is a budget at all.
    bool limited() const { return allowance_.rate >= 0; }
    // Return whether the budget suffices for some more touches. A part is held back for the shadow sample. Without it,
    // the sample would be cut short when little is left, and losses would be unknown. Beyond that part, the bursts of
    // the sample must not use up the reserve, or no matches would be found elsewhere for a while.
    bool affords(int64_t touches = 1) {
        return (!in_sample_ && spent() + touches <= sure_) || affords_exactly(touches);
    }
    // Return the touches that the budget affords now: see `affords`.
    double afforded() const {
        return in_sample_
                   ? std::max(std::min(held(), tokens()), tokens() - std::min(reserve(), granted()) * untouched_reserve)
                   : tokens() - held();
    }
    // Return the tokens that are left when a rest ends, so that there is something to learn from before they are spent.
    double kept_for_learning() const;

    // Return the utility threshold, in buckets; 0: all partial matches stay.
    double threshold() const { return threshold_; }
    // Return whether partial matches are dropped now: there is a threshold, and this is not the shadow sample.
    bool sheds() const { return threshold_ > 0 && !in_sample_; }
    // Return whether, at the last update, nothing needed to be dropped for some time.
    bool calm() const { return pace_.calm; }
    // Let the threshold follow what is spent, or leave it as it is while partial matches are not watched.
    void watch(bool watches) {
        watches_ = watches;
        if (watches) pace_.calm = false;
    }

    // Begin work on the lists of the shadow sample, with `touches` spent before.
    void enter_sample(int64_t touches) {
        touched(touches);
        in_sample_ = true;
        entered_ = spent();
    }
    // End work on the lists of the shadow sample, and charge it to the touches that are held back for it.
    void leave_sample(int64_t touches) {
        touched(touches);
        held_ = held();
        sample_touches_ += spent() - entered_;
        in_sample_ = false;
    }
    // Return whether the partial matches being processed are shadow-sampled.
    bool in_sample() const { return in_sample_; }
    // Return the touches of the shadow sample so far.
    int64_t sample_touches() const { return sample_touches_; }

    // Write or read the numbers of the allowance and of the threshold's pace.
    template <class Archive>
    static void pace_fields(auto& self, Archive& archive) {
        auto& [rate, granted, most_carried, since] = self.allowance_;
        auto& p = self.pace_;
        archive.finite("allowance", rate, granted, most_carried, p.step, p.surge, p.mean, p.sample_mean, self.held_,
                       self.threshold_);
        archive.within(0, most_positions, since, self.arrived_, self.touches_, p.events, p.spent, p.sampled,
                       self.decisions_);
    }
    // Write or read the touches of the shadow sample.
    template <class Archive>
    static void sample_fields(auto& self, Archive& archive) {
        archive.within(0, most_positions, self.sample_touches_);
    }
    // Write or read what the next update of the threshold depends on besides.
    template <class Archive>
    static void shortfall_fields(auto& self, Archive& archive) {
        archive.within(0, most_positions, self.pace_.shortfall);
        archive.words(self.pace_.calm);
    }
    // Bring the numbers that were read within their bounds.
    void finish_reading();

private:
    static constexpr int64_t pace = 128;  // events between two updates of the utility threshold
    static constexpr double untouched_reserve = 1.0 / 4;  // share of the reserve that the shadow sample must leave

    // Return the touches granted up to the current event.
    double granted() const { return allowance_.up_to(arrived_); }
    // Return the touches kept for bursts.
    double reserve() const;
    // Return the touches held back for the shadow sample.
    double held() const { return in_sample_ ? std::max(0.0, held_ - static_cast<double>(spent() - entered_)) : held_; }
    // Compare with `afforded`, and set `sure_`.
    bool affords_exactly(int64_t touches);
    // Update the utility threshold by the touches spent since the last update.
    void update_threshold();

    const SheddingTable& table_;
    Allowance allowance_;
    ThresholdPace pace_;
    int64_t arrived_ = 0;
    int64_t touches_ = 0;  // reported by the engine
    int64_t decisions_ = 0;  // number of utility look-ups
    int64_t sure_ = std::numeric_limits<int64_t>::min();  // the budget suffices while `spent` is at most this
    bool changed_ = true;
    bool watches_ = false;  // partial matches are watched, and the threshold follows what is spent
    double threshold_ = 0;  // in buckets
    bool in_sample_ = false;
    double held_ = 0;  // touches held back for the shadow sample, when work on it last began or ended
    int64_t entered_ = 0;  // touches spent when that work last began
    int64_t sample_touches_ = 0;
};

}  // namespace acep
