// Integers of any size, zero or positive, for exact counts of matches.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace acep {

// Words of 64 bits, the least significant first. The last word is not 0; the number zero has no words.
using BigInteger = std::vector<uint64_t>;
using BigIntegerView = std::span<const uint64_t>;

// Add `b` to `a`.
inline void increase(BigInteger& a, BigIntegerView b) {
    if (a.size() < b.size()) a.resize(b.size());
    bool carry = false;
    for (size_t i = 0; i < a.size() && (carry || i < b.size()); ++i) {
        const bool over = __builtin_add_overflow(a[i], i < b.size() ? b[i] : 0, &a[i]);
        carry = __builtin_add_overflow(a[i], uint64_t{carry}, &a[i]) || over;
    }
    if (carry) a.push_back(1);
}

// Subtract `b` from `a`; the result must not be negative.
inline void decrease(BigInteger& a, BigIntegerView b) {
    bool borrow = false;
    for (size_t i = 0; i < a.size() && (borrow || i < b.size()); ++i) {
        const bool under = __builtin_sub_overflow(a[i], i < b.size() ? b[i] : 0, &a[i]);
        borrow = __builtin_sub_overflow(a[i], uint64_t{borrow}, &a[i]) || under;
    }
    while (!a.empty() && a.back() == 0) a.pop_back();
}

// Compare two numbers.
inline std::strong_ordering compare(BigIntegerView a, BigIntegerView b) {
    if (a.size() != b.size()) return a.size() <=> b.size();
    for (size_t i = a.size(); i-- > 0;) {
        if (a[i] != b[i]) return a[i] <=> b[i];
    }
    return std::strong_ordering::equal;
}

// Draw a number below `end` (not 0), each with equal probability. `random` returns words of 64 random bits.
template <class Random>
BigInteger below(BigIntegerView end, Random&& random) {
    const auto bits = std::bit_width(end.back());
    BigInteger found(end.size());
    do {
        found.resize(end.size());
        for (uint64_t& word : found) word = random();
        found.back() &= ~uint64_t{0} >> (64 - bits);
        while (!found.empty() && found.back() == 0) found.pop_back();
    } while (compare(found, end) >= 0);
    return found;
}

}  // namespace acep
