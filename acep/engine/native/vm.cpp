// Block programs (vm.hpp): checking them, and their operations.
#include "vm.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "numbers.hpp"

namespace acep {

namespace {

using View = Scratch::View;
using Slot = Scratch::Slot;

// So few rows are done one after the other: beginning an operation on a block takes longer than doing it to a row.
constexpr size_t few_rows = 4;

constexpr int64_t no_word = 0;
constexpr uint8_t no_byte = 0;
constexpr View null_scalar{&no_word, &no_byte, &no_byte, 0};

// An operand's rows, as values of T: a column, or one value for all rows.
template <class T>
struct Many {
    const int64_t* at;
    T operator[](size_t i) const { return std::bit_cast<T>(at[i]); }
};
template <class T>
struct One {
    T value;
    T operator[](size_t) const { return value; }
};

// fn with the rows of one or two operands.
template <class A, class Fn>
void with_rows(const View& a, Fn fn) {
    if (a.stride != 0) {
        fn(Many<A>{a.words});
    } else {
        fn(One<A>{std::bit_cast<A>(a.words[0])});
    }
}
template <class A, class B, class Fn>
void with_rows(const View& a, const View& b, Fn fn) {
    with_rows<A>(a, [&](auto x) { with_rows<B>(b, [&](auto y) { fn(x, y); }); });
}

// What an operation works on, and where it puts its result.
struct Work {
    const View& a;
    const View& b;
    size_t n;
    Slot& slot;
    View& out;
};

void keep_valid(const uint8_t* from, size_t n, uint8_t* __restrict to, bool joined) {
    if (joined) {
        for (size_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(to[i] & (from[i] != 0));
    } else {
        for (size_t i = 0; i < n; ++i) to[i] = from[i] != 0;
    }
}

// Begins an operation that is null where an operand is: its rows, its stride and where it is valid. Gives 0, and a null
// result, if an operand is null in all rows.
size_t begin_strict(Work& w) {
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

// Marks row i null where bad(i).
template <class Bad>
void mark_null(Work& w, size_t n, Bad bad) {
    uint8_t* valid = w.slot.valid;
    if (w.out.valid == nullptr) std::fill_n(valid, n, uint8_t{1});
    for (size_t i = 0; i < n; ++i) valid[i] = static_cast<uint8_t>(valid[i] & !bad(i));
    // What was bad may have been a row that is null anyway; one value that is not null has no `valid`.
    w.out.valid = w.out.stride == 0 && valid[0] != 0 ? nullptr : valid;
}

// out = value(a, b), which always has an answer.
template <class A, class B, class R, class Value>
void total(Work w, Value value) {
    const size_t n = begin_strict(w);
    int64_t* __restrict out = w.slot.words;
    with_rows<A, B>(w.a, w.b, [=](auto a, auto b) {
        for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<int64_t>(static_cast<R>(value(a[i], b[i])));
    });
}

// out = value(a, b), null where it is NaN.
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

// out = a + b or a - b of integers; `over` has its sign bit set where the result is beyond 64 bits.
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

// put(a, b, out) gives the result, or false where there is none.
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

template <class A, class B, class Compare>
void compare_rows(const View& a, const View& b, size_t n, uint8_t* __restrict out, Compare compare) {
    with_rows<A, B>(a, b, [=](auto x, auto y) {
        for (size_t i = 0; i < n; ++i) out[i] = compare(x[i], y[i]);
    });
}

template <class A, class B, class Compare>
void comparison(Work w, Compare compare) {
    const size_t n = begin_strict(w);
    compare_rows<A, B>(w.a, w.b, n, w.slot.truth, compare);
    if (w.out.valid != nullptr) {
        for (size_t i = 0; i < n; ++i) w.slot.truth[i] = static_cast<uint8_t>(w.slot.truth[i] & w.slot.valid[i]);
    }
}

// fn(the types of both operands, the comparison), of a comparison other than of texts; false if `op` is none.
template <class T>
struct Type {
    using type = T;
};
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

bool null_at(const View& v, size_t i) { return v.valid != nullptr && v.valid[i * v.stride] == 0; }

// Ends an operation whose nulls are its own: slot.valid is written for n rows if `nulls`.
void end_own(Work& w, size_t stride, bool nulls) {
    w.out = {w.slot.words, w.slot.truth, nulls && (stride != 0 || w.slot.valid[0] == 0) ? w.slot.valid : nullptr, stride};
}

// AND (`absorbing` = 0) and OR (1): the absorbing value decides whatever the other operand is.
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

void negation(Work w) {
    const size_t n = begin_strict(w);
    const bool nulls = w.out.valid != nullptr;
    for (size_t i = 0; i < n; ++i) {
        w.slot.truth[i] = static_cast<uint8_t>((w.a.truth[i] ^ 1) & (nulls ? w.slot.valid[i] : 1));
    }
}

void nullness(Work w) {
    const size_t n = w.a.stride != 0 ? w.n : 1;
    for (size_t i = 0; i < n; ++i) w.slot.truth[i] = null_at(w.a, i);
    end_own(w, w.a.stride, false);
}

// later(i): whether b stands for a where both are there. A null leaves the other.
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

template <class T, class Compare>
void extreme(Work w, Compare better) {
    if (w.a.valid == nullptr && w.b.valid == nullptr) {
        total<T, T, T>(w, [=](T a, T b) { return better(b, a) ? b : a; });
    } else {
        either(w, [=](int64_t a, int64_t b) { return better(std::bit_cast<T>(b), std::bit_cast<T>(a)); });
    }
}

void selection(const View& c, Work w) {
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

// Whether each row is one of `set`, which is sorted.
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
            // NaN is before and after nothing, and so is equal to all that a search looks at.
            truth[i] = a[i] == a[i] && std::binary_search(set.begin(), set.end(), std::bit_cast<int64_t>(a[i]), before);
        }
    });
    if (w.out.valid != nullptr) {
        for (size_t i = 0; i < n; ++i) truth[i] = static_cast<uint8_t>(truth[i] & w.slot.valid[i]);
    }
}

// The same operations on a single row.

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
void total(CellWork w, Value value) {
    const R r = static_cast<R>(value(w.left<A>(), w.right<B>()));
    w.out = {std::bit_cast<int64_t>(r), w.valid()};
}

template <class A, class Value>
void doubles(CellWork w, Value value) {
    const double r = value(w.left<A>(), w.right<A>());
    w.out = {std::bit_cast<int64_t>(r), w.valid() && r == r};
}

template <class Value, class Over>
void sums(CellWork w, Value value, Over over) {
    const uint64_t a = w.left<uint64_t>(), b = w.right<uint64_t>(), r = value(a, b);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && over(a, b, r) >> 63 == 0};
}

