// The operations of block programs on blocks of rows: tight loops, which check for nulls only if there may be some.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "common/numbers.hpp"
#include "expression/vm.hpp"
#include "expression/vm_operations.hpp"

namespace acep::operations {

using View = Scratch::View;
using Slot = Scratch::Slot;

inline constexpr int64_t no_word = 0;
inline constexpr uint8_t no_byte = 0;
inline constexpr View null_scalar{&no_word, &no_byte, &no_byte, 0};

// The rows of an operand as values of T: a column, or one value for all rows.
template <class T>
struct Many {
    const int64_t* at;
    T operator[](size_t i) const { return std::bit_cast<T>(at[i]); }
};
// The same for one value.
template <class T>
struct One {
    T value;
    T operator[](size_t) const { return value; }
};

// Call fn with the rows of one or two operands.
template <class A, class Fn>
void with_rows(const View& a, Fn fn) {
    if (a.stride != 0) {
        fn(Many<A>{a.words});
    } else {
        fn(One<A>{std::bit_cast<A>(a.words[0])});
    }
}
// Call fn(x, y) with the rows of two operands.
template <class A, class B, class Fn>
void with_rows(const View& a, const View& b, Fn fn) {
    with_rows<A>(a, [&](auto x) { with_rows<B>(b, [&](auto y) { fn(x, y); }); });
}

// The operands of an operation, and the place of its result.
struct Work {
    const View& a;
    const View& b;
    size_t n;
    Slot& slot;
    View& out;
};

// Write which rows are not null into `to`; `joined`: those that were null there stay so.
inline void keep_valid(const uint8_t* from, size_t n, uint8_t* __restrict to, bool joined) {
    if (joined) {
        for (size_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(to[i] & (from[i] != 0));
    } else {
        for (size_t i = 0; i < n; ++i) to[i] = from[i] != 0;
    }
}

// Begin an operation whose result is null where an operand is: set the stride and the valid rows of the result, and
// return its number of rows. If an operand is null in all rows, return 0 and set a null result.
inline size_t begin_strict(Work& w) {
    const View &a = w.a, &b = w.b;
    if ((a.stride == 0 && a.valid != nullptr) || (b.stride == 0 && b.valid != nullptr)) {
        w.out = null_scalar;
        return 0;
    }
    w.out.stride = a.stride | b.stride;
    w.out.words = w.slot.words;
    w.out.truth = w.slot.truth;
    w.out.valid = nullptr;
    if (a.valid != nullptr) {
        keep_valid(a.valid, w.n, w.slot.valid, false);
        w.out.valid = w.slot.valid;
    }
    if (b.valid != nullptr && &a != &b) {
        keep_valid(b.valid, w.n, w.slot.valid, w.out.valid != nullptr);
        w.out.valid = w.slot.valid;
    }
    return w.out.stride != 0 ? w.n : 1;
}

// Mark row i null if bad(i).
template <class Bad>
void mark_null(Work& w, size_t n, Bad bad) {
    uint8_t* valid = w.slot.valid;
    if (w.out.valid == nullptr) std::fill_n(valid, n, uint8_t{1});
    for (size_t i = 0; i < n; ++i) valid[i] = static_cast<uint8_t>(valid[i] & !bad(i));
    // The bad rows may all have been null before; a scalar that is not null has no `valid`.
    w.out.valid = w.out.stride == 0 && valid[0] != 0 ? nullptr : valid;
}

// Compute out = value(a, b), which is defined for all operands.
template <class A, class B, class R, class Value>
void total(Work w, Value value) {
    const size_t n = begin_strict(w);
    int64_t* __restrict out = w.slot.words;
    with_rows<A, B>(w.a, w.b, [=](auto a, auto b) {
        for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<int64_t>(static_cast<R>(value(a[i], b[i])));
    });
}

// Compute out = value(a, b); null if that is NaN.
template <class A, class Value>
void doubles(Work w, Value value) {
    const size_t n = begin_strict(w);
    int64_t* __restrict out = w.slot.words;
    uint64_t any = 0;
    with_rows<A, A>(w.a, w.b, [&, out](auto a, auto b) {
        uint64_t seen = 0;
        for (size_t i = 0; i < n; ++i) {
            const double r = value(a[i], b[i]);
            out[i] = std::bit_cast<int64_t>(r);
            seen |= r != r ? 1U : 0U;
        }
        any = seen;
    });
    if (any != 0) mark_null(w, n, [out](size_t i) { return std::isnan(std::bit_cast<double>(out[i])); });
}

// Compute out = a + b or a - b of integers; the sign bit of `over` is set if the result is beyond 64 bits.
template <class Value, class Over>
void sums(Work w, Value value, Over over) {
    const size_t n = begin_strict(w);
    int64_t* __restrict out = w.slot.words;
    with_rows<uint64_t, uint64_t>(w.a, w.b, [&, out](auto a, auto b) {
        uint64_t any = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t r = value(a[i], b[i]);
            out[i] = std::bit_cast<int64_t>(r);
            any |= over(a[i], b[i], r);
        }
        if (any >> 63 != 0) {
            mark_null(w, n, [=](size_t i) { return over(a[i], b[i], static_cast<uint64_t>(out[i])) >> 63 != 0; });
        }
    });
}

// Call put(a, b, out) to set out; null if that returns false.
template <class A, class B, class R, class Put>
void partial(Work w, Put put) {
    const size_t n = begin_strict(w);
    int64_t* __restrict out = w.slot.words;
    uint8_t* __restrict failed = w.slot.truth;  // not in use for words
    with_rows<A, B>(w.a, w.b, [&, out, failed](auto a, auto b) {
        bool any = false;
        for (size_t i = 0; i < n; ++i) {
            R r{};
            const bool bad = !put(a[i], b[i], r);
            out[i] = std::bit_cast<int64_t>(r);
            failed[i] = bad;
            any |= bad;
        }
        if (any) mark_null(w, n, [failed](size_t i) { return failed[i] != 0; });
    });
}

// Compute out = a % b of integers. If all rows have one divisor below 2^32 and all a fit in 32 bits, this takes two
// multiplications (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
inline void remainders(Work w) {
    const int64_t divisor = w.b.stride == 0 && w.b.valid == nullptr ? w.b.words[0] : 0;
    if (divisor <= 1 || divisor >> 32 != 0) return partial<int64_t, int64_t, int64_t>(w, remainder);
    uint64_t beyond = 0;
    for (size_t i = 0; i < (w.a.stride != 0 ? w.n : 1); ++i)
        beyond |= static_cast<uint64_t>(w.a.words[i] ^ (w.a.words[i] >> 63));
    if (beyond >> 31 != 0) {
        total<int64_t, int64_t, int64_t>(w, [=](int64_t a, int64_t) { return a % divisor; });
        return;
    }
    const auto size = static_cast<uint64_t>(divisor);
    const uint64_t inverse = std::numeric_limits<uint64_t>::max() / size + 1;
    total<int64_t, int64_t, int64_t>(w, [=](int64_t a, int64_t) {
        const int64_t sign = a >> 63;
        const uint64_t fraction = inverse * static_cast<uint64_t>((a ^ sign) - sign);
        const auto rest = static_cast<int64_t>((static_cast<uint128>(fraction) * size) >> 64);
        return (rest ^ sign) - sign;
    });
}

// Set out[i] to compare(a[i], b[i]), whatever is null.
template <class A, class B, class Compare>
void compare_rows(const View& a, const View& b, size_t n, uint8_t* __restrict out, Compare compare) {
    with_rows<A, B>(a, b, [=](auto x, auto y) {
        for (size_t i = 0; i < n; ++i) out[i] = compare(x[i], y[i]);
    });
}

// End an operation whose truth value is null where an operand is null: set it to false there.
inline void end_truth(const Work& w, size_t n) {
    if (w.out.valid == nullptr) return;
    for (size_t i = 0; i < n; ++i) w.slot.truth[i] = static_cast<uint8_t>(w.slot.truth[i] & w.slot.valid[i]);
}

// Compute the truth values compare(a, b); null where an operand is.
template <class A, class B, class Compare>
void comparison(Work w, Compare compare) {
    const size_t n = begin_strict(w);
    compare_rows<A, B>(w.a, w.b, n, w.slot.truth, compare);
    end_truth(w, n);
}

// Return whether row i of an operand is null.
inline bool null_at(const View& v, size_t i) { return v.valid != nullptr && v.valid[i * v.stride] == 0; }

// End an operation that determines its own nulls: if `nulls`, slot.valid has been written for n rows.
inline void end_own(Work& w, size_t stride, bool nulls) {
    const bool keeps = nulls && (stride != 0 || w.slot.valid[0] == 0);
    w.out = {w.slot.words, w.slot.truth, keeps ? w.slot.valid : nullptr, stride};
}

// Compute AND (`absorbing` = 0) or OR (1): the absorbing value decides the result, even if the other operand is null.
template <uint8_t absorbing>
void logic(Work w) {
    const View &a = w.a, &b = w.b;
    const size_t stride = a.stride | b.stride, n = stride != 0 ? w.n : 1;
    uint8_t* __restrict truth = w.slot.truth;
    uint8_t* __restrict valid = w.slot.valid;
    const auto join = [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(absorbing != 0 ? x | y : x & y); };
    const auto decides = [](uint8_t t, uint8_t v) { return static_cast<uint8_t>(absorbing != 0 ? t : v & (t ^ 1)); };
    const bool nulls = a.valid != nullptr || b.valid != nullptr;
    if (a.stride == 1 && b.stride == 1 && !nulls) {
        for (size_t i = 0; i < n; ++i) truth[i] = join(a.truth[i], b.truth[i]);
    } else {
        for (size_t i = 0; i < n; ++i) {
            const uint8_t s = a.truth[i * a.stride], t = b.truth[i * b.stride];
            const uint8_t u = !null_at(a, i), v = !null_at(b, i);
            truth[i] = join(s, t);
            valid[i] = static_cast<uint8_t>((u & v) | decides(s, u) | decides(t, v));
        }
    }
    end_own(w, stride, nulls);
}

// Compute NOT a.
inline void negation(Work w) {
    const size_t n = begin_strict(w);
    for (size_t i = 0; i < n; ++i) w.slot.truth[i] = static_cast<uint8_t>(w.a.truth[i] ^ 1);
    end_truth(w, n);
}

// Compute whether `a` is null, which is never null itself.
inline void nullness(Work w) {
    const size_t n = w.a.stride != 0 ? w.n : 1;
    for (size_t i = 0; i < n; ++i) w.slot.truth[i] = null_at(w.a, i);
    end_own(w, w.a.stride, false);
}

// Compute out = b if later(a, b), else a; if one of them is null, out is the other one.
template <class Later>
void either(Work w, Later later) {
    const View &a = w.a, &b = w.b;
    const size_t stride = a.stride | b.stride, n = stride != 0 ? w.n : 1;
    bool nulls = false;
    for (size_t i = 0; i < n; ++i) {
        const bool no_a = null_at(a, i), no_b = null_at(b, i);
        const bool take_b = no_a || (!no_b && later(a.words[i * a.stride], b.words[i * b.stride]));
        w.slot.words[i] = take_b ? b.words[i * b.stride] : a.words[i * a.stride];
        w.slot.valid[i] = !(no_a && no_b);
        nulls |= no_a && no_b;
    }
    end_own(w, stride, nulls);
}

// Compute the better of a and b: b if better(b, a); if one is null, the other one.
template <class T, class Compare>
void extreme(Work w, Compare better) {
    if (w.a.valid == nullptr && w.b.valid == nullptr) {
        total<T, T, T>(w, [=](T a, T b) { return better(b, a) ? b : a; });
    } else {
        either(w, [=](int64_t a, int64_t b) { return better(std::bit_cast<T>(b), std::bit_cast<T>(a)); });
    }
}

// Compute a where c is true, else b.
inline void selection(const View& c, Work w) {
    const View &a = w.a, &b = w.b;
    const size_t stride = c.stride | a.stride | b.stride, n = stride != 0 ? w.n : 1;
    bool nulls = false;
    for (size_t i = 0; i < n; ++i) {
        const bool take_a = c.truth[i * c.stride] != 0;
        const bool null = null_at(take_a ? a : b, i);
        w.slot.words[i] = take_a ? a.words[i * a.stride] : b.words[i * b.stride];
        w.slot.valid[i] = !null;
        nulls |= null;
    }
    end_own(w, stride, nulls);
}

// Test whether each row is in `set`, which is sorted.
template <class T>
void membership(Work w, std::span<const int64_t> set) {
    const size_t n = begin_strict(w);
    uint8_t* __restrict truth = w.slot.truth;
    with_rows<T>(w.a, [=](auto a) {
        if (set.size() <= 8) {
            std::fill_n(truth, n, uint8_t{0});
            for (const int64_t bits : set) {
                const T one = std::bit_cast<T>(bits);
                for (size_t i = 0; i < n; ++i) truth[i] = static_cast<uint8_t>(truth[i] | (a[i] == one));
            }
            return;
        }
        const auto before = [](int64_t x, int64_t y) { return std::bit_cast<T>(x) < std::bit_cast<T>(y); };
        for (size_t i = 0; i < n; ++i) {
            // A search would find NaN equal to any element.
            truth[i] = a[i] == a[i] && std::binary_search(set.begin(), set.end(), std::bit_cast<int64_t>(a[i]), before);
        }
    });
    end_truth(w, n);
}

// The data of a running program: the operands of its operations, and those operations that have no operands.
struct BlockFrame {
    View* views;
    Slot* slots;
    const Leaf* leaves;
    size_t n;

