// A session: several plans over one stream in one pass, with shared columns, event classes and partition tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/event_classifier.hpp"
#include "session/engine.hpp"
#include "session/lane_rows.hpp"
#include "session/partitions.hpp"

namespace acep {

// Several plans over one stream. Engines are added first, then batches are pushed, and the stream is ended.
class Session {
public:
    // The partitions by some key columns, and the engines of the plans with this key.
    struct KeyTable {
        Partitions partitions;
        bool counts;  // positions in it matter: every event is looked up
        std::vector<Engine*> engines;
        bool timed = true;  // all windows are in time
        bool numbers = false;  // an id is a position: idle partitions must be kept
        int64_t span = 0;  // the longest window
        size_t kept = 0;  // partitions when idle ones were last forgotten, if not all windows are in time
        int64_t refused = 0;  // events skipped for lack of room since idle partitions were last forgotten
    };

    Session(Texts& texts, std::vector<BlockProgram> programs, std::vector<EventClass> classes, size_t columns,
            const std::vector<std::pair<std::vector<uint32_t>, bool>>& keys);

    // Add a plan; the engine's output is read after each push.
    Engine& add(std::unique_ptr<Engine> engine);
    // Change a plan, and with it the programs and event classes of the session, to which only new ones may be added.
    void change(Engine& engine, Tables tables, std::vector<BlockProgram> programs, std::vector<EventClass> classes);
    // The same, with tables that an engine takes in addition (Engine::extend).
    void extend(Engine& engine, Tables tables, std::vector<BlockProgram> programs, std::vector<EventClass> classes);
    // Return what finds the patterns of events.
    EventClassifier& front() { return classifier_; }
    // Return the partitions of a key table.
    Partitions& partitions(size_t key_table) { return tables_.at(key_table)->partitions; }
    // Return the number of key tables.
    size_t key_tables() const { return tables_.size(); }

    // Process rows [from, to) of a batch of events in stream order, which may be pushed in several parts. All columns
    // must have batch.size values. Return the row to continue with. It is before `to` if the only engine is full
    // (`Engine::flow`), or if it has `enough` matches after the last row of a time. With `hold` no time passes: the
    // events may be older than earlier ones, as their partitions were reset. The first `again` rows of the batch are
    // matched again. `last`: no event comes after the batch.
    size_t push(const Batch& batch, size_t from, size_t to, size_t enough = Engine::endless, bool hold = false,
                size_t again = 0, bool last = false) {
        return push({batch, {batch.ts, batch.size}}, from, to, {enough, hold, again, last});
    }

    // Declare, in a new session, that so many events of the stream came before its first one.
    void begin_at(int64_t events);
    // Run only a part of the work from now on: the partitions of a lane, and of the plans without partition key,
    // counted from 0, those whose number has that of the lane as its remainder. All plans are there, and no event has
    // come.
    void set_lane(Lane lane);
    // Return the rows of a batch that concern the lane. The batch must outlive them.
    LaneRows rows_of_lane(const Batch& batch) const;
    // Process the rows of the lane in [from, to) of the stream's batch, whose times pass in any case. They may be
    // pushed in several parts. `last`: no event comes after the batch.
    void push_lane(const LaneRows& rows, size_t from, size_t to, bool last) {
        push(rows.taken(), from, to, {Engine::endless, false, 0, last});
    }
    // Prepare for events that are matched again, among which are `fresh` ones that come for the first time. A budget
    // grants touches for these only.
    void begin_again(int64_t fresh);
    // Forget all that the partitions of the first rows hold, so that their events can be pushed again. Under strict
    // contiguity an event concerns all partitions, and all are forgotten.
    void reset(const Batch& batch, size_t rows);
    // Declare that no event with ts < clock will come.
    void advance(int64_t clock);
    // End the stream: all pending matches are decided and written.
    void finish();
    // From now on, forget partitions only when `forget_idle_partitions` is called, so that the log of partitions and
    // their numbers do not depend on how the stream is split into batches.
    void forget_only_when_told() { forgets_only_when_told_ = true; }
    void forget_idle_partitions() { sweep(latest_); }
    // Return whether the events so far fill blocks, wherever batches end.
    bool at_block_end() const { return static_cast<size_t>(seen_) % block_rows == 0; }
    // Return the events so far, each counted once; set how many of them were pushed more than once, after loading.
    int64_t arrived() const { return seen_ - repeated_; }
    // Return the position in the stream of the next event: events that were pushed again count again.
    int64_t positions() const { return seen_; }
    void repeated(int64_t events) { repeated_ = events; }
    // From now on, check for each row whether there is room for its key, as engines have a bound on bytes.
    void bound() { bounded_ = true; }
    // Return by key table how many partitions were kept when idle ones were last forgotten, or set it after loading.
    std::vector<size_t> kept() const;
    void kept(const std::vector<size_t>& partitions);
    int64_t bytes() const;
    // Return a flag for each text code that the session still refers to; return the ids that it may write, in order.
    std::vector<uint8_t> used_texts(size_t codes) const;
    std::vector<int64_t> used_ids() const;
    // Write the state of all plans, or load that of a session of the same tables; std::invalid_argument if invalid.
    // `clock`: the latest time of that session. Once it is loaded, `push` refuses earlier events, except with `hold`.
    void dump(Writer& out) const;
    void load(Reader& in, int64_t clock = std::numeric_limits<int64_t>::max());

private:
    // How a batch is pushed (see `push`).
    struct Pushing {
        size_t enough;
        bool hold;
        size_t again;
        bool last;
    };
    // Rows [at, at + n) of the stream's batch, of which those from `first` on, `size` in all, are taken.
    struct Block {
        size_t at, n, first, size;

