// Counting of matches by event, error and bundle.
#include "counting/counting.hpp"

#include <algorithm>
#include <numeric>

namespace acep {

BigInteger Amount::product(const BigInteger& a, const BigInteger& b) {
    BigInteger found(a.size() + b.size());
    for (size_t i = 0; i < a.size(); ++i) {
        uint64_t carry = 0;
        for (size_t j = 0; j < b.size(); ++j) {
            const uint128 sum = static_cast<uint128>(a[i]) * b[j] + found[i + j] + carry;
            found[i + j] = static_cast<uint64_t>(sum);
            carry = static_cast<uint64_t>(sum >> 64);
        }
        found[i + b.size()] = carry;
    }
    while (!found.empty() && found.back() == 0) found.pop_back();
    return found;
}

CountingEngine::CountingEngine(Tables tables, EventClassifier& classifier, Partitions& partitions, Asked asked)
    : BoundedEngine(std::move(tables), classifier, partitions), asked_(asked), automaton_(tables_, classifier) {}

void CountingEngine::event(uint32_t partition, const Event& event) {
    if (parts_.size() <= partition) parts_.resize(size_t{partition} + 1);
    Part& part = parts_[partition];
    const int64_t key = std::max(tables_.key(event), NEVER + 1);
    const int64_t low = earliest(key, tables_.span);
    if (!suffices(most_touches(part), [&] { return needs(part, event, low); })) return;
    if (tables_.contiguous()) {
        if (event.position != part.last + 1) {
            part.latest.clear();
            part.small.clear();
            part.large.reset();
        }
        part.last = event.position;
    }
    found_.clear();
    if (asked_ == Asked::points) {
        points(part, event.pattern, key, low);
    } else {
        sums(part, event.pattern, key, low);
    }
    if (!found_.empty()) give(part, partition, event);
}

void CountingEngine::points(Part& part, uint32_t pattern, int64_t key, int64_t low) {
    made_.clear();
    auto follow = [&](const Automaton::Step& step, int64_t start) {
        work_.touches += step.count;
        for (uint32_t i = 0; i < step.count; ++i) {
            const Automaton::Move& move = automaton_.move(step, i);
            if (move.error >= 0) {
                if (found_.empty()) found_.push_back({move.error, {}});
                found_[0].error = std::min(found_[0].error, move.error);
            }
            if (move.live != NOWHERE) made_.push_back({move.live, start});
        }
    };
    auto& latest = part.latest;
    automaton_.advance(latest, pattern, [&](const Latest& l) { return l.start >= low; },
                       [&](const Automaton::Step& step, const Latest& l) { follow(step, l.start); },
                       [&](uint32_t state, const Latest& l) { made_.push_back({state, l.start}); });
    const Automaton::Step begin = automaton_.step(pattern, Automaton::start);
    if (begin.count != 0) follow(begin, key);
    for (const Latest& m : made_) {
        auto at = std::find_if(latest.begin(), latest.end(), [&](const Latest& l) { return l.state == m.state; });
        if (at == latest.end()) {
            latest.push_back(m);
            ++work_.nodes;
        } else {
            at->start = std::max(at->start, m.start);
        }
    }
}

void CountingEngine::sums(Part& part, uint32_t pattern, int64_t key, int64_t low) {
    const bool windowed = tables_.span >= 0;
    auto give_one = [this](int64_t error, const Amount& count) { found(error, count); };
    if (part.large == nullptr) {
        const bool fits = part.small.event(automaton_, pattern, key, low, windowed, small_, give_one);
        work_.touches += static_cast<int64_t>(small_.actions.size());
        if (fits) return;
        part.large = std::make_unique<Sums<Large>>();
        part.large->copy(part.small);
        part.small.clear();
    }
    part.large->event(automaton_, pattern, key, low, windowed, large_, give_one);
    work_.touches += static_cast<int64_t>(large_.actions.size());
    if (part.large->turned() && part.large->small()) {
        part.small.copy(*part.large);
        part.large.reset();
    }
}

size_t CountingEngine::most_touches(const Part& part) const {
    if (asked_ == Asked::points) return (part.latest.size() + 1) * tables_.variables;
    return part.large != nullptr ? part.large->states() : part.small.states();
}

int64_t CountingEngine::needs(const Part& part, const Event& event, int64_t low) {
    const bool apart = tables_.contiguous() && event.position != part.last + 1;
    if (asked_ != Asked::points) return apart ? 0 : static_cast<int64_t>(most_touches(part));
    int64_t found = automaton_.step(event.pattern, Automaton::start).count;
    for (const Latest& l : part.latest) {
        if (!apart && l.start >= low) found += automaton_.step(event.pattern, l.state).count;
    }
    return found;
}

int64_t CountingEngine::drop(uint32_t partition, int64_t ts) {
    if (partition >= parts_.size()) return 0;
    Part& part = parts_[partition];
    const int64_t low = tables_.counted ? NEVER + 1 : earliest(ts, tables_.span);
    const int64_t many = waiting(part, low);
    part.latest.clear();
    part.small.clear();
    part.large.reset();
    return many;
}

int64_t CountingEngine::waiting(const Part& part, int64_t low) const {
    int64_t many =
        std::count_if(part.latest.begin(), part.latest.end(), [&](const Latest& l) { return l.start >= low; });
    if (!part.small.expired(low)) many += static_cast<int64_t>(part.small.states());
    if (part.large != nullptr && !part.large->expired(low)) many += static_cast<int64_t>(part.large->states());
    return many;
}

int64_t CountingEngine::partial_matches(int64_t clock) const {
    const int64_t low = tables_.counted ? NEVER + 1 : earliest(clock, tables_.span);
    int64_t many = 0;
    for (const Part& part : parts_) many += waiting(part, low);
    return many;
}

void CountingEngine::found(int64_t error, const Amount& count) {
    for (Found& f : found_) {
        if (f.error == error) {
            f.count.add(count);
            return;
        }
    }
    found_.push_back({error, count});
}

void CountingEngine::give(Part& part, uint32_t partition, const Event& event) {
    match_points += !part.bundle.any || part.bundle.last_ts != event.ts ? 1 : 0;
    if (asked_ == Asked::count) {
        part.bundle.any = true;
        part.bundle.last_ts = event.ts;
        for (const Found& f : found_) {
            auto at = std::find_if(totals_.begin(), totals_.end(), [&](const Found& t) { return t.error == f.error; });
            if (at == totals_.end()) {
                totals_.push_back(f);
            } else {
                at->count.add(f.count);
            }
        }
        return;
    }
    const int64_t first = part.bundle.first;
    const int64_t last = part.bundle.last_ts;
    const int64_t bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
    if (asked_ == Asked::bundles) {
        if (open_.size() <= partition) open_.resize(parts_.size());
        Open& open = open_[partition];
        if (open.any && first != bundle) row(partition, first, last, first, open.best, &open.count, open.at);
        if (!open.any || first != bundle) open = {found_[0].error, {}, true, arrived};
        for (const Found& f : found_) {
            open.best = std::min(open.best, f.error);
            open.count.add(f.count);
        }
        return;
    }
    for (const Found& f : found_) {
        row(partition, event.ts, event.ts, bundle, f.error, asked_ == Asked::ends ? &f.count : nullptr, arrived);
    }
}

void CountingEngine::row(uint32_t partition, int64_t first, int64_t last, int64_t bundle, int64_t error,
                         const Amount* count, int64_t at) {
    rows_.add(partitions_.key(partition), partitions_.width(), first, last, bundle, error);
    rows_.at.push_back(at);
    if (count == nullptr) return;
    if (count->fits()) {
        rows_.count.push_back(count->small());
    } else {
        rows_.large.emplace_back(rows_.count.size(), count->big_integer());
        rows_.count.push_back(-1);
    }
}

void CountingEngine::close(uint32_t partition) {
    if (partition >= open_.size() || !open_[partition].any) return;
    const Bundle& bundle = parts_[partition].bundle;
    const Open& open = open_[partition];
    row(partition, bundle.first, bundle.last_ts, bundle.first, open.best, &open.count, open.at);
    open_[partition] = {};
}

void CountingEngine::Rows::sort() {
    if (std::is_sorted(at.begin(), at.end())) return;
    std::vector<size_t> order(size()), place(size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return at[a] < at[b]; });
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (auto& [row, number] : large) row = place[row];
    std::sort(large.begin(), large.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const size_t width = keys.size() / order.size();
    const auto arrange = [&](Numbers<int64_t>& column, size_t each) {
        Numbers<int64_t> arranged(column.size());
        for (size_t i = 0; i < order.size() && !column.empty(); ++i) {
            std::copy_n(column.data() + order[i] * each, each, arranged.data() + i * each);
        }
        column.swap(arranged);
    };
    arrange(keys, width);
    for (auto* column : {&first, &last, &bundle, &error, &count, &at}) arrange(*column, 1);
}

CountingEngine::Rows CountingEngine::take(bool all) {
    if (all) {
        for (uint32_t p = 0; p < parts_.size(); ++p) close(p);
    }
    rows_.sort();
    return std::exchange(rows_, {});
}

std::vector<std::pair<int64_t, BigInteger>> CountingEngine::totals() const {
    std::vector<std::pair<int64_t, BigInteger>> found;
    for (const Found& t : totals_) found.emplace_back(t.error, t.count.big_integer());
    return found;
}

bool CountingEngine::expire_partition(uint32_t partition, int64_t soonest) {
    if (partition >= parts_.size()) return true;
    const Part& part = parts_[partition];
    const int64_t low = earliest(soonest, tables_.span);
    if (!part.bundle.closed(low, tables_.counted)) return false;
    if (std::any_of(part.latest.begin(), part.latest.end(), [&](const Latest& l) { return l.start >= low; }))
        return false;
    return part.small.expired(low) && (part.large == nullptr || part.large->expired(low));
}

void CountingEngine::forget(uint32_t partition) {
    if (partition >= parts_.size()) return;
    close(partition);
    parts_[partition] = Part{};
}

int64_t CountingEngine::bytes() const {
    int64_t total = automaton_.bytes() + heap_bytes(parts_, open_);
    for (const Part& part : parts_) {
        total += heap_bytes(part.latest) + part.small.bytes();
        if (part.large != nullptr) total += static_cast<int64_t>(sizeof(*part.large)) + part.large->bytes();
    }
    return total;
}

}  // namespace acep
