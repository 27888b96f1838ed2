// The matches that OUTPUT chooses of a pattern whose conditions are functions of the row, and of the first row of the
// match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ordered/polling.hpp"
#include "ordered/tied_conditions.hpp"

namespace acep {

// A test that a row passes if its byte of `holds` is not 0 (nullptr: none is) and all of some tied conditions hold; if
// it is `negated`, one that does not.
struct TiedTest {
    const uint8_t* holds;
    std::vector<uint32_t> conditions;
    bool negated;
};

// A transition that binds a row. `holds`: a byte a row, whether its conditions are true there (nullptr: all are);
// `tests`: those with conditions that also read the first row.
struct IntervalArc {
    uint8_t source, target;
    uint16_t label;
    const uint8_t* holds;
    std::vector<TiedTest> tests;
};

// A state in which a match may end; `holds`: the rows with which it may, as above.
struct IntervalEnd {
    uint8_t state;
    const uint8_t* holds;
    std::vector<TiedTest> tests;
};

// A transition that leaves a row out; `holds` as above.
struct IntervalSkip {
    uint8_t source, target;
    const uint8_t* holds;
    std::vector<TiedTest> tests;
};

// Which match comes first: the one that ends first, or of those from the first start the longest or the shortest.
enum class IntervalOrder : uint8_t { first_end, longest, shortest };

// Where matches that are taken from start to start may begin after one that is given.
enum class IntervalSkipTo : uint8_t { past_last, next, first_of, last_of };

// The rows that are searched, and the pattern. State 0 is the one before the first row; there are at most
// `most_states`.
struct IntervalInput {
    static constexpr size_t most_states = 64;

    std::vector<IntervalArc> arcs;
    std::vector<IntervalEnd> ends;
    std::vector<IntervalSkip> skips;  // without skips each row of a match is bound
    std::vector<TiedCondition> tied;  // not for the order of first ends
    const Texts* texts = nullptr;
    std::vector<size_t> partitions;  // the first row of each, and the number of rows
    const int64_t* times = nullptr;  // by row; they rise in a partition
    const int64_t* places = nullptr;  // by row, for the window; they rise in a partition. nullptr: there is no window
    uint64_t width = 0;  // of the window: last place - first place <= width
    IntervalOrder order = IntervalOrder::first_end;
    IntervalSkipTo skip_to = IntervalSkipTo::past_last;  // not of the order of first ends
    uint16_t skip_label = 0;  // of the rows that are skipped to
};

// Matches in the order of the rows. Their rows and labels stand one after another, those of match i from `offsets[i]`
// on. `open`: for each partition the first row with which a match may begin that rows after the last one extend.
struct Intervals {
    std::vector<int64_t> offsets{0}, rows;
    std::vector<uint16_t> labels;
    std::vector<int64_t> open;
};

// The states that can be reached are a function of the first row and the row. A match is an interval of rows; of those
// with the same interval that one is chosen that binds the most rows (of the longest), then the least ones, then to the
// least labels. Each pass over rows is one over the rows of a match that is then given, so that the work is linear in
// the rows and those of the matches. With tied conditions a pass may also be one over rows that make no match.
class IntervalSearch {
public:
    explicit IntervalSearch(IntervalInput input);

    // Return all matches; `more`: rows may come after the last ones.
    Intervals run(bool more, Polling& polling);
    // Return how many rows passes have met, ever.
    size_t rows_met() const { return rows_met_; }

private:
    static constexpr size_t none = std::numeric_limits<size_t>::max();
    static constexpr uint64_t start = 1;  // the set of state 0

    // A row in which a match may end, and the last one in which such a match begins.
    struct End {
        size_t row, latest;
    };

    // Return the states that a set leads to by a row that is bound.
    uint64_t after(uint64_t states, size_t row);
    // Return the states that lead by a row that is bound to a set.
    uint64_t before(uint64_t states, size_t row);
    // Return the states that a set leads to by a row that is left out.
    uint64_t after_skip(uint64_t states, size_t row);
    // Return the states that lead by a row that is left out to a set.
    uint64_t before_skip(uint64_t states, size_t row);
    // Return the states in which a match may end with a row.
    uint64_t ending(size_t row);
    // Return whether a match from one row to another is within the window.
    bool inside(size_t first, size_t last) const;
    // Return whether a row passes the tests of a transition or an end. Without a first row tied ones are passed.
    template <class Tested>
    bool passes(const Tested& it, size_t row);
    // Return whether a row passes all tests.
    bool pass(const std::vector<TiedTest>& tests, size_t row);
    // Return the states that transitions lead to from some states.
    template <class Transition>
    uint64_t targets(const std::vector<Transition>& transitions, uint64_t states, size_t row);
    // Return the states from which transitions lead to some states.
    template <class Transition>
    uint64_t sources(const std::vector<Transition>& transitions, uint64_t states, size_t row);

    // Return the first row of a partition with which a match may begin that goes on after its last row; its end if
    // none.
    size_t first_open(size_t begin, size_t end, Polling& polling);
    // Give the matches of a partition from start to start: of each start the longest, or the shortest.
    void find_by_start(size_t begin, size_t end, Intervals& found, Polling& polling);
    // Set `soonest_` for a partition, as if tied conditions were true.
    void find_soonest(size_t begin, size_t end, Polling& polling);
    // Return the last row of the longest match from a row, or of the shortest one; `none`: there is none.
    size_t end_from(size_t first, size_t begin, Polling& polling);
    // Return the same for the shortest match without tied conditions, from what is computed.
    size_t shortest_from(size_t first, size_t begin);
    // Return the first row with which a match may begin after the last one that was given.
    size_t next_start(const Intervals& found) const;
    // Give the matches of a partition in the order of their ends.
    void find_first(size_t begin, size_t end, Intervals& found, Polling& polling);
    // Give the matches that end at one time: the one that starts first, of several that one with the least rows;
    // then what does not overlap it. `free`: the first row after the match before, which is moved on.
    void choose_of_time(size_t& free, Intervals& found, Polling& polling);
    // Return the first row of the longest match that ends with a row and begins with `free` or later. There must be
    // one.
    size_t earliest(size_t last, size_t free, Polling& polling);
    // Set the ways of the matches from one row to another: the states after each row.
    void find_ways(size_t first, size_t last, Polling& polling);
    // Set the most rows that are bound after each row of the matches from one row to another, by state.
    void count_rows(size_t first, size_t last, Polling& polling);
    // Set which rows are bound by the chosen match from one row to another: the most (if `longest`), then the least
    // ones.
    void bind_rows(size_t first, size_t last, Polling& polling);
    // Leave of the ways those on which the rows are bound that are.
    void keep_ways(size_t first, size_t last);
    // Add the match from one row to another.
    void give(size_t first, size_t last, Intervals& found, Polling& polling);
    // Count a row that a pass meets.
    void count_row(Polling& polling) {
        ++rows_met_;
        polling.work(in_.arcs.size());
    }

    IntervalInput in_;
    TiedConditions tied_;
    bool is_tied_;
    size_t first_ = none;  // the first row that tied conditions read
    size_t n_states_ = 1;
    std::vector<size_t> soonest_;  // by row of the partition and state: the first later row in which a match ends
    std::vector<uint64_t> ways_;  // by row of a match: the states on the ways from its first to its last row
    std::vector<int64_t> counts_;  // by row of a match and state: the most later rows that are bound, or -1
    std::vector<uint8_t> bound_;  // by row of a match: whether it is bound
    std::vector<End> ends_;  // of rows of one time
    size_t rows_met_ = 0;
};

}  // namespace acep
