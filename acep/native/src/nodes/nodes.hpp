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
#include "nodes/candidates.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/event_binder.hpp"
#include "nodes/frames.hpp"
#include "nodes/gap_cost.hpp"
#include "nodes/known_future.hpp"
#include "nodes/memory_guard.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "nodes/nodes_dominance.hpp"
#include "nodes/nodes_matches.hpp"
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
    int64_t clock() const { return store_.clock(); }
    // Hold at most `bytes` from now on, including the partitions, and give up nodes for it (nodes_memory.cpp).
    // Throw std::invalid_argument if `bytes` is negative, or if complete runs wait, whose memory has no bound.
    void bound_memory(int64_t bytes);
    int64_t least_memory() const { return memory_.least_bound(); }
    int64_t peak() const { return memory_.peak(); }
    // Return the most bytes of matches in a stretch of events, under a bound on memory.
    int64_t given_peak() const { return memory_.matches_peak(); }
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
    int64_t seen(uint32_t partition) const override {
        return partition < store_.partitions().size() ? store_.partitions()[partition].last_event : -1;
    }
    void give_up_partition(uint32_t partition, int64_t clock) override;
    bool gave_up() override { return memory_.take_gave_up(); }
    // Return the number of slots that shedding adds to each node now.
    uint32_t hidden() const { return shedding_.hidden(); }
    bool rests() const { return shedding_.resting() != nullptr; }
    bool woke() const override { return shedding_.woke(); }
    // Set whether it has woken and the policy was not told yet; return whether it was so before.
    bool set_woke(bool woke) { return shedding_.set_woke(woke); }
    // Keep the data for shedding with each node from now on, as nodes may have to be dropped.
    void rouse() {
        if (shedding_.resting() != nullptr) wake(clock());
    }

private:
    // The nodes of a list that are alive.
    struct Living {
        int64_t low = NEVER;  // they began then or later
        bool all = false;  // surely all of the list
        bool uniform = false;  // none has errors, and each pays the same for an arc
    };
    static constexpr size_t most_fetched = 8;  // lists of a partition

    bool goes_on_as(const Tables& tables) const;
    void find_places();
    void add_arc(Arc arc);
    bool may_replace_all(PartitionNodes& part, uint32_t partition, const Event& event);
    void look(PartitionNodes& part, uint32_t partition, const Event& event);
    // Return whether there is a bound on bytes. Then decisions depend on the bytes that the content may take, not on
    // the capacity that happens to be reserved.
    bool bounded() const { return memory_.is_bounded(); }
    bool may_walk();
    void squeeze();
    void limit_bytes();
    void begin_event(PartitionNodes& part, const Event& event);
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    int64_t key(const Event& event) const { return tables_.key(event); }
    void check_has_events() const;
    bool may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const;
    void step(PartitionNodes& part, const StateArcs& turn, const Event& event, int64_t low);
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
    void contiguous_end(PartitionNodes& part, const Event& event);
    void find_ended();
    void end_broken(PartitionNodes& part, const Event& event);
    void find_replacing();
    bool replace(PartitionNodes& part, uint32_t partition, const Event& event);
    bool may_replace(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event) const;
    void replace_by(const StateArcs& turn, NodeList& list, const Event& event);
    void succeed(const Arc& arc, uint32_t shared, NodeList& list, std::span<const uint32_t> rows, const Event& event);
    void exchange(PartitionNodes& part);
    void ignore(NodeList& list, uint32_t state, const Event& event);
    void finish(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low);
    bool takes_over(NewNodes& made, NodeList& list, const Event& event);
    void store(NewNodes& made, PartitionNodes& part, uint32_t partition, uint32_t state, const Event& event,
               int64_t low);
    void dominate(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low);
    // Call found(i, error) for each new node of a state that ends runs and for which wanted(i, error) holds.
    void endings(uint32_t state, const Event& event, auto&& wanted, auto&& found) {
        NodeList& nodes = maker_.of(state).nodes;
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
    void complete(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& made, const Event& event,
                  int64_t low);
    // Return whether matches may be written later. They may not if matches with one binding must first become one, or
    // if they wait anyway.
    bool flows() const { return full_ != endless && tables_.unambiguous && tables_.choice == Choice::all; }
    bool give(uint32_t partition, const Ending& root, const Event& event, int64_t low);
    bool give_match(uint32_t partition, const Ending& root, const Event& event, const Cell* const* path, size_t length);
    void go_on(uint32_t partition, const Event& event);
    void complete_in_steps();
    bool admits(const PartitionNodes& part, const Event& event);
    void take_in(PartitionNodes& part, uint32_t partition, const Event& event);
    void catch_up();
    bool is_shadow(uint32_t partition, const Event& event);
    void shadow_sample(PartitionNodes& part, uint32_t partition, const Event& event, bool begins);
    int64_t oldest_start(const Event& event) const;
    void wake(int64_t now);
    void rest(int64_t now);
    void widen(NodeList& list, uint32_t state, int64_t low, int64_t now);
    void distinct(size_t first);
    void tell(NodeList& nodes, uint32_t row, uint32_t state);
    void count_written(uint32_t partition);

    std::unique_ptr<Dominance> dominance_;  // if only match points are asked for
    std::unique_ptr<Completion> completion_;  // if complete runs are not written directly
    Arena arena_;
    FrameStore frames_{tables_};
    NodeShedding shedding_;
    NodeStore store_;
    NodeMerging merging_;
    MemoryGuard memory_;
    CheckEvaluator evaluator_{classifier_, frames_};
    RegisterWriter writer_{tables_, classifier_, evaluator_, frames_};
    CandidateFinder finder_{classifier_};
    PatternArcs pattern_arcs_{tables_, classifier_, finder_, writer_};
    NodeMaker maker_;
    EventBinder binder_;
    std::vector<std::pair<uint32_t, uint32_t>>
        places_;  // by number of an arc, once asked for: its state, and its place
    std::vector<uint32_t> ended_;    // states in which an event may end nodes by breaking a negation
    bool replaces_ = false;          // each event replaces all nodes (nodes_contiguity.cpp)
    bool shares_ = false;            // the current event has bound one cell for nodes of different states
    std::vector<uint32_t> replaced_; // states with nodes made by the current event, where it replaces all
    std::vector<uint32_t> all_rows_; // 0, 1, and so on
    std::vector<uint32_t> cells_of_; // by number of sharing arcs and row: the cell that binds the current event
    NodeList nothing_;  // the start state: one node without registers
    std::vector<int64_t> told_;  // values of the match that is written, if the last node has them
    std::vector<uint8_t> told_valid_;
    std::vector<uint8_t> taken_;
    std::vector<uint8_t> blocked_;  // by row of a list: whether the event took it for good; all 0 between steps
    RowBuffer blocked_rows_;
    std::unique_ptr<KnownFuture> future_;  // if it can tell anything
    Endings endings_;  // of the current event, if its matches are written later
};

}  // namespace acep
