// Load shedding: drops partial matches of low utility if the budget is insufficient for all, and logs the trajectories
// of partial matches (docs/explanation/best_effort.md). Utilities come from a shedding table (shedding_table.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "common/state.hpp"
#include "common/texts.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"
#include "shedding/admission.hpp"
#include "shedding/eviction.hpp"
#include "shedding/hidden_slots.hpp"
#include "shedding/key_hashes.hpp"
#include "shedding/mark.hpp"
#include "shedding/shadow_sample.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/touch_budget.hpp"
#include "shedding/trajectory_log.hpp"
#include "shedding/utilities.hpp"

namespace acep {

// The parts of shedding, each with a state of its own, and what concerns several of them. The engine calls `arrive`
// before each event; the functions that do not ask for a partition mean that of this event.
class Shedding {
    SheddingTable table_;  // the parts refer to it, so it comes first
    KeyHashes keys_;

public:
    static constexpr uint32_t hidden = HiddenSlots::count;  // slots of every partial match after its registers
    static constexpr uint32_t least_room = 64;  // size of a list below which expired partial matches stay in it
    static constexpr int64_t unit_bytes = 72;  // bytes kept per partition

    // The tables, texts and partitions must outlive this. Equal seeds give equal decisions.
    Shedding(const Tables& tables, const Texts& texts, const Partitions& partitions, uint64_t seed);
    Shedding(const Shedding&) = delete;
    Shedding& operator=(const Shedding&) = delete;

    // Use another shedding table from now on. Deferred features must have been computed (`Utilities::complete_marks`).
    void set(SheddingTable table);
    // Set how many of 2^32 units are shadow-sampled.
    void sample_units(uint64_t share);
    // Return the shedding table in use.
    const SheddingTable& table() const { return table_; }
    // Bound the bytes of the log, and store nothing else by partition or for later.
    void bound_log(int64_t bytes);

    // Start an event. `arrived` events have come, including it, and `touches` touches were spent before it. Events
    // that are matched `again` are not logged, and their match points were counted.
    void arrive(uint32_t partition, int64_t arrived, int64_t touches, bool again) {
        partition_ = partition;
        log.arrive(arrived, again);
        budget.arrive(arrived, touches);
    }
    // Return whether partial matches need not be watched while what is bounded suffices: nothing is dropped, and the
    // shadow sample is small.
    bool may_rest() const { return budget.threshold() <= 0 && table_.shadow <= most_unseen; }
    // Return whether the allowance has become sufficient again, so that partial matches need not be watched.
    bool sufficient_again() const { return budget.calm() && may_rest(); }
    // Return whether a match point removes the partial matches of its partition that began before it.
    bool clears() const { return table_.clears && budget.threshold() > 0; }

    // Return whether a partial match is admitted before an arc makes it: see `Admission::admit_unmade`.
    bool admit_unmade(const Arc& arc, const Candidate& candidate, Mark& mark) {
        return admission.admit_unmade(arc, candidate, partition_, mark);
    }
    // Drop partial matches of a list before the event evaluates them: see `Eviction::evict`.
    void evict(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs) {
        eviction.evict(list, state, partition_, now, low, arcs);
    }
    // Record that shadow-sampled partial matches of the event's partition were given up at `now`.
    void record_loss(int64_t now) { sample.record_loss(partition_, now); }
    // Return the mark of partial matches that begin with an event.
    Mark first_mark(uint32_t partition, const Event& event) const {
        return log.first_mark(partition, event, budget.in_sample());
    }
    // Log a match that a partial match with mark `parent` led to, and its match point.
    void log_match(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error);

    // Start to watch partial matches, and note whether all events are watched.
    void start_watching() {
        sample.watch(budget.arrived() <= 1);
        budget.watch(true);
    }
    // Watch partial matches no longer: the log has the end of none of them, and they lose their marks.
    void stop_watching() {
        budget.watch(false);
        log.abandon_open();
        utilities.drop_marks();
    }
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition) {
        keys_.forget(partition);
        sample.forget(partition);
    }

    // Write the state without the shedding table, which the caller keeps.
    void fields(Writer& out) const;
    // Read such a state; the table must be the one that was used when it was written.
    void fields(Reader& in);
    // Return the bytes of everything.
    int64_t bytes() const { return log.bytes() + sample.bytes() + eviction.bytes() + table_bytes(); }
    // Return the bytes of the shedding table.
    int64_t table_bytes() const;

    const HiddenSlots slots;
    TouchBudget budget;
    Utilities utilities;
    TrajectoryLog log;
    ShadowSample sample;
    Admission admission;
    Eviction eviction;

private:
    static constexpr uint64_t most_unseen = uint64_t{1} << 28;  // the most of 2^32 units sampled while at rest

    // Write or read the state of all parts, in the order of stored states.
    template <class Archive>
    static void fields(auto& self, Archive& archive);

    uint32_t partition_ = 0;  // of the current event
};

}  // namespace acep
