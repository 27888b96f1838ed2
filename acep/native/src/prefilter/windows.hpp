// Match windows (Cadonna, Gamper and Böhlen, 2012): events wait in a window, and are passed to an engine in order only
// if the window may hold a match that ends with the newest event. acep/plan/prefilter.py makes the conditions.
//
// A *need* is a number of events of some classes that every match must have (Theorem 2, condition 6). The order of
// needs (condition 7) is checked without counters. The *reach* of a stage is the latest start of a part of the window
// that holds all stages up to it, one after the other. The previous stage's reach is stored with each event of a need.
// The reach of a stage is the least of those stored with its needed events, so nothing is undone when an event leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/arena.hpp"
#include "common/prefetch.hpp"
#include "session/engine.hpp"

namespace acep {

// `count` events of some classes in a stage. Each missing one costs `weight` levels of error; -1: all are required.
struct Need {
    uint32_t stage;
    uint32_t count;
    int32_t weight;
    uint32_t at;                   // its first place among those of all needs; the latest event is first
    std::vector<uint8_t> classes;  // by class: whether it serves the need
};

// The needs of a plan: without events for all of them, and enough events in all, a window holds no match.
struct Needs {
    std::vector<Need> all;          // by stage
    std::vector<uint32_t> stage_at; // offsets of the needs of each stage, and the end
    uint32_t places = 0;
    uint32_t levels = 1;            // of error: the budget plus one
    uint32_t least = 0;             // least number of events of a match (condition 4)
};

// Read the needs of a plan. Throw std::invalid_argument if arrays do not fit, or if events of the plan may not wait.
Needs needs_from(const Arrays& arrays, const Tables& tables);

// Match windows before an engine: events wait until the window that ends with one may hold a match.
class WindowedEngine final : public Engine {
public:
    // `engine` runs a plan with the same tables.
    WindowedEngine(Tables tables, Needs needs, EventClassifier& classifier, Partitions& partitions,
                   std::unique_ptr<Engine> engine);

    // Return the engine behind.
    Engine& engine() { return *engine_; }
    Output& output() override { return engine_->output(); }
    void flow(size_t most) override { engine_->flow(most); }
    bool unfinished() const override { return engine_->unfinished(); }
    void fetch(uint32_t partition, uint32_t hop) const override;
    bool fetches() const override { return engine_->fetches(); }
    void event(uint32_t partition, const Event& event) override;
    void take_ways(Taking index, Taking future) override { engine_->take_ways(index, future); }
    bool woke() const override { return engine_->woke(); }
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override {
        engine_->sifted = sifts_;
        engine_->expect(batch, from, stream_row, last);
    }
    void advance(int64_t clock) override;
    void end() override;
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>& ids) const override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return engine_->partial_matches(clock); }
    ListedColumns list_partial_matches(const ListingRequest& request) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Return the number of events received.
    int64_t received() const { return received_; }
    // Return the number of events passed to the engine.
    int64_t passed_on() const { return passed_on_; }

private:
    // An event that waits, without its column values.
    struct Waiting {
        int64_t ts;
        int64_t position;
        int64_t id;
        uint32_t pattern;
    };
    // `known` has the reaches by stage and level; the reaches stored with the last events, by place and level; and the
    // keys of the last `least` events, the oldest at `oldest_key`. `words` and `valid` have column values for the ring.
    struct Part {
        std::vector<int64_t> known;
        int64_t since = NEVER;  // events up to this key are not all in `known`
        bool passed = false;    // its last event came while all events were passed on
        uint32_t oldest_key = 0;
        uint32_t head = 0;
        uint32_t size = 0;
        std::vector<Waiting> ring;
        std::vector<int64_t> words;  // by column
        std::vector<uint8_t> valid;
    };
    struct Kind {  // of a pattern
        uint32_t from, to;  // its needs in `touched_`, last stage first
        uint32_t lowest;    // stage
        bool ends;          // its events may end a match
    };

    // Return what needs the events of a pattern serve.
    const Kind& kind(uint32_t pattern);
    // Return the length of `Part::known`.
    size_t known_size() const { return size_t{needs_.levels} * (stages_ + needs_.places) + needs_.least; }
    // Record an event; return whether a window from `low` on may hold a match.
    bool note(Part& part, const Kind& kind, int64_t now, int64_t low);
    void follow(Part& part, uint32_t stage);
    // Forget the events recorded in a partition: a match needs all its events anew.
    void forget_events(Part& part);
    // Return the latest start of a part of the window that holds the stages before `stage` at `level`, and the
    // stage itself without events that cost at most `paid`. Events that prevent a later start are left out first.
    int64_t reach(const Part& part, uint32_t stage, uint32_t level, uint32_t paid) const;
    // End a trial: decide whether all events are passed on until the next one.
    void end_trial();
    // Pass on the waiting events, if they are due, and then the event itself; the engine may be unfinished in
    // between.
    void go_on(Part& part, uint32_t partition, const Event& event, int64_t low);
    // Pass an event to the engine.
    void pass_on(uint32_t partition, const Event& event);
    // Pass the waiting events of a partition to the engine, until it is unfinished.
    void pass_on_waiting(Part& part, uint32_t partition, int64_t low);
    // Keep an event, with the column values that the plan reads.
    void wait(Part& part, const Event& event, int64_t low);
    // Drop the waiting events before `low`.
    void expire(Part& part, int64_t low);
    // Double the room for waiting events.
    void grow(Part& part);
    // Write or read the state of the windows.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Write or read the event that waits at place `at` of the ring. `end`: the number above all positions. Pattern
    // numbers are valid in this session only, so their bits are written instead.
    template <class Archive>
    static void waiting_fields(auto& self, Archive& archive, auto& part, size_t at, int64_t end);

    // If more than 7 in 8 of `trial` events are passed on, waiting does not pay: then all events are passed on, for
    // `rests` times as many events as were watched, before the next trial.
    static constexpr int64_t trial = 4096;
    static constexpr int64_t rests = 16;
    static constexpr int64_t least_rest = rests * trial;
    static constexpr size_t few = 64;  // a ring no larger keeps its memory when it is empty

    Needs needs_;
    uint32_t stages_;
    std::unique_ptr<Engine> engine_;
    std::vector<uint32_t> used_;  // columns that the plan reads of bound events
    std::vector<Kind> kinds_;     // by pattern
    std::vector<uint32_t> touched_;
    std::vector<Part> parts_;
    mutable std::vector<uint32_t> dropped_;  // by need of a stage
    Batch batch_;                 // refers to the ring of the partition whose events are passed on
    int64_t received_ = 0;
    int64_t passed_on_ = 0;
    bool passing_ = false;
    bool sifts_ = false;  // the last trial held enough events back
    enum class Stage : uint8_t { done, waiting, own };  // of an event that follows the waiting ones
    Stage stage_ = Stage::done;
    int64_t tried_ = 0;           // events of this trial, and those of them passed on
    int64_t tried_passed_on_ = 0;
    int64_t watched_ = 0;         // events since watching began
    int64_t until_trial_ = 0;            // events until the next trial
    int64_t swept_ = NEVER;
};

}  // namespace acep