        // Return how many of the first `count` rows are matched again, as the first `again` rows of the batch are.
        size_t repeated(size_t count, size_t again) const { return std::min(at + count, std::max(at, again)) - at; }
    };
    // Where the session stopped: behind how many rows of a block. `unfinished`: matches of the next one are yet to
    // come.
    struct Stop {
        size_t rows;
        bool unfinished;
    };

    // A block as a key table sees it: the pattern and the partition (NIL: the table has no need of it) of each row
    // taken.
    struct BlockOfTable {
        KeyTable& table;
        const TakenRows& rows;
        const Block& block;
        const uint32_t* pattern;
        uint32_t* partition;
        const Pushing& how;
    };

    // Process rows [from, to) of the stream's batch, of which some are taken: see the public `push`.
    size_t push(const TakenRows& rows, size_t from, size_t to, const Pushing& how);
    // Pass the events of a block to all engines. Return where they stopped: behind the block, unless one is full.
    Stop push_block(const TakenRows& rows, const Block& block, const Pushing& how);
    // Let all engines know that the stream has reached a time; at the end of a block, forget idle partitions.
    void pass_time(int64_t time);
    // Mark the rows of a block that must be looked up in a table: of those taken, one concerns an engine.
    void find_wanted(KeyTable& table, const TakenRows& rows, const Block& block, const uint32_t* pattern,
                     uint8_t* wanted) const;
    // Pass the events of a block to the engines of a table, in the way that its size and the budget ask for.
    Stop push_to_table(KeyTable& table, const TakenRows& rows, const Block& block, const uint32_t* pattern,
                       const Pushing& how);
    // Pass events under a bound on memory: the partition of each is found, or refused, only when it comes.
    Stop push_bounded(const BlockOfTable& events, const uint8_t* wanted);
    // Pass events, and load what later ones will need into the processor's cache.
    Stop push_fetching(const BlockOfTable& events);
    // Pass the events that the only engine takes; of the others, only the positions are counted.
    Stop push_sparse(const BlockOfTable& events);
    // Pass events to the engines of a table. `next` prepares event i, and returns the first from it on to be passed.
    template <class Next>
    Stop push_each(const BlockOfTable& events, Next&& next);
    // Throw std::invalid_argument unless all engines can change their plan.
    void check_changes() const;
    // Classify events by other programs and classes from now on.
    void classify_by(std::vector<BlockProgram> programs, std::vector<EventClass> classes);
    // Write or read what the session itself keeps: positions in the stream, and partitions.
    static void fields(auto& self, auto& archive);
    // Forget idle partitions: of windows in time once a window has passed, else once there are many more.
    void sweep(int64_t clock);
    // Return the least time or position of an event that may still come in a partition: see `Engine::expire_partition`.
    int64_t soonest(const KeyTable& table, const Engine& engine, uint32_t partition, int64_t clock) const;
    // Forget the partitions of a table that all its engines find idle.
    void forget_idle(KeyTable& table, int64_t clock);
    // Forget what a partition holds, so that its events can be pushed again.
    static void reset(KeyTable& table, uint32_t partition);
    // Make room for another key: remove the eighth of the partitions whose last event is oldest. Without a window
    // in time, partitions are never idle.
    void give_up_oldest(KeyTable& table, int64_t clock);
    // Return the partition of a row, or NIL if there is no room for its key.
    uint32_t find_bounded(KeyTable& table, const Batch& batch, size_t row);

    EventClassifier classifier_;
    std::vector<std::unique_ptr<KeyTable>> tables_;
    std::vector<std::unique_ptr<Engine>> engines_;
    int64_t seen_ = 0;  // events of the stream, each as often as it was pushed
    int64_t repeated_ = 0;  // those of them that came before
    int64_t swept_ = 0;
    bool any_ = false;
    bool forgets_only_when_told_ = false;
    bool bounded_ = false;
    int64_t latest_ = 0;  // time of the last event
    Lane lane_;
    int64_t taken_ = 0;  // rows of the lane since the session was made
    int64_t loaded_ = NEVER;  // the latest time in the state that was loaded
};

}  // namespace acep
