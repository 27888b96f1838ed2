// The choices of OUTPUT over the waiting matches (acep/reference/choosing.py).
#include "completion/choosing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "common/hash.hpp"

namespace acep {
namespace {

// The sum of a hash of each event with its variable. It is the same for the same events, and has 128 bits, so that no
// two matches have one by chance.
struct Sum {
    uint64_t low = 0, high = 0;

    static Sum of(int64_t position, uint16_t var) {
        const uint64_t low = mixed(mixed(static_cast<uint64_t>(position) + golden_step) + var);
        const uint64_t high = mixed(mixed(static_cast<uint64_t>(position) ^ golden_step) + golden_step * (var + 1u));
        return {low, high};
    }
    Sum operator+(const Sum& other) const { return {low + other.low, high + other.high}; }
    Sum operator-(const Sum& other) const { return {low - other.low, high - other.high}; }
    bool operator==(const Sum&) const = default;
};

struct SumHash {
    size_t operator()(const Sum& sum) const { return sum.low; }
};

// The events that a match binds to one variable: the position of the first, and the sum of all.
struct Part {
    uint16_t var;
    int64_t first;
    Sum sum;
};

Sum parts_of(const Binding& m, std::vector<Part>& parts) {
    Sum whole;
    parts.clear();
    for (size_t s = 0; s < m.size(); ++s) {
        const Sum one = Sum::of(m.positions[s], m.vars[s]);
        whole = whole + one;
        const auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.var == m.vars[s]; });
        if (part == parts.end())
            parts.push_back({m.vars[s], m.positions[s], one});
        else
            part->sum = part->sum + one;
    }
    return whole;
}

void choose(const std::vector<const Binding*>& group, const std::vector<size_t>& numbers,
            std::vector<Verdict>& verdicts) {
    constexpr int64_t nowhere = -1;  // stands for the events of a variable that are left out
    std::unordered_set<Sum, SumHash> smaller;  // matches without one event
    // The least first position of a variable among matches that are equal otherwise, by the rest and the variable.
    std::unordered_map<Sum, int64_t, SumHash> remainders;
    std::vector<Part> parts;
    for (size_t i : numbers) {
        const Binding& m = *group[i];
        const Sum whole = parts_of(m, parts);
        for (size_t s = 0; s < m.size(); ++s) smaller.insert(whole - Sum::of(m.positions[s], m.vars[s]));
        for (const Part& part : parts) {
            auto [found, fresh] = remainders.try_emplace(whole - part.sum + Sum::of(nowhere, part.var), part.first);
            if (!fresh) found->second = std::min(found->second, part.first);
        }
    }
    for (size_t i : numbers) {
        const Sum whole = parts_of(*group[i], parts);
        const bool earliest = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
            return remainders.at(whole - part.sum + Sum::of(nowhere, part.var)) >= part.first;
        });
        verdicts[i] = earliest && !smaller.contains(whole) ? Verdict::give : Verdict::drop;
    }
}

// Intervals of positions, of which only those are kept that an answer needs.
class Intervals {
public:
    void add(int64_t first, int64_t last) {
        // By first position, the greatest last one so far: it rises.
        auto later = upto_.upper_bound(first);
        if (later == upto_.begin() || std::prev(later)->second < last) {
            while (later != upto_.end() && later->second <= last) later = upto_.erase(later);
            upto_.insert_or_assign(first, last);
        }
        // By first position, the least last one from there on: it rises, too.
        auto next = within_.lower_bound(first);
        if (next != within_.end() && next->second <= last) return;
        while (next != within_.begin() && std::prev(next)->second >= last) next = within_.erase(std::prev(next));
        within_.insert_or_assign(first, last);
    }
    // Return whether some interval overlaps another one, or lies within it.
    bool overlap(int64_t first, int64_t last) const {
        const auto after = upto_.upper_bound(last);
        return after != upto_.begin() && std::prev(after)->second >= first;
    }
    bool lie_within(int64_t first, int64_t last) const {
        const auto next = within_.lower_bound(first);
        return next != within_.end() && next->second <= last;
    }

private:
    std::map<int64_t, int64_t> upto_, within_;
};

// The matches that may still come, by the position at which they begin.
class ProspectIndex {
public:
    explicit ProspectIndex(std::vector<Prospect> prospects) : prospects_(std::move(prospects)) {
        std::sort(prospects_.begin(), prospects_.end(),
                  [](const Prospect& x, const Prospect& y) { return x.first < y.first; });
        for (size_t i = 1; i < prospects_.size(); ++i) {
            const Prospect& known = prospects_[i - 1];
            Prospect& here = prospects_[i];  // the least in the order so far
            if (std::pair(known.error, known.end) < std::pair(here.error, here.end)) {
                here.error = known.error;
                here.end = known.end;
            }
        }
    }
    // Return whether all that overlap a match stand behind it in the order.
    bool behind(const Binding& m) const {
        const auto after = std::upper_bound(prospects_.begin(), prospects_.end(), m.last(),
                                            [](int64_t last, const Prospect& one) { return last < one.first; });
        if (after == prospects_.begin()) return true;
        const Prospect& least = *std::prev(after);
        return std::pair(m.error, m.end) < std::pair(least.error, least.end);
    }

private:
    std::vector<Prospect> prospects_;
};

}  // namespace

