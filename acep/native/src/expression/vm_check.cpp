// Validation of block programs (vm.hpp), and detection of those that are conjunctions of comparisons.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/numbers.hpp"
#include "expression/vm.hpp"
#include "expression/vm_operations.hpp"

namespace acep {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("block program: " + what); }

}  // namespace

BlockProgram::BlockProgram(std::span<const int64_t> code, int64_t slots, int64_t leaves) {
    if (slots < 1 || slots > static_cast<int64_t>(most_slots)) refuse("number of slots");
    if (leaves < 0 || leaves > std::numeric_limits<int32_t>::max()) refuse("number of inputs");
    if (code.size() > most_words) refuse("too long");
    slots_ = static_cast<size_t>(slots);
    leaves_ = static_cast<size_t>(leaves);
    std::vector<char> holds(slots_, ' ');  // content of each slot so far: words, truth values, nothing
    size_t at = 0;
    const auto next = [&](int64_t low, int64_t high, const char* what) {  // in [low, high]
        if (at == code.size()) refuse("ends too early");
        const int64_t word = code[at++];
        if (word < low || word > high) refuse(what);
        return word;
    };
    const auto slot = [&](const char* what) { return static_cast<uint16_t>(next(0, slots - 1, what)); };
    while (true) {
        const auto op = static_cast<Op>(next(0, static_cast<int64_t>(op_forms.size()) - 1, "unknown operation"));
        const OpForm& form = op_forms[static_cast<size_t>(op)];
        if (op == Op::RETURN) {
            result_ = slot("result");
            if (holds[result_] == ' ') refuse("result that nothing gives");
            condition_ = holds[result_] == 't';
            break;
        }
        Instruction made{op, slot("place of a result"), 0, 0, 0, static_cast<uint32_t>(constants_.size()), 0};
        uint16_t* const reads[] = {&made.a, &made.b, &made.c};
        for (size_t i = 0; i < form.reads.size(); ++i) {
            *reads[i] = slot("operand");
            if (holds[*reads[i]] != form.reads[i]) refuse("operand of another kind");
            if (*reads[i] == made.to) refuse("result in the place of an operand");
        }
        const auto word = [&] { constants_.push_back(next(int64_min, int64_max, "")); };
        if (op == Op::LEAF) {
            made.at = static_cast<uint32_t>(next(0, leaves - 1, "number of an input"));
        } else if (op == Op::CONST) {
            word();
        } else if (op == Op::IN_I || op == Op::IN_F) {
            const int64_t count = next(0, static_cast<int64_t>(most_words), "number of constants");
            for (int64_t i = 0; i < count; ++i) word();
            auto first = constants_.begin() + made.at;
            if (op == Op::IN_F) {
                const auto number = [](int64_t x) { return std::bit_cast<double>(x); };
                const auto none = [&](int64_t x) { return std::isnan(number(x)); };
                constants_.erase(std::remove_if(first, constants_.end(), none), constants_.end());
                std::sort(first, constants_.end(), [&](int64_t x, int64_t y) { return number(x) < number(y); });
            } else {
                std::sort(first, constants_.end());
            }
            made.count = static_cast<uint32_t>(constants_.size()) - made.at;
        } else if (op == Op::ORDER_I || op == Op::QUOTIENT) {
            constants_.push_back(next(-most_places, most_places, "decimal places"));
        } else if (op == Op::ORDER_M || op == Op::FLOOR_I || op == Op::CEIL_I) {
            constants_.push_back(next(0, most_places, "decimal places"));
        } else if (op == Op::PART) {
            constexpr int64_t most = (int64_t{1} << 62) - 1;
            constants_.push_back(next(0, static_cast<int64_t>(TimePart::dayofweek), "part of a time"));
            constants_.push_back(next(1, most, "length of a tick"));
            constants_.push_back(next(1, most, "length of a tick"));
        }
        holds[made.to] = form.gives;
        instructions_.push_back(made);
    }
    if (at != code.size()) refuse("words after its end");
    find_terms();
    find_sum();
}

