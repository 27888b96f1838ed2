// The state of match windows as bytes: waiting events, reaches of each window, and the state of the engine.

#include <limits>

#include "prefilter/windows.hpp"

namespace acep {

template <class Archive>
void WindowedEngine::fields(auto& self, Archive& archive) {
    archive.words(self.received_, self.passed_on_);
    archive.within(0, trial, self.tried_);
    archive.within(0, most_positions, self.tried_passed_on_);
    archive.within(0, most_positions / rests, self.watched_);
    archive.within(0, most_positions, self.until_trial_);
    archive.words(self.swept_, self.passing_);
    archive.saw(self.swept_);
    archive.size(self.parts_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (uint32_t p = 0; p < self.parts_.size(); ++p) {
        auto& part = self.parts_[p];
        const int64_t end = self.partitions_.end(p, self.tables_.strict, archive);
        archive.words(part.since, part.passed);
        archive.within(0, std::max<int64_t>(1, self.needs_.least), part.oldest_key);
        archive.items(part.known);
        if (Archive::reads && !part.known.empty() && part.known.size() != self.known_size()) {
            bad_state("known of a window");
        }
        const auto key = [&](int64_t at) {
            if (!self.tables_.counted) archive.saw(at);
            if (Archive::reads && self.tables_.counted && at >= end) bad_state("position");
        };
        key(part.since);
        for (const int64_t reach : part.known) {
            if (reach != std::numeric_limits<int64_t>::max()) key(reach);  // else nothing is needed
        }
        uint32_t size = part.size;
        archive.within(0, int64_t{1} << 31, size);
        for (uint32_t i = 0; i < size; ++i) {
            if constexpr (Archive::reads) {
                if (part.size == part.ring.size()) self.grow(part);
                ++part.size;
            }
            waiting_fields(self, archive, part, (part.head + i) & (part.ring.size() - 1), end);
        }
    }
}

template <class Archive>
void WindowedEngine::waiting_fields(auto& self, Archive& archive, auto& part, size_t at, int64_t end) {
    auto& event = part.ring[at];
    archive.words(event.ts);
    archive.saw(event.ts);
    archive.within(0, end, event.position);
    archive.words(event.id);
    const auto written = self.classifier_.bits(event.pattern);
    std::vector<uint64_t> bits(written.begin(), written.end());
    for (uint64_t& word : bits) archive.words(word);
    if constexpr (Archive::reads) {
        event.pattern = self.classifier_.pattern_of(bits);
        const Waiting& last = part.ring[at == 0 ? 0 : at - 1];
        if (at > 0 && (event.ts < last.ts || event.position <= last.position)) bad_state("order of events that wait");
    }
    for (size_t u = 0; u < self.used_.size(); ++u) {
        archive.words(part.words[u * part.ring.size() + at]);
        archive.within(0, 2, part.valid[u * part.ring.size() + at]);
    }
}

void WindowedEngine::dump(Writer& out) const {
    fields(*this, out);
    engine_->dump(out);
}

void WindowedEngine::load(Reader& in) {
    fields(*this, in);
    engine_->load(in);
    work_ = engine_->work();
}

}  // namespace acep
