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

// Return the content whose words have one slope, as integers and as doubles.
SlopeContent both(Slope slope) { return {{slope, slope}}; }

// Return the slope of a product with a constant above zero, or of what is divided by it.
Slope scaled(Slope slope, bool positive) { return positive ? slope : Slope::any; }

}  // namespace

Slope BlockProgram::slope(std::span<const InputSlope> inputs) const {
    std::vector<SlopeContent> slots(slots_);
    for (const Instruction& it : instructions_) {
        const SlopeContent &a = slots[it.a], &b = slots[it.b];
        const Slope ai = a.slope.integers, bi = b.slope.integers, af = a.slope.doubles, bf = b.slope.doubles;
        SlopeContent result;
        switch (it.op) {
            case Op::LEAF: result.slope = inputs[it.at]; break;
            case Op::CONST:
                result = both(Slope::level);
                result.positive_integer = constants_[it.at] > 0;
                result.positive_double = std::bit_cast<double>(constants_[it.at]) > 0;
                break;
            case Op::ADD_I: result = both(joined(ai, bi)); break;
            case Op::ADD_F: result = both(joined(af, bf)); break;
            case Op::SUB_I:
            case Op::ORDER_I: result = both(joined(ai, reversed(bi))); break;
            case Op::SUB_F: result = both(joined(af, reversed(bf))); break;
            case Op::ORDER_M: result = both(joined(ai, reversed(bf))); break;
            case Op::NEG_I: result = both(reversed(ai)); break;
            case Op::NEG_F: result = both(reversed(af)); break;
            case Op::FLOAT:
            case Op::FLOOR_I:
            case Op::CEIL_I: result = both(ai); break;
            case Op::FLOOR:
            case Op::CEIL: result = both(af); break;
            case Op::MUL_I: result = both(a.positive_integer ? bi : scaled(ai, b.positive_integer)); break;
            case Op::MUL_F: result = both(a.positive_double ? bf : scaled(af, b.positive_double)); break;
            case Op::DIV_I:
            case Op::QUOTIENT: result = both(scaled(ai, b.positive_integer)); break;
            case Op::DIV_F: result = both(scaled(af, b.positive_double)); break;
            case Op::LT_I:
            case Op::LE_I: result = both(joined(reversed(ai), bi)); break;
            case Op::LT_F:
            case Op::LE_F: result = both(joined(reversed(af), bf)); break;
            case Op::LT_M:
            case Op::LE_M: result = both(joined(reversed(ai), bf)); break;
            case Op::GT_M:
            case Op::GE_M: result = both(joined(ai, reversed(bf))); break;
            case Op::AND:
            case Op::OR: result = both(joined(ai, bi)); break;
            case Op::NOT: result = both(reversed(ai)); break;
            default: break;
        }
        slots[it.to] = result;
    }
    return slots[result_].slope.integers;
}

}  // namespace acep
