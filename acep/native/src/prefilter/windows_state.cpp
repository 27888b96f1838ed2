// The state of match windows as bytes: waiting events, reaches of each window, and the state of the engine.
#include <algorithm>
#include <vector>

#include "chains/cursor.hpp"
#include "prefilter/windows.hpp"

namespace acep {

// Pattern numbers are valid in this session only, so their bits are written instead.
void WindowedEngine::dump(Writer& out) const {
    for (const int64_t n : {came_, handed_, tried_, tried_handed_, watched_, left_, swept_}) out.number(n);
    out.number(passing_ ? 1 : 0);
    out.number(static_cast<int64_t>(parts_.size()));
    for (const Part& part : parts_) {
        out.number(part.since);
        out.number(part.passed ? 1 : 0);
        out.number(part.turn);
        out.items(part.known);
        out.number(part.size);
        const size_t capacity = part.ring.size();
        for (uint32_t i = 0; i < part.size; ++i) {
            const size_t at = (part.head + i) & (capacity - 1);
            const Waiting& w = part.ring[at];
            out.number(w.ts);
            out.number(w.position);
            out.number(w.id);
            for (const uint64_t bits : classifier_.bits(w.pattern)) out.number(static_cast<int64_t>(bits));
            for (size_t u = 0; u < used_.size(); ++u) {
                out.number(part.words[u * capacity + at]);
                out.number(part.valid[u * capacity + at]);
            }
        }
    }
    engine_->dump(out);
}

void WindowedEngine::load(Reader& in) {
    came_ = in.number();
    handed_ = in.number();
    tried_ = in.number(0, trial);
    tried_handed_ = in.number(0, most_positions);
    watched_ = in.number(0, most_positions / rests);
    left_ = in.number(0, most_positions);
    swept_ = in.number();
    passing_ = in.number(0, 2) != 0;
    const int64_t parts = in.number(0, static_cast<int64_t>(partitions_.size()) + 1);
    parts_.clear();
    parts_.resize(static_cast<size_t>(parts));
    for (Part& part : parts_) load_part(in, part);
    engine_->load(in);
    work_ = engine_->work();
    marks_.clear();
    last_id_ = bound_ = NEVER;
}

void WindowedEngine::load_part(Reader& in, Part& part) {
    part.since = in.number();
    part.passed = in.number(0, 2) != 0;
    part.turn = static_cast<uint32_t>(in.number(0, std::max<int64_t>(1, needs_.least)));
    part.known = in.items<int64_t>();
    if (!part.known.empty() && part.known.size() != known_size()) bad_state("known of a window");
    const int64_t waiting = in.number(0, int64_t{1} << 31);
    for (int64_t i = 0; i < waiting; ++i) load_waiting(in, part);
}

void WindowedEngine::load_waiting(Reader& in, Part& part) {
    Waiting w{in.number(), in.number(0, most_positions), in.number(), 0};
    std::vector<uint64_t> bits(classifier_.bits(0).size());
    for (uint64_t& word : bits) word = static_cast<uint64_t>(in.number());
    w.pattern = classifier_.pattern_of(bits);
    if (part.size != 0) {
        const Waiting& last = part.ring[part.size - 1];
        if (w.ts < last.ts || w.position <= last.position) bad_state("order of events that wait");
    }
    if (part.size == part.ring.size()) grow(part);
    const size_t capacity = part.ring.size();
    part.ring[part.size] = w;
    for (size_t u = 0; u < used_.size(); ++u) {
        part.words[u * capacity + part.size] = in.number();
        part.valid[u * capacity + part.size] = static_cast<uint8_t>(in.number(0, 2));
    }
    ++part.size;
}

}  // namespace acep
