// Block programs: expressions over columns, up to 256 rows at a time (acep/plan/lower/bytecode.py makes them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/texts.hpp"
#include "expression/opcodes.hpp"
#include "expression/simple.hpp"
#include "expression/slopes.hpp"

namespace acep {

constexpr size_t block_rows = 256;
// Up to so many rows are computed one by one: a block operation takes longer to start than one row takes.
constexpr size_t few_rows = 4;

// An input. Doubles are passed as their bits, truth values as 0 or 1, texts as codes. `valid`: 0 where the value is
// null; nullptr: never null. Stride 1 is a column; stride 0 is one value (and one of `valid`) for all rows.
struct Leaf {
    const int64_t* values;
    const uint8_t* valid;
    uint32_t stride;
};

// Memory for the intermediate results of programs, which grows at first use and is then reused. One for each thread.
class Scratch {
public:
    // The results of one instruction for a block of rows.
    struct alignas(64) Slot {
        int64_t words[block_rows];
        uint8_t truth[block_rows];
        uint8_t valid[block_rows];
    };
    // The current content of a slot: its own arrays, an input's, or a constant. A null scalar has stride 0 and
    // valid[0] = 0; any other scalar has no `valid`. The truth of null is 0.
    struct View {
        const int64_t* words;
        const uint8_t* truth;
        const uint8_t* valid;
        size_t stride;
    };

    // The same for a single row: a truth value is a word of 0 or 1; null is 0.
    struct Cell {
        int64_t word;
        bool valid;
    };

    // Make room for a program with `slots` slots; memory is allocated only if there is too little.
    void reserve(size_t slots) {
        if (slots > slots_.size()) {
            slots_.resize(slots);
            views_.resize(slots);
            cells_.resize(slots);
        }
    }

private:
    friend class BlockProgram;
    std::vector<Slot> slots_;
    std::vector<View> views_;
    std::vector<Cell> cells_;
};

// A program, checked when it is made: whatever its words are, it cannot read or write out of bounds.
class BlockProgram {
public:
    static constexpr size_t most_slots = 1024;
    static constexpr size_t most_words = size_t{1} << 20;

    // Throw std::invalid_argument if the words are not a program with `slots` slots and `leaves` inputs.
    BlockProgram(std::span<const int64_t> code, int64_t slots, int64_t leaves);

    // Set pass[i] to 1 if the result is true, 0 if it is false or null (or not a truth value); n <= block_rows.
    void test(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, uint8_t* pass) const;
    // Set out[i] to the result and valid[i] to 1, or valid[i] to 0 if it is null; n <= block_rows.
    void value(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, int64_t* out, uint8_t* valid) const;

    // The sum of an input and a constant.
    struct Sum {
        uint32_t input;
        int64_t added;
    };
    // Return the sum that the program is, or nullptr if it is another one.
    const Sum* sum() const { return sum_ ? &*sum_ : nullptr; }
    // Return whether the result is the only input.
    bool copies() const {
        return leaves_ == 1 && instructions_.size() == 1 && instructions_[0].op == Op::LEAF &&
               instructions_[0].to == result_ && !condition_;
    }
    // An equality of two inputs.
    struct Equality {
        uint32_t a, b;
        bool doubles;
    };
    // Return the equality that `test` is, if it is one of values of one kind.
    std::optional<Equality> equality() const;
    // A condition that two inputs differ by less than `width`, or by it at most.
    struct Band {
        uint32_t a, b;
        bool doubles;
        double width;
    };
    // Return the band that `test` is, if it is one of values of one kind: `abs(a - b) < width`.
    std::optional<Band> band() const;
    // Return the predicate that `test` is, if it is a simple one.
    std::optional<SimplePredicate> simple() const { return simple_or_mixed(false); }
    // Return how the result changes from row to row, if inputs change so.
    Slope slope(std::span<const InputSlope> inputs) const;
    // Return the number of inputs.
    size_t leaves() const { return leaves_; }
    // Return whether the result is a truth value.
    bool condition() const { return condition_; }
    // Return whether `test` is a conjunction of comparisons of inputs and constants, which needs no scratch vectors.
    bool short_way() const { return !terms_.empty(); }
    // Return whether it holds for one row of the inputs.
    bool passes(const Leaf* leaves, size_t row) const;

private:
    // An operation, and the slots that it reads and sets.
    struct Instruction {
        Op op;
        uint16_t to;
        uint16_t a, b, c;
        uint32_t at, count;  // its own words in constants_; for LEAF, `at` is the input
    };
    // A comparison of an input with another one or a constant: an operand is an input, or ~index into constants_.
    struct Term {
        Op op;
        int32_t a, b;
    };

    // The same; `mixed`: also a comparison of integers with a double, which has the bits of the double as its constant.
    std::optional<SimplePredicate> simple_or_mixed(bool mixed) const;
    // Find the terms, if `test` is a conjunction of comparisons of inputs and constants.
    void find_terms();
    // Find whether the program is the sum of an input and a constant.
    void find_sum();
    // Return the sum of an input and a constant that an instruction gives, if it is one; operands as in Term.
    std::optional<Sum> sum_of(Op op, int32_t a, int32_t b) const;
    // Run each operation once on the content of a frame: blocks of rows, or one row.
    template <class Frame>
    void run(const Frame& frame, const Texts& texts) const;
    // Run the program on a block of rows, and return its result, which is valid until the scratch memory is used
    // again.
    const Scratch::View& run_block(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch) const;
    // Run the program on one row, and return its result, which is valid until the scratch memory is used again.
    const Scratch::Cell& run_row(const Leaf* leaves, size_t row, const Texts& texts, Scratch& scratch) const;
    // Do what `test` does, by the terms.
    void test_terms(const Leaf* leaves, size_t n, uint8_t* pass) const;

    std::vector<Instruction> instructions_;
    std::vector<int64_t> constants_;
    std::vector<Term> terms_;
    std::optional<Sum> sum_;
    size_t slots_;
    size_t leaves_;
    uint16_t result_ = 0;
    bool condition_ = false;
};

}  // namespace acep