template <class A, class B, class R, class Put>
void partial(CellWork w, Put put) {
    R r{};
    const bool there = put(w.left<A>(), w.right<B>(), r);
    w.out = {std::bit_cast<int64_t>(r), w.valid() && there};
}

template <class A, class B, class Compare>
void comparison(CellWork w, Compare compare) {
    const bool valid = w.valid();
    w.out = {valid && compare(w.left<A>(), w.right<B>()), valid};
}

template <uint8_t absorbing>
void logic(CellWork w) {
    const bool s = w.a.word != 0, t = w.b.word != 0;
    if (absorbing != 0) {
        w.out = {s || t, w.valid() || s || t};
    } else {
        w.out = {s && t, w.valid() || (w.a.valid && !s) || (w.b.valid && !t)};
    }
}

void negation(CellWork w) { w.out = {w.a.valid && w.a.word == 0, w.a.valid}; }

void nullness(CellWork w) { w.out = {!w.a.valid, true}; }

template <class Later>
void either(CellWork w, Later later) {
    w.out = !w.a.valid || (w.b.valid && later(w.a.word, w.b.word)) ? w.b : w.a;
}

template <class T, class Compare>
void extreme(CellWork w, Compare better) {
    either(w, [=](int64_t a, int64_t b) { return better(std::bit_cast<T>(b), std::bit_cast<T>(a)); });
}

template <class T>
void membership(CellWork w, std::span<const int64_t> set) {
    const auto before = [](int64_t x, int64_t y) { return std::bit_cast<T>(x) < std::bit_cast<T>(y); };
    const T x = w.left<T>();
    w.out = {w.a.valid && x == x && std::binary_search(set.begin(), set.end(), w.a.word, before), w.a.valid};
}

// What a program runs on, a block or a row: where its operations find their operands, and what has no operands.

struct BlockFrame {
    View* views;
    Slot* slots;
    const Leaf* leaves;
    size_t n;

