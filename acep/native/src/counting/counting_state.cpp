// Writing and reading the state of the counting engine.
#include "common/arena.hpp"
#include "counting/counting.hpp"

namespace acep {
namespace {

void load_number(Reader& in, BigInteger& n) {
    n = in.items<uint64_t>();
    if (!n.empty() && n.back() == 0) bad_state("a count");
}

template <class Number>
void dump_numbers(Writer& out, const std::vector<Number>& all) {
    if constexpr (std::is_same_v<Number, uint64_t>) {
        out.items(all);
    } else {
        for (const Number& n : all) out.items(n);
    }
}

template <class Number>
void load_numbers(Reader& in, std::vector<Number>& all, size_t many) {
    if constexpr (std::is_same_v<Number, uint64_t>) {
        all = in.items<uint64_t>();
        if (all.size() != many) bad_state("counts");
        for (uint64_t n : all) {
            if (!Small::fits(n)) bad_state("a count");
        }
    } else {
        all.clear();
        for (size_t i = 0; i < many; ++i) load_number(in, all.emplace_back());
    }
}

Amount amount(const BigInteger& n) {
    Amount found;
    if (n.size() == 1) {
        found.add(n[0]);
    } else if (!n.empty()) {
        found.add(n);
    }
    return found;
}

}  // namespace

template <class Kind>
void Sums<Kind>::dump(Writer& out) const {
    out.items(states_);
    out.items(live_);
    out.number(static_cast<int64_t>(support_));
    dump_numbers(out, back_);
    std::vector<int64_t> keys;
    std::vector<uint32_t> patterns;
    for (const Logged& l : log_) {
        keys.push_back(l.key);
        patterns.push_back(l.pattern);
    }
    out.items(keys);
    out.items(patterns);
    out.items(starts_);
    dump_numbers(out, classifier_);
    out.number(first_);
    out.number(newest_);
}

template <class Kind>
void Sums<Kind>::load(Reader& in, std::span<const uint32_t> patterns, size_t states) {
    clear();
    states_ = in.items<uint32_t>();
    live_ = in.items<uint8_t>();
    if (live_.size() != states_.size() || states_.size() >= states) bad_state("columns");
    std::vector<uint8_t> seen(states, 0);
    for (uint32_t s : states_) {
        if (s == Automaton::start || s >= states || seen[s]++ != 0) bad_state("columns");
    }
    support_ = static_cast<size_t>(in.number(0, static_cast<int64_t>(states_.size()) + 1));
    load_numbers(in, back_, states_.size() * rows());
    const auto keys = in.items<int64_t>();
    const auto numbers = in.items<uint32_t>();
    if (keys.size() != numbers.size()) bad_state("events");
    for (size_t i = 0; i < keys.size(); ++i) {
        if (numbers[i] >= patterns.size() || (i > 0 && keys[i] < keys[i - 1])) bad_state("events");
        log_.push_back({keys[i], patterns[numbers[i]]});
    }
    starts_ = in.items<int64_t>();
    if (!std::is_sorted(starts_.rbegin(), starts_.rend())) bad_state("starts");
    load_numbers(in, classifier_, starts_.size() * support_);
    first_ = in.number();
    newest_ = in.number();
    bound_ = Small::most;
}

template void Sums<Small>::dump(Writer&) const;
template void Sums<Large>::dump(Writer&) const;
template void Sums<Small>::load(Reader&, std::span<const uint32_t>, size_t);
template void Sums<Large>::load(Reader&, std::span<const uint32_t>, size_t);

void CountingEngine::dump(Writer& out) const {
    automaton_.dump(out);
    out.number(static_cast<int64_t>(classifier_.patterns()));
    for (uint32_t p = 0; p < classifier_.patterns(); ++p)
        out.items(classifier_.bits(p).data(), classifier_.bits(p).size());
    out.number(work_.nodes);
    out.number(work_.touches);
    out.number(static_cast<int64_t>(totals_.size()));
    for (const Found& t : totals_) {
        out.number(t.error);
        out.items(t.count.big_integer());
    }
    out.number(static_cast<int64_t>(parts_.size()));
    for (size_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        out.number(part.last);
        out.number(part.bundle.any ? 1 : 0);
        out.number(part.bundle.last_ts);
        out.number(part.bundle.last_position);
        out.number(part.bundle.first);
        std::vector<int64_t> latest;
        for (const Latest& l : part.latest) latest.insert(latest.end(), {l.state, l.start});
        out.items(latest);
        out.number(part.large != nullptr ? 2 : part.small.empty() ? 0 : 1);
        if (part.large != nullptr) {
            part.large->dump(out);
        } else if (!part.small.empty()) {
            part.small.dump(out);
        }
        const bool open = p < open_.size() && open_[p].any;
        out.number(open ? 1 : 0);
        if (!open) continue;
        out.number(open_[p].best);
        out.items(open_[p].count.big_integer());
    }
}

void CountingEngine::load(Reader& in) {
    automaton_.load(in);
    const auto states = static_cast<int64_t>(automaton_.states());
    std::vector<uint32_t> patterns;
    for (int64_t many = in.number(0, int64_t{1} << 32); many > 0; --many) {
        patterns.push_back(classifier_.pattern_of(in.items<uint64_t>()));
    }
    work_.nodes = in.number();
    work_.touches = in.number();
    totals_.clear();
    BigInteger count;
    for (int64_t many = in.number(0, tables_.budget + 2); many > 0; --many) {
        const int64_t error = in.number(0, tables_.budget + 1);
        load_number(in, count);
        totals_.push_back({error, amount(count)});
    }
    parts_.clear();
    parts_.resize(static_cast<size_t>(in.number(0, static_cast<int64_t>(partitions_.size()) + 1)));
    open_.clear();
    open_.resize(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
        Part& part = parts_[p];
        part.last = in.number(-1, most_positions);
        part.bundle.any = in.number(0, 2) != 0;
        part.bundle.last_ts = in.number();
        part.bundle.last_position = in.number();
        part.bundle.first = in.number();
        const auto latest = in.items<int64_t>();
        if (latest.size() % 2 != 0) bad_state("starts");
        for (size_t i = 0; i < latest.size(); i += 2) {
            if (latest[i] <= 0 || latest[i] >= states) bad_state("D-state");
            part.latest.push_back({static_cast<uint32_t>(latest[i]), latest[i + 1]});
        }
        const int64_t kind = in.number(0, 3);
        if (kind == 1) part.small.load(in, patterns, automaton_.states());
        if (kind == 2) {
            part.large = std::make_unique<Sums<Large>>();
            part.large->load(in, patterns, automaton_.states());
        }
        if (in.number(0, 2) == 0) continue;
        open_[p].any = true;
        open_[p].best = in.number(0, tables_.budget + 1);
        load_number(in, count);
        open_[p].count = amount(count);
    }
    rows_ = {};
}

}  // namespace acep
