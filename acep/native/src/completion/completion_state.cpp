// The state of completion (waiting matches and events) as bytes. Loading checks all references, as for hostile tables.
#include <algorithm>

#include "completion/completion.hpp"

namespace acep {
namespace {

void dump_bindings(Writer& out, const std::vector<Binding>& all) {
    out.number(static_cast<int64_t>(all.size()));
    for (const Binding& b : all) {
        for (int64_t n : {b.error, b.start, b.end}) out.number(n);
        for (const auto* column : {&b.positions, &b.ids, &b.rows, &b.values}) out.items(*column);
        for (const auto* column : {&b.vars, &b.arcs}) out.items(*column);
        for (const auto* column : {&b.valid, &b.known}) out.items(*column);
        out.items(b.options);
    }
}

template <class T>
bool below(const std::vector<T>& all, size_t limit) {
    return std::all_of(all.begin(), all.end(), [&](T x) { return x < limit; });
}

}  // namespace

std::vector<Binding> Completion::load_bindings(Reader& in) const {
    std::vector<Binding> all;
    size_t arcs = 0;
    for (const State& s : tables_.states) arcs += s.arcs.size();
    for (int64_t left = in.number(0, int64_t{1} << 40); left > 0; --left) {
        Binding b;
        b.error = in.number(0, tables_.budget + 1);
        b.start = in.number();
        b.end = in.number();
        for (auto* column : {&b.positions, &b.ids, &b.rows, &b.values}) *column = in.items<int64_t>();
        for (auto* column : {&b.vars, &b.arcs}) *column = in.items<uint16_t>();
        for (auto* column : {&b.valid, &b.known}) *column = in.items<uint8_t>();
        b.options = in.items<Option>();
        const size_t n = b.size(), width = tables_.kept.size(), returns = tables_.returns.size();
        if (n == 0 || b.start > b.end || b.ids.size() != n || b.vars.size() != n || b.rows.size() != n * width ||
            b.valid.size() != n * width || b.values.size() != returns || b.known.size() != returns) {
            bad_state("lengths of a match");
        }
        if (!std::is_sorted(b.positions.begin(), b.positions.end()) || b.first() < 0 || b.last() >= most_positions) {
            bad_state("positions of a match");
        }
        if (!below(b.vars, tables_.variables) || !below(b.arcs, arcs) || b.options.empty()) bad_state("match");
        for (const Option& o : b.options) {
            if (o.error < 0 || o.error > tables_.budget || o.arcs > b.arcs.size() || b.arcs.size() - o.arcs < n ||
                o.state >= tables_.states.size() || o.accept >= tables_.states[o.state].accepts.size()) {
                bad_state("ending of a match");
            }
        }
        all.push_back(std::move(b));
    }
    return all;
}

void Completion::dump(Writer& out) const {
    arena_.kept.dump(arena_.events, out);
    out.number(static_cast<int64_t>(held_.size()));
    for (const Held& h : held_) {
        out.number(h.last);
        for (int64_t n : {h.bundle.any ? int64_t{1} : 0, h.bundle.last_ts, h.bundle.last_position, h.bundle.first})
            out.number(n);
        const Suspects none;
        for (size_t i = 0; i < tables_.negations.size(); ++i) {
            const Suspects& s = h.suspects.empty() ? none : h.suspects[i];
            const size_t n = s.size() - s.head, width = tables_.negations[i].columns.size();
            out.items(s.ts.data() + s.head, n);
            out.items(s.positions.data() + s.head, n);
            out.items(s.rows.data() + s.head * width, n * width);
            out.items(s.valid.data() + s.head * width, n * width);
        }
        for (const auto* all : {&h.undecided, &h.waiting, &h.ready}) dump_bindings(out, *all);
    }
}

void Completion::load(Reader& in) {
    arena_.kept.load(arena_.events, in);
    held_.clear();
    touched_.clear();
    due_ = {};
    held_.resize(static_cast<size_t>(in.number(0, static_cast<int64_t>(partitions_.size()) + 1)));
    for (uint32_t p = 0; p < held_.size(); ++p) {
        Held& h = held_[p];
        h.last = in.number(-1, most_positions);
        h.bundle.any = in.number(0, 2) != 0;
        h.bundle.last_ts = in.number();
        h.bundle.last_position = in.number();
        h.bundle.first = in.number();
        h.suspects.resize(tables_.negations.size());
        for (size_t n = 0; n < h.suspects.size(); ++n) {
            Suspects& s = h.suspects[n];
            const size_t width = tables_.negations[n].columns.size();
            s.ts = in.items<int64_t>();
            s.positions = in.items<int64_t>();
            s.rows = in.items<int64_t>();
            s.valid = in.items<uint8_t>();
            if (s.positions.size() != s.size() || s.rows.size() != s.size() * width ||
                s.valid.size() != s.size() * width) {
                bad_state("events of a negation");
            }
            if (!std::is_sorted(s.ts.begin(), s.ts.end()) || !std::is_sorted(s.positions.begin(), s.positions.end())) {
                bad_state("order of the events of a negation");
            }
        }
        h.undecided = load_bindings(in);
        h.waiting = load_bindings(in);
        h.ready = load_bindings(in);
        for (const Binding& b : h.undecided) h.earliest = std::min(h.earliest, key(b));
        touch(p);  // visited when time next advances, which puts it in the queue
    }
}

}  // namespace acep
