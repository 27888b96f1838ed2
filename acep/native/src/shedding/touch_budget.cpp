// The allowance, and the utility threshold. They depend on the events, the budget and the shedding table alone.
#include "shedding/touch_budget.hpp"

#include <cmath>

namespace acep {
namespace {

constexpr double most_threshold = SheddingTable::most_level + 1;  // no partial match reaches it
constexpr double least_step = 4, most_step = 32;  // of the threshold, if no budget is left
// The part of such a step that decays, and the share of it that decays at each update with some budget left.
constexpr double passing = 0.25, fades = 0.125;
// Numbers of events: for the mean; whose budget is the reserve (at most half of what may be carried over); and over
// which touches beyond the reserve are spread.
constexpr double mean_of = 2048, reserved = 2048, spread = 8192;
constexpr double most_fall = 8;  // octaves
// A rest ends before the tokens of as many events as these are spent at the rate of late, or three quarters of what may
// be carried over; it begins again once those of `saved` events are left, and less than `restful` of the rate is spent.
constexpr double lasting = 1024, most_kept = 0.25, saved = 512, restful = 0.9;
// Touches held back for the shadow sample: a share of the budget, and of the most that may be carried over. The
// share is smaller in proportion if fewer than `held_for` of 2^32 units are sampled, one in 512.
constexpr double held_share = 1.0 / 32, held_most = 1.0 / 64, held_for = 8388608;

}  // namespace

void TouchBudget::allow(double rate, double most_carried, int64_t arrived, double credit) {
    invalidate();
    Allowance& old = allowance_;
    const auto events = static_cast<double>(arrived - old.since);
    const double left = old.rate < 0 ? 0 : old.up_to(arrived) - static_cast<double>(spent());
    // A budget of time sets the rate again and again. If few touches were spent, as after a pause with hardly any
    // budget, the threshold falls faster than by `update_threshold`.
    if (old.rate >= 0 && rate > 2 * pace_.mean) {
        const double octaves = std::min(std::log2(rate / std::max(pace_.mean, 1e-9)), most_fall);
        threshold_ = std::max(0.0, threshold_ - 2 * octaves * std::min(1.0, events / mean_of));
    }
    allowance_ = {rate, static_cast<double>(spent()) + std::min(left + credit, most_carried), most_carried, arrived};
}

// Until touches are taken back, the budget only grows, so `sure_` stays right.
bool TouchBudget::affords_exactly(int64_t touches) {
    const double most = afforded();
    constexpr double exact = 1e15;  // below it a margin of 2 covers rounding errors
    if (!in_sample_ && limited() && granted() < exact && most > 2) sure_ = spent() + static_cast<int64_t>(most) - 2;
    return most >= static_cast<double>(touches);
}

double TouchBudget::kept_for_learning() const {
    const double excess = (pace_.mean - allowance_.rate) * lasting;
    return excess <= 0 ? 0 : std::min(excess, most_kept * allowance_.most_carried);
}

double TouchBudget::reserve() const { return allowance_.reserve(reserved); }

// A constant threshold is best, as touches spent where they find little are missing where they would find much. So it
// follows the mean of the touches slowly, and bursts use carried-over budget. It rises at once only when no budget is
// left.
void TouchBudget::update_threshold() {
    ThresholdPace& p = pace_;
    const double rate = allowance_.rate, most_carried = allowance_.most_carried;
    const auto events = static_cast<double>(arrived_ - p.events);
    const auto used = static_cast<double>(spent() - p.spent);
    invalidate();
    p.events = arrived_;
    p.spent = spent();
    if (rate == 0 && std::isinf(most_carried)) return;  // a fixed total budget needs no threshold
    if (rate < 0) {
        p.calm = false;
        return;
    }
    double left = tokens();
    if (left > most_carried) {
        allowance_.granted -= left - most_carried;
        left = most_carried;
    }
    const double part = std::min(1.0, static_cast<double>(table_.shadow) / held_for);
    const double share = part * held_share;
    held_ = std::min(held_ + rate * events * share, most_carried * part * held_most);
    // The shadow sample comes in bursts, which are not part of the mean, but reduce the budget left.
    const auto sampled = static_cast<double>(sample_touches_ - std::exchange(p.sampled, sample_touches_)) / events;
    p.sample_mean += std::min(1.0, events / spread) * (sampled - p.sample_mean);
    p.mean += std::min(1.0, events / mean_of) * (std::max(0.0, used / events - sampled) - p.mean);
    if (!watches_) return;
    if (p.shortfall > 0) {
        threshold_ += p.step;
        p.surge = std::min(p.surge + passing * p.step, most_threshold);
        p.step = std::min(p.step * 2, most_step);
    } else {
        p.step = least_step;
        const double back = p.surge * fades;
        p.surge -= back;
        threshold_ -= back;
        const double beyond = std::max(0.0, p.sample_mean - rate * share);  // beyond the part held back
        const double wanted = std::max(rate / 16, rate - beyond + (left - reserve()) / spread);
        // Where much is left, as after a crowd, it falls faster.
        const double reserves = left / std::max(reserve(), 1e-9), most_down = reserves > 2 ? reserves * reserves : 1;
        const double change = std::clamp(std::log2((p.mean + 1e-9) / wanted), -1.0, 1.0);
        threshold_ += change * (change < 0 ? most_down : 1) * (events / pace);
    }
    threshold_ = std::clamp(threshold_, 0.0, most_threshold);
    const bool has_saved = left >= std::min(saved * rate, most_carried / 2);
    p.calm = threshold_ <= 0 && p.shortfall == 0 && has_saved && p.mean <= restful * rate;
    p.shortfall = 0;
}

void TouchBudget::finish_reading() {
    threshold_ = std::clamp(threshold_, 0.0, most_threshold);
    pace_.step = std::clamp(pace_.step, least_step, most_step);
    pace_.surge = std::clamp(pace_.surge, 0.0, most_threshold);
    for (double* mean : {&pace_.mean, &pace_.sample_mean, &held_}) *mean = std::max(*mean, 0.0);
    invalidate();
}

}  // namespace acep
