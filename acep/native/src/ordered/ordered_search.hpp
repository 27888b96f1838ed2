// The preferred matches of a row pattern in sorted rows, as MATCH_RECOGNIZE has them: the leftmost start, then depth
// first in the order of preference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ordered/bound_rows.hpp"
#include "ordered/earliest_ends.hpp"
#include "ordered/failures.hpp"
#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"
#include "ordered/reachable.hpp"
#include "ordered/row_conditions.hpp"
#include "ordered/start_pass.hpp"

namespace acep {

// Where the search goes on after a match: after its last row, at the row after its first, or at the first or last row
// of a set of labels.
enum class Skip : uint8_t { past_last, to_next, to_first, to_last };

// The rows of a skip are not there, or are the first row of the match.
struct SkipError : std::runtime_error {
    SkipError(const char* what, size_t in, size_t at) : std::runtime_error(what), partition(in), row(at) {}
    size_t partition, row;
};

// The pattern that a search looks for.
struct OrderedPattern {
    PatternGraph graph;
    std::vector<LabelSet> sets;
    std::vector<Reference> references;
    std::vector<RowCondition> conditions;
    std::vector<std::vector<uint32_t>> live;  // by state: the references that conditions read from there on
    Skip skip;
    size_t skip_set;
    size_t memory;  // bytes for the backward pass and the failures
};

// The rows that it looks at. Pointers lead to arrays that outlive the search.
struct OrderedInput {
    OrderedRowsView view;
    std::vector<const uint8_t*> local;  // by label: a byte a row, or nullptr: any row
    std::vector<size_t> offsets;  // of partitions, none of which is empty
    const int64_t* times = nullptr;  // nullptr: matches may be of any duration
    uint64_t width = 0;  // between the times of the first and the last row of a match
    // By partition, or empty: the position of the first start, the one from which on no match starts, and the matches
    // before the first.
    std::vector<size_t> starts{}, stops{};
    std::vector<int64_t> numbers{};
    // A match that ends with a row of this label is open: what it becomes is decided by rows that are not there. It is
    // not given, and the search of its partition ends with it.
    size_t open_label = no_label;
    static constexpr size_t no_label = static_cast<size_t>(-1);
};

// Where a search of a partition ended: the position at which the next one starts, and the matches before it.
struct PartitionEnds {
    std::vector<int64_t> positions, numbers;
    // Labels of the open matches, with which searches of patterns with conditions ended: those of partition i from
    // offsets[i] to offsets[i + 1], none if there is no such match.
    std::vector<int64_t> offsets{0};
    std::vector<uint16_t> labels;
};

// Matches, one after the other: labels of match i are those from offsets[i] to offsets[i + 1].
struct OrderedMatches {
    std::vector<int64_t> partition, number, first, offsets{0};
    std::vector<uint16_t> labels;
};

// Whether a search should remember what failed. Where that is of no use for long, it is left, as long as the moves of
// starts that fail, or that take many more than the match before, are fewer than those that were remembered.
class MemoryGauge {
public:
    // Return whether failures are to be remembered.
    bool on() const { return on_; }
    // Begin a start; return how many moves it may take.
    size_t start();
    // Note a configuration that was put in, or was in already.
    void note(bool fresh);
    // Note the end of a start with a match of so many rows.
    void succeed(size_t rows) { rows_ = rows; }
    // Note the end of a start without a match, after so many moves.
    void fail(size_t moves);
    // Remember from now on.
    void begin();

private:
    static constexpr size_t least_moves = 4096;
    // Return how many moves a start may take while failures are not remembered.
    size_t most_moves() const { return least_moves / 2 + 8 * rows_; }

    bool on_ = true;
    bool useless_ = false;  // to be left with the next start
    size_t rows_ = 0;  // of the last match
    size_t fresh_ = 0, met_ = 0;  // configurations, since it was begun or this was last judged
    size_t wasted_ = 0;  // moves of starts that failed, since it was left
};

// The search for the preferred matches of a row pattern. Rows are bound one by one; where a way fails, the next one
// is taken, and configurations from which all ways failed are remembered.
class OrderedSearch {
public:
    // The work of the search, and the bytes that it uses.
    struct Counts {
        size_t steps, conditions, failures, bytes;
    };

