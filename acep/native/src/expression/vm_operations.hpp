// Operations of block programs that are shared by the evaluation of blocks and of single rows.
#pragma once

#include <cstdint>
#include <functional>

#include "common/numbers.hpp"
#include "expression/opcodes.hpp"

namespace acep::operations {

// A type as a value.
// Call fn(type, type, comparison) with the operand types of a comparison. Return false if `op` is none or one of texts.
template <class T>
struct Type {
    using type = T;
};
// Call fn(type, type, comparison) with the operand types of a comparison. Return false if `op` is none or one of
// texts.
template <class Fn>
bool with_comparison(Op op, Fn fn) {
    const Type<int64_t> i;
    const Type<double> f;
    switch (op) {
        case Op::EQ_I: fn(i, i, std::equal_to<>()); return true;
        case Op::NE_I: fn(i, i, std::not_equal_to<>()); return true;
        case Op::LT_I: fn(i, i, std::less<>()); return true;
        case Op::LE_I: fn(i, i, std::less_equal<>()); return true;
        case Op::EQ_F: fn(f, f, std::equal_to<>()); return true;
        case Op::NE_F: fn(f, f, std::not_equal_to<>()); return true;
        case Op::LT_F: fn(f, f, std::less<>()); return true;
        case Op::LE_F: fn(f, f, std::less_equal<>()); return true;
        case Op::EQ_M: fn(i, f, [](int64_t x, double y) { return compare_exactly(x, y) == 0; }); return true;
        case Op::NE_M: fn(i, f, [](int64_t x, double y) { return compare_exactly(x, y) != 0; }); return true;
        case Op::LT_M: fn(i, f, [](int64_t x, double y) { return compare_exactly(x, y) == -1; }); return true;
        case Op::LE_M: fn(i, f, [](int64_t x, double y) { return compare_exactly(x, y) <= 0; }); return true;
        case Op::GT_M: fn(i, f, [](int64_t x, double y) { return compare_exactly(x, y) == 1; }); return true;
        case Op::GE_M: fn(i, f, [](int64_t x, double y) { return (compare_exactly(x, y) & ~1) == 0; }); return true;
        default: return false;
    }
}

// Compute the remainder, which has the sign of `a`; return false if `b` is 0.
inline bool remainder(int64_t a, int64_t b, int64_t& out) {
    if (b == 0) return false;
    out = b == -1 ? 0 : a % b;
    return true;
}

}  // namespace acep::operations
