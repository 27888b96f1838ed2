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

struct CellWork {
    const Cell& a;
    const Cell& b;
    Cell& out;
    bool valid() const { return a.valid && b.valid; }
    template <class T>
    T left() const {
        return std::bit_cast<T>(a.word);
    }
    template <class T>
    T right() const {
        return std::bit_cast<T>(b.word);
    }
};

template <class A, class B, class R, class Value>
inline void total(CellWork w, Value value) {
    const R r = static_cast<R>(value(w.left<A>(), w.right<B>()));
    w.out = {std::bit_cast<int64_t>(r), w.valid()};
}

template <class A, class Value>
inline void doubles(CellWork w, Value value) {
    const double r = value(w.left<A>(), w.right<A>());
    w.out = {std::bit_cast<int64_t>(r), w.valid() && r == r};
}

template <class Value, class Over>
inline void sums(CellWork w, Value value, Over over) {
    const uint64_t a = w.left<uint64_t>(), b = w.right<uint64_t>(), r = value(a, b);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && over(a, b, r) >> 63 == 0};
}

template <class A, class B, class R, class Put>
inline void partial(CellWork w, Put put) {
    R r{};
    const bool there = put(w.left<A>(), w.right<B>(), r);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && there};
}

inline void remainders(CellWork w) { partial<int64_t, int64_t, int64_t>(w, remainder); }

template <class A, class B, class Compare>
inline void comparison(CellWork w, Compare compare) {
    const bool valid = w.valid();
    w.out = {valid && compare(w.left<A>(), w.right<B>()), valid};
}

template <uint8_t absorbing>
inline void logic(CellWork w) {
    const bool s = w.a.word != 0, t = w.b.word != 0;
    if (absorbing != 0) {
        w.out = {s || t, w.valid() || s || t};
    } else {
        w.out = {s && t, w.valid() || (w.a.valid && !s) || (w.b.valid && !t)};
    }
}

inline void negation(CellWork w) { w.out = {w.a.valid && w.a.word == 0, w.a.valid}; }

inline void nullness(CellWork w) { w.out = {!w.a.valid, true}; }

template <class Later>
inline void either(CellWork w, Later later) {
    w.out = !w.a.valid || (w.b.valid && later(w.a.word, w.b.word)) ? w.b : w.a;
}

template <class T, class Compare>
inline void extreme(CellWork w, Compare better) {
    either(w, [=](int64_t a, int64_t b) { return better(std::bit_cast<T>(b), std::bit_cast<T>(a)); });
}

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

    CellWork work(size_t a, size_t b, size_t to) const { return {cells[a], cells[b], cells[to]}; }
    void leaf(size_t input, size_t to) const {
        const Leaf& leaf = leaves[input];
        const size_t at = row * leaf.stride;
        cells[to] = {leaf.values[at], leaf.valid == nullptr || leaf.valid[at] != 0};
    }
    void constant(const int64_t& word, size_t to) const { cells[to] = {word, true}; }
    void none(size_t to) const { cells[to] = {0, false}; }
    void number(size_t a, size_t to) const { cells[to] = cells[a]; }
    void select(size_t c, size_t a, size_t b, size_t to) const { cells[to] = cells[c].word != 0 ? cells[a] : cells[b]; }
};

}  // namespace acep::operations
