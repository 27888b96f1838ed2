// The merged engine, for patterns without predicates between events beyond the partition: all partial matches in one
// D-state (automaton.hpp) are one chain of the arena. Work per event and arc is constant.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/cursor.hpp"
#include "common/arena.hpp"
#include "merged/ordered_walk.hpp"
#include "plan/automaton.hpp"
#include "shedding/bounded_engine.hpp"

namespace acep {

// The live D-states of each partition with their chains, in one arena.
class Merger {
public:
    // `one_partition`: the stream has no key columns.
    Merger(const Tables& tables, const EventClassifier& classifier, bool one_partition);

    // Return the arena of the chains.
    Arena& arena() { return arena_; }
    const Arena& arena() const { return arena_; }
    // Return the time or the position of an event or bound event, depending on the unit of the window.
    template <class T>
    int64_t key(const T& event) const {
        return std::max(tables_.key(event), NEVER + 1);
    }

    // Process one event. Call give(root) for each way to end matches with it.
    template <class Give>
    void event(uint32_t partition, const Event& event, Work& work, Give&& give);

    // Free cells and events before the windows of events at `clock` or later. `held`: roots still to be enumerated.
    void advance(int64_t clock, const Ring<Root>& held);
    // If cells cannot be freed by their age, free unreachable ones once enough were added since the last time.
    void make_room(Ring<Root>& held, Cursor& cursor);
    // Return all cells and events, and keep copies of those that later matches may need; with `last`, keep none.
    Arena hand_over(bool last);
    // Remove what has expired of a partition; return whether nothing is left that an event at `soonest` or later could
    // use.
    bool expire_partition(uint32_t partition, int64_t soonest);
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition) {
        if (partition < parts_.size()) parts_[partition] = Part{};
    }
    // Return the most touches that an event can need: one for each variable, from the start and from each chain.
    size_t most_touches(uint32_t partition) const {
        return (partition < parts_.size() ? parts_[partition].live.size() + 1 : 1) * tables_.variables;
    }
    // Count the touches that an event needs.
    int64_t needs(uint32_t partition, const Event& event);
    // Drop the chains of a partition; return how many there were at time `ts`.
    int64_t drop(uint32_t partition, int64_t ts);
    // Return the number of chains in all partitions whose window is not over at `clock`.
    int64_t partial_matches(int64_t clock) const;
    // Return the partial matches that may still become matches, as the engine does.
    ListedColumns list_partial_matches(const ListingRequest& request, const Partitions& partitions) const;
    int64_t points() const { return points_; }  // match points, counted per partition
    // Write the state, or read that of a merger of the same tables. Throw std::invalid_argument if it is invalid.
    template <class Archive>
    static void fields(auto& self, Archive& archive, const Partitions& partitions);
    // Return whether cells are in the order of their keys (time or position), so that the oldest can be freed.
    bool by_epoch() const { return tables_.span >= 0 && (!tables_.counted || one_partition_ || tables_.strict); }
    // Return the number above the positions in a state if cells are in their order; else one above all numbers.
    template <class Archive>
    int64_t end(const Partitions& partitions, const Archive& archive) const {
        return by_epoch() && tables_.counted ? partitions.end(0, tables_.strict, archive) : most_positions;
    }
    // Return the bytes of everything.
    int64_t bytes() const;

private:
    // Lower the positions of events that were read to below `end`. Events of a partition that was forgotten may have
    // positions above those that it has now; they are freed as its newest.
    void cap_positions(int64_t end);
    // Throw std::invalid_argument unless the cells that were read are chains of events in order; set what follows
    // from them.
    void check_arena();

    // A D-state with partial matches, and their chain.
    struct Live {
        uint32_t state;
        Chain chain;
    };
    // The state of a partition.
    struct Part {
        std::vector<Live> live;
        Bundle bundle;
        int64_t low = NEVER + 1;  // the earliest start in the window of the last event
        int64_t last = -1;        // position of the last event
    };
    // A result of the current event, before it is stored in its D-state.
    struct Made {
        uint32_t state;
        uint16_t var;
        uint16_t arc;
        bool binds;  // else the whole chain moves to another D-state
        Chain past;
    };
    // Throw std::invalid_argument unless the D-states that were read are different ones; drop those that had
    // expired.
    void check_live(std::vector<Live>& all, int64_t end);

    const Tables& tables_;
    bool one_partition_;
    Automaton automaton_;
    Arena arena_;
    std::vector<Part> parts_;
    std::vector<Made> made_;
    std::vector<uint32_t> places_;  // by D-state: its place in the current partition, if it is there
    int64_t now_ = 0;             // key of the last event
    int64_t points_ = 0;
    uint32_t compact_at_ = 4096;  // number of cells for the next compaction

