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

struct Needs {
    std::vector<Need> all;          // by stage
    std::vector<uint32_t> stage_at; // offsets of the needs of each stage, and the end
    uint32_t places = 0;
    uint32_t levels = 1;            // of error: the budget plus one
    uint32_t least = 0;             // least number of events of a match (condition 4)
};

// Read the needs of a plan. Throw std::invalid_argument if arrays do not fit, or if events of the plan may not wait.
Needs needs_from(const Arrays& arrays, const Tables& tables);

class WindowedEngine final : public Engine {
public:
    // `engine` runs a plan with the same tables.
    WindowedEngine(Tables tables, Needs needs, EventClassifier& classifier, Partitions& partitions,
                   std::unique_ptr<Engine> engine);

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
    bool idle(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>& ids) const override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return engine_->partial_matches(clock); }
    ListedColumns list_partial_matches(const ListingRequest& request) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Numbers of events received, and of those passed to the engine.
    int64_t came() const { return came_; }
    int64_t handed() const { return handed_; }

private:
    struct Waiting {
        int64_t ts;
        int64_t position;
        int64_t id;
        uint32_t pattern;
    };
    // `known` has the reaches by stage and level; the reaches stored with the last events, by place and level; and the
    // keys of the last `least` events, the oldest at `turn`. `words` and `valid` have column values for the ring.
    struct Part {
        std::vector<int64_t> known;
        int64_t since = NEVER;  // events up to this key are not all in `known`
        bool passed = false;    // its last event came while all events were passed on
        uint32_t turn = 0;
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

    const Kind& kind(uint32_t pattern);
    size_t known_size() const { return size_t{needs_.levels} * (stages_ + needs_.places) + needs_.least; }
    // Record an event; return whether a window from `low` on may hold a match.
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
    template <class Archive>
    static void fields(auto& self, Archive& archive);
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
    int64_t came_ = 0;
    int64_t handed_ = 0;
    bool passing_ = false;
    bool sifts_ = false;  // the last trial held enough events back
    enum class Stage : uint8_t { done, waiting, own };  // of an event that follows the waiting ones
    Stage stage_ = Stage::done;
    int64_t tried_ = 0;           // events of this trial, and those of them passed on
    int64_t tried_handed_ = 0;
    int64_t watched_ = 0;         // events since watching began
    int64_t left_ = 0;            // events until the next trial
    int64_t swept_ = NEVER;
};

}  // namespace acep
