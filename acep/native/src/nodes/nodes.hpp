// The node engine: one match node per partial match, or per set of partial matches with equal state, error and
// registers (SASE+ 2008, section 5.2.2). It runs every pattern: registers, strategies, errors, groups, sets.
//
// It owns the parts that do the work: node_parts.hpp has those that hold the nodes, event_matcher.hpp those that let an
// event extend, end and make nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nodes/changing_arcs.hpp"
#include "nodes/event_matcher.hpp"
#include "nodes/node_parts.hpp"
#include "nodes/nodes_dominance.hpp"
#include "session/engine.hpp"

namespace acep {

class NodeEngine final : public Engine {
public:
    // With `dominance`, only match points are output, without bound events.
    NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
               std::unique_ptr<Dominance> dominance = nullptr);

    // Return the parts that hold the nodes, to be asked or told about budgets.
    NodeParts& parts() { return parts_; }
    // Make the object that sheds, if there is none, which must be done before any event; return it.
    Shedding& shed(uint64_t seed = 0);
    // Hold at most `bytes` from now on, including the partitions, and give up nodes for it (memory_guard.hpp).
    // Throw std::invalid_argument if `bytes` is negative, or if complete runs wait, whose memory has no bound.
    void bound_memory(int64_t bytes);

    // The functions of the interface do what engine.hpp says.
    void fetch(uint32_t partition, uint32_t hop) const override;
    bool fetches() const override { return !matcher_.replaces(); }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    void end() override;
    bool idle(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    // Forget a partition whose events are matched again. The end of its partial matches is not known, so their
    // shadow-sampled unit is given up.
    void restart(uint32_t partition) override;
    // Prepare for events that are matched again: remove what has expired, since then the time alone does not tell which
    // cells may be freed already.
    void begin_again() override;
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override;
    void take_ways(Taking index, Taking future) override;
    bool knows(const Event& event) const override { return parts_.future && parts_.future->knows(event); }
    int64_t bytes() const override { return parts_.bytes() + matcher_.bytes() + heap_bytes(live_); }
    int64_t partial_matches(int64_t clock) const override { return partial_matches_in({}, clock); }
    // Count the partial matches in some states only, or in all of them if none is given.
    int64_t partial_matches_in(const std::vector<uint32_t>& states, int64_t clock) const {
        return parts_.store.count(states, partitions_, clock);
    }
    ListedColumns list_partial_matches(const ListingRequest& request) const override;
    std::unique_ptr<Engine> copy(int64_t events) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    bool takes_partition(int64_t clock) override;
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>& ids) const override;
    void change(Tables tables) override;
    void extend(Tables tables) override;
    void renew(const std::vector<ArcTimes>& times) override;
    bool changes() const override { return tables_.dynamic; }
    void forget_patterns() override {
        Engine::forget_patterns();
        parts_.pattern_arcs.forget();
    }
    void passed_over() override {
        ++shed().passed_over;
        ++shed().turned_away;
    }
    bool unfinished() const override { return matcher_.is_unfinished(); }
    int64_t seen(uint32_t partition) const override { return parts_.store.last_event(partition); }
    void give_up_partition(uint32_t partition, int64_t clock) override {
        parts_.memory.give_up_partition(partition, clock);
    }
    bool gave_up() override { return parts_.memory.take_gave_up(); }
    bool woke() const override { return parts_.shedding.woke(); }

private:
    static constexpr size_t most_fetched = 8;  // lists of a partition

    // Shrink all to its content if more than the bound is reserved, and note how much is.
    void limit_bytes();
    // Return whether tables may change now: no match waits to be written, and nothing is shed.
    bool may_change() const { return !unfinished() && parts_.shedding.any() == nullptr; }
    // Pass complete runs through more steps from now on.
    void complete_in_steps();

    NodeParts parts_;
    EventMatcher matcher_;
    ChangingArcs changing_arcs_;
};

}  // namespace acep
