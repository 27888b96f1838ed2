// The node engine: one match node per partial match, or per set of partial matches with equal state, error and
// registers (SASE+ 2008, section 5.2.2). It runs every pattern: registers, strategies, errors, groups, sets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/arena.hpp"
#include "completion/completion.hpp"
#include "nodes/bound_cells.hpp"
#include "nodes/candidates.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/frames.hpp"
#include "nodes/gap_cost.hpp"
#include "nodes/known_future.hpp"
#include "nodes/nodes_dominance.hpp"
#include "nodes/nodes_matches.hpp"
#include "nodes/nodes_memory.hpp"
#include "nodes/nodes_merging.hpp"
#include "nodes/nodes_shedding.hpp"
#include "nodes/pattern_arcs.hpp"
#include "nodes/register_keys.hpp"
#include "nodes/register_writer.hpp"
#include "session/engine.hpp"

namespace acep {

class NodeEngine final : public Engine {
public:
    // With `dominance`, only match points are output, without bound events.
    NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
               std::unique_ptr<Dominance> dominance = nullptr);

    void fetch(uint32_t partition, uint32_t hop) const override;
    bool fetches() const override { return !replaces_; }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    void end() override;
    bool idle(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void restart(uint32_t partition) override;
    void begin_again() override;
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override;
    void take_ways(Taking index, Taking future) override;
    // Return what its arcs compare for equality, without those that compare nothing.
    std::vector<ArcKey> arc_keys() const { return acep::arc_keys(tables_, classifier_.programs()); }
    // Return whether it can ask what a batch tells of the events after one.
    bool foresees() const { return future_ != nullptr && !bounded(); }
    bool knows(const Event& event) const override { return future_ && future_->knows(event); }
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return partial_matches_in({}, clock); }
    // The same in some states only, or in all of them if none is given.
    int64_t partial_matches_in(const std::vector<uint32_t>& states, int64_t clock) const;
    ListedColumns list_partial_matches(const ListingRequest& request) const override;
    std::unique_ptr<Engine> copy(int64_t events) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Return the object that sheds. The first call makes it, and must come before any event.
    Shedding& shed(uint64_t seed = 0);
    void order(SheddingTable table);
    // The known future, by which it is judged whether it pays; null where it can tell nothing.
    KnownFuture* future() { return future_.get(); }
    int64_t clock() const { return clock_; }
    // Hold at most `bytes` from now on, including the partitions, and give up nodes for it (nodes_memory.cpp).
    // Throw std::invalid_argument if `bytes` is negative, or if complete runs wait, whose memory has no bound.
    void bound_memory(int64_t bytes);
    int64_t least_memory() const;
    int64_t peak() const { return memory_.peak; }
    // Return the most bytes of matches in a stretch of events, under a bound on memory.
    int64_t given_peak() const { return memory_.given_peak; }
    bool takes_partition(int64_t clock) override;
    void used_texts(UsedTexts& used) const override;
    void change(Tables tables) override;
    void extend(Tables tables) override;
    void renew(const std::vector<ArcTimes>& times) override;
    bool changes() const override { return tables_.dynamic; }
    void forget_patterns() override {
        Engine::forget_patterns();
        pattern_arcs_.forget();
    }
    void used_ids(std::vector<int64_t>& ids) const override;
    void passed_over() override {
        ++shed().passed_over;
        ++shed().turned_away;
    }
    bool unfinished() const override { return endings_.left(); }
    int64_t seen(uint32_t partition) const override { return partition < parts_.size() ? parts_[partition].seen : -1; }
    void give_up_partition(uint32_t partition, int64_t clock) override;
    bool gave_up() override { return std::exchange(memory_.gave_up, false); }
    // Return the number of slots that shedding adds to each node now.
    uint32_t hidden() const { return admission_.hidden; }
    bool rests() const { return resting_ != nullptr; }
    bool woke() const override { return admission_.woke; }
    // Set whether it has woken and the policy was not told yet; return whether it was so before.
    bool set_woke(bool woke) { return std::exchange(admission_.woke, woke); }
    // Keep the data for shedding with each node from now on, as nodes may have to be dropped.
    void rouse() {
        if (resting_) wake(clock_);
    }

private:
    struct Part {
        std::vector<NodeList> lists;  // by state
        std::vector<NodeList> shadow; // the same for the shadow sample: nothing in them is dropped
        int64_t again = 0;  // the number of the hold in which its events were matched again last
        Bundle bundle;
        int64_t last = -1;  // position of its last event
        int64_t seen = -1;  // number of that event in the stream
        bool shared = true; // nodes in different lists may have the same cell
        // Call visit(list, state) for all lists.
        template <class Visit>
        void each(Visit&& visit) {
            for (uint32_t s = 0; s < lists.size(); ++s) visit(lists[s], s);
            for (uint32_t s = 0; s < shadow.size(); ++s) visit(shadow[s], s);
        }
    };
    // The nodes of a list that are alive.
    struct Living {
        int64_t low = NEVER;  // they began then or later
        bool all = false;  // surely all of the list
        bool uniform = false;  // none has errors, and each pays the same for an arc
    };
    // Nodes made by the current event in one state, before they are united and get cells.
    struct Made {
        NodeList nodes;
        std::vector<const Arc*> arcs;
        std::vector<uint32_t> also;  // in a group of united nodes: the next one, or NIL
        std::vector<uint8_t> gone;
        bool united = false;  // some are gone: united with others, or not to go on
    };

