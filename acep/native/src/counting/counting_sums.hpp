// Numbers of partial matches in a sliding window, by D-state (automaton.hpp), without a walk over their starts.
//
// The effect of an event on the numbers of one partition is a sparse matrix over the D-states and the start state. The
// numbers of partial matches that began in the window are the start state's row in the product of these matrices.
// That product has two parts, like a queue made of two stacks. The front has this row for each start that may still
// expire; the back is a matrix to which events are applied. When all starts of the front have expired, the back's
// events are read once, from last to first, and become the front. So amortised work is constant per event and move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/arena.hpp"
#include "common/big_integer.hpp"
#include "common/numbers.hpp"
#include "common/state.hpp"
#include "plan/automaton.hpp"

namespace acep {

// The number types of one partition: 64 bits while they suffice, else numbers of any size.
struct Small {
    using Number = uint64_t;
    static constexpr uint64_t most = uint64_t{1} << 62;
    // Return whether a number is 0.
    static bool zero(Number a) { return a == 0; }
    // Return the number 1.
    static Number one() { return 1; }
    // Add a number; the caller must have checked that the sum fits.
    static void add(Number& a, Number b) { a += b; }
    // Return whether a number is at most `most`, so that two can be added.
    static bool fits(Number a) { return a <= most; }
};
// Numbers of any size, with the same functions.
struct Large {
    using Number = BigInteger;
    // Return whether a number is 0.
    static bool zero(const Number& a) { return a.empty(); }
    // Return the number 1.
    static Number one() { return {1}; }
    // Add a number.
    static void add(Number& a, const Number& b) { increase(a, BigIntegerView(b)); }
    // Return true: every number fits.
    static bool fits(const Number&) { return true; }
};

// A number of matches: 128 bits while they suffice, else an integer of any size.
class Amount {
public:
    Amount() = default;
    explicit Amount(const BigInteger& n) {
        if (n.size() == 1) {
            add(n[0]);
        } else if (!n.empty()) {
            add(n);
        }
    }
    // Add a number of one word.
    void add(uint64_t n) { add_small(n); }
    // Add the product of two numbers of one word.
    void add_product(uint64_t a, uint64_t b) { add_small(static_cast<uint128>(a) * b); }
    // Add a number of any size.
    void add(const BigInteger& n) {
        spill();
        increase(large_, BigIntegerView(n));
    }
    // Add the product of two numbers of any size.
    void add_product(const BigInteger& a, const BigInteger& b) { add(product(a, b)); }
    // Add another amount.
    void add(const Amount& other) {
        if (other.spilt_) {
            add(other.large_);
        } else {
            add_small(other.small_);
        }
    }
    // Return whether it is 0.
    bool zero() const { return !spilt_ && small_ == 0; }
    // Return whether it is at most 2^63 - 1.
    bool fits() const { return !spilt_ && small_ <= static_cast<uint128>(int64_max); }
    // Return it as one word; it must fit.
    int64_t small() const { return static_cast<int64_t>(small_); }
    // Return it as a number of any size.
    BigInteger big_integer() const { return spilt_ ? large_ : words(small_); }

    // Return the product of two numbers.
    static BigInteger product(const BigInteger& a, const BigInteger& b);

private:
    // Return a number of 128 bits as words.
    static BigInteger words(uint128 n) {
        BigInteger found;
        for (; n != 0; n >>= 64) found.push_back(static_cast<uint64_t>(n));
        return found;
    }
    // Add a number of 128 bits.
    void add_small(uint128 n) {
        if (!spilt_ && !__builtin_add_overflow(small_, n, &small_)) return;
        if (!spilt_) small_ -= n;  // undo the overflow
        spill();
        increase(large_, BigIntegerView(words(n)));
    }
    // Go on with a number of any size.
    void spill() {
        if (spilt_) return;
        large_ = words(small_);
        spilt_ = true;
    }
    uint128 small_ = 0;
    BigInteger large_;
    bool spilt_ = false;
};

// Buffers shared by the counts of all partitions.
template <class Kind>
struct CountScratch {
    // A D-state that an event changes, by its column, and how.
    struct Action {
        size_t column;
        Automaton::Step step;
    };
    // The numbers of one D-state are added to those of another, by its column.
    struct Addition {
        size_t target;
        size_t saved;  // index of the saved column
    };
    std::vector<Action> actions;
    std::vector<Addition> additions;
    std::vector<typename Kind::Number> saved;
    std::vector<typename Kind::Number> ways;  // by D-state: the numbers of ways from it to each kept one
    std::vector<typename Kind::Number> row;
    std::vector<size_t> kept;
};

// The numbers of partial matches of a partition by D-state, from which starts expire as the window moves: two
// stacks, so that each start is added and removed a bounded number of times.
template <class Kind>
class Sums {
public:
    using Number = typename Kind::Number;

