// Block programs: expressions over columns, up to 256 rows at a time (acep/plan/lower/bytecode.py makes them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/texts.hpp"
#include "expression/opcodes.hpp"

namespace acep {

constexpr size_t block_rows = 256;

// An input. Doubles are passed as their bits, truth values as 0 or 1, texts as codes. `valid` (not 0: there is a value)
// may be nullptr: never null. Stride 1 is a column, 0 one value (and one of `valid`) for all rows.
struct Leaf {
    const int64_t* values;
    const uint8_t* valid;
    uint32_t stride;
};

// Where programs keep what they compute: grown at first use, then used again. One for each thread.
class Scratch {
public:
    struct alignas(64) Slot {
        int64_t words[block_rows];
        uint8_t truth[block_rows];
        uint8_t valid[block_rows];
    };
    // What a slot holds now: its own arrays, an input's, or a constant. A null scalar has stride 0 and valid[0] = 0;
    // any other scalar has no `valid`. Truth is 0 where there is null.
    struct View {
        const int64_t* words;
        const uint8_t* truth;
        const uint8_t* valid;
        size_t stride;
    };

    // The same for a single row: a truth value is a word of 0 or 1, and 0 where there is null.
    struct Cell {
        int64_t word;
        bool valid;
    };

    // Room for a program of so many slots; nothing is allocated if it is there.
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

// A program, checked when it is made: whatever its words are, it then reads and writes only what it may.
class BlockProgram {
public:
    static constexpr size_t most_slots = 1024;
    static constexpr size_t most_words = size_t{1} << 20;

    // Throws std::invalid_argument for words that are no program of `slots` slots and `leaves` inputs.
    BlockProgram(std::span<const int64_t> code, int64_t slots, int64_t leaves);

    // pass[i] is 1 where the result is true, 0 where it is false or null (or not a truth value); n <= block_rows.
    void test(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, uint8_t* pass) const;
    // out[i] is the result and valid[i] 1, or valid[i] is 0 where it is null; n <= block_rows.
    void value(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, int64_t* out, uint8_t* valid) const;

    size_t leaves() const { return leaves_; }
    size_t slots() const { return slots_; }
    // Whether the result is a truth value.
    bool condition() const { return condition_; }
    // Whether `test` is a conjunction of comparisons of inputs and constants, done without scratch vectors.
    bool short_way() const { return !terms_.empty(); }

private:
    struct Instruction {
        Op op;
        uint16_t to;
        uint16_t a, b, c;
        uint32_t at, count;  // words of its own in constants_; of LEAF, `at` is the input
    };
    // A comparison of an input with another or a constant: an operand is an input, or ~index into constants_.
    struct Term {
        Op op;
        int32_t a, b;
    };

    void find_terms();
    // Every operation once, on what a frame holds: blocks of rows, or one row.
    template <class Frame>
    void run(const Frame& frame, const Texts& texts) const;
    const Scratch::View& run_block(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch) const;
    const Scratch::Cell& run_row(const Leaf* leaves, size_t row, const Texts& texts, Scratch& scratch) const;
    bool passes(const Leaf* leaves, size_t row) const;
    void test_terms(const Leaf* leaves, size_t n, uint8_t* pass) const;

    std::vector<Instruction> instructions_;
    std::vector<int64_t> constants_;
    std::vector<Term> terms_;
    size_t slots_;
    size_t leaves_;
    uint16_t result_ = 0;
    bool condition_ = false;
};

}  // namespace acep
