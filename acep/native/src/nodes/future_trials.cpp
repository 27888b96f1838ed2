// Trials of the known future (nodes/future_trials.hpp).
#include "nodes/future_trials.hpp"

#include <algorithm>

namespace acep {

bool FutureTrials::allows(int64_t row, const Work& work, size_t ahead, size_t rows, double each, bool sifted) {
    const int64_t rested = row - rest_row_, spent_since = spent(work) - rest_spent_;
    without_ = static_cast<double>(spent_since) / static_cast<double>(std::max(rested, int64_t{1}));
    if (rested > most_rest) {
        rest_row_ += rested / 2;
        rest_spent_ += spent_since / 2;
    }
    const double cost = each * static_cast<double>(ahead);
    if ((sifted ? 1 : most_each) * without_ * static_cast<double>(rows) < cost) return false;
    const auto total = static_cast<double>(to_pass * row + spent(work));
    return total >= static_cast<double>(loss_factor * loss_) + static_cast<double>(trial_factor) * cost;
}

void FutureTrials::begin(int64_t row, const Work& work) {
    begin_row_ = row;
    begin_spent_ = spent(work);
}

void FutureTrials::end(int64_t row, const Work& work, int64_t cost, int64_t saved, bool sifted) {
    int64_t gain = saved;
    if (sifted) {
        const double without = without_ * static_cast<double>(row - begin_row_);
        gain = std::min(gain, static_cast<int64_t>(without) - (spent(work) - begin_spent_));
    }
    loss_ = std::max<int64_t>(0, loss_ + cost - gain);
    ++stretches_;
    pays_ = gain >= cost && !(sifted && stretches_ == most_stretches);
    if (pays_) return;
    stretches_ = 0;
    rest_row_ = row;
    rest_spent_ = spent(work);
}

}  // namespace acep