    Work work(size_t a, size_t b, size_t to) const { return {views[a], views[b], n, slots[to], views[to]}; }
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
    void constant(const int64_t& word, size_t to) const { views[to] = {&word, nullptr, nullptr, 0}; }
    void none(size_t to) const { views[to] = null_scalar; }
    void number(size_t a, size_t to) const {
        Work w = work(a, a, to);
        const size_t rows = begin_strict(w);
        for (size_t i = 0; i < rows; ++i) w.slot.words[i] = w.a.truth[i];
    }
    void select(size_t c, size_t a, size_t b, size_t to) const { selection(views[c], work(a, b, to)); }
};

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

// A function of one double, null where Python raises: NaN, and infinity from what is finite.
template <class AnyWork, class Function>
void function(AnyWork w, Function f) {
    doubles<double>(w, [=](double x, double) {
        const double r = f(x);
        return std::isinf(r) && !std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : r;
    });
}

bool remainder(int64_t a, int64_t b, int64_t& out) {
    if (b == 0) return false;
    out = b == -1 ? 0 : a % b;
    return true;
}

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("block program: " + what); }

}  // namespace

BlockProgram::BlockProgram(std::span<const int64_t> code, int64_t slots, int64_t leaves) {
    if (slots < 1 || slots > static_cast<int64_t>(most_slots)) refuse("number of slots");
    if (leaves < 0 || leaves > std::numeric_limits<int32_t>::max()) refuse("number of inputs");
    if (code.size() > most_words) refuse("too long");
    slots_ = static_cast<size_t>(slots);
    leaves_ = static_cast<size_t>(leaves);
    std::vector<char> holds(slots_, ' ');  // what is in a slot so far: words, truth values, nothing
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
                constants_.erase(std::remove_if(first, constants_.end(), [&](int64_t x) { return std::isnan(number(x)); }),
                                 constants_.end());
                std::sort(first, constants_.end(), [&](int64_t x, int64_t y) { return number(x) < number(y); });
            } else {
                std::sort(first, constants_.end());
            }
            made.count = static_cast<uint32_t>(constants_.size()) - made.at;
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
}

// The terms of a program that is a conjunction of comparisons of inputs and constants; none if it is anything else.
void BlockProgram::find_terms() {
    if (!condition_ || leaves_ == 0) return;
    struct Held {
        bool operand = false;
        int32_t index = 0;       // of an operand, as in Term
        std::vector<Term> all;   // of a truth value
    };
    std::vector<Held> held(slots_);
    std::vector<int64_t> zero;
    for (const Instruction& it : instructions_) {
        const Held& a = held[it.a];
        const Held& b = held[it.b];
        Held made;
        if (it.op == Op::LEAF) {
            made = {true, static_cast<int32_t>(it.at), {}};
        } else if (it.op == Op::CONST) {
            made = {true, ~static_cast<int32_t>(it.at), {}};
        } else if (it.op == Op::TRUTH && a.operand) {
            if (zero.empty()) {
                zero.push_back(static_cast<int64_t>(constants_.size()));
                constants_.push_back(0);
            }
            made.all = {{Op::NE_I, a.index, ~static_cast<int32_t>(zero[0])}};
        } else if (it.op == Op::AND && !a.all.empty() && !b.all.empty() && a.all.size() + b.all.size() <= 64) {
            made.all = a.all;
            made.all.insert(made.all.end(), b.all.begin(), b.all.end());
        } else if (a.operand && b.operand && with_comparison(it.op, [](auto, auto, auto) {})) {
            made.all = {{it.op, a.index, b.index}};
        } else {
            return;
        }
        held[it.to] = std::move(made);
    }
    terms_ = std::move(held[result_].all);
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
void BlockProgram::run(Frame frame, const Texts& texts) const {
    using I = int64_t;
    using F = double;
    for (const Instruction& it : instructions_) {
        const auto w = frame.work(it.a, it.b, it.to);
        const auto u = frame.work(it.a, it.a, it.to);  // of one operand: twice the same
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
            case Op::MUL_I: partial<I, I, I>(w, [](I a, I b, I& r) { return !__builtin_mul_overflow(a, b, &r); }); break;
            case Op::DIV_I:
                partial<I, I, F>(w, [](I a, I b, F& r) { return b != 0 && (r = divide(a, b), true); });
                break;
            case Op::MOD_I: partial<I, I, I>(w, remainder); break;
            case Op::NEG_I: partial<I, I, I>(u, [](I a, I, I& r) { return !__builtin_sub_overflow(I{0}, a, &r); }); break;
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