    // Bind an event by each move of a step, after the chain `past`. Call give(root) for moves that end matches; the
    // others are in `made_`.
    template <class Give>
    void bind(const Automaton::Step& step, const Event& event, const Chain& past, uint32_t partition, Part& part,
              Work& work, Give&& give);
};

// The merged engine: partial matches that share their future are one D-state with one chain.
class MergedEngine final : public BoundedEngine {
public:
    MergedEngine(Tables tables, EventClassifier& classifier, Partitions& partitions);

    Output& output() override { return writer_.trimmed(); }
    bool unfinished() const override { return full_ != endless && (!roots_.empty() || !walk_.done()); }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override { merger_.forget(partition); }
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>& ids) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return merger_.partial_matches(clock); }
    ListedColumns list_partial_matches(const ListingRequest& request) const override {
        return merger_.list_partial_matches(request, partitions_);
    }
    std::unique_ptr<Engine> copy(int64_t events) const override;
    int64_t drop(uint32_t partition, int64_t ts) override { return merger_.drop(partition, ts); }

    // Set whether matches are enumerated only in `more` and `block`; until then they are kept as roots.
    void set_lazy(bool lazy) { lazy_ = lazy; }
    // Write up to `most` matches of past events to the output, and return their number; fewer if no more are left.
    size_t more(size_t most);
    // Write matches as `more` does, but in output order where that needs no sorting. Matches of one time that must be
    // sorted are written in one go if they are at most `sorted`; with `whole`, this holds for all matches of one time.
    size_t block(size_t most, size_t sorted, bool whole);

private:
    // Write or read the state.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Write as many matches of a root as the budget of time allows, and return their number.
    size_t give_some(const Root& root);

    Merger merger_;
    mutable MatchWriter writer_;  // trimmed before it is read, which changes none of its matches
    Cursor cursor_;
    OrderedWalk walk_;
    Ring<Root> roots_;
    bool lazy_ = false;
};

template <class Give>
void Merger::bind(const Automaton::Step& step, const Event& event, const Chain& past, uint32_t partition, Part& part,
                  Work& work, Give&& give) {
    work.touches += step.count;
    for (uint32_t i = 0; i < step.count; ++i) {
        const Automaton::Move& move = automaton_.move(step, i);
        if (move.error >= 0) {
            points_ += !part.bundle.any || part.bundle.last_ts != event.ts ? 1 : 0;
            const int64_t bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
            give(Root{part.low, event.ts, event.id, move.error, bundle, past.cell, partition, move.var});
        }
        if (move.live != NOWHERE) made_.push_back({move.live, move.var, move.arc, true, past});
    }
}

template <class Give>
void Merger::event(uint32_t partition, const Event& event, Work& work, Give&& give) {
    if (parts_.size() <= partition) parts_.resize(size_t{partition} + 1);
    Part& part = parts_[partition];
    const int64_t own = key(event);
    part.low = earliest(own, tables_.span);
    now_ = own;
    if (tables_.contiguous()) {
        if (event.position != part.last + 1) part.live.clear();
        part.last = event.position;
    }
    made_.clear();
    std::vector<Live>& live = part.live;
    automaton_.advance(live, event.pattern, [&](const Live& l) { return l.chain.latest >= part.low; },
                       [&](const Automaton::Step& step, const Live& l) {
        bind(step, event, l.chain, partition, part, work, give);
    }, [&](uint32_t state, const Live& l) { made_.push_back({state, 0, 0, false, l.chain}); });
    const Automaton::Step begin = automaton_.step(event.pattern, Automaton::start);
    if (begin.count != 0) bind(begin, event, {}, partition, part, work, give);
    if (made_.empty()) return;
    const uint32_t bound = arena_.events.push({event.ts, event.position, event.id});
    places_.resize(std::max(places_.size(), automaton_.states()));
    for (uint32_t i = 0; i < live.size(); ++i) places_[live[i].state] = i;
    for (const Made& m : made_) {
        uint32_t& at = places_[m.state];
        if (at >= live.size() || live[at].state != m.state) {
            at = static_cast<uint32_t>(live.size());
            live.push_back({m.state, {}});
        }
        Chain& chain = live[at].chain;
        if (m.binds) {
            chain = arena_.bind(bound, event.id, m.var, m.arc, m.past, own, chain);
            ++work.nodes;
        } else {
            chain = arena_.unite(m.past, chain, bound);
        }
    }
}

}  // namespace acep
