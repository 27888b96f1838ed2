// The interface of all engines: an engine runs one plan of a session, over the partitions of one key table.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "common/columns.hpp"
#include "common/output.hpp"
#include "common/state.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/partial_matches.hpp"
#include "session/partitions.hpp"

namespace acep {

// The number of matches that may still be written under a budget of time. It is bounded, as one node may stand for very
// many matches. An event that ends matches may write one in any case.
struct Walks {
    int64_t left = std::numeric_limits<int64_t>::max();
    int64_t walked = 0;
    int64_t withheld = 0;  // match points for which some matches were not written
    bool any = false;      // the current event has written one
    bool lacks = false;    // some of its matches were not written

    // Begin another event.
    void begin() { any = lacks = false; }

    // Note that a match of the current event is not written. Return whether it is the first one: a match point counts
    // once, however many of its matches are not written.
    bool lacks_first() {
        const bool first = !lacks;
        lacks = true;
        return first;
    }

    // Return whether one more match of the current event may be written, and count it if so.
    bool may() {
        if (left <= 0 && any) return false;
        any = true;
        --left;
        ++walked;
        return true;
    }
};

// The work of an engine so far.
struct Work {
    int64_t nodes = 0;    // match nodes made
    int64_t touches = 0;  // transition evaluations: (node, arc) pairs
    int64_t matches = 0;
};

// When an engine takes a way that gives the same answer with less work: where it pays, or as tests demand.
enum class Taking : int64_t { where_it_pays = 0, never = 1, always = 2 };

// The engine of a plan. It gets the events of all partitions of its key table in stream order, and writes matches
// to its output.
class Engine {
public:
    Engine(Tables tables, EventClassifier& classifier, Partitions& partitions)
        : tables_(std::move(tables)), classifier_(classifier), partitions_(partitions) {}
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Return the tables of the plan.
    const Tables& tables() const { return tables_; }
    // Return the matches that are written and not taken.
    virtual Output& output() { return output_; }
    // Return what the engine has done so far.
    virtual const Work& work() const { return work_; }

    // The partitions in which events of a pattern must be passed to `event`: none, those with partial matches, or all.
    enum Wants : uint8_t { nowhere = 0, where_live = 1, everywhere = 2 };
    // Return in which partitions events of a pattern are wanted; `learn_wants` must have been called for it.
    Wants wants(uint32_t pattern) const { return static_cast<Wants>(wanted_[pattern]); }
    // Return whether an event must be passed to `event`.
    bool takes(uint32_t pattern, uint32_t partition) const {
        return wants(pattern) == everywhere || (wants(pattern) == where_live && live(partition));
    }
    // Prepare `wants` for all patterns so far.
    void learn_wants() {
        if (wanted_.size() < classifier_.patterns()) [[unlikely]]
            learn_wants(classifier_.patterns());
    }
    // Take other tables of the same plan, to which arcs, states and variables were added or from which arcs were
    // removed; the partial matches stay. Throw std::invalid_argument if the engine cannot.
    virtual void change(Tables) { throw std::invalid_argument("the plan of this engine cannot change"); }
    // Take the arcs of other tables with the same states as well; their numbers follow those of the arcs before.
    virtual void extend(Tables) { throw std::invalid_argument("the plan of this engine cannot change"); }
    // Set the times of events for which arcs are valid. An arc with the number after the last one is a copy of another.
    virtual void renew(const std::vector<ArcTimes>&) {
        throw std::invalid_argument("the plan of this engine cannot change");
    }
    // Return whether the engine knows nothing by the numbers of patterns once `forget_patterns` was called.
    virtual bool changes() const { return false; }
    virtual void forget_patterns() { wanted_.clear(); }

    // Return whether a partition has partial matches; true if the engine does not track it.
    bool live(uint32_t partition) const { return !tells_live_ || (partition < live_.size() && live_[partition] != 0); }

    Walks walks;
    static constexpr size_t endless = std::numeric_limits<size_t>::max();
    // Write at most about `most` matches before they are taken: an engine with more matches of one event is
    // `unfinished`, and continues when it gets the same event again.
    virtual void flow(size_t most) { full_ = most; }
    // Return whether matches of the current event are yet to be written: it must come again before any other.
    virtual bool unfinished() const { return false; }
    int64_t arrived = 0;  // events of the stream so far, with the current one
    bool again = false;  // the current event is matched again: it may be older than others, and came before
    bool sifted = false;  // match windows before it hold events back, if the future is not known

    // Load what an event of a partition will need into the processor's cache. Each hop follows the pointers that the
    // one before has loaded.
    virtual void fetch(uint32_t, uint32_t) const {}
    // Return whether the engine has a `fetch` that is worth its time.
    virtual bool fetches() const { return false; }
    static constexpr uint32_t hops = 5;