    // Throw std::invalid_argument for references and conditions that do not fit each other.
    explicit OrderedSearch(OrderedPattern pattern);
    OrderedSearch(const OrderedSearch&) = delete;  // its parts refer to the pattern
    OrderedSearch& operator=(const OrderedSearch&) = delete;

    // Return the pattern.
    const OrderedPattern& pattern() const { return pattern_; }
    // Begin with new rows. Throw std::invalid_argument if they do not fit the pattern.
    void start(OrderedInput input);
    // Return the next matches, of about `rows` rows and at least one match, or nothing after the last. Throw SkipError,
    // or Interrupted; then only `start` may follow.
    std::optional<OrderedMatches> take(size_t rows, Polling& polling);
    // Return what the search has done since it was made.
    Counts counts() const;
    // Return where the search ended in the partitions that are done, in their order.
    const PartitionEnds& ends() const { return partition_ends_; }

private:
    // A way that was not taken, and how much of the memory of failures is on the way to it.
    struct Choice {
        size_t position;
        uint32_t state;
        size_t way;
    };

    // Throw std::invalid_argument unless the parts of the pattern fit each other.
    void check() const;
    // Throw std::invalid_argument unless rows fit the pattern.
    void check(const OrderedInput& input) const;
    // Find where failures are remembered: where several ways meet, as long as conditions are open. So each
    // configuration that is remembered is left once, and between two of them ways only part.
    void find_remembered();
    // Throw std::invalid_argument unless the starts fit the partitions.
    void check_starts(const OrderedInput& input) const;
    // Begin with the next partition: compute what its rows decide.
    void enter_partition(Polling& polling);
    // Note where the search of the partition ended, and go on to the next one.
    void leave_partition();
    // Find the next match of the partition; return false if there is none.
    bool next(Polling& polling);
    // Return whether the match that is bound is decided by rows that are not there.
    bool is_open() const;
    // Bind the preferred match from a position on; return false if there is none.
    bool find(size_t start, Polling& polling);
    // Do the same row by row. Where failures are not remembered and this takes many moves, they are, and it starts
    // anew.
    bool search_from(size_t start, Polling& polling);
    // Do the same with at most so many moves; `moves` is how many there were. Without success in these, return
    // false.
    bool search_from(size_t start, size_t most_moves, size_t& moves, Polling& polling);
    // Take one step from a position and state; return false if none is possible.
    bool step(size_t& position, uint32_t& state);
    // Remember a configuration; return false if it was remembered before.
    bool remember(size_t position, uint32_t state);
    // Find where the window of the start ends. What failed in an earlier window need not fail in it.
    void move_window();
    // Add the match that is bound.
    void write(OrderedMatches& matches) const;
    // Return the position at which the search goes on after a match. Throw SkipError if there is none.
    size_t skipped() const;

    OrderedPattern pattern_;
    Reachable reachable_;
    EarliestEnds ends_;
    BoundRows bound_;
    RowConditions conditions_;
    StartPass pass_;
    Failures failures_;
    MemoryGauge memory_gauge_;
    // By state: whether the backward pass leaves conditions open; whether failures are remembered; the number of the
    // references that make its key.
    std::vector<uint8_t> open_, remembered_;
    std::vector<uint32_t> keys_;
    std::vector<std::vector<uint32_t>> key_references_;
    bool numbered_ = false;  // conditions read the number of the match

    OrderedInput input_;
    bool started_ = false;
    size_t partition_ = 0;
    size_t begin_ = 0, rows_ = 0;  // of the partition
    bool entered_ = false;
    size_t stop_ = 0;  // the position from which on no match starts
    bool passing_ = false;  // starts are searched from by pass_
    size_t start_ = 0;  // position of the start, or of the next one
    size_t window_ = 0;  // the position at which the window of the start ends
    int64_t number_ = 0;  // of matches of the partition
    PartitionEnds partition_ends_;
    std::vector<Choice> choices_;
    std::vector<int64_t> key_;
    size_t steps_ = 0;
};

}  // namespace acep