    // Apply one event. `low` is the earliest start that still counts; it is ignored unless `windowed`. Call
    // give(error, amount) for the matches that end with the event. Return false if numbers grow too large: then `give`
    // was not called, and the event must be applied to a copy with larger numbers.
    template <class Give>
    bool event(Automaton& automaton, uint32_t pattern, int64_t key, int64_t low, bool windowed,
               CountScratch<Kind>& scratch, Give&& give);

    // Return whether there are no partial matches.
    bool empty() const { return states_.empty(); }
    // Return the number of D-states with partial matches.
    size_t states() const { return states_.size(); }
    // Return whether no start at `low` or later is left.
    bool expired(int64_t low) const { return empty() || newest_ < low; }
    // Remove everything.
    void clear();
    // Copy the numbers of `other`, which must fit into this number type.
    template <class Other>
    void copy(const Sums<Other>& other);
    // Return whether the back became the front since the last call. Then `small` returns whether 64 bits suffice now.
    bool turned() { return std::exchange(turned_, false); }
    // Return whether all numbers would fit in 64 bits.
    bool small() const;
    // Return the bytes on the heap.
    int64_t bytes() const;
    // Write or read the numbers. `patterns`: event patterns by the numbers they were written with; `states`: D-states.
    // Call key(k) for each key that is read.
    template <class Archive>
    static void fields(auto& self, Archive& archive, std::span<const uint32_t> patterns, size_t states, auto&& key);

private:
    template <class Other>
    friend class Sums;
    // An event that changed the back: its key (time or position) and its pattern.
    struct Logged {
        int64_t key;
        uint32_t pattern;
    };
    static constexpr size_t NONE = static_cast<size_t>(-1);

    // Return the number of rows of the back.
    size_t rows() const { return 1 + support_; }
    // Return the column of a D-state in the back.
    Number* column(size_t i) { return back_.data() + i * rows(); }
    // Return the column number of a D-state, or NONE.
    size_t find(uint32_t state) const {
        const auto at = std::find(states_.begin(), states_.end(), state);
        return at == states_.end() ? NONE : static_cast<size_t>(at - states_.begin());
    }
    // Return the column number of a D-state, with a column of zeros if it is new; columns may move.
    size_t find_or_add(uint32_t state);
    // Remove the starts before `low`. Return false if numbers grow too large.
    bool expire(Automaton& automaton, int64_t low, CountScratch<Kind>& scratch);
    // Make the back the new front, without the events that have expired. Return false if numbers grow too large.
    bool turn(Automaton& automaton, int64_t low, CountScratch<Kind>& scratch);
    // Remove the front, as all its starts have expired.
    void forget_front();
    // Return whether the numbers still fit after so many additions, and raise their bound.
    bool room(size_t moves);
    // Return the number of partial matches of a D-state.
    Amount value(size_t column) const;
    // Throw std::invalid_argument unless the keys that were read do not fall.
    void check_keys() const;

