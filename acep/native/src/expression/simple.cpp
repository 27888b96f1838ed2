// Recognize simple predicates among block programs.
#include "expression/simple.hpp"

#include <limits>

#include "expression/vm.hpp"

namespace acep {
namespace {

// What a slot of a program holds, as far as it is simple.
struct Content {
    enum Kind : uint8_t { other, input, constant, sum, product, difference, distance } kind = other;
    bool doubles = false;
    uint32_t a = 0, b = 0;  // inputs
    int64_t word = 0;  // the constant, what is added, or by what it is multiplied
};

// Return the sum of an input and a constant. `minus`: their difference.
Content constant_added(const Content& a, const Content& b, bool doubles, bool minus) {
    if (a.kind == Content::constant && b.kind == Content::input && !minus) return constant_added(b, a, doubles, minus);
    if (a.kind != Content::input || b.kind != Content::constant) return {};
    int64_t word = b.word;
    if (minus && doubles) word = std::bit_cast<int64_t>(-std::bit_cast<double>(word));
    if (minus && !doubles && __builtin_sub_overflow(int64_t{0}, word, &word)) return {};
    return {Content::sum, doubles, a.a, 0, word};
}

Content product_with(const Content& a, const Content& b, bool doubles) {
    if (a.kind == Content::constant && b.kind == Content::input) return product_with(b, a, doubles);
    if (a.kind != Content::input || b.kind != Content::constant) return {};
    return {Content::product, doubles, a.a, 0, b.word};
}

std::optional<SimplePredicate> compare(const Content& x, const Content& y, SimplePredicate found) {
    const auto fits = [&](const Content& side) { return side.kind == Content::input || side.doubles == found.doubles; };
    if (!fits(x) || !fits(y)) return std::nullopt;
    if (x.kind == Content::distance && y.kind == Content::constant) {
        found.shape = SimplePredicate::distance;
        found.a = x.a, found.b = x.b, found.constant = y.word;
        return found;
    }
    const auto changed = [](const Content& side) { return side.kind == Content::sum || side.kind == Content::product; };
    const bool left = changed(x) && y.kind == Content::input, right = x.kind == Content::input && changed(y);
    const bool inputs = x.kind == Content::input && y.kind == Content::input;
    if (!inputs && !left && !right) return std::nullopt;
    using Shape = SimplePredicate::Shape;
    const bool multiplied = x.kind == Content::product || y.kind == Content::product;
    if (left) found.shape = multiplied ? Shape::product_left : Shape::sum_left;
    if (right) found.shape = multiplied ? Shape::product_right : Shape::sum_right;
    found.a = x.a, found.b = y.a, found.constant = left ? x.word : y.word;
    return found;
}

}  // namespace

std::optional<SimplePredicate> BlockProgram::simple() const {
    if (!condition_) return std::nullopt;
    std::vector<Content> slots(slots_);
    std::optional<SimplePredicate> found;
    const auto compared = [&](const Instruction& it, SimplePredicate::Comparison comparison, bool doubles) {
        if (it.to != result_) return;
        Content x = slots[it.a], y = slots[it.b];
        for (Content* side : {&x, &y}) {
            if (side->kind == Content::constant) side->doubles = doubles;
        }
        found = compare(x, y, {SimplePredicate::plain, comparison, doubles});
    };
    for (const Instruction& it : instructions_) {
        const Content a = slots[it.a], b = slots[it.b];
        Content made;
        found.reset();
        switch (it.op) {
            case Op::LEAF: made = {Content::input, false, it.at}; break;
            case Op::CONST: made = {Content::constant, false, 0, 0, constants_[it.at]}; break;
            case Op::ADD_I:
            case Op::ADD_F: made = constant_added(a, b, it.op == Op::ADD_F, false); break;
            case Op::MUL_I:
            case Op::MUL_F: made = product_with(a, b, it.op == Op::MUL_F); break;
            case Op::SUB_I:
            case Op::SUB_F:
                made = constant_added(a, b, it.op == Op::SUB_F, true);
                if (a.kind == Content::input && b.kind == Content::input) {
                    made = {Content::difference, it.op == Op::SUB_F, a.a, b.a};
                }
                break;
            case Op::ABS_I:
            case Op::ABS_F:
                if (a.kind == Content::difference && a.doubles == (it.op == Op::ABS_F)) {
                    made = {Content::distance, a.doubles, a.a, a.b};
                }
                break;
            case Op::EQ_I: compared(it, SimplePredicate::equal, false); break;
            case Op::NE_I: compared(it, SimplePredicate::different, false); break;
            case Op::LT_I: compared(it, SimplePredicate::less, false); break;
            case Op::LE_I: compared(it, SimplePredicate::at_most, false); break;
            case Op::EQ_F: compared(it, SimplePredicate::equal, true); break;
            case Op::NE_F: compared(it, SimplePredicate::different, true); break;
            case Op::LT_F: compared(it, SimplePredicate::less, true); break;
            case Op::LE_F: compared(it, SimplePredicate::at_most, true); break;
            default: break;
        }
        slots[it.to] = made;
    }
    return found;
}

}  // namespace acep
