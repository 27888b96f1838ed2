// The operations of block programs on a single row.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "expression/vm.hpp"
#include "expression/vm_operations.hpp"

namespace acep::operations {

using Cell = Scratch::Cell;

// The operands of an operation on one row, and the place of its result. The operations below do what those on
// blocks do (vm_blocks.hpp).
struct CellWork {
    const Cell& a;
    const Cell& b;
    Cell& out;
    // Return whether no operand is null.
    bool valid() const { return a.valid && b.valid; }
    // Return the first operand as a value of a type.
    template <class T>
    T left() const {
        return std::bit_cast<T>(a.word);
    }
    // Return the second operand as a value of a type.
    template <class T>
    T right() const {
        return std::bit_cast<T>(b.word);
    }
};

// Compute out = value(a, b), which is defined for all operands.
template <class A, class B, class R, class Value>
inline void total(CellWork w, Value value) {
    const R r = static_cast<R>(value(w.left<A>(), w.right<B>()));
    w.out = {std::bit_cast<int64_t>(r), w.valid()};
}

// Compute out = value(a, b); null if that is NaN.
template <class A, class Value>
inline void doubles(CellWork w, Value value) {
    const double r = value(w.left<A>(), w.right<A>());
    w.out = {std::bit_cast<int64_t>(r), w.valid() && r == r};
}

// Compute out = a + b or a - b of integers; the sign bit of `over` is set if the result is beyond 64 bits.
template <class Value, class Over>
inline void sums(CellWork w, Value value, Over over) {
    const uint64_t a = w.left<uint64_t>(), b = w.right<uint64_t>(), r = value(a, b);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && over(a, b, r) >> 63 == 0};
}

// Call put(a, b, out) to set out; null if that returns false.
template <class A, class B, class R, class Put>
inline void partial(CellWork w, Put put) {
    R r{};
    const bool there = put(w.left<A>(), w.right<B>(), r);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && there};
}

// Compute out = a % b of integers.
inline void remainders(CellWork w) { partial<int64_t, int64_t, int64_t>(w, remainder); }

// Compute the truth value compare(a, b); null if an operand is.
template <class A, class B, class Compare>
inline void comparison(CellWork w, Compare compare) {
    const bool valid = w.valid();
    w.out = {valid && compare(w.left<A>(), w.right<B>()), valid};
}

// Compute AND (`absorbing` = 0) or OR (1).
template <uint8_t absorbing>
inline void logic(CellWork w) {
    const bool s = w.a.word != 0, t = w.b.word != 0;
    if (absorbing != 0) {
        w.out = {s || t, w.valid() || s || t};
    } else {
        w.out = {s && t, w.valid() || (w.a.valid && !s) || (w.b.valid && !t)};
    }
}

// Compute NOT a.
inline void negation(CellWork w) { w.out = {w.a.valid && w.a.word == 0, w.a.valid}; }

// Compute whether `a` is null.
inline void nullness(CellWork w) { w.out = {!w.a.valid, true}; }

// Compute out = b if later(a, b), else a; if one of them is null, out is the other one.
template <class Later>
inline void either(CellWork w, Later later) {
    w.out = !w.a.valid || (w.b.valid && later(w.a.word, w.b.word)) ? w.b : w.a;
}

// Compute the better of a and b; if one is null, the other one.
template <class T, class Compare>
inline void extreme(CellWork w, Compare better) {
    either(w, [=](int64_t a, int64_t b) { return better(std::bit_cast<T>(b), std::bit_cast<T>(a)); });
}

// Test whether `a` is in `set`, which is sorted.
template <class T>
inline void membership(CellWork w, std::span<const int64_t> set) {
    const auto before = [](int64_t x, int64_t y) { return std::bit_cast<T>(x) < std::bit_cast<T>(y); };
    const T x = w.left<T>();
    w.out = {w.a.valid && x == x && std::binary_search(set.begin(), set.end(), w.a.word, before), w.a.valid};
}

// The data of a running program, like BlockFrame.
struct RowFrame {
    Cell* cells;
    const Leaf* leaves;
    size_t row;

    // Return the work of an operation on two slots, with its result in a third one.
    CellWork work(size_t a, size_t b, size_t to) const { return {cells[a], cells[b], cells[to]}; }
    // Set a slot to an input.
    void leaf(size_t input, size_t to) const {
        const Leaf& leaf = leaves[input];
        const size_t at = row * leaf.stride;
        cells[to] = {leaf.values[at], leaf.valid == nullptr || leaf.valid[at] != 0};
    }
    // Set a slot to a constant.
    void constant(const int64_t& word, size_t to) const { cells[to] = {word, true}; }
    // Set a slot to null.
    void none(size_t to) const { cells[to] = {0, false}; }
    // Set a slot to the word of a truth value.
    void number(size_t a, size_t to) const { cells[to] = cells[a]; }
    // Set a slot to slot `a` if slot `c` is true, else to slot `b`.
    void select(size_t c, size_t a, size_t b, size_t to) const { cells[to] = cells[c].word != 0 ? cells[a] : cells[b]; }
};

}  // namespace acep::operations