// Return the sum of an input and a constant that an instruction gives, if it is one; operands as in Term.
std::optional<BlockProgram::Sum> BlockProgram::sum_of(Op op, int32_t a, int32_t b) const {
    if (op == Op::ADD_I && a < 0) std::swap(a, b);
    if ((op != Op::ADD_I && op != Op::SUB_I) || a < 0 || b >= 0) return {};
    int64_t added = constants_[static_cast<size_t>(~b)];
    if (op == Op::SUB_I && __builtin_sub_overflow(int64_t{0}, added, &added)) return {};
    return Sum{static_cast<uint32_t>(a), added};
}

// Find whether a program is the sum of an input and a constant.
void BlockProgram::find_sum() {
    if (instructions_.size() != 3 || instructions_[2].to != result_) return;
    const auto operand = [&](uint16_t slot) -> std::optional<int32_t> {
        for (size_t i = 2; i-- > 0;) {
            const Instruction& it = instructions_[i];
            if (it.to != slot) continue;
            if (it.op == Op::LEAF) return static_cast<int32_t>(it.at);
            if (it.op == Op::CONST) return ~static_cast<int32_t>(it.at);
        }
        return {};
    };
    const auto a = operand(instructions_[2].a), b = operand(instructions_[2].b);
    if (a && b) sum_ = sum_of(instructions_[2].op, *a, *b);
}

// Find the terms of a program that is a conjunction of comparisons of inputs and constants; none for any other one. To
// an input a constant may be added if it is compared with a constant: `x + 1 < 3` is `x < 2`.
void BlockProgram::find_terms() {
    if (!condition_ || leaves_ == 0) return;
    struct Held {
        bool operand = false;
        int32_t index = 0;       // of an operand, as in Term
        std::vector<Term> all;   // of a truth value
        int64_t added = 0;       // to an input
    };
    std::vector<Held> held(slots_);
    std::vector<int64_t> zero;
    // Compare two operands. If a number is added to one and the other is a constant, the number is taken from the
    // constant instead. This is done only where it holds beyond 64 bits too, where a sum is null.
    const auto compared = [&](Op op, const Held& a, const Held& b) -> std::vector<Term> {
        Term term{op, a.index, b.index};
        if (a.added == 0 && b.added == 0) return {term};
        const bool left = a.added != 0;
        const int64_t added = left ? a.added : b.added;
        int32_t& other = left ? term.b : term.a;
        const bool holds = op == Op::EQ_I || ((op == Op::LT_I || op == Op::LE_I) && (added > 0) == left);
        int64_t rest;
        if (!holds || other >= 0) return {};
        if (__builtin_sub_overflow(constants_[static_cast<size_t>(~other)], added, &rest)) return {};
        other = ~static_cast<int32_t>(constants_.size());
        constants_.push_back(rest);
        return {term};
    };
    for (const Instruction& it : instructions_) {
        const Held& a = held[it.a];
        const Held& b = held[it.b];
        Held made;
        if (it.op == Op::LEAF) {
            made = {true, static_cast<int32_t>(it.at), {}};
        } else if (it.op == Op::CONST) {
            made = {true, ~static_cast<int32_t>(it.at), {}};
        } else if (it.op == Op::TRUTH && a.operand && a.added == 0) {
            if (zero.empty()) {
                zero.push_back(static_cast<int64_t>(constants_.size()));
                constants_.push_back(0);
            }
            made.all = {{Op::NE_I, a.index, ~static_cast<int32_t>(zero[0])}};
        } else if (it.op == Op::AND && !a.all.empty() && !b.all.empty() && a.all.size() + b.all.size() <= 64) {
            made.all = a.all;
            made.all.insert(made.all.end(), b.all.begin(), b.all.end());
        } else if (a.operand && b.operand && operations::with_comparison(it.op, [](auto, auto, auto) {})) {
            made.all = compared(it.op, a, b);
        } else if (a.operand && b.operand && a.added == 0 && b.added == 0) {
            if (const auto sum = sum_of(it.op, a.index, b.index)) {
                made = {true, static_cast<int32_t>(sum->input), {}, sum->added};
            }
        }
        if (!made.operand && made.all.empty()) return;
        held[it.to] = std::move(made);
    }
    terms_ = std::move(held[result_].all);
}

}  // namespace acep
