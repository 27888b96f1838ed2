// The bounds of the bins of match vectors.
#include "shedding/match_vectors.hpp"

#include <limits>

namespace acep {

void MatchVectors::set(const SheddingTable& table, int64_t span) {
    constexpr int64_t most_bounds = 32;  // up to so many bins of the window, their bounds are stored
    constexpr int64_t none = std::numeric_limits<int64_t>::max();
    span_ = span;
    errors_ = table.errors;
    error_step_ = table.error_step;
    windows_ = table.windows;
    waits_ = table.waits;
    features_ = table.features;
    window_bounds_.clear();
    wait_bounds_.clear();
    if (span < 0) return;
    for (int64_t wait = waits_ - 1; wait > 0; --wait) wait_bounds_.push_back(span >> (2 * wait));
    if (windows_ > most_bounds) return;
    bins_a_tick_ = static_cast<double>(windows_) / (static_cast<double>(span) + 1);
    window_bounds_.push_back(none);
    for (int64_t bin = 1; bin < windows_; ++bin) {
        // Find the least age that is in a bin below `bin`; bins fall as ages rise.
        int64_t low = 0, high = span;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (window_by(middle) < bin) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        window_bounds_.push_back(window_by(low) < bin ? low : none);
    }
    window_bounds_.push_back(-1);
}

}  // namespace acep
