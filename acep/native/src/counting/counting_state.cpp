// Writing and reading the state of the counting engine.
#include "common/arena.hpp"
#include "counting/counting.hpp"

namespace acep {
namespace {

template <class Archive>
void number_field(auto& number, Archive& archive) {
    archive.items(number);
    if (Archive::reads && !number.empty() && number.back() == 0) bad_state("a count");
}

template <class Archive>
void amount_field(auto& amount, Archive& archive) {
    BigInteger number = amount.big_integer();
    number_field(number, archive);
    if constexpr (Archive::reads) amount = Amount(number);
}

template <class Kind, class Archive>
void number_fields(auto& all, Archive& archive, size_t many) {
    if constexpr (std::is_same_v<Kind, Small>) {
        archive.items(all);
        if (Archive::reads && all.size() != many) bad_state("counts");
        for (const uint64_t n : all) {
            if (Archive::reads && !Small::fits(n)) bad_state("a count");
        }
    } else {
        for (size_t i = 0; i < many; ++i) {
            if constexpr (Archive::reads) all.emplace_back();
            number_field(all[i], archive);
        }
    }
}

}  // namespace

template <class Kind>
template <class Archive>
void Sums<Kind>::fields(auto& self, Archive& archive, std::span<const uint32_t> patterns, size_t states, auto&& key) {
    if constexpr (Archive::reads) self.clear();
    archive.items(self.states_);
    archive.items(self.live_);
    if constexpr (Archive::reads) {
        if (self.live_.size() != self.states_.size() || self.states_.size() >= states) bad_state("columns");
        std::vector<uint8_t> seen(states, 0);
        for (uint32_t s : self.states_) {
            if (s == Automaton::start || s >= states || seen[s]++ != 0) bad_state("columns");
        }
    }
    archive.within(0, static_cast<int64_t>(self.states_.size()) + 1, self.support_);
    number_fields<Kind>(self.back_, archive, self.states_.size() * self.rows());
    std::vector<int64_t> keys;
    std::vector<uint32_t> numbers;
    for (const Logged& l : self.log_) {
        keys.push_back(l.key);
        numbers.push_back(l.pattern);
    }
    archive.items(keys);
    archive.items(numbers);
    if constexpr (Archive::reads) {
        if (keys.size() != numbers.size() || !std::is_sorted(keys.begin(), keys.end())) bad_state("events");
        for (size_t i = 0; i < keys.size(); ++i) {
            if (numbers[i] >= patterns.size()) bad_state("events");
            self.log_.push_back({keys[i], patterns[numbers[i]]});
        }
    }
    archive.items(self.starts_);
    if (Archive::reads && !std::is_sorted(self.starts_.rbegin(), self.starts_.rend())) bad_state("starts");
    number_fields<Kind>(self.front_, archive, self.starts_.size() * self.support_);
    archive.words(self.first_, self.newest_);
    if constexpr (Archive::reads) {
        self.bound_ = Small::most;
        self.check_keys();
        for (const Logged& l : self.log_) key(l.key);
        for (const int64_t start : self.starts_) key(start);
        key(self.first_);
        key(self.newest_);
    }
}

// Check the order of starts and events. Else the back might never become the front, and grow without end.
template <class Kind>
void Sums<Kind>::check_keys() const {
    const bool joined = starts_.empty() || log_.empty() || starts_.front() <= log_.front().key;
    const int64_t newest = log_.empty() ? (starts_.empty() ? newest_ : starts_.front()) : log_.back().key;
    if (!joined || first_ > newest_ || newest_ > newest) bad_state("order of events");
}

template <class Archive>
void CountingEngine::fields(auto& self, Archive& archive) {
    self.automaton_.fields(archive);
    const size_t states = self.automaton_.states();
    // Pattern numbers are valid in this session only, so their bits are written too.
    std::vector<uint32_t> patterns(Archive::reads ? 0 : self.classifier_.patterns());
    archive.size(patterns, int64_t{1} << 32);
    for (uint32_t p = 0; p < patterns.size(); ++p) {
        std::vector<uint64_t> bits;
        if constexpr (!Archive::reads) bits.assign(self.classifier_.bits(p).begin(), self.classifier_.bits(p).end());
        archive.items(bits);
        if constexpr (Archive::reads) patterns[p] = self.classifier_.pattern_of(bits);
    }
    archive.words(self.work_.nodes, self.work_.touches);
    const int64_t errors = self.tables_.budget + 1;
    archive.size(self.totals_, errors + 1);
    for (auto& total : self.totals_) {
        archive.within(0, errors, total.error);
        amount_field(total.count, archive);
    }
    archive.size(self.parts_, static_cast<int64_t>(self.partitions_.size()) + 1);
    if constexpr (Archive::reads) self.open_.assign(self.parts_.size(), {});
    for (size_t p = 0; p < self.parts_.size(); ++p) {
        auto& part = self.parts_[p];
        const int64_t end = self.partitions_.end(static_cast<uint32_t>(p), self.tables_.strict, archive);
        const auto key = [&](int64_t at) {
            if (!self.tables_.counted) archive.saw(at);
            if (self.tables_.counted && at >= end) bad_state("position");
        };
        archive.within(-1, end, part.last);
        Bundle::fields(part.bundle, archive);
        std::vector<int64_t> latest;
        for (const Latest& l : part.latest) latest.insert(latest.end(), {l.state, l.start});
        archive.items(latest);
        if constexpr (Archive::reads) {
            if (latest.size() % 2 != 0) bad_state("starts");
            for (size_t i = 0; i < latest.size(); i += 2) {
                if (latest[i] <= 0 || static_cast<size_t>(latest[i]) >= states) bad_state("D-state");
                key(latest[i + 1]);
                part.latest.push_back({static_cast<uint32_t>(latest[i]), latest[i + 1]});
            }
        }
        int64_t kind = part.large != nullptr ? 2 : part.small.empty() ? 0 : 1;
        archive.within(0, 3, kind);
        if (kind == 1) Sums<Small>::fields(part.small, archive, patterns, states, key);
        if constexpr (Archive::reads) {
            if (kind == 2) part.large = std::make_unique<Sums<Large>>();
        }
        if (kind == 2) Sums<Large>::fields(*part.large, archive, patterns, states, key);
        Open none;
        auto& open = p < self.open_.size() ? self.open_[p] : none;
        archive.words(open.any);
        if (!open.any) continue;
        archive.within(0, errors, open.best);
        amount_field(open.count, archive);
    }
    if constexpr (Archive::reads) self.rows_ = {};
}

void CountingEngine::dump(Writer& out) const { fields(*this, out); }
void CountingEngine::load(Reader& in) { fields(*this, in); }

}  // namespace acep
