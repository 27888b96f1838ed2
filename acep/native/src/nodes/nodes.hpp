// The node engine: one match node per partial match, or per set of partial matches with equal state, error and
// registers (SASE+ 2008, section 5.2.2). It runs every pattern: registers, strategies, errors, groups, sets.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/arena.hpp"
#include "completion/completion.hpp"
#include "expression/vm.hpp"
#include "nodes/nodes_dominance.hpp"
#include "session/engine.hpp"
#include "shedding/shedding.hpp"

namespace acep {

// The earliest start in a window of `span` (negative: none) that ends now.
inline int64_t before(int64_t now, int64_t span) {
    int64_t low;
    return span < 0 || __builtin_sub_overflow(now, span, &low) ? NEVER + 1 : std::max(low, NEVER + 1);
}

class NodeEngine final : public Engine {
public:
    // With `dominance`, only match points are output, without bound events.
    NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
               std::unique_ptr<Dominance> dominance = nullptr);

    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    void end() override;
    bool idle(uint32_t partition, int64_t clock) override;
    void forget(uint32_t partition) override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override;
    int64_t oldest() const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Best effort; the first call must come before any event.
    Shedding& shed(uint64_t seed = 0);
    void order(SheddingTable table);
    int64_t clock() const { return clock_; }
    // Hold at most `bytes` from now on, including the partitions, and give up nodes for it (nodes_memory.cpp).
    // std::invalid_argument: `bytes` is negative, or complete runs wait, whose memory has no bound.
    void bound_memory(int64_t bytes);
    int64_t least_memory() const;
    int64_t peak() const { return peak_; }
    bool takes_partition(int64_t clock) override;
    void used_texts(std::vector<uint8_t>& codes) const override;
    void used_ids(std::vector<int64_t>& ids) const override;
    void passed_over() override {
        ++shed().passed_over;
        ++shed().turned_away;
    }
    bool unfinished() const override { return root_ < roots_.size(); }
    int64_t seen(uint32_t partition) const override { return partition < parts_.size() ? parts_[partition].seen : -1; }
    void give_up_partition(uint32_t partition, int64_t clock) override;
    bool gave_up() override { return std::exchange(gave_up_, false); }
    // Number of slots that shedding adds to each node now.
    uint32_t hidden() const { return hidden_; }
    bool rests() const { return resting_ != nullptr; }
    // Keep the data for shedding with each node from now on, as nodes may have to be dropped.
    void rouse() {
        if (resting_) wake(clock_);
    }

private:
    struct Part {
        std::vector<NodeList> lists;  // by state
        std::vector<NodeList> shadow; // the same for the shadow sample: nothing in them is dropped
        Bundle bundle;
        int64_t last = -1;  // position of its last event
        int64_t seen = -1;  // number of that event in the stream
        // Call visit(list, state) for all lists.
        template <class Visit>
        void each(Visit&& visit) {
            for (uint32_t s = 0; s < lists.size(); ++s) visit(lists[s], s);
            for (uint32_t s = 0; s < shadow.size(); ++s) visit(shadow[s], s);
        }
    };
    // The arcs from one state that events of a pattern may take.
    struct Turn {
        uint32_t state;
        std::vector<const Arc*> arcs;
        bool blocks;  // some arc decides whether a node may ignore the event
    };
    struct Frame {
        int64_t when;  // time or position of its event
        uint32_t previous;
        uint32_t nulls;  // a bit for each value
        int64_t values[most_of_frame];
    };
    // Nodes made by the current event in one state, before they are united and get cells.
    struct Made {
        NodeList nodes;
        std::vector<const Arc*> arcs;
        std::vector<uint32_t> also;  // in a group of united nodes: the next one, or NIL
        std::vector<uint8_t> gone;
    };

