// The steps between a complete run and its output, for plans that need any (acep/reference/runtime.py): negations,
// HAVING, the wait for a trailing negation, the choice of the output, and release in the order of match points.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/arena.hpp"
#include "completion/choosing.hpp"
#include "completion/conditions.hpp"
#include "session/engine.hpp"

namespace acep {

// The match nodes (and undecided runs) of a partition: the matches that may come of them, and their earliest start.
struct Alive {
    std::vector<Prospect> prospects;
    int64_t first = std::numeric_limits<int64_t>::max(), start = first;  // the least of each

    // Add a match that may come, of a run with its start (a time or a position).
    void add(const Prospect& match, int64_t begin) {
        prospects.push_back(match);
        first = std::min(first, match.first);
        start = std::min(start, begin);
    }
};

// The steps of complete runs before they are written: negations, HAVING, RETURN, and the choice that OUTPUT asks
// for.
class Completion {
public:
    // `alive(partition, low, clock, found)` adds to `found` the nodes of a partition that began at `low` or later,
    // which end at `clock` or later. `end_nodes(partition, upto)` removes those that began at position `upto` or
    // before.
    using Nodes = std::function<void(uint32_t partition, int64_t low, int64_t clock, Alive& found)>;
    using EndNodes = std::function<void(uint32_t partition, int64_t upto)>;

    Completion(const Tables& tables, EventClassifier& classifier, Partitions& partitions, Arena& arena, Output& output,
               Work& work, Nodes alive, EndNodes end_nodes);

    int64_t arrived = 0;  // the number in the stream of the current event

    // Call these functions in this order for each event. `before` decides the runs whose window is over. `trail` takes
    // a sequence of bound events that may end with the event, newest first, and the error of its node, which is in
    // `state`; it returns whether no match of which this one is the beginning can be given. `after` ends the event.
    void before(uint32_t partition, const Event& event);
    bool trail(uint32_t partition, const Event& event, const Cell* const* path, size_t length, uint32_t state,
               int64_t error);
    // End an event: unite its runs, and keep it where it may break a negation later.
    void after(uint32_t partition, const Event& event);
    // Return whether HAVING fails for a run that ends with the event, as it failed for one that began before it.
    bool surely_fails(int64_t first) const { return first > failed_; }
    // Go on with tables that have changed; they keep as many values with bound events, or more.
    void change();
    // Go on with a partition whose runs were complete at once so far.
    void begin(uint32_t partition, const Bundle& bundle, int64_t last);
    // Keep the column values of an event that has just been bound.
    void keep(uint32_t number, const Event& event);

    // Output all matches that are certain if no event before `clock` will come.
    void settle(int64_t clock);
    // Decide and output everything, as the stream has ended and no node is left.
    void end();
    // Remove what has expired of a partition; return whether nothing is left, and events before `low` break no negation
    // of later ones.
    bool expire_partition(uint32_t partition, int64_t low);
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition);
    // Mark the texts of all that is held.
    void used_texts(UsedTexts& used) const;
    // Add the ids of the events of all matches that are held.
    void used_ids(std::vector<int64_t>& ids) const;
    // Return the bytes of all that is held.
    int64_t bytes() const;
    // Write the state.
    void fields(Writer& out) const;
    // Read a state; std::invalid_argument if it is invalid.
    void fields(Reader& in);

private:
    static constexpr int64_t FAR = std::numeric_limits<int64_t>::max();
    // The matches of a partition that wait. A match is undecided as long as events after it may break a negation, then
    // waiting until it is chosen, then ready until those that end earlier are decided.
    struct Held {
        std::vector<Suspects> suspects;  // by negation
        std::vector<Binding> undecided, waiting, ready;
        // By first event: the place in `waiting` of the match that stands first in the order, once `indexed`.
        std::unordered_map<int64_t, size_t> best;
        bool indexed = false;
        Bundle bundle;
        int64_t last = -1;  // position of the last event
        int64_t earliest = FAR;  // start of the earliest undecided run
        int64_t due = FAR;  // its time in the queue `due_`
        int64_t chosen = FAR,
                covered = -1;  // matches that begin after the first of these and up to the second are none
        size_t trimmed = 0;  // suspects left by the last trim, if there is no window
        bool touched = false;
    };
    // A time at which a partition has something to decide.
    struct Due {
        int64_t time;  // once it has passed, the partition is looked at
        uint32_t partition;
        bool operator>(const Due& other) const { return time > other.time; }
    };

