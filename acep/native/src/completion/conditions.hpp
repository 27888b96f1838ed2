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

    size_t size() const { return positions.size(); }
    int64_t first() const { return positions.front(); }
    int64_t last() const { return positions.back(); }
    void clear() {
        for (auto* v : {&positions, &ids, &rows, &values}) v->clear();
        for (auto* v : {&vars, &arcs}) v->clear();
        for (auto* v : {&valid, &known}) v->clear();
        options.clear();
        error = 0;
    }
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

    size_t size() const { return ts.size(); }
    bool empty() const { return head == ts.size(); }
    void forget(size_t upto, size_t width);
    // Remove the discarded events.
    void cut(size_t width);
    // Throw std::invalid_argument unless this is a state that was written. `end`: the number above all positions.
    void check(size_t width, int64_t end) const;
};

class Conditions {
public:
    Conditions(const Tables& tables, EventClassifier& classifier);

    bool having(const Binding& binding);
    void returns(Binding& binding);
    // Count the suspects [from, to) that break a negation crossed by a run before its event j; stop at `most`. `arcs`
    // are those of the run.
    int64_t breaks(const Crossing& crossing, const Binding& binding, std::span<const uint16_t> arcs, size_t j,
                   const Suspects& suspects, size_t from, size_t to, int64_t most);
    // Return an arc by its number. One that is gone, as those of versions that are over, crosses nothing.
    const Arc& arc(uint16_t number) const { return number < arcs_.size() ? *arcs_[number] : gone_; }
    // Return the number above those of all arcs.
    size_t arcs() const { return arcs_.size(); }
    // Go on with tables that have changed.
    void change();

private:
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

    static Word deviation(std::span<const int64_t> words, bool floats, bool population);
    Word summary(const Ref& ref, std::span<const uint32_t> events, const Rows& rows) const;
    void spread(const Binding& binding);
    void load(const Whole& whole, const Binding& binding);
    void view(const Negation& negation, const Crossing& crossing, const Binding& binding,
              std::span<const uint16_t> arcs, size_t j, uint32_t var);

    const Tables& tables_;
    EventClassifier& classifier_;
    const Arc gone_{};
    std::vector<const Arc*> arcs_;  // by number
    std::vector<std::vector<uint32_t>> events_;  // by variable
    std::vector<uint8_t> seen_;                  // by variable: whether `events_` has it for the current negation
    std::vector<std::vector<Prepared>> prepared_;  // by conjunct and reference
    std::vector<size_t> combinations_;             // by conjunct
    std::vector<uint8_t> pass_;
    std::vector<int64_t> words_;
    std::vector<uint8_t> valid_;
    std::vector<Leaf> leaves_;
    Scratch scratch_;
};

}  // namespace acep
