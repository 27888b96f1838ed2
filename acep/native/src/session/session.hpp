// Several plans over one stream in one pass: shared columns, shared classes of events, shared partition tables.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/event_classifier.hpp"
#include "session/engine.hpp"
#include "session/partitions.hpp"

namespace acep {

class Session {
public:
    struct KeyTable {
        Partitions partitions;
        bool counts;  // positions in it matter, so that every event is looked up
        std::vector<Engine*> engines;
        bool forgets;  // all windows are in time and no id is a position
        bool numbers = false;  // an id is a position
        int64_t span;  // the longest window
        int64_t turned_away = 0;  // events for want of room since idle partitions were last forgotten
    };

    Session(Texts& texts, std::vector<BlockProgram> programs, std::vector<EventClass> classes, size_t columns,
            const std::vector<std::pair<std::vector<uint32_t>, bool>>& keys);

    // Takes a plan in; the engine's output is read after each push.
    Engine& add(std::unique_ptr<Engine> engine);
    Front& front() { return front_; }
    Partitions& partitions(size_t key_table) { return tables_.at(key_table)->partitions; }
    size_t key_tables() const { return tables_.size(); }

    // Events in stream order. All columns must be there, each of batch.size values.
    // Rows [from, to) of it; a batch may be pushed in several parts. Returns the row to go on with: one before `to` where the only
    // engine has as many matches as it may have (`Engine::flow`), or, after the last row of a time, `enough` of them.
    size_t push(const Batch& batch, size_t from, size_t to, size_t enough = Engine::endless);
    // No event with ts < clock will come any more.
    void advance(int64_t clock);
    // The stream has ended: everything is decided and given.
    void finish();
    // From now on partitions are forgotten when `rest` is called, and only then: what is logged of them, and the numbers
    // of partitions, must not depend on how the stream comes in batches.
    void rest_when_told() { rests_when_told_ = true; }
    void rest() { sweep(latest_); }
    int64_t seen() const { return seen_; }  // events so far
    // Engines are bound to bytes: whether there is room for a key is asked row by row.
    void bound() { bounded_ = true; }
    int64_t bytes() const;
    // Of each code of a text whether it is in use, and the ids that may still be given, rising: of bounded engines.
    std::vector<uint8_t> used_texts(size_t codes) const;
    std::vector<int64_t> used_ids() const;
    // The state of all plans, and that of a session of the same tables (std::invalid_argument: it is none).
    void dump(Writer& out) const;
    void load(Reader& in);

private:
    void sweep(int64_t clock);
    void forget_idle(KeyTable& table, int64_t clock);
    void give_up_oldest(KeyTable& table, int64_t clock);
    uint32_t find_bounded(KeyTable& table, const Batch& batch, size_t row);

    Front front_;
    std::vector<std::unique_ptr<KeyTable>> tables_;
    std::vector<std::unique_ptr<Engine>> engines_;
    int64_t seen_ = 0;  // events of the stream
    int64_t swept_ = 0;
    bool any_ = false;
    bool rests_when_told_ = false;
    bool bounded_ = false;
    int64_t latest_ = 0;  // time of the last event
};

}  // namespace acep
