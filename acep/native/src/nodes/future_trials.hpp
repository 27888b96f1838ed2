// Trials of the known future: for which stretches of a stream it is built. Only counts of work decide, so that a run
// that is repeated does the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/engine.hpp"

namespace acep {

class FutureTrials {
public:
    // Costs, in units of 8 ns: of an event beside its partial matches; to make a partial match; to enter a row, or to
    // look for one while rows are entered; to ask for a partial match. A touch costs one.
    static constexpr int64_t to_pass = 12, to_make = 20, to_enter = 4, to_ask = 4;
    // Rows without the future before a trial: only they tell what it could spare.
    static constexpr int64_t least_rest = 512;

    // Return whether the last stretch brought more than it cost, so that the next one may follow at once.
    bool pays() const { return pays_; }
    // Return whether a trial may begin at a row of the stream that reads on to `ahead` rows, for `rows` of which the
    // future is asked, where to enter a row costs `each`: the run without it costs about as much or more, and has cost
    // so much that a trial in vain, and those before, hardly count. `sifted`: as below. Call it before `begin`, while
    // the future is not used.
    bool allows(int64_t row, const Work& work, size_t ahead, size_t rows, double each, bool sifted);
    // Return whether enough rows have come for `allows`.
    bool has_rested(int64_t row) const { return row - rest_row_ >= least_rest; }
    // A stretch begins.
    void begin(int64_t row, const Work& work);
    // The stretch ended before a row of the stream. It has cost `cost`, and saved partial matches whose evaluation and
    // making would have cost `saved`. `sifted`: match windows would have held back some of its events, so that it has
    // brought no more than the run costs less than before.
    void end(int64_t row, const Work& work, int64_t cost, int64_t saved, bool sifted);

    // Write or read all of it.
    static void fields(auto& self, auto& archive) {
        constexpr int64_t most = int64_t{1} << 60;
        archive.words(self.pays_);
        archive.within(0, most, self.loss_, self.rest_row_, self.begin_row_, self.stretches_);
        archive.within(-most, most, self.rest_spent_, self.begin_spent_);
        archive.finite("costs of the known future", self.without_);
    }

private:
    // The run has cost so many times what trials in vain have, and so many times what the next one may.
    static constexpr int64_t loss_factor = 64, trial_factor = 4;
    // How much more than a touch and `to_make` count an evaluation and a partial match may cost in the end: of what is
    // not made nothing else is made, looked for, or removed.
    static constexpr double most_each = 2;
    // Rows without the future that count in full.
    static constexpr int64_t most_rest = 8192;
    // Stretches after which the cost without the future is measured anew, where only that tells what it brings.
    static constexpr int64_t most_stretches = 16;

    // Return what a run has spent on its partial matches.
    static int64_t spent(const Work& work) { return work.touches + to_make * work.nodes; }

    bool pays_ = false;  // the last stretch did
    int64_t loss_ = 0;  // by trials in vain, less what others brought
    int64_t rest_row_ = 0;  // since this row, the run without the future is measured
    int64_t rest_spent_ = 0;  // what the run had spent before it
    double without_ = 0;  // what a row cost then
    int64_t begin_row_ = 0, begin_spent_ = 0;  // of the stretch
    int64_t stretches_ = 0;  // since the future was not used
};

}  // namespace acep