    // Return the work of an operation on two slots, with its result in a third one.
    Work work(size_t a, size_t b, size_t to) const { return {views[a], views[b], n, slots[to], views[to]}; }
    // Set a slot to an input.
    void leaf(size_t input, size_t to) const {
        const Leaf& leaf = leaves[input];
        View& out = views[to];
        out = {leaf.values, nullptr, leaf.valid, leaf.stride};
        if (leaf.stride == 0 && leaf.valid != nullptr) {
            if (leaf.valid[0] == 0) {
                out = null_scalar;
            } else {
                out.valid = nullptr;
            }
        }
    }
    // Set a slot to a constant; the word must outlive the run.
    void constant(const int64_t& word, size_t to) const { views[to] = {&word, nullptr, nullptr, 0}; }
    // Set a slot to null.
    void none(size_t to) const { views[to] = null_scalar; }
    // Set a slot to the words of truth values.
    void number(size_t a, size_t to) const {
        Work w = work(a, a, to);
        const size_t rows = begin_strict(w);
        for (size_t i = 0; i < rows; ++i) w.slot.words[i] = w.a.truth[i];
    }
    // Set a slot to slot `a` where slot `c` is true, else to slot `b`.
    void select(size_t c, size_t a, size_t b, size_t to) const { selection(views[c], work(a, b, to)); }
};

}  // namespace acep::operations
