// The state of the merged and compressed engines as bytes. Loading restores what walks rely on: links lead to older
// cells, and no link claims a later start than it reaches. So an invalid state is refused, or gives other matches.
#include <algorithm>

#include "merged/compressed.hpp"
#include "merged/merged.hpp"

namespace acep {
namespace {

// Read the earliest start of a window.
int64_t low_from(Reader& in) {
    const int64_t low = in.number();
    if (low == NEVER) bad_state("start of a window");
    return low;
}

void dump(Writer& out, const Root& root) {
    for (int64_t n : {root.low, root.ts, root.id, root.error, root.bundle, int64_t{root.past}, int64_t{root.partition},
                      int64_t{root.var}}) {
        out.number(n);
    }
}

// `places`: number of keys. A root whose beginnings were freed is invalid.
Root root_from(Reader& in, const Tables& tables, const Arena& arena, size_t places) {
    Root root{};
    root.low = low_from(in);
    root.ts = in.number();
    root.id = in.number();
    root.error = in.number(0, tables.budget + 1);
    root.bundle = in.number();
    root.past = static_cast<uint32_t>(in.number(0, int64_t{NIL} + 1));
    root.partition = static_cast<uint32_t>(in.number(0, static_cast<int64_t>(places)));
    root.var = static_cast<uint16_t>(in.number(0, tables.variables));
    if (root.past != NIL && !arena.holds(root.past)) bad_state("beginnings of matches");
    return root;
}

}  // namespace

void Merger::dump(Writer& out) const {
    automaton_.dump(out);
    arena_.cells.dump(out);
    arena_.events.dump(out);
    out.number(now_);
    out.number(compact_at_);
    out.number(static_cast<int64_t>(parts_.size()));
    for (const Part& part : parts_) {
        out.number(part.low);
        out.number(part.last);
        out.number(part.bundle.any ? 1 : 0);
        out.number(part.bundle.last_ts);
        out.number(part.bundle.last_position);
        out.number(part.bundle.first);
        out.number(static_cast<int64_t>(part.live.size()));
        for (const Live& live : part.live) {
            out.number(live.state);
            out.number(live.chain.cell);
        }
    }
}

void Merger::load_arena(Reader& in) {
    auto& cells = arena_.cells;
    auto& events = arena_.events;
    cells.load(in);
    events.load(in);
    size_t arcs = 0;
    for (const State& s : tables_.states) arcs += s.arcs.size();
    uint32_t last = 0;
    for (uint32_t k = 0; k < cells.size(); ++k) {
        const uint32_t i = cells.tail() + k;
        if (i == NIL) continue;
        Cell& c = cells[i];
        const uint32_t event = c.event - events.tail();
        if (event >= events.size() || event < last || c.event == NIL) bad_state("event of a cell");
        last = event;
        if (c.var != UNION && (c.var >= tables_.variables || c.arc >= arcs)) bad_state("cell");
        const bool first = c.var != UNION && c.past == NIL && c.latest == key(events[c.event]);
        for (uint32_t* link : {&c.past, &c.next}) {
            if (*link == NIL) continue;
            const uint32_t age = i - *link;
            if (age == 0 || age > (uint32_t{1} << 31)) bad_state("link");
            if (age > k) {
                *link = NIL;  // freed
            } else if (by_epoch() && key(events[cells[*link].event]) > key(events[c.event])) {
                // Events of other partitions may be later: match windows pass on the events of one partition together.
                bad_state("order of events");
            }
        }
        if (!first) c.latest = arena_.chain(c.past).latest;
        c.below = arena_.chain(c.next).latest;
    }
}

void Merger::load(Reader& in, uint32_t partitions) {
    automaton_.load(in);
    load_arena(in);
    now_ = in.number();
    compact_at_ = static_cast<uint32_t>(in.number(4096, int64_t{1} << 32));
    parts_.clear();
    parts_.resize(static_cast<size_t>(in.number(0, int64_t{partitions} + 1)));
    for (Part& part : parts_) {
        part.low = low_from(in);
        part.last = in.number(-1, most_positions);
        part.bundle.any = in.number(0, 2) != 0;
        part.bundle.last_ts = in.number();
        part.bundle.last_position = in.number();
        part.bundle.first = in.number();
        const auto many = in.number(0, static_cast<int64_t>(automaton_.states()) + 1);
        for (int64_t k = 0; k < many; ++k) {
            const auto state = static_cast<uint32_t>(in.number(1, static_cast<int64_t>(automaton_.states())));
            const auto cell = static_cast<uint32_t>(in.number(0, int64_t{NIL}));
            if (std::any_of(part.live.begin(), part.live.end(), [&](const Live& l) { return l.state == state; })) {
                bad_state("a D-state twice");
            }
            if (arena_.holds(cell)) part.live.push_back({state, arena_.chain(cell)});  // others had expired
        }
    }
}

void Cursor::dump(Writer& out) const {
    out.number(done() ? 1 : 0);
    if (done()) return;
    acep::dump(out, root_);
    out.items(key_);
    out.number(alone_ ? 1 : 0);
    out.number(at_);
    out.number(depth_);
    out.number(static_cast<int64_t>(stack_.size()));
    for (const Step& s : stack_) {
        out.number(s.cell);
        out.number(s.depth);
    }
    uint32_t deepest = depth_;
    for (const Step& s : stack_) deepest = std::max(deepest, s.depth);
    out.items(ids_.data() + (ids_.size() - deepest), deepest);
    out.items(vars_.data() + (vars_.size() - deepest), deepest);
}

void Cursor::load(Reader& in, const Tables& tables, const Arena& arena, size_t places) {
    stack_.clear();
    at_ = NIL;
    alone_ = false;
    if (in.number(0, 2) != 0) return;
    root_ = root_from(in, tables, arena, places);
    auto key = in.items<int64_t>();
    if (key.size() != key_.size()) bad_state("key of a match");
    key_ = std::move(key);
    const auto cell = [&] {
        const auto found = static_cast<uint32_t>(in.number(0, int64_t{NIL} + 1));
        if (found != NIL && !arena.holds(found)) bad_state("place of a walk");
        return found;
    };
    alone_ = in.number(0, 2) != 0;
    at_ = cell();
    depth_ = static_cast<uint32_t>(in.number(0, int64_t{1} << 31));
    uint32_t deepest = depth_;
    const int64_t steps = in.number(0, int64_t{1} << 32);
    for (int64_t k = 0; k < steps; ++k) {
        const uint32_t at = cell();
        if (at == NIL || arena.cells[at].next == NIL) bad_state("place of a walk");
        stack_.push_back({at, static_cast<uint32_t>(in.number(0, int64_t{1} << 31))});
        deepest = std::max(deepest, stack_.back().depth);
    }
    const auto ids = in.items<int64_t>();
    const auto vars = in.items<uint16_t>();
    if (ids.size() != deepest || vars.size() != deepest) bad_state("depth of a walk");
    for (uint16_t v : vars) {
        if (v >= tables.variables) bad_state("variable");
    }
    while (ids_.size() < size_t{deepest} + 2) deepen();
    std::copy(ids.begin(), ids.end(), ids_.end() - static_cast<std::ptrdiff_t>(deepest));
    std::copy(vars.begin(), vars.end(), vars_.end() - static_cast<std::ptrdiff_t>(deepest));
}

void MergedEngine::dump(Writer& out) const {
    if (!walk_.done()) throw std::logic_error("in the midst of matches");
    for (int64_t n : {work_.nodes, work_.touches, work_.matches}) out.number(n);
    merger_.dump(out);
    out.number(lazy_ ? 1 : 0);
    std::vector<Root> held;
    for (uint32_t k = 0; k < roots_.size(); ++k) {
        if (roots_.tail() + k != NIL) held.push_back(roots_[roots_.tail() + k]);
    }
    out.number(static_cast<int64_t>(held.size()));
    for (const Root& root : held) acep::dump(out, root);
    cursor_.dump(out);
}

void MergedEngine::load(Reader& in) {
    work_ = {in.number(), in.number(), in.number()};
    merger_.load(in, partitions_.size());
    lazy_ = in.number(0, 2) != 0;
    roots_.clear();
    const int64_t many = in.number(0, int64_t{1} << 31);
    for (int64_t k = 0; k < many; ++k) roots_.push(root_from(in, tables_, merger_.arena(), partitions_.size()));
    cursor_.load(in, tables_, merger_.arena(), partitions_.size());
    if (!cursor_.done() && roots_.empty()) bad_state("walk");
}

void CompressedEngine::dump(Writer& out) const {
    for (int64_t n : {work_.nodes, work_.touches, work_.matches}) out.number(n);
    merger_.dump(out);
    out.number(places_);
    out.items(keys_);
    out.items(place_of_);
    out.number(static_cast<int64_t>(roots_.size()));
    for (const Root& root : roots_) acep::dump(out, root);
}

void CompressedEngine::load(Reader& in) {
    work_ = {in.number(), in.number(), in.number()};
    merger_.load(in, partitions_.size());
    places_ = static_cast<uint32_t>(in.number(0, int64_t{NIL}));
    keys_ = in.items<int64_t>();
    if (keys_.size() != places_ * partitions_.width()) bad_state("keys");
    place_of_ = in.items<uint32_t>();
    for (uint32_t place : place_of_) {
        if (place != NIL && place >= places_) bad_state("key of a partition");
    }
    roots_.clear();
    const int64_t many = in.number(0, int64_t{1} << 40);
    for (int64_t k = 0; k < many; ++k) roots_.push_back(root_from(in, tables_, merger_.arena(), places_));
}

}  // namespace acep
