// Conditions over whole bindings: HAVING, RETURN, and the events that break a negation (acep/reference/bindings.py).
//
// Predicates on arcs read registers; these conditions read the bound events themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "expression/vm.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

// One way to end a run: its error so far, its arcs (an offset into Binding::arcs), the state and the ending.
struct Option {
    int64_t error;
    uint32_t arcs;
    uint16_t state;
    uint16_t accept;
};

// A complete run of n bound events, oldest first. It has copies of all that it needs; nothing else is kept for it.
struct Binding {
    int64_t error = 0;
    int64_t start = 0, end = 0;  // ts of the first and the last event
    std::vector<int64_t> positions, ids;
    std::vector<uint16_t> vars;
    std::vector<uint16_t> arcs;  // n for each run with this binding
    std::vector<int64_t> rows;   // n times the kept columns
    std::vector<uint8_t> valid;
    std::vector<int64_t> values;  // results of RETURN
    std::vector<uint8_t> known;
    std::vector<Option> options;

    // Return the number of bound events.
    size_t size() const { return positions.size(); }
    // Return the position of the first event; there must be one.
    int64_t first() const { return positions.front(); }
    // Return the position of the last event; there must be one.
    int64_t last() const { return positions.back(); }
    // Remove all events, runs and values; `start` and `end` stay as they are.
    void clear() {
        for (auto* v : {&positions, &ids, &rows, &values}) v->clear();
        for (auto* v : {&vars, &arcs}) v->clear();
        for (auto* v : {&valid, &known}) v->clear();
        options.clear();
        error = 0;
    }
    // Return its bytes, with those on the heap.
    int64_t bytes() const {
        return static_cast<int64_t>(sizeof(Binding)) +
               heap_bytes(positions, ids, rows, values, vars, arcs, valid, known, options);
    }
};

// Events that may break one negation, in stream order; the first `head` of them are discarded.
struct Suspects {
    std::vector<int64_t> ts, positions, rows;
    std::vector<uint8_t> valid;
    size_t head = 0;

    // Return the number of events, with the discarded ones that are still there.
    size_t size() const { return ts.size(); }
    // Return whether all events are discarded.
    bool empty() const { return head == ts.size(); }
    // Discard the events before number `upto`, each with `width` values; their room is freed now and then.
    void discard(size_t upto, size_t width);
    // Remove the discarded events.
    void cut(size_t width);
    // Throw std::invalid_argument unless this is a state that was written. `end`: the number above all positions.
    void check(size_t width, int64_t end) const;
};

// A run that crosses a negation before its event number `next`; `arcs`: those of the run, one for each bound event.
struct CrossingRun {
    const Crossing& crossing;
    const Binding& binding;
    std::span<const uint16_t> arcs;
    size_t next;
};

// The conditions of a plan's tables, computed for one binding at a time.
class Conditions {
public:
    Conditions(const Tables& tables, EventClassifier& classifier);

    // Return whether a complete run meets HAVING; true if there is none.
    bool meets_having(const Binding& binding);
    // Append the values of RETURN to a binding, which has none yet.
    void add_returns(Binding& binding);
    // Count the suspects [from, to) that break the negation that a run crosses; return at most `most`.
    int64_t count_breaking(const CrossingRun& run, const Suspects& suspects, size_t from, size_t to, int64_t most);
    // Return an arc by its number. One that is gone, as those of versions that are over, crosses nothing.
    const Arc& arc(uint16_t number) const { return number < arcs_.size() ? *arcs_[number] : gone_; }
    // Return the number above those of all arcs.
    size_t arcs() const { return arcs_.size(); }
    // Go on with tables that have changed.
    void change();

private:
    // A value; the word of a null has no meaning.
    struct Word {
        int64_t word;
        bool valid;
    };
    // Column values of events, `width` for each; events of a variable are given by their indices in these rows.
    struct Rows {
        const int64_t* rows;
        const uint8_t* valid;
        size_t width;
    };
    // The value of a reference that is the same for all candidates, or its values for each index of its loop.
    using Prepared = std::vector<Word>;

    // Return the standard deviation of words, which are doubles if `floats`; null for too few, or if it is not a
    // number.
    static Word deviation(std::span<const int64_t> words, bool floats, bool population);
    // Return the value of a reference over events of its variable: one of them, or an aggregate.
    Word summary(const Ref& ref, std::span<const uint32_t> events, const Rows& rows) const;
    // Set `events_` to all events of each variable in a binding.
    void group_events(const Binding& binding);
    // Load the references of a condition, over the events in `events_`, as the leaves of its program.
    void load_references(const Whole& whole, const Binding& binding);

    // A negation holds a conjunction of conditions, each with loops over the events of variables. A suspect breaks it
    // if each conjunct passes for all combinations of its loops' indices.

    // Set `events_` of a variable to those that a negation refers to: in a group, those of the iteration that crosses
    // it.
    void gather_events(const Negation& negation, const CrossingRun& run, uint32_t var);
    // Do so for each variable of a negation. Return false if one has no events, so that nothing breaks the negation.
    bool gather_all_events(const Negation& negation, const CrossingRun& run);
    // Set `combinations_`, once events are gathered. Return false if a variable has too few, so that nothing breaks.
    bool count_combinations(const Negation& negation);
    // Compute `prepared_`: the values of references to bound events, once combinations are counted.
    void prepare(const Negation& negation, const Binding& binding);
    // Append the prepared values of a reference to bound events.
    void prepare_values(const Conjunct& conjunct, const Ref& ref, const Rows& rows, Prepared& values) const;
    // Return how many combinations of the later loops come with each index of a reference's loop.
    size_t loop_stride(const Conjunct& conjunct, const Ref& ref) const;
    // Load the leaves of conjunct `i` for `count` rows from `row` on: for each suspect from `first` on, one for each
    // combination.
    void load_values(const Negation& negation, size_t i, const Suspects& suspects, size_t first, size_t row,
                     size_t count);
    // Clear `pass_` for the suspects from `first` on, as many as it has, for which conjunct `i` does not pass.
    void test_conjunct(const Negation& negation, size_t i, const Suspects& suspects, size_t first);

    const Tables& tables_;
    EventClassifier& classifier_;
    const Arc gone_{};
    std::vector<const Arc*> arcs_;  // by number
    std::vector<std::vector<uint32_t>> events_;  // by variable
    std::vector<uint8_t> gathered_;  // by variable: whether `events_` has it for the current negation
    std::vector<std::vector<Prepared>> prepared_;  // by conjunct and reference
    std::vector<size_t> combinations_;  // by conjunct: of the indices of its loops
    std::vector<uint8_t> pass_;  // by suspect of a block: whether all conjuncts so far pass
    std::vector<int64_t> words_;
    std::vector<uint8_t> valid_;
    std::vector<Leaf> leaves_;
    Scratch scratch_;
};

}  // namespace acep
