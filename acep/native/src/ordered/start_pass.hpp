// The search from one start, where the conditions depend on the row and on the first rows of the match alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "expression/slopes.hpp"
#include "expression/vm.hpp"
#include "ordered/bound_rows.hpp"
#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"
#include "ordered/reachable.hpp"
#include "ordered/row_conditions.hpp"

namespace acep {

// A match begins with states that are the same in all matches: its head. If the conditions of later rows read nothing
// that rows after the head decide, they are functions of the row once the head is bound. Then a pass forward finds
// which states can be reached, with conditions computed for many rows at once; a pass back finds those from which a
// match ends; and the preferred way is walked without turning back. The passes are repeated over twice as many rows
// until the rows after them do not matter.
//
// If conditions read a later row too, but one that stands at one state, which all ways to these conditions lead over,
// that state is a pivot: what follows its row is a search of its own, from each row that can be the pivot.
class StartPass {
public:
    // `masks`: nullptr if there are too many states.
    StartPass(const PatternGraph& graph, const StateMasks* masks, const std::vector<LabelSet>& sets,
              const RowConditions& conditions, const std::vector<Reference>& references);

    // Return whether the conditions are such ones; whether there are some after the head.
    bool usable() const { return usable_; }
    // Return whether there are conditions after the head.
    bool conditional() const { return conditional_ != 0 || inner_ != nullptr; }
    // Begin with the partition of `rows` rows from `begin` on; return false if it would need more than `memory` bytes.
    bool enter(const OrderedRowsView& view, const std::vector<const uint8_t*>& local, size_t begin, size_t rows,
               size_t memory);
    // Bind the preferred match from a position on, of rows before position `window`; return false if there is none.
    bool find(size_t start, size_t window, Reachable& reachable, BoundRows& bound, RowConditions& conditions,
              Polling& polling);
    // Return how many rows the passes forward met, ever.
    size_t rows_met() const { return rows_met_ + (inner_ ? inner_->rows_met() : 0); }
    // Return the bytes on the heap.
    size_t bytes() const;

private:
    // An input of a condition: of the row itself, or of the head.
    struct Input {
        uint32_t reference;
        bool current;
        Leaf leaf;
        Scratch::Cell cell;
        std::vector<int64_t> words;  // of the rows of the label, if they are gathered
        std::vector<uint8_t> valid;
    };
    // A condition of a label, with its inputs.
    struct Condition {
        const BlockProgram* program;
        std::vector<Input> inputs;
        bool falls;  // in this partition: once it is false, it is never true again
    };
    // A label that later rows may have under such conditions.
    struct Label {
        size_t label;
        uint64_t states;  // none: only conditions that fall matter
        std::vector<Condition> conditions;
        bool gathered;  // only its rows are looked at, those which its conditions on single rows allow
        std::vector<size_t> rows;  // their positions
    };
    // How far the passes of one start have come.
    struct Progress {
        size_t begin;  // position after the head
        size_t limit;  // the position from which on no row can have a label in bounded_labels_
        size_t stop;  // the position after the last row that may be bound
        size_t position;
        uint64_t states;  // that can be reached before it
        size_t chunk, chunk_end;  // positions for which hits_ are made
        uint64_t untested;  // states whose conditions were not tested for them
        size_t match_end;  // the last position at which a match can end, or none
        bool ended;  // no more rows matter
    };

    // The parts that a search from one start hands on.
    struct Search {
        size_t window;
        Reachable& reachable;
        BoundRows& bound;
        RowConditions& conditions;
        Polling& polling;
    };
    // The labels that are bound before: those of the head and of pivots, and flags of those of other rows.
    struct Before {
        std::vector<uint32_t> head, pivots;
        std::vector<uint8_t> others;
    };
    // The states that can be reached, and the flags of their labels.
    struct Ahead {
        std::vector<uint32_t> states;
        std::vector<uint8_t> labels;
    };
    // The parts of a pattern, as the constructors get them.
    struct Pattern {
        const PatternGraph& graph;
        const StateMasks* masks;
        const std::vector<LabelSet>& sets;
        const RowConditions& conditions;
        const std::vector<Reference>& references;
    };

