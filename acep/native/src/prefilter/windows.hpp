// Match windows (Cadonna, Gamper and Böhlen, 2012): events wait in a window, and an engine gets them, in order, only when
// the window may hold a match that the newest of them ends. acep/plan/prefilter.py makes the conditions.
//
// Events that a pattern's classes tell apart are a bit vector of *needs* (Theorem 2, condition 6). For order (condition
// 7) no counters are kept: a stage's *reach* is the latest start of a part of the window that holds the stages up to
// it, one after the other. It is the least, over what the stage needs, of the reach of the stage before it as it was
// at the last event of that kind; so it never has to be undone when an event leaves the window.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/arena.hpp"
#include "session/engine.hpp"

namespace acep {

// `count` events of some classes in a stage; each that is missing costs `weight` levels of error, -1: none may be.
struct Need {
    uint32_t stage;
    uint32_t count;
    int32_t weight;
    uint32_t at;                   // its first place among those of all needs; the latest event comes first
    std::vector<uint8_t> classes;  // by class: whether it is one of them
};

struct Needs {
    std::vector<Need> all;          // by stage
    std::vector<uint32_t> stage_at; // where those of each stage begin, and the end
    uint32_t places = 0;
    uint32_t levels = 1;            // of error: the budget and one
    uint32_t least = 0;             // events that a match has (condition 4)
};

// std::invalid_argument where the arrays do not fit, or where the plan's events may not be kept back.
Needs needs_from(const Arrays& arrays, const Tables& tables);

class WindowedEngine final : public Engine {
public:
    // `engine` runs a plan with the same tables.
    WindowedEngine(Tables tables, Needs needs, Front& front, Partitions& partitions, std::unique_ptr<Engine> engine);

    Engine& engine() { return *engine_; }
    Output& output() override { return engine_->output(); }
    void flow(size_t most) override { engine_->flow(most); }
    bool unfinished() const override { return engine_->unfinished(); }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    void end() override;
    bool idle(uint32_t partition, int64_t clock) override;
    void forget(uint32_t partition) override;
    int64_t oldest() const override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return engine_->partial_matches(clock); }
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Events that came, and those that were handed to the engine.
    int64_t came() const { return came_; }
    int64_t handed() const { return handed_; }

private:
    struct Waiting {
        int64_t ts;
        int64_t position;
        int64_t id;
        uint32_t pattern;
    };
    // `known`: reaches by stage and level; those that stood before the last events of each place, by level; the keys of the
    // last `least` events, the oldest of them at `turn`. What waits is a ring, with the values of its columns in step.
    struct Part {
        std::vector<int64_t> known;
        int64_t since = NEVER;  // what came up to here is not all in `known`
        bool passed = false;    // its last event came while all were handed on
        uint32_t turn = 0;
        uint32_t head = 0;
        uint32_t size = 0;
        std::vector<Waiting> ring;
        std::vector<int64_t> words;  // by column
        std::vector<uint8_t> valid;
    };
    struct Kind {  // of pattern
        uint32_t from, to;  // its needs in `touched_`, the last stage first
        uint32_t lowest;    // stage
        bool ends;          // it may end a match
    };
    // A mark of time: all events up to `id` had come when `clock` was told.
    struct Mark {
        int64_t clock;
        int64_t id;
    };

    const Kind& kind(uint32_t pattern);
    int64_t key(const Event& event) const { return tables_.counted ? event.position : event.ts; }
    int64_t key(const Waiting& event) const { return tables_.counted ? event.position : event.ts; }
    size_t known_size() const { return size_t{needs_.levels} * (stages_ + needs_.places) + needs_.least; }
    // Takes an event in; whether a window from `low` on may hold a match.
    bool note(Part& part, const Kind& kind, int64_t now, int64_t low);
    void follow(Part& part, uint32_t stage);
    void forget_events(Part& part);
    int64_t reach(const Part& part, uint32_t stage, uint32_t level, uint32_t paid) const;
    void judge();
    void go_on(Part& part, uint32_t partition, const Event& event, int64_t low);
    void hand(uint32_t partition, const Event& event);
    void hand_all(Part& part, uint32_t partition, int64_t low);
    void wait(Part& part, const Event& event, int64_t low);
    void expire(Part& part, int64_t low);
    void grow(Part& part);
    void load_part(Reader& in, Part& part);
    void load_waiting(Reader& in, Part& part);

    // Of so many events no more than 7 in 8 are to be handed on, or it does not pay: then all are, for so many times as
    // many events as were watched, and then it is tried again.
    static constexpr int64_t trial = 4096;
    static constexpr int64_t rests = 16;
    static constexpr int64_t least_rest = rests * trial;
    static constexpr size_t few = 64;  // a ring no larger is not released when its events have left the window

    Needs needs_;
    uint32_t stages_;
    std::unique_ptr<Engine> engine_;
    std::vector<uint32_t> used_;  // columns that the plan reads of bound events
    std::vector<Kind> kinds_;     // by pattern
    std::vector<uint32_t> touched_;
    std::vector<Part> parts_;
    mutable std::vector<uint32_t> dropped_;  // by need of a stage
    Batch batch_;                 // stands over the ring of the partition whose events are handed on
    int64_t came_ = 0;
    int64_t handed_ = 0;
    bool passing_ = false;
    enum class Stage : uint8_t { done, waiting, own };  // of an event that is to be handed on: after what waits
    Stage stage_ = Stage::done;
    int64_t tried_ = 0;           // events of this trial, and those of them that were handed on
    int64_t tried_handed_ = 0;
    int64_t watched_ = 0;         // events since watching began
    int64_t left_ = 0;            // events until it is tried again
    int64_t swept_ = NEVER;
    int64_t last_id_ = NEVER;
    int64_t bound_ = NEVER;       // no event with an id up to this may still be given
    Ring<Mark> marks_;
};

}  // namespace acep