    static constexpr size_t most_fetched = 8;  // lists of a partition
    static constexpr int64_t part_bytes = 2 * sizeof(Part) + 2 + Shedding::unit_bytes;

    bool goes_on_as(const Tables& tables) const;
    void find_places();
    void add_arc(Arc arc);
    void compact(int64_t oldest = NEVER + 1);
    void free_expired(int64_t clock);
    bool may_replace_all(Part& part, uint32_t partition, const Event& event);
    void meet(Part& part, const Event& event);
    void look(Part& part, uint32_t partition, const Event& event);
    // Return whether there is a bound on bytes. Then decisions depend on the bytes that the content may take, not on
    // the capacity that happens to be reserved.
    bool bounded() const { return memory_.most >= 0; }
    Shedding* shedding() const { return shed_ ? shed_.get() : resting_.get(); }
    int64_t node_bytes(uint32_t state) const;
    int64_t made_bytes(uint32_t state) const;
    int64_t list_bytes(const NodeList& list, uint32_t state) const;
    HeldBytes held(const Part& part) const;
    void recount();
    int64_t charged() const;
    bool has_room(const Arc& arc);
    bool may_give(size_t length);
    bool may_walk();
    void make_way(int64_t clock);
    void give_up(int64_t clock);
    void keep_best(double share, int64_t clock);
    void squeeze();
    // Free the frames that no list reaches.
    void compact_frames();
    void check_arena();
    void check_list(NodeList& list, uint32_t state, int64_t end);
    template <class Archive>
    static void list_fields(auto& self, Archive& archive, NodeList& list, uint32_t state, int64_t end);
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    int64_t key(const Event& event) const { return tables_.key(event); }
    void check_has_events() const;
    bool may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const;
    void step(Part& part, const StateArcs& turn, const Event& event, int64_t low);
    Living find_living(NodeList& list, const StateArcs& turn, const Event& event, int64_t low);
    size_t next_block(const Candidates& all, bool uniform, const Arc& arc, NodeList& list, const Event& event,
                      bool decides, size_t& at);
    size_t leading(KnownFuture& future, const Arc& arc, NodeList& list, uint32_t slots, const Event& event,
                   size_t count);
    void end_blocked(NodeList& list, uint32_t state, const Event& event);
    void extend(const StateArcs& turn, size_t number, NodeList& list, const Event& event, const Living& living);
    // Return the known future, if it is that of the event.
    KnownFuture* future_of(const Event& event) const { return knows(event) ? future_.get() : nullptr; }
    void begin(const StateArcs& turn, const Event& event);
    void contiguous_end(Part& part, const Event& event);
    void find_ended();
    void end_broken(Part& part, const Event& event);
    void find_replacing();
    bool replace(Part& part, uint32_t partition, const Event& event);
    bool may_replace(Part& part, const std::vector<StateArcs>& all, const Event& event) const;
    void replace_by(const StateArcs& turn, NodeList& list, const Event& event);
    void succeed(const Arc& arc, uint32_t shared, NodeList& list, std::span<const uint32_t> rows, const Event& event);
    void exchange(Part& part);
    void ignore(NodeList& list, uint32_t state, const Event& event);
    // Make a node from each of some rows, whose error grows by `price`; under a budget, from one row. `early`: the node
    // was scored before, and `admission_.own_mark` is its mark.
    void make(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, int64_t price,
              bool early);
    void finish(Part& part, uint32_t partition, const Event& event, int64_t low);
    Chain bind_one(const Made& made, uint32_t past, uint32_t i, const Event& event);
    bool takes_over(Made& made, NodeList& list, const Event& event);
    void store(Made& made, Part& part, uint32_t partition, uint32_t state, const Event& event, int64_t low);
    void dominate(Part& part, uint32_t partition, const Event& event, int64_t low);
    // Call found(i, error) for each new node of a state that ends runs and for which wanted(i, error) holds.
    void endings(uint32_t state, const Event& event, auto&& wanted, auto&& found) {
        NodeList& nodes = made_[state].nodes;
        const State& s = tables_.states[state];
        constexpr auto most = static_cast<uint32_t>(block_rows);
        for (uint32_t at = 0; at < nodes.end; at += most) {
            size_t count = 0;
            const uint32_t stop = std::min(nodes.end, at + most);
            for (uint32_t i = at; i < stop; ++i) {
                if (wanted(i, nodes.errors()[i] + s.ends)) evaluator_.rows()[count++] = i;
            }
            evaluator_.set_contiguous(count == stop - at);
            count = evaluator_.keep_passing(s.ending, nodes, s.slots, event, count);
            for (size_t k = 0; k < count; ++k) {
                const uint32_t i = evaluator_.rows()[k];
                found(i, nodes.errors()[i] + s.ends);
            }
        }
    }
    void unite(Made& made, uint32_t this_state);
    void complete(Part& part, uint32_t partition, uint32_t state, Made& made, const Event& event, int64_t low);
    // Return whether matches may be written later. They may not if matches with one binding must first become one, or
    // if they wait anyway.
    bool flows() const { return full_ != endless && tables_.unambiguous && tables_.choice == Choice::all; }
    bool give(uint32_t partition, const Ending& root, const Event& event, int64_t low);
    bool give_match(uint32_t partition, const Ending& root, const Event& event, const Cell* const* path, size_t length);
    void go_on(uint32_t partition, const Event& event);
    Chain bind_all(Made& made, uint32_t leader, const Event& event, Chain chain);
    void alive(uint32_t partition, int64_t low, int64_t clock, Alive& found);
    void end_begun(uint32_t partition, int64_t upto);
    int64_t first_position(NodeList& list, uint32_t state, uint32_t row) const;
    void complete_in_steps();
    // Return the number of slots in which united nodes are equal: without those of shedding and the first position.
    uint32_t common(const State& s) const {
        return s.slots == 0 ? 0 : s.slots - admission_.hidden - (tables_.firsts ? 1 : 0);
    }
    // Do the same as NodeList::expire and NodeList::keep, and log the removed nodes.
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
    void drop_expired(NodeList& list, uint32_t state, int64_t low, int64_t when) {
        keep(list, state, when, EndReason::expired, [&](uint32_t i) { return list.starts()[i] >= low; });
    }
    void drop_all(NodeList& list, uint32_t state, int64_t when, EndReason how) {
        if (shed_ && shed_->logs()) {
            keep(list, state, when, how, [](uint32_t) { return false; });
        } else {
            list.clear();
        }
    }
    bool admits(const Part& part, const Event& event);
    void take_in(Part& part, uint32_t partition, const Event& event);
    // Return the mark that a new node inherits. Its `birth` is at first the number of nodes made after the parent.
    Mark inherited(const Arc& arc, NodeList& list, uint32_t row) const {
        if (arc.source == 0) return admission_.mark;
        Mark mark = Mark::of(list.slot(tables_.states[arc.source].slots - 1)[row]);
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
    // Return whether the budget suffices for `touches` and all they lead to; if not, shedding must start (`wake`).
    bool suffices(size_t touches) {
        return work_.touches + static_cast<int64_t>(touches) + work_.nodes - admission_.nodes_before <=
                   admission_.sufficient ||
               suffices_still(touches);
    }
    bool suffices_still(size_t touches);
    void look_at_allowance();
    double each_touch() const;
    static constexpr double most_room = 1e15;
    void wake(int64_t now);
    void rest(int64_t now);
    void widen(NodeList& list, uint32_t state, int64_t low, int64_t now);
    void distinct(size_t first);
    void tell(NodeList& nodes, uint32_t row, uint32_t state);
    void count_written(uint32_t partition);
    // Return the node of `list` that equals node `i` of `made` and began at `low` or later, or NIL.
    uint32_t like(NodeList& list, NodeList& made, uint32_t i, const State& s, size_t wanted, int64_t low) const;
    uint32_t earlier(NodeList& list, Made& made, uint32_t i, uint32_t state, int64_t low);
    uint32_t bound(const Event& event);

    std::vector<std::pair<uint32_t, uint32_t>>
        places_;  // by number of an arc, once asked for: its state, and its place
    std::vector<Part> parts_;
    std::vector<Made> made_;  // by state
    std::vector<uint32_t> touched_;  // states with nodes made by the current event
    std::vector<uint32_t> ended_;    // states in which an event may end nodes by breaking a negation
    BoundCells bound_to_;            // cells of the current event
    bool replaces_ = false;          // each event replaces all nodes (nodes_contiguity.cpp)
    bool shares_ = false;            // the current event has bound one cell for nodes of different states
    std::vector<uint32_t> replaced_; // states with nodes made by the current event, where it replaces all
    std::vector<uint32_t> all_rows_; // 0, 1, and so on
    std::vector<uint32_t> cells_of_; // by number of sharing arcs and row: the cell that binds the current event
    Arena arena_;
    FrameStore frames_{tables_};
    CheckEvaluator evaluator_{classifier_, frames_};
    RegisterWriter writer_{tables_, classifier_, evaluator_, frames_};
    uint32_t kept_cells_ = 0;  // left by the last compaction
    int64_t holds_ = 0;  // how often older events were matched again
    NodeList nothing_;  // the start state: one node without registers
    std::vector<int64_t> told_;  // values of the match that is written, if the last node has them
    std::vector<uint8_t> told_valid_;
    std::vector<uint32_t> all_;  // rows of equal nodes
    CandidateFinder finder_{classifier_};
    PatternArcs pattern_arcs_{tables_, classifier_, finder_, writer_};
    std::vector<uint8_t> taken_;
    std::vector<uint8_t> blocked_;  // by row of a list: whether the event took it for good; all 0 between steps
    RowBuffer blocked_rows_;
    uint32_t current_ = NIL;  // number of the current event, once bound
    int64_t clock_ = NEVER;
    Merging merging_;
    MemoryBudget memory_;
    NodeAdmission admission_;
    std::unique_ptr<Shedding> shed_;  // if nodes may have to be dropped
    std::unique_ptr<Shedding> resting_;  // the same while tokens are left: nodes have no extra slots
    std::unique_ptr<KnownFuture> future_;  // if it can tell anything
    std::unique_ptr<Dominance> dominance_;  // if only match points are asked for
    std::unique_ptr<Completion> completion_;  // if complete runs are not written directly
    Endings endings_;  // of the current event, if its matches are written later
};

}  // namespace acep
