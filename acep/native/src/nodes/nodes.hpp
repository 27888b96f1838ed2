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
    // Hold at most `bytes` from now on, including the partitions, and give up nodes for it once that may be needed
    // (memory_guard.hpp).
    // Throw std::invalid_argument if `bytes` is negative, or if complete runs wait, whose memory has no bound.
    void bound_memory(int64_t bytes);

    // Load what an event of a partition will need into the processor's cache.
    void fetch(uint32_t partition, uint32_t hop) const override;
    // Return whether that is worth its time: lists that are replaced are not read.
    bool fetches() const override { return !matcher_.replaces(); }
    // Process one event of a partition, or write more matches of the same one if it is unfinished.
    void event(uint32_t partition, const Event& event) override;
    // Free what is no longer needed, as no event before `clock` will come, and write what is certain then.
    void advance(int64_t clock) override;
    // End the stream: forget all nodes, and write what waits.
    void end() override;
    // Remove what has expired of a partition; return whether nothing is left of it.
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    // Forget a partition, whose number may be reused.
    void forget(uint32_t partition) override;
    // Forget a partition whose events are matched again. The end of its partial matches is not known, so their
    // shadow-sampled unit is given up.
    void restart(uint32_t partition) override;
    // Prepare for events that are matched again: remove what has expired, since then the time alone does not tell which
    // cells may be freed already.
    void begin_again() override;
    // Prepare the known future for the rows of a batch from `from` on.
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override;
    // Set when the index over registers is used, and when the known future is.
    void take_ways(Taking index, Taking future) override;
    // Return whether it knows what may follow an event.
    bool knows(const Event& event) const override { return parts_.future && parts_.future->knows(event); }
    // Return the approximate number of bytes held.
    int64_t bytes() const override { return parts_.bytes() + matcher_.bytes() + heap_bytes(live_); }
    // Count the partial matches whose window is not over.
    int64_t partial_matches(int64_t clock) const override { return partial_matches_in({}, clock); }
    // Count the partial matches in some states only, or in all of them if none is given.
    int64_t partial_matches_in(const std::vector<uint32_t>& states, int64_t clock) const {
        return parts_.store.count(states, partitions_, clock);
    }
    // Return the partial matches that may still become matches. Throw std::invalid_argument with dominance.
    ListedColumns list_partial_matches(const ListingRequest& request) const override;
    // Return an engine with the same partial matches. Throw std::invalid_argument with dominance.
    std::unique_ptr<Engine> copy(int64_t events) const override;
    // Write the state.
    void dump(Writer& out) const override;
    // Read the state of an engine with the same tables. Throw std::invalid_argument if it is invalid.
    void load(Reader& in) override;
    // Free what has expired; return whether there is room for one more partition.
    bool takes_partition(int64_t clock) override;
    // Mark the text codes that it holds.
    void used_texts(UsedTexts& used) const override;
    // Add the event ids that it may still write.
    void used_ids(std::vector<int64_t>& ids) const override;
    // Go on with other tables of the same plan. Throw std::invalid_argument if it cannot.
    void change(Tables tables) override;
    // Take the arcs of other tables with the same states as well. Throw std::invalid_argument if it cannot.
    void extend(Tables tables) override;
    // Set the times of arcs by their numbers. Throw std::invalid_argument if there is no such number.
    void renew(const std::vector<ArcTimes>& times) override;
    // Return whether it knows nothing by the numbers of patterns once these are forgotten.
    bool changes() const override { return tables_.dynamic; }
    // Forget what it knows by the numbers of patterns.
    void forget_patterns() override {
        Engine::forget_patterns();
        parts_.pattern_arcs.forget();
    }
    // Count an event that was skipped for lack of room.
    void passed_over() override {
        ++shed().admission.skipped;
        ++shed().admission.keyless;
    }
    // Return whether matches of the current event are yet to be written.
    bool unfinished() const override { return matcher_.is_unfinished(); }
    // Return the number in the stream of a partition's last event; -1: it had none.
    int64_t seen(uint32_t partition) const override { return parts_.store.last_event(partition); }
    // Give up all partial matches of a partition.
    void give_up_partition(uint32_t partition, int64_t clock) override {
        parts_.memory.give_up_partition(partition, clock);
    }
    // Return whether nodes were given up since the last call.
    bool gave_up() override { return parts_.memory.take_gave_up(); }
    // Return whether it has begun to shed, and the policy does not know it yet.
    bool woke() const override { return parts_.shedding.woke(); }

private:
    static constexpr size_t most_fetched = 8;  // lists of a partition

    // Let the bound on memory hold if it may be reached with an event of a partition.
    void watch_distant_bound(uint32_t partition, const Event& event);
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