    // The back: a column for each D-state. Row 0 counts starts since the front was made; the others are its D-states.
    std::vector<uint32_t> states_;
    std::vector<uint8_t> live_;  // by column: whether any number is not 0
    std::vector<Number> back_;
    std::vector<Logged> log_;    // the events applied to it
    // The front: the starts that may still expire, the oldest last. Each has the numbers of partial matches that began
    // there or later, by their D-state when the front was made.
    std::vector<int64_t> starts_;
    std::vector<Number> front_;
    size_t support_ = 0;  // number of D-states of the front
    int64_t first_ = NEVER;  // first start of the back
    int64_t newest_ = NEVER;  // last start of all
    uint64_t bound_ = 1;  // upper bound of the numbers of the back
    bool turned_ = false;
};

template <class Kind>
template <class Give>
bool Sums<Kind>::event(Automaton& automaton, uint32_t pattern, int64_t key, int64_t low, bool windowed,
                       CountScratch<Kind>& scratch, Give&& give) {
    if (windowed && !expire(automaton, low, scratch)) return false;
    scratch.actions.clear();
    size_t moves = 0;
    for (size_t i = 0; i < states_.size(); ++i) {
        if (live_[i] == 0) continue;
        const Automaton::Step step = automaton.step(pattern, states_[i]);
        if (step.count == 0 && step.waits == states_[i]) continue;
        scratch.actions.push_back({i, step});
        moves += step.count + 1;
    }
    const Automaton::Step begin = automaton.step(pattern, Automaton::start);
    if (scratch.actions.empty() && begin.count == 0) return true;
    if (!room(moves + begin.count)) return false;

    for (const auto& action : scratch.actions) {
        const auto error = [&](uint32_t m) { return automaton.move(action.step, m).error; };
        uint32_t m = 0;
        while (m < action.step.count && error(m) < 0) ++m;
        if (m == action.step.count) continue;
        const Amount amount = value(action.column);
        if (amount.zero()) continue;  // all in this D-state have expired
        for (; m < action.step.count; ++m) {
            if (error(m) >= 0) give(error(m), amount);
        }
    }
    // All moves read the numbers as they were before the event.
    scratch.additions.clear();
    size_t saved = 0;
    bool moved = false;
    for (const auto& action : scratch.actions) {
        const uint32_t state = states_[action.column];
        bool used = false;
        auto to = [&](uint32_t target) {
            scratch.additions.push_back({find_or_add(target), saved});
            used = true;
        };
        automaton.each_live(action.step, to);
        if (action.step.waits != state) {
            moved = true;
            if (action.step.waits != NOWHERE) to(action.step.waits);
        }
        if (used) ++saved;
    }
    const size_t height = rows();
    if (!moved && scratch.additions.size() == 1) {
        const auto source = std::find_if(scratch.actions.begin(), scratch.actions.end(),
                                         [&](const auto& action) { return automaton.any_live(action.step); });
        const Number* from = column(source->column);
        Number* into = column(scratch.additions[0].target);
        for (size_t r = 0; r < height; ++r) Kind::add(into[r], Number(from[r]));
        live_[scratch.additions[0].target] = 1;
    } else if (moved || !scratch.additions.empty()) {
        scratch.saved.resize(saved * height);
        size_t at = 0;
        for (const auto& action : scratch.actions) {
            const uint32_t state = states_[action.column];
            const bool used =
                (action.step.waits != state && action.step.waits != NOWHERE) || automaton.any_live(action.step);
            Number* from = column(action.column);
            if (used) std::copy(from, from + height, scratch.saved.data() + height * at++);
            if (action.step.waits != state) {
                std::fill(from, from + height, Number{});
                live_[action.column] = 0;
            }
        }
        for (const auto& addition : scratch.additions) {
            const Number* from = scratch.saved.data() + addition.saved * height;
            Number* into = column(addition.target);
            for (size_t r = 0; r < height; ++r) Kind::add(into[r], from[r]);
            live_[addition.target] = 1;
        }
    }
    bool begins = false;
    for (uint32_t m = 0; m < begin.count; ++m) {
        const Automaton::Move& move = automaton.move(begin, m);
        if (move.error >= 0) {
            Amount one;
            one.add(1);
            give(move.error, one);
        }
        if (move.live == NOWHERE) continue;
        const size_t target = find_or_add(move.live);
        Kind::add(column(target)[0], Kind::one());
        live_[target] = 1;
        begins = true;
    }
    if (begins) {
        if (first_ == NEVER) first_ = key;
        newest_ = key;
    }
    if (windowed && (begins || moved || !scratch.additions.empty())) log_.push_back({key, pattern});
    if (moved && std::find(live_.begin(), live_.end(), 1) == live_.end()) clear();
    return true;
}

template <class Kind>
void Sums<Kind>::clear() {
    states_.clear();
    live_.clear();
    back_.clear();
    log_.clear();
    starts_.clear();
    front_.clear();
    support_ = 0;
    first_ = newest_ = NEVER;
    bound_ = 1;
}

template <class Kind>
size_t Sums<Kind>::find_or_add(uint32_t state) {
    const size_t known = find(state);
    if (known != NONE) return known;
    states_.push_back(state);
    live_.push_back(0);
    back_.resize(back_.size() + rows());
    return states_.size() - 1;
}

template <class Kind>
bool Sums<Kind>::expire(Automaton& automaton, int64_t low, CountScratch<Kind>& scratch) {
    if (empty()) return true;
    if (newest_ < low) {
        clear();
        return true;
    }
    while (!starts_.empty() && starts_.back() < low) {
        starts_.pop_back();
        front_.resize(front_.size() - support_);
    }
    if (!starts_.empty()) return true;
    if (support_ != 0) forget_front();
    return first_ >= low || turn(automaton, low, scratch);
}

template <class Kind>
void Sums<Kind>::forget_front() {
    const size_t height = rows();
    for (size_t i = 0; i < states_.size(); ++i) {
        Number& start = back_[i * height];
        live_[i] = Kind::zero(start) ? 0 : 1;
        if (i != i * height) back_[i] = std::move(start);
    }
    back_.resize(states_.size());
    support_ = 0;
}

template <class Kind>
bool Sums<Kind>::turn(Automaton& automaton, int64_t low, CountScratch<Kind>& scratch) {
    auto& kept = scratch.kept;  // the columns that are not 0: their D-states are those of the front
    kept.clear();
    for (size_t i = 0; i < states_.size(); ++i) {
        if (!Kind::zero(back_[i])) kept.push_back(i);
    }
    const size_t width = kept.size();
    if (width == 0) {
        clear();
        return true;
    }
    auto& ways = scratch.ways;
    ways.assign(states_.size() * width, Number{});
    for (size_t k = 0; k < width; ++k) ways[kept[k] * width + k] = Kind::one();
    scratch.row.assign(width, Number{});
    bool fits = true;
    auto add_to = [&](Number* into, const Number* from) {
        for (size_t k = 0; k < width; ++k) {
            Kind::add(into[k], Number(from[k]));
            fits = fits && Kind::fits(into[k]);
        }
    };
    starts_.clear();
    front_.clear();
    for (size_t e = log_.size(); e-- > 0 && log_[e].key >= low && fits;) {
        const uint32_t pattern = log_[e].pattern;
        const Automaton::Step begin = automaton.step(pattern, Automaton::start);
        const auto add_ways = [&](Number* into, uint32_t to) {
            if (const size_t i = find(to); i != NONE) add_to(into, ways.data() + i * width);
        };
        automaton.each_live(begin, [&](uint32_t live) { add_ways(scratch.row.data(), live); });
        if (automaton.any_live(begin)) {
            starts_.push_back(log_[e].key);
            front_.insert(front_.end(), scratch.row.begin(), scratch.row.end());
        }
        // Update the ways from before this event for the D-states that it changes: read all, then write.
        scratch.actions.clear();
        for (size_t i = 0; i < states_.size(); ++i) {
            const Automaton::Step step = automaton.step(pattern, states_[i]);
            if (step.count != 0 || step.waits != states_[i]) scratch.actions.push_back({i, step});
        }
        if (scratch.actions.size() == 1) {  // often, the runs of one D-state alone take the event
            const auto& [i, step] = scratch.actions[0];
            if (step.count == 1 && step.waits == states_[i]) {
                Number* into = ways.data() + i * width;
                automaton.each_live(step, [&](uint32_t live) { add_ways(into, live); });
                continue;
            }
        }
        scratch.saved.assign(scratch.actions.size() * width, Number{});
        for (size_t a = 0; a < scratch.actions.size(); ++a) {
            Number* into = scratch.saved.data() + a * width;
            const auto& [i, step] = scratch.actions[a];
            if (step.waits != NOWHERE) add_ways(into, step.waits);
            automaton.each_live(step, [&](uint32_t live) { add_ways(into, live); });
        }
        for (size_t a = 0; a < scratch.actions.size(); ++a) {
            std::copy_n(scratch.saved.data() + a * width, width, ways.data() + scratch.actions[a].column * width);
        }
    }
    if (!fits) {
        starts_.clear();
        front_.clear();
        return false;
    }
    // `starts_` already has the newest first.
    for (size_t k = 0; k < width; ++k) states_[k] = states_[kept[k]];
    states_.resize(width);
    live_.assign(width, 1);
    support_ = width;
    back_.assign(width * rows(), Number{});
    for (size_t k = 0; k < width; ++k) column(k)[1 + k] = Kind::one();
    log_.clear();
    first_ = NEVER;
    bound_ = 1;
    turned_ = true;
    if (starts_.empty()) clear();
    return true;
}

template <class Kind>
bool Sums<Kind>::room(size_t moves) {
    if constexpr (std::is_same_v<Kind, Small>) {
        const uint64_t factor = moves + 1;
        if (bound_ > Small::most / factor) {
            bound_ = 1;
            for (uint64_t n : back_) bound_ = std::max(bound_, n);
            if (bound_ > Small::most / factor) return false;
        }
        bound_ *= factor;
    }
    return true;
}

template <class Kind>
Amount Sums<Kind>::value(size_t i) const {
    const Number* numbers = back_.data() + i * rows();
    Amount found;
    found.add(numbers[0]);
    if (!starts_.empty()) {
        const Number* top = front_.data() + (front_.size() - support_);
        for (size_t k = 0; k < support_; ++k) {
            if (!Kind::zero(top[k]) && !Kind::zero(numbers[1 + k])) found.add_product(top[k], numbers[1 + k]);
        }
    }
    return found;
}

template <class Kind>
template <class Other>
void Sums<Kind>::copy(const Sums<Other>& other) {
    states_ = other.states_;
    live_ = other.live_;
    log_.clear();
    for (const auto& l : other.log_) log_.push_back({l.key, l.pattern});
    starts_ = other.starts_;
    support_ = other.support_;
    first_ = other.first_;
    newest_ = other.newest_;
    bound_ = Small::most;
    auto in_words = [](const auto& from, auto& into) {
        into.clear();
        for (const auto& n : from) {
            if constexpr (std::is_same_v<Kind, Small>) {
                into.push_back(n.empty() ? 0 : n[0]);
            } else {
                into.push_back(n == 0 ? BigInteger{} : BigInteger{n});
            }
        }
    };
    in_words(other.back_, back_);
    in_words(other.front_, front_);
}

template <class Kind>
bool Sums<Kind>::small() const {
    auto fits = [](const BigInteger& n) { return n.empty() || (n.size() == 1 && Small::fits(n[0])); };
    return std::all_of(back_.begin(), back_.end(), fits) && std::all_of(front_.begin(), front_.end(), fits);
}

template <class Kind>
int64_t Sums<Kind>::bytes() const {
    int64_t total = heap_bytes(states_, live_, log_, starts_, back_, front_);
    if constexpr (std::is_same_v<Kind, Large>) {
        for (const auto* all : {&back_, &front_}) {
            for (const BigInteger& n : *all) total += heap_bytes(n);
        }
    }
    return total;
}

}  // namespace acep