    // Return what is held of a partition, which is made if it is new.
    Held& held(uint32_t partition);
    // Let the next `settle` look at a partition.
    void touch(uint32_t partition);
    // Return the start of a match in the unit of the window.
    int64_t key(const Binding& b) const { return tables_.counted ? b.first() : b.start; }
    // Return the earliest start in the window: runs that began before it cannot continue.
    int64_t low(const Held& h, int64_t clock) const;
    // Return the cost of the negations broken before the last event of a run, or a number above `most`.
    int64_t broken(const Held& h, const Binding& b, int64_t most);
    // Return the cost of one negation crossed before event j (trailing if j is the size), or a number above `most`.
    int64_t cost(const Held& h, const Binding& b, std::span<const uint16_t> arcs, size_t j, const Crossing& crossing,
                 int64_t most);
    // Unite the current event's runs with equal bindings into one binding that has all their ways to end.
    void unite(uint32_t partition);
    // Check HAVING, compute RETURN, and keep a run as undecided or a match to choose among. Return whether it is a
    // match; false if that is not known yet, or if it is none.
    bool accept_run(uint32_t partition, Binding&& b);
    // Decide the trailing negations of runs that began before `low`.
    void decide(Held& h, uint32_t partition, int64_t low);
    // Add a match whose error is known to those to choose among, or write it if matches need not wait.
    void choose(uint32_t partition, Binding&& b);
    // Of two matches with one first event, a longer one that stands behind the other in the order is never given:
    // it overlaps whatever the other one overlaps. Where one match is chosen for each first event, the others are
    // not. Return whether the match is such a one, or has become the other one, and nothing is to be added.
    bool stands_back(Held& h, Binding& b);
    // Set which matches need not be written: `chosen` and `covered`. If the waiting match that begins first begins no
    // later than all partial matches, it is given, or one from its first event on that ends no earlier. So matches that
    // begin later, and up to its last event, are dropped before they are written.
    void cover(Held& h, uint32_t partition, const Event& event);
    // Choose among a partition's waiting matches, if no event before `clock` will come; those chosen become ready.
    void choose_output(uint32_t partition, int64_t clock);
    // Choose among the matches of all partitions, as they may overlap under strict contiguity.
    void choose_strict(int64_t clock);
    // Add the matches that may come of a partition's match nodes and undecided runs.
    void living(const Held& h, uint32_t partition, int64_t low, int64_t clock, Alive& found);
    // The first and last positions of matches that were just given.
    using Given = std::vector<std::pair<int64_t, int64_t>>;
    // Apply the verdicts, from place `at` on, to a partition's waiting matches; chosen ones are ready, and are
    // added to `given`.
    void sort_out(const std::vector<Verdict>& verdicts, size_t& at, Held& h, Given& given);
    // End all runs of a partition that overlap matches which were just given. Those that go on reach beyond these.
    void end_runs(uint32_t partition, const Given& given);
    // Look at a partition again once the times have passed at which further matches may end that stand before its
    // own.
    void wait_for_next_time(uint32_t partition, int64_t clock);
    // Return the last time in a window that begins at `start`.
    int64_t expiry(int64_t start) const;
    // Choose and write what is decided in a partition, if no event before `clock` will come.
    void settle(uint32_t partition, int64_t clock);
    // Output ready matches in the order of match points, up to the first one that is undecided or waiting.
    void release(uint32_t partition);
    // Write a match, or count it.
    void give(uint32_t partition, const Binding& b);
    // Look at a partition again once a time has passed, unless it is looked at earlier.
    void schedule(uint32_t partition, int64_t time);
    // Forget the events of a partition before `low` (a time or a position) that may break a negation.
    void forget_suspects(Held& h, int64_t low);
    // Without a window, forget suspects from before all partial matches, as they can break no negation.
    void trim_suspects(uint32_t partition);
    // Return an empty binding, with the memory of an earlier one if there is one.
    Binding fresh();
    // Keep the memory of a binding that is not used any more.
    void recycle(Binding&& b);
    // Write or read the state.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Throw std::invalid_argument unless a match may be in a state. `end`: the number above all positions.
    void check(const Binding& b, int64_t end) const;

    const Tables& tables_;
    EventClassifier& classifier_;
    Partitions& partitions_;
    Arena& arena_;
    Output& output_;
    Work& work_;
    Nodes alive_;
    EndNodes end_nodes_;
    mutable Conditions conditions_;
    bool waits_, trailing_, leading_;
    const bool timed_, strict_;
    const bool best_of_first_;  // of the matches with one first event one is given, if it has the least error
    const bool first_come_;  // of matches that overlap, that one is given that ends first, if it has the least error
    int64_t failed_ = FAR;  // if HAVING rises: the first position of the longest run for which it failed at this event
    std::vector<Held> held_;
    std::vector<uint32_t> touched_;
    std::vector<Binding> current_;  // of the current event, if one binding may have several runs
    std::vector<Binding> recycled_;
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> due_;
};

}  // namespace acep
