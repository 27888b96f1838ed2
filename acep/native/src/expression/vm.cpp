// Execution of block programs (vm.hpp).
#include "expression/vm.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>

#include "common/numbers.hpp"
#include "expression/vm_blocks.hpp"
#include "expression/vm_operations.hpp"
#include "expression/vm_rows.hpp"

namespace acep {

using namespace operations;

namespace {

// Apply a function of one double; null where Python raises: for NaN, and for infinity from a finite argument.
template <class AnyWork, class Function>
void function(AnyWork w, Function f) {
    doubles<double>(w, [=](double x, double) {
        const double r = f(x);
        return std::isinf(r) && !std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : r;
    });
}

}  // namespace

std::optional<BlockProgram::Equality> BlockProgram::equality() const {
    if (terms_.size() != 1 || terms_[0].a < 0 || terms_[0].b < 0) return std::nullopt;
    const Term& term = terms_[0];
    if (term.op != Op::EQ_I && term.op != Op::EQ_F) return std::nullopt;
    return Equality{static_cast<uint32_t>(term.a), static_cast<uint32_t>(term.b), term.op == Op::EQ_F};
}

bool BlockProgram::passes(const Leaf* leaves, size_t row) const {
    for (const Term& term : terms_) {
        const auto load = [&](int32_t index, int64_t& word) {
            if (index < 0) {
                word = constants_[static_cast<size_t>(~index)];
                return true;
            }
            const Leaf& leaf = leaves[index];
            word = leaf.values[row * leaf.stride];
            return leaf.valid == nullptr || leaf.valid[row * leaf.stride] != 0;
        };
        int64_t a = 0, b = 0;
        if (!load(term.a, a) || !load(term.b, b)) return false;
        bool holds = false;
        with_comparison(term.op, [&](auto x, auto y, auto compare) {
            holds = compare(std::bit_cast<typename decltype(x)::type>(a), std::bit_cast<typename decltype(y)::type>(b));
        });
        if (!holds) return false;
    }
    return true;
}

void BlockProgram::test_terms(const Leaf* leaves, size_t n, uint8_t* pass) const {
    if (n <= few_rows) {
        for (size_t i = 0; i < n; ++i) pass[i] = passes(leaves, i);
        return;
    }
    uint8_t held[block_rows];
    uint8_t* out = pass;
    for (const Term& term : terms_) {
        const auto view = [&](int32_t index) {
            if (index < 0) return View{&constants_[static_cast<size_t>(~index)], nullptr, nullptr, 0};
            return View{leaves[index].values, nullptr, leaves[index].valid, leaves[index].stride};
        };
        const View a = view(term.a), b = view(term.b);
        with_comparison(term.op, [&](auto x, auto y, auto compare) {
            compare_rows<typename decltype(x)::type, typename decltype(y)::type>(a, b, n, out, compare);
        });
        for (const View* v : {&a, &b}) {
            if (v->valid == nullptr) continue;
            if (v->stride != 0) {
                keep_valid(v->valid, n, out, true);
            } else if (v->valid[0] == 0) {
                std::fill_n(out, n, uint8_t{0});
            }
        }
        if (out == held) {
            for (size_t i = 0; i < n; ++i) pass[i] = static_cast<uint8_t>(pass[i] & held[i]);
        }
        out = held;
    }
}

template <class Frame>
void BlockProgram::run(const Frame& frame, const Texts& texts) const {
    using I = int64_t;
    using F = double;
    for (const Instruction& it : instructions_) {
        const auto w = frame.work(it.a, it.b, it.to);
        const auto u = frame.work(it.a, it.a, it.to);  // one operand, passed twice
        const std::span<const int64_t> own(constants_.data() + (it.op == Op::LEAF ? 0 : it.at), it.count);
        switch (it.op) {
            case Op::LEAF: frame.leaf(it.at, it.to); break;
            case Op::CONST: frame.constant(constants_[it.at], it.to); break;
            case Op::NONE: frame.none(it.to); break;
            case Op::TRUTH: comparison<I, I>(u, [](I x, I) { return x != 0; }); break;
            case Op::NUMBER: frame.number(it.a, it.to); break;
            case Op::IS_NULL:
            case Op::UNKNOWN: nullness(u); break;
            case Op::NOT: negation(u); break;
            case Op::AND: logic<0>(w); break;
            case Op::OR: logic<1>(w); break;
            case Op::LT_S: comparison<I, I>(w, [&](I x, I y) { return texts.order(x, y) < 0; }); break;
            case Op::LE_S: comparison<I, I>(w, [&](I x, I y) { return texts.order(x, y) <= 0; }); break;
            case Op::IN_I: membership<I>(u, own); break;
            case Op::IN_F: membership<F>(u, own); break;
            case Op::ADD_I:
                sums(w, std::plus<>(), [](uint64_t a, uint64_t b, uint64_t r) { return (a ^ r) & (b ^ r); });
                break;
            case Op::SUB_I:
                sums(w, std::minus<>(), [](uint64_t a, uint64_t b, uint64_t r) { return (a ^ b) & (a ^ r); });
                break;
            case Op::MUL_I:
                partial<I, I, I>(w, [](I a, I b, I& r) { return !__builtin_mul_overflow(a, b, &r); });
                break;
            case Op::DIV_I:
                partial<I, I, F>(w, [](I a, I b, F& r) { return b != 0 && (r = divide(a, b), true); });
                break;
            case Op::MOD_I: remainders(w); break;
            case Op::NEG_I:
                partial<I, I, I>(u, [](I a, I, I& r) { return !__builtin_sub_overflow(I{0}, a, &r); });
                break;
            case Op::ABS_I:
                partial<I, I, I>(u, [](I a, I, I& r) { return a != int64_min && (r = a < 0 ? -a : a, true); });
                break;
            case Op::SIGN_I: total<I, I, I>(u, [](I a, I) { return (a > 0) - (a < 0); }); break;
            case Op::ROUND_I: partial<I, I, I>(w, round_integer); break;
            case Op::FLOAT: total<I, I, F>(u, [](I a, I) { return static_cast<F>(a); }); break;
            case Op::ADD_F: doubles<F>(w, std::plus<>()); break;
            case Op::SUB_F: doubles<F>(w, std::minus<>()); break;
            case Op::MUL_F: doubles<F>(w, std::multiplies<>()); break;
            case Op::DIV_F:
                doubles<F>(w, [](F a, F b) { return b == 0 ? std::numeric_limits<F>::quiet_NaN() : a / b; });
                break;
            case Op::MOD_F: doubles<F>(w, [](F a, F b) { return std::fmod(a, b); }); break;
            case Op::NEG_F: doubles<F>(u, [](F a, F) { return -a; }); break;
            case Op::ABS_F: doubles<F>(u, [](F a, F) { return std::fabs(a); }); break;
            case Op::SIGN_F: total<F, F, I>(u, [](F a, F) { return (a > 0) - (a < 0); }); break;
            case Op::ROUND_F: partial<F, I, F>(w, round_double); break;
            case Op::FLOOR: partial<F, F, I>(u, [](F a, F, I& r) { return to_integer(std::floor(a), r); }); break;
            case Op::CEIL: partial<F, F, I>(u, [](F a, F, I& r) { return to_integer(std::ceil(a), r); }); break;
            case Op::SQRT: function(u, [](F a) { return std::sqrt(a); }); break;
            case Op::EXP: function(u, [](F a) { return std::exp(a); }); break;
            case Op::LN: function(u, [](F a) { return std::log(a); }); break;
            case Op::LOG10: function(u, [](F a) { return std::log10(a); }); break;
            case Op::POWER:
                doubles<F>(w, [](F a, F b) {
                    const F r = std::pow(a, b);
                    const bool none = std::isinf(r) && std::isfinite(a) && std::isfinite(b);
                    return none ? std::numeric_limits<F>::quiet_NaN() : r;
                });
                break;
            case Op::PART: {
                const int64_t* word = &constants_[it.at];
                const auto part = static_cast<TimePart>(word[0]);
                partial<I, I, I>(u, [=](I a, I, I& r) { return time_part(a, part, word[1], word[2], r); });
                break;
            }
            case Op::MIN_I: extreme<I>(w, std::less<>()); break;
            case Op::MAX_I: extreme<I>(w, std::greater<>()); break;
            case Op::MIN_F: extreme<F>(w, std::less<>()); break;
            case Op::MAX_F: extreme<F>(w, std::greater<>()); break;
            case Op::MIN_S: extreme<I>(w, [&](I x, I y) { return texts.order(x, y) < 0; }); break;
            case Op::MAX_S: extreme<I>(w, [&](I x, I y) { return texts.order(x, y) > 0; }); break;
            case Op::COALESCE: either(w, [](I, I) { return false; }); break;
            case Op::ORDER_I: {
                const int64_t places = constants_[it.at];
                total<I, I, I>(w, [=](I a, I b) { return compare_scaled(a, b, places); });
                break;
            }
            case Op::ORDER_M: {
                const int64_t places = constants_[it.at];
                partial<I, F, I>(w,
                                 [=](I a, F b, I& r) { return b == b && (r = compare_decimal(a, b, places), true); });
                break;
            }
            case Op::QUOTIENT: {
                const int64_t places = constants_[it.at];
                partial<I, I, F>(w, [=](I a, I b, F& r) { return b != 0 && (r = quotient(a, b, places), true); });
                break;
            }
            case Op::FLOOR_I: {
                const int64_t unit = power_of_ten(constants_[it.at]);
                total<I, I, I>(u, [=](I a, I) { return floor_divide(a, unit); });
                break;
            }
            case Op::CEIL_I: {
                const int64_t unit = power_of_ten(constants_[it.at]);
                total<I, I, I>(u, [=](I a, I) { return a / unit + (a % unit > 0 ? 1 : 0); });
                break;
            }
            case Op::SELECT: frame.select(it.a, it.b, it.c, it.to); break;
            default:
                with_comparison(it.op, [&](auto x, auto y, auto compare) {
                    comparison<typename decltype(x)::type, typename decltype(y)::type>(w, compare);
                });
        }
    }
}

const View& BlockProgram::run_block(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch) const {
    scratch.reserve(slots_);
    run(BlockFrame{scratch.views_.data(), scratch.slots_.data(), leaves, n}, texts);
    return scratch.views_[result_];
}

const Cell& BlockProgram::run_row(const Leaf* leaves, size_t row, const Texts& texts, Scratch& scratch) const {
    scratch.reserve(slots_);
    run(RowFrame{scratch.cells_.data(), leaves, row}, texts);
    return scratch.cells_[result_];
}

void BlockProgram::test(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, uint8_t* pass) const {
    assert(n <= block_rows);
    if (!terms_.empty()) return test_terms(leaves, n, pass);
    if (!condition_) {
        std::fill_n(pass, n, uint8_t{0});
        return;
    }
    if (n <= few_rows) {
        for (size_t i = 0; i < n; ++i) pass[i] = run_row(leaves, i, texts, scratch).word != 0;
        return;
    }
    const View& v = run_block(leaves, n, texts, scratch);
    if (v.stride != 0) {
        std::copy_n(v.truth, n, pass);
    } else {
        std::fill_n(pass, n, v.truth[0]);
    }
}

void BlockProgram::value(const Leaf* leaves, size_t n, const Texts& texts, Scratch& scratch, int64_t* out,
                         uint8_t* valid) const {
    assert(n <= block_rows);
    if (n <= few_rows) {
        for (size_t i = 0; i < n; ++i) {
            const Cell& cell = run_row(leaves, i, texts, scratch);
            out[i] = cell.word;
            valid[i] = cell.valid;
        }
        return;
    }
    const View& v = run_block(leaves, n, texts, scratch);
    for (size_t i = 0; i < n; ++i) {
        out[i] = condition_ ? v.truth[i * v.stride] : v.words[i * v.stride];
        valid[i] = !null_at(v, i);
    }
}

}  // namespace acep