    const std::vector<Turn>& turns(uint32_t pattern);
    void compact(int64_t oldest = NEVER + 1);
    void free_expired(int64_t clock);
    bool timed() const { return tables_.span >= 0 && !tables_.counted; }
    void look(Part& part, uint32_t partition, const Event& event);
    // With a bound on bytes, decisions depend on the bytes that the content may take, not on the capacity that happens
    // to be reserved.
    bool bounded() const { return most_bytes_ >= 0; }
    int64_t node_bytes(uint32_t state) const;
    int64_t made_bytes(uint32_t state) const;
    int64_t list_bytes(const NodeList& list, uint32_t state) const;
    struct Held {
        int64_t charged = 0, reserved = 0;
    };
    Held held(const Part& part) const;
    void recount();
    int64_t charged() const;
    bool has_room(const Arc& arc);
    bool may_give(size_t length);
    bool may_walk();
    void make_way(int64_t clock);
    void give_up(int64_t clock);
    void keep_best(double share, int64_t clock);
    void squeeze();
    void compact_frames();
    void load_arena(Reader& in);
    void load_list(Reader& in, uint32_t state, NodeList& list);
    int64_t key(const Event& event) const { return tables_.counted ? event.position : event.ts; }
    int64_t cost(const Arc& arc, int64_t between) const;
    void step(Part& part, const Turn& turn, const Event& event, int64_t low);
    void begin(const Turn& turn, const Event& event);
    void contiguous_end(Part& part, const Event& event);
    // Keep those of rows_[0 .. count) in `list` that pass the checks, and return their number.
    size_t passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event, size_t count);
    void load(const Source& source, NodeList& list, uint32_t slots, const Event& event, size_t count, size_t leaf);
    void room_for(size_t leaves);
    bool all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event, uint32_t row);
    // `early`: the node was scored before it is made, and `own_mark_` is its mark.
    void make(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error, bool early);
    void put(const Put& p, NodeList& from, uint32_t row, uint32_t before, NodeList& to, uint32_t made, uint32_t after,
             const Event& event);
    void finish(Part& part, uint32_t partition, const Event& event, int64_t low);
    void dominate(Part& part, uint32_t partition, const Event& event, int64_t low);
    void dump_dominance(Writer& out) const;
    void load_dominance(Reader& in);
    void unite(Made& made, uint32_t this_state);
    void complete(Part& part, uint32_t partition, uint32_t state, Made& made, const Event& event, int64_t low);
    // One ending of matches by an event: all sequences of a chain, each followed by the event.
    struct Ending {
        Cell last;
        Chain past;
        int64_t error;
        int64_t bundle;
        uint32_t state;  // for `completion_`
    };
    // Whether matches may be written later. They may not if matches with one binding must first become one.
    bool flows() const { return full_ != endless && tables_.unambiguous; }
    void give(uint32_t partition, const Ending& root, const Event& event, int64_t low);
    bool give_trail(uint32_t partition, const Ending& root, const Event& event, const Cell* const* path, size_t length);
    void go_on(uint32_t partition, const Event& event);
    Chain bind_all(Made& made, uint32_t leader, const Event& event, Chain chain);
    void alive(uint32_t partition, int64_t low, Alive& found);
    // Number of slots of a state in which united nodes are equal: all but the position of the first event.
    uint32_t common(const State& s) const { return s.slots == 0 ? 0 : s.slots - hidden_ - (tables_.firsts ? 1 : 0); }
    // As NodeList::expire and NodeList::keep, but removed nodes are logged.
    bool expire(NodeList& list, uint32_t state, int64_t low);
    void make_room(NodeList& list, uint32_t state, int64_t low);
    template <class Wanted>
    void keep(NodeList& list, uint32_t state, int64_t when, EndReason how, Wanted&& wanted) {
        if (shed_ && shed_->logs()) {
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (!wanted(i)) shed_->died(list, i, state, when, how);
            }
        }
        list.keep(tables_.states[state].slots, wanted);
    }
    bool admits(const Part& part, const Event& event);
    void take_in(Part& part, uint32_t partition, const Event& event);
    // The mark a new node takes over from its parent; its `birth` is first the number of nodes made after the parent.
    Shedding::Mark inherited(const Arc& arc, NodeList& list, uint32_t row) const {
        if (arc.source == 0) return mark_;
        Shedding::Mark mark = Shedding::Mark::of(list.slot(tables_.states[arc.source].slots - 1)[row]);
        mark.birth = static_cast<uint16_t>(list.births - mark.birth);
        mark.decided = mark.put_off = false;
        return mark;
    }
    bool foreseen(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error);
    void catch_up();
    void apart(const Made& made, uint32_t state);
    bool separate(uint32_t state);
    bool is_shadow(uint32_t partition, const Event& event);
    void shadow_sample(Part& part, uint32_t partition, const Event& event, bool begins);
    void stop_sparing(Part& part, int64_t now);
    bool idle_shadow(Part& part, int64_t low, int64_t clock);
    int64_t oldest_start(const Event& event) const;
    // Whether the budget suffices for `touches` and all that they lead to; if not, shedding must start (`wake`).
    bool suffices(size_t touches) {
        return work_.touches + static_cast<int64_t>(touches) + work_.nodes - nodes_before_ <= sufficient_ ||
               suffices_still(touches);
    }
    bool suffices_still(size_t touches);
    void look_at_allowance();
    double each_touch() const;
    static constexpr double most_room = 1e15;
    void wake(int64_t now);
    void widen(NodeList& list, uint32_t state, int64_t low, int64_t now);
    void distinct(size_t first);
    void count_written(uint32_t partition);
    // How many of the last nodes of a state met an equal node of an earlier event, and were united with it. Of `trial`
    // nodes one in 8 must be; else the search pauses while 16 times as many are made.
    struct Likes {
        bool possible = false;
        bool often = false;  // 15 in 16 of the last `trial` met one: an unsorted list pays off
        uint32_t seen = 0, met = 0, joined = 0;
        uint32_t rest = 0;  // nodes still to be made before the search starts again
    };
    static constexpr uint32_t trial = 256;
    // How many of the last nodes of a state were united; if hardly any, the next `rest` are treated as separate.
    struct Unions {
        uint32_t seen = 0, joined = 0, rest = 0;
    };
    // The node of `list` that equals node `i` of `made` and began at `low` or later, or NIL.
    uint32_t like(NodeList& list, NodeList& made, uint32_t i, const State& s, size_t wanted, int64_t low) const;
    uint32_t earlier(NodeList& list, Made& made, uint32_t i, uint32_t state, int64_t low);
    uint32_t bound(const Event& event);

    std::vector<std::vector<Turn>> turns_;  // by pattern
    std::vector<Part> parts_;
    std::vector<Made> made_;          // by state
    std::vector<uint32_t> touched_;   // states with nodes made by the current event
    Arena arena_;
    Ring<Frame> frames_;
    NodeList nothing_;                // the start state: one node without registers
    std::vector<uint32_t> rows_;
    std::vector<uint32_t> all_;       // live rows of a list
    std::vector<uint8_t> taken_;
    bool contiguous_rows_ = false;
    std::vector<int64_t> words_;      // leaves of a block, gathered
    std::vector<uint8_t> valid_;
    std::vector<Leaf> leaves_;
    alignas(64) uint8_t pass_[block_rows];
    uint8_t dropped_[block_rows];     // a leaf is unbound: the predicate is ignored
    bool drops_ = false;
    Scratch scratch_;
    uint32_t current_ = NIL;          // number of the current event, once bound
    int64_t clock_ = NEVER;
    std::vector<std::vector<uint8_t>> framed_;  // by state: whether a slot holds a list of frames
    uint32_t kept_ = 0;                         // cells left by the last compaction
    uint32_t kept_frames_ = 0;
    std::vector<std::vector<uint32_t>> loops_;
    std::vector<Likes> likes_;              // by state
    std::vector<Unions> unions_;            // by state, under a budget
    bool merges_;                           // equal nodes are united; else a node has one sequence
    std::unique_ptr<Dominance> dominance_;    // if only match points are asked for
    int64_t paid_ = 0;                        // touches already counted as its credit
    std::unique_ptr<Shedding> shed_;          // if nodes may have to be dropped
    std::unique_ptr<Shedding> resting_;       // the same while the budget is sufficient: nodes have no extra slots
    int64_t nodes_before_ = 0;                // `work_.nodes` before the current event
    int64_t sufficient_ = -1;  // the budget is sufficient while touches and new nodes are at most this
    bool clears_ = false;  // the current event is a match point that clears older nodes
    Shedding::Mark mark_;  // of nodes that begin with the current event
    Shedding::Mark own_mark_;  // of the node being made
    int64_t most_bytes_ = -1;  // -1: no bound
    int64_t pool_ = 0;  // part of it for stored nodes
    int64_t most_made_ = 0;  // and for nodes of one event before they are stored
    int64_t next_ = 0;  // charged bytes above which nodes are given up
    Held parts_held_;  // for all partitions
    int64_t most_given_ = 0;  // bytes of matches per `given_every` events; then one match an event
    int64_t given_ = 0, given_since_ = 0;
    size_t given_before_ = 0;  // matches before those of the current event
    int64_t coming_ = 0, coming_made_ = 0;  // bytes made by the current event
    int64_t peak_ = 0;
    bool gave_up_ = false;
    std::vector<Ending> roots_;  // of the current event, whose matches are written later
    size_t root_ = 0;  // the current one
    bool walking_ = false;  // whether its walk has begun
    std::vector<float> scores_, best_;
    uint32_t hidden_ = 0;  // slots added to every node for shedding
    std::vector<std::vector<uint32_t>> classes_;  // by pattern: its event classes
    std::unique_ptr<Completion> completion_;  // if complete runs are not written directly
};

}  // namespace acep