bool before(const Binding& a, const Binding& b, const Tables& tables, const Texts& texts) {
    if (a.error != b.error) return a.error < b.error;
    if (tables.choice == Choice::shortest) {
        if (a.first() != b.first()) return a.first() < b.first();
        if (a.last() != b.last()) return a.last() < b.last();
    } else if (tables.choice == Choice::longest) {
        if (a.first() != b.first()) return a.first() < b.first();
        if (a.last() != b.last()) return a.last() > b.last();
        if (a.size() != b.size()) return a.size() > b.size();
    } else {
        if (a.end != b.end) return a.end < b.end;
        if (a.start != b.start) return a.start < b.start;
    }
    for (size_t s = 0; s < std::min(a.size(), b.size()); ++s) {
        int64_t c = 0;
        if (tables.order_by >= 0) {
            const size_t at = s * tables.kept.size() + static_cast<size_t>(tables.order_by);
            c = texts.order(a.rows[at], b.rows[at]);
        } else {
            c = a.ids[s] < b.ids[s] ? -1 : a.ids[s] > b.ids[s] ? 1 : 0;
        }
        if (c != 0) return c < 0;
    }
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.vars.begin(), a.vars.end(), b.vars.begin(), b.vars.end(),
                                        [&](uint16_t v, uint16_t w) { return tables.ranks[v] < tables.ranks[w]; });
}

std::vector<Verdict> non_overlap(const std::vector<const Binding*>& waiting, std::vector<Prospect> prospects,
                                 const Tables& tables, const Texts& texts) {
    const ProspectIndex coming(std::move(prospects));
    std::vector<Verdict> verdicts(waiting.size(), Verdict::wait);
    std::vector<size_t> order(waiting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t i, size_t j) { return before(*waiting[i], *waiting[j], tables, texts); });
    Intervals given, undecided;
    for (const size_t i : order) {
        const Binding& m = *waiting[i];
        // A match around another one that stands before it overlaps whatever that one overlaps.
        if (given.overlap(m.first(), m.last()) || undecided.lie_within(m.first(), m.last())) {
            verdicts[i] = Verdict::drop;
        } else if (coming.behind(m) && !undecided.overlap(m.first(), m.last())) {
            verdicts[i] = Verdict::give;
            given.add(m.first(), m.last());
        } else {
            undecided.add(m.first(), m.last());
        }
    }
    return verdicts;
}

int64_t last_skipped(const Binding& m, const SkipTarget& skip) {
    if (skip.place == SkipPlace::past_last) return m.last();
    int64_t target = m.first();
    for (size_t s = 0; s < m.size() && skip.place != SkipPlace::next; ++s) {
        if (m.vars[s] != skip.variable) continue;
        target = m.positions[s];
        if (skip.place == SkipPlace::first_of) break;
    }
    return std::max(target - 1, m.first());
}

std::vector<Verdict> choose_by_first_event(const std::vector<const Binding*>& waiting, int64_t horizon,
                                           const Tables& tables, const Texts& texts) {
    std::vector<Verdict> verdicts(waiting.size(), Verdict::wait);
    std::vector<size_t> order(waiting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t i, size_t j) { return waiting[i]->first() < waiting[j]->first(); });
    const auto greedy = [&](size_t i, size_t j) { return before(*waiting[i], *waiting[j], tables, texts); };
    for (size_t from = 0; from < order.size();) {
        size_t to = from;
        int64_t end = last_skipped(*waiting[order[from]], tables.skip);
        for (; to < order.size() && (to == from || waiting[order[to]]->first() <= end); ++to)
            end = std::max(end, last_skipped(*waiting[order[to]], tables.skip));
        if (end < horizon) {
            std::sort(order.begin() + static_cast<std::ptrdiff_t>(from),
                      order.begin() + static_cast<std::ptrdiff_t>(to), greedy);
            Intervals given;
            for (size_t k = from; k < to; ++k) {
                const Binding& m = *waiting[order[k]];
                const int64_t last = last_skipped(m, tables.skip);
                const bool free = !given.overlap(m.first(), last);
                if (free) given.add(m.first(), last);
                verdicts[order[k]] = free ? Verdict::give : Verdict::drop;
            }
        }
        from = to;
    }
    return verdicts;
}

std::vector<Verdict> earliest_maximal(const std::vector<const Binding*>& waiting,
                                      const std::unordered_set<int64_t>& alive) {
    std::vector<Verdict> verdicts(waiting.size(), Verdict::wait);
    std::map<int64_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < waiting.size(); ++i) {
        if (!alive.contains(waiting[i]->first())) groups[waiting[i]->first()].push_back(i);
    }
    for (const auto& [first, numbers] : groups) choose(waiting, numbers, verdicts);
    return verdicts;
}

}  // namespace acep
