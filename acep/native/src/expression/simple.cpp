// Recognize simple predicates, and bands, among block programs.
#include "expression/simple.hpp"

#include <limits>

#include "expression/vm.hpp"

namespace acep {
namespace {

// The content of a slot of a program, as far as it is simple.
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

std::optional<SimplePredicate> compare(const Content& x, const Content& y, SimplePredicate predicate) {
    const auto fits = [&](const Content& side) {
        return side.kind == Content::input || side.doubles == predicate.doubles;
    };
    if (!fits(x) || !fits(y)) return std::nullopt;
    if (x.kind == Content::distance && y.kind == Content::constant) {
        predicate.shape = SimplePredicate::distance;
        predicate.a = x.a, predicate.b = x.b, predicate.constant = y.word;
        return predicate;
    }
    const auto changed = [](const Content& side) { return side.kind == Content::sum || side.kind == Content::product; };
    const bool left = changed(x) && y.kind == Content::input, right = x.kind == Content::input && changed(y);
    const bool inputs = x.kind == Content::input && y.kind == Content::input;
    if (!inputs && !left && !right) return std::nullopt;
    using Shape = SimplePredicate::Shape;
    const bool multiplied = x.kind == Content::product || y.kind == Content::product;
    if (left) predicate.shape = multiplied ? Shape::product_left : Shape::sum_left;
    if (right) predicate.shape = multiplied ? Shape::product_right : Shape::sum_right;
    predicate.a = x.a, predicate.b = y.a, predicate.constant = left ? x.word : y.word;
    return predicate;
}

}  // namespace

std::optional<SimplePredicate> BlockProgram::simple_or_mixed(bool mixed) const {
    if (!condition_) return std::nullopt;
    std::vector<Content> slots(slots_);
    std::optional<SimplePredicate> predicate;
    const auto compared = [&](const Instruction& it, SimplePredicate::Comparison comparison, bool doubles,
                              bool of_kinds = false) {
        if (it.to != result_ || (of_kinds && !mixed)) return;
        Content x = slots[it.a], y = slots[it.b];
        for (Content* side : {&x, &y}) {
            if (side->kind == Content::constant) side->doubles = doubles;
        }
        predicate = compare(x, y, {SimplePredicate::plain, comparison, doubles});
        if (predicate) predicate->mixed = of_kinds;
    };
    for (const Instruction& it : instructions_) {
        const Content a = slots[it.a], b = slots[it.b];
        Content made;
        predicate.reset();
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
            case Op::LT_M: compared(it, SimplePredicate::less, false, true); break;
            case Op::LE_M: compared(it, SimplePredicate::at_most, false, true); break;
            default: break;
        }
        slots[it.to] = made;
    }
    return predicate;
}

std::optional<BlockProgram::Band> BlockProgram::band() const {
    const auto predicate = simple_or_mixed(true);
    if (!predicate || predicate->shape != SimplePredicate::distance) return std::nullopt;
    if (predicate->comparison != SimplePredicate::less && predicate->comparison != SimplePredicate::at_most) {
        return std::nullopt;
    }
    const int64_t word = predicate->constant;
    const bool of_integers = !predicate->doubles && !predicate->mixed;
    const double width = of_integers ? static_cast<double>(word) : std::bit_cast<double>(word);
    return Band{predicate->a, predicate->b, predicate->doubles, width};
}

}  // namespace acep
