// Complete runs of the node engine: the sequences of their chains are written as matches, or passed to completion.hpp.
// Where matches are taken in parts, the remaining ones of an event are written later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/arena.hpp"
#include "common/output.hpp"
#include "completion/completion.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/event_binder.hpp"
#include "nodes/memory_guard.hpp"
#include "nodes/new_nodes.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "plan/tables.hpp"
#include "session/engine.hpp"
#include "session/partitions.hpp"

namespace acep {

// The parts that the emitter shares with its engine.
struct EngineOutput {
    Output& output;
    Work& work;
    Walks& walks;
    const size_t& full;  // matches that may be written before they are taken
    const int64_t& arrived;  // number of the current event in the stream
    const bool& again;  // the current event is matched again
};

// Call visit(row, error) for each new node of a state that ends a run and for which is_wanted(row, error) holds.
void visit_endings(CheckEvaluator& evaluator, const State& state, NodeList& nodes, const Event& event, auto&& is_wanted,
                   auto&& visit) {
    constexpr auto size = static_cast<uint32_t>(block_rows);
    for (uint32_t first = 0; first < nodes.end; first += size) {
        size_t count = 0;
        const uint32_t stop = std::min(nodes.end, first + size);
        for (uint32_t i = first; i < stop; ++i) {
            if (is_wanted(i, nodes.errors()[i] + state.ends)) evaluator.rows()[count++] = i;
        }
        evaluator.set_contiguous(count == stop - first);
        count = evaluator.keep_passing(state.ending, nodes, state.slots, event, count);
        for (size_t k = 0; k < count; ++k) {
            const uint32_t row = evaluator.rows()[k];
            visit(row, nodes.errors()[row] + state.ends);
        }
    }
}

class MatchEmitter {
public:
    // All must outlive it. `completion`: null if matches are written directly.
    MatchEmitter(const Tables& tables, const Partitions& partitions, EngineOutput engine, Arena& arena,
                 EventBinder& binder, CheckEvaluator& evaluator, const NodeStore& store, const NodeMerging& merging,
                 NodeShedding& shedding, MemoryGuard& memory, const std::unique_ptr<Completion>& completion)
        : tables_(tables),
          partitions_(partitions),
          output_(engine.output),
          work_(engine.work),
          walks_(engine.walks),
          full_(engine.full),
          arrived_(engine.arrived),
          arena_(arena),
          binder_(binder),
          evaluator_(evaluator),
          store_(store),
          merging_(merging),
          shedding_(shedding),
          memory_(memory),
          completion_(completion) {}

    // Begin the matches of an event.
    void begin_event() {
        given_before_ = output_.given();
        written_before_ = output_.size();
    }
    // Write the matches that end with the new nodes of a state, or note them as endings for `resume`. A node that need
    // not go on, as no longer match can be given, is gone then. `low`: the earliest start of a match.
    void complete(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& new_nodes, const Event& event,
                  int64_t low);
    // End the matches of an event that are written at once: equal ones are united, and all are counted.
    void end_event(uint32_t partition);

    // Return whether the current event has endings whose matches are yet to be written.
    bool is_unfinished() const { return next_ending_ < endings_.size(); }
    // Return whether the current event has noted endings, which `resume` has to write.
    bool has_endings() const { return !endings_.empty(); }
    // Write the remaining matches of the current event while there is room; after the last one the event is done.
    void resume(uint32_t partition, const Event& event, int64_t low);

    // Add the ids of events in endings.
    void used_ids(std::vector<int64_t>& ids) const {
        for (const Ending& ending : endings_) ids.push_back(ending.last.id);
    }

private:
    // All sequences of a chain, each followed by the current event.
    struct Ending {
        Cell last;
        Chain past;
        int64_t error;
        int64_t bundle;
        uint32_t state;  // for completion
    };

    // Complete the run of one new node.
    void complete_row(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& new_nodes, uint32_t row,
                      int64_t error, const Event& event, int64_t low);
    // Return whether matches may be written later. They may not if matches with one binding must first become one, or
    // if they wait anyway.
    bool may_be_resumed() const {
        return full_ != Engine::endless && tables_.unambiguous && tables_.choice == Choice::all;
    }
    // Call emit(path, length) for the sequences of an ending, until it returns false.
    void walk(const Ending& ending, int64_t low, auto&& emit);
    // Return whether one more sequence may be walked out.
    bool may_walk();
    // Give the matches of an ending. Return whether its node need not go on, as no longer match can be given.
    bool give(uint32_t partition, const Ending& ending, const Event& event, int64_t low);
    // Write one match, given from its newest event on; return whether another one may follow.
    bool write_match(uint32_t partition, const Ending& ending, const Event& event, const Cell* const* path,
                     size_t length);
    // Take the values of the matches that a node completes: its state, and its registers.
    void take_values(NodeList& nodes, uint32_t row, uint32_t state);
    // Unite matches with equal bindings among those from number `first` on, all of one event; the least error is kept.
    void unite_matches(size_t first);
    // Keep those of the matches from number `first` on for which keep[number - first] is set.
    void keep_matches(size_t first, const std::vector<uint8_t>& keep);
    // Compare the bindings of two written matches: negative if the first one comes first, 0 if they are equal.
    int compare_bindings(size_t a, size_t b) const;
    // Where only numbers are asked for, count the written matches of one event, which are distinct now, and clear them.
    void count_written(uint32_t partition);

    const Tables& tables_;
    const Partitions& partitions_;
    Output& output_;
    Work& work_;
    Walks& walks_;
    const size_t& full_;
    const int64_t& arrived_;
    Arena& arena_;
    EventBinder& binder_;
    CheckEvaluator& evaluator_;
    const NodeStore& store_;
    const NodeMerging& merging_;
    NodeShedding& shedding_;
    MemoryGuard& memory_;
    const std::unique_ptr<Completion>& completion_;

    size_t given_before_ = 0, written_before_ = 0;  // matches before those of the current event
    std::vector<Ending> endings_;  // of the current event, if its matches are written later
    size_t next_ending_ = 0;
    bool is_walking_ = false;  // the walk of the next ending has begun
    std::vector<int64_t> values_;  // of the match that is written, if its last node has them
    std::vector<uint8_t> valid_;
};

}  // namespace acep