    // A search after a pivot.
    StartPass(const Pattern& pattern, uint32_t first_state, Before before);
    // Find the head, and the state after it.
    void find_head();
    // Find a pivot, if one is needed, and the labels with conditions before it.
    void prepare(const Pattern& pattern);
    // Try a state as pivot; return whether it can be one.
    bool prepare_pivot(const Pattern& pattern, uint32_t pivot, const Ahead& all);
    // Return what can be reached from a state, not beyond a pivot.
    Ahead ahead(uint32_t from, uint32_t pivot) const;
    // Return whether the value of a reference is decided by the row, the head and earlier pivots.
    bool fixed(const Pattern& pattern, const Reference& reference, const Ahead& rows) const;
    // Return whether the values of all references of a condition are so decided.
    bool fixed(const Pattern& pattern, uint32_t condition, const Ahead& rows) const;
    // Return whether all conditions of labels ahead are decided by the row, the head and earlier pivots.
    bool all_fixed(const Pattern& pattern, const Ahead& rows) const;
    // Return whether conditions here, or after the pivot, read the number of the match or rows of some labels.
    bool reads(const Pattern& pattern, const std::vector<uint32_t>& labels) const;
    // Add the labels ahead that have conditions; of labels that come after the pivot, the conditions that are
    // decided.
    void add_labels(const Pattern& pattern, const Ahead& rows, const Ahead& all);
    // Return whether the rows of a label are gathered: few ones, and those whose conditions read other rows.
    bool gathers(const Label& label, const uint8_t* local) const;
    // Gather the rows of a label, if they are to be, and set the leaves of its conditions.
    void gather(Label& label, const uint8_t* local);
    // Gather the words of an input for some rows.
    void gather(Input& input, const std::vector<size_t>& rows);
    // Return whether a condition of the rows of this partition falls, whatever the head is.
    bool falls(const Condition& condition) const;
    // Return how an input of a row changes from row to row of the partition.
    InputSlope slope_of(const Input& input) const;
    // Find the labels with a condition that falls in the partition, and the states that need a row of them.
    void find_bounded();

    // Bind the head from a position on; return false if it does not match.
    bool bind_head(size_t start, Search& search) const;
    // Read what the head and earlier pivots decide of the inputs of conditions.
    void read_before(const BoundRows& bound);
    // Begin the passes from a position after the head, with all that is bound before.
    Progress progress(size_t begin, const Search& search);
    // Bind the preferred way from a position on; return whether there is any.
    bool bind_rest(size_t begin, Search& search);
    // Return whether there is a way from a position on.
    bool exists(size_t begin, Search& search);
    // Return whether a row can be the pivot, by what follows it.
    bool pivotal(size_t position, Search& search);
    // Return the first position from which on no row can have a label in bounded_labels_.
    size_t limit(size_t position, size_t stop);
    // Return the first position at which a condition that falls is false; `stop` if there is none before it.
    size_t limit(Condition& condition, size_t position, size_t stop);
    // Return whether a condition is false for a row, and not null.
    bool over(Condition& condition, size_t position);
    // Go forward to so many rows from the begin, as long as rows matter.
    void go_forward(Progress& at, size_t rows, Search& search);
    // Begin the next chunk at the current position: no conditions are tested for it.
    void begin_chunk(Progress& at);
    // Test the conditions of some states for the remaining rows of the chunk.
    void test(Progress& at, uint64_t states, RowConditions& conditions);
    // Test the conditions of a label for the rows [from, to) of a chunk, and add its states to hits_ where they
    // hold.
    void test(const Label& label, size_t from, size_t chunk, size_t to, RowConditions& conditions);
    // Find the states from which a match ends, or may end after the rows that were met.
    void go_back(const Progress& at, const Reachable& reachable);
    // Bind the preferred way; return false if it leads beyond the rows that were met.
    bool walk(const Progress& at, Search& search);

    const PatternGraph& graph_;
    const StateMasks* masks_;
    const std::vector<Reference>& references_;
    bool usable_ = false;
    std::vector<uint32_t> head_;  // its states that consume a row
    uint32_t first_state_ = 0;  // after the head, or after the pivot before
    Before before_;
    std::unique_ptr<StartPass> inner_;  // the search after the pivot
    uint64_t pivot_ = 0;  // its state
    uint16_t pivot_label_ = 0;
    bool lasting_ = false;  // whether a row can be the pivot is the same for all starts
    std::vector<uint8_t> pivots_;  // by position: 0 unknown, 1 it can be, 2 it cannot
    std::vector<Label> labels_;
    uint64_t conditional_ = 0;  // the states of these labels
    std::vector<uint8_t> bounded_labels_;  // those with a condition that falls
    uint64_t bounded_ = 0;  // states from which no match ends without a row of them

    const OrderedRowsView* view_ = nullptr;
    size_t begin_ = 0, rows_ = 0;
    // Of one start, by position after the head: the states that can be reached and that consume the row, and those from
    // which a match ends.
    std::vector<uint64_t> reached_, ending_;
    std::vector<uint64_t> hits_;  // by position in the chunk: states whose conditions hold
    std::vector<uint8_t> pass_, next_pass_;
    std::vector<Leaf> leaves_;
    Scratch scratch_;
    size_t rows_met_ = 0;
};

}  // namespace acep