    // Process one event of a partition, if it `takes` it; the events come in stream order.
    virtual void event(uint32_t partition, const Event& event) = 0;
    // Free what is no longer needed, as no event before `clock` will come.
    virtual void advance(int64_t clock) = 0;
    // End the stream: all pending matches are decided and written.
    virtual void end() {}
    // Remove what has expired of a partition; return whether nothing is left, so that its number may be reused for
    // another key. `soonest`: the least time, or where the window counts events the least position, of an event of it
    // that may still come.
    virtual bool expire_partition(uint32_t partition, int64_t soonest) = 0;
    virtual void forget(uint32_t partition) = 0;
    // Forget a partition whose events are matched again. Prepare for such events.
    virtual void restart(uint32_t partition) { forget(partition); }
    virtual void begin_again() {}
    // Before the rows of a batch from `from` on: the rest of the batch is known. `stream_row`: the number of its row 0
    // in the stream; -1: later rows may come between them. `last`: no event comes after the batch.
    virtual void expect(const Batch&, size_t, int64_t, bool) {}
    // Set when an index over partial matches is used, and when the known future is.
    virtual void take_ways(Taking, Taking) {}
    // Return whether it has begun to watch partial matches, as its budget runs short, since `woke` was last set to
    // false.
    virtual bool woke() const { return false; }
    // Return whether it knows what may follow an event.
    virtual bool knows(const Event&) const { return false; }
    // Under a bound on memory: return whether there is room for one more partition; count an event that was skipped for
    // lack of room; return whether nodes were given up since the last call, so that partitions may be idle.
    virtual bool takes_partition(int64_t) { return true; }
    virtual void passed_over() {}
    // Return whether partial matches were given up since the last call, so that partitions may be idle.
    virtual bool gave_up() { return false; }
    // Return the number of a partition's last event in the stream; give up all partial matches of a partition.
    virtual int64_t seen(uint32_t) const { return -1; }
    virtual void give_up_partition(uint32_t, int64_t) {}
    // Mark the text codes that the engine holds, its output among them. Other words may be marked too. Partition keys
    // need not be: the session marks them.
    virtual void used_texts(UsedTexts& used) const = 0;
    // Add the event ids that the engine may still write, those of its output among them.
    virtual void used_ids(std::vector<int64_t>& ids) const = 0;
    // Write the state, or load that of an engine with the same tables; std::invalid_argument if it is invalid.
    virtual void dump(Writer&) const { throw std::logic_error("this engine has no state"); }
    virtual void load(Reader&) { throw std::logic_error("this engine has no state"); }
    // Return the approximate number of bytes held.
    virtual int64_t bytes() const = 0;
    // Count the partial matches whose window is not over at `clock`. Those held as one, or counted together, are one.
    virtual int64_t partial_matches(int64_t clock) const = 0;
    // Return the partial matches that may still become matches. Throw std::invalid_argument if the engine keeps none
    // with their events.
    virtual ListedColumns list_partial_matches(const ListingRequest&) const {
        throw std::invalid_argument("this engine keeps no partial matches with their events");
    }
    // Return an engine with the same partial matches, after `events` of the stream. It shares the tables of partitions
    // and of event patterns, and nothing else, so that this engine stays as it is. Throw like `list_partial_matches`.
    virtual std::unique_ptr<Engine> copy(int64_t) const {
        throw std::invalid_argument("this engine keeps no partial matches with their events");
    }

protected:
    Tables tables_;
    EventClassifier& classifier_;
    Partitions& partitions_;
    Output output_;
    Work work_;
    size_t full_ = endless;
    bool tells_live_ = false;  // `live_` is kept; partitions not live need only events that begin matches
    std::vector<uint8_t> live_;  // by partition

private:
    // Compute `wants` for the patterns so far.
    void learn_wants(size_t patterns) {
        while (wanted_.size() < patterns) {
            auto next = static_cast<uint32_t>(wanted_.size());
            bool found = false;
            for (const State& s : tables_.states) {
                for (const Arc& a : s.arcs) found = found || classifier_.has(next, a.event_class);
                for (const Ignore& i : s.ignoring) found = found || classifier_.has(next, i.event_class);
            }
            for (const Negation& n : tables_.negations) found = found || classifier_.has(next, n.event_class);
            // Any event may end the wait of a run, as it moves the positions on, or makes a gap.
            found = found || (tables_.waits() && (tables_.counted || tables_.contiguous()));
            found = found || tables_.dynamic;  // so that the partial matches that go on can be counted
            bool begins = !tells_live_;
            for (const Arc& a : tables_.states[0].arcs) begins = begins || classifier_.has(next, a.event_class);
            wanted_.push_back(!found ? nowhere : begins ? everywhere : where_live);
        }
    }
    std::vector<uint8_t> wanted_;
};

// Load the state of an engine into a new one of the same kind, after `events` of the stream.
inline void copy_state(const Engine& from, Engine& to, int64_t events) {
    Writer out;
    from.dump(out);
    Reader in({out.bytes.data(), out.bytes.size()});
    in.events = events;
    to.load(in);
    to.arrived = events;
}

}  // namespace acep
