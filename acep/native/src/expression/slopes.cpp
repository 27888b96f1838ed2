// How the results of block programs change from row to row.
#include <bit>
#include <vector>

#include "expression/vm.hpp"

namespace acep {

namespace {

Slope reversed(Slope slope) {
    if (slope == Slope::rising) return Slope::falling;
    return slope == Slope::falling ? Slope::rising : slope;
}

// Return the slope of what rises with both.
Slope joined(Slope a, Slope b) {
    if (a == Slope::level) return b;
    return b == Slope::level || a == b ? a : Slope::any;
}

// The content of a slot.
struct SlopeContent {
    InputSlope slope;
    bool positive_integer = false, positive_double = false;  // a constant above zero
};

SlopeContent same(Slope slope) { return {{slope, slope}}; }

// Return the slope of a product with a constant above zero, or of what is divided by it.
Slope scaled(Slope slope, bool positive) { return positive ? slope : Slope::any; }

}  // namespace

Slope BlockProgram::slope(std::span<const InputSlope> inputs) const {
    std::vector<SlopeContent> slots(slots_);
    for (const Instruction& it : instructions_) {
        const SlopeContent &a = slots[it.a], &b = slots[it.b];
        const Slope ai = a.slope.integers, bi = b.slope.integers, af = a.slope.doubles, bf = b.slope.doubles;
        SlopeContent made;
        switch (it.op) {
            case Op::LEAF: made.slope = inputs[it.at]; break;
            case Op::CONST:
                made = same(Slope::level);
                made.positive_integer = constants_[it.at] > 0;
                made.positive_double = std::bit_cast<double>(constants_[it.at]) > 0;
                break;
            case Op::ADD_I: made = same(joined(ai, bi)); break;
            case Op::ADD_F: made = same(joined(af, bf)); break;
            case Op::SUB_I:
            case Op::ORDER_I: made = same(joined(ai, reversed(bi))); break;
            case Op::SUB_F: made = same(joined(af, reversed(bf))); break;
            case Op::ORDER_M: made = same(joined(ai, reversed(bf))); break;
            case Op::NEG_I: made = same(reversed(ai)); break;
            case Op::NEG_F: made = same(reversed(af)); break;
            case Op::FLOAT:
            case Op::FLOOR_I:
            case Op::CEIL_I: made = same(ai); break;
            case Op::FLOOR:
            case Op::CEIL: made = same(af); break;
            case Op::MUL_I: made = same(a.positive_integer ? bi : scaled(ai, b.positive_integer)); break;
            case Op::MUL_F: made = same(a.positive_double ? bf : scaled(af, b.positive_double)); break;
            case Op::DIV_I:
            case Op::QUOTIENT: made = same(scaled(ai, b.positive_integer)); break;
            case Op::DIV_F: made = same(scaled(af, b.positive_double)); break;
            case Op::LT_I:
            case Op::LE_I: made = same(joined(reversed(ai), bi)); break;
            case Op::LT_F:
            case Op::LE_F: made = same(joined(reversed(af), bf)); break;
            case Op::LT_M:
            case Op::LE_M: made = same(joined(reversed(ai), bf)); break;
            case Op::GT_M:
            case Op::GE_M: made = same(joined(ai, reversed(bf))); break;
            case Op::AND:
            case Op::OR: made = same(joined(ai, bi)); break;
            case Op::NOT: made = same(reversed(ai)); break;
            default: break;
        }
        slots[it.to] = made;
    }
    return slots[result_].slope.integers;
}

}  // namespace acep
