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

    void add(const Prospect& match, int64_t begin) {
        prospects.push_back(match);
        first = std::min(first, match.first);
        start = std::min(start, begin);
    }
};

class Completion {
public:
    // `alive(partition, low, clock, found)` adds to `found` the nodes of a partition that began at `low` or later, which
    // end at `clock` or later. `end_nodes(partition, upto)` removes those that began at position `upto` or before.
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
    bool idle(uint32_t partition, int64_t low);
    void forget(uint32_t partition);
    void used_texts(UsedTexts& used) const;
    void used_ids(std::vector<int64_t>& ids) const;
    int64_t bytes() const;
    void fields(Writer& out) const;
    void fields(Reader& in);

private:
    static constexpr int64_t FAR = std::numeric_limits<int64_t>::max();
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
    struct ReleasedEvents {
        int64_t time;  // once it has passed, the partition is looked at
        uint32_t partition;
        bool operator>(const ReleasedEvents& other) const { return time > other.time; }
    };

    Held& held(uint32_t partition);
    void touch(uint32_t partition);
    int64_t key(const Binding& b) const { return tables_.counted ? b.first() : b.start; }
    // Return the earliest start in the window: runs that began before it cannot continue.
    int64_t low(const Held& h, int64_t clock) const;
    int64_t broken(const Held& h, const Binding& b, int64_t most);
    int64_t cost(const Held& h, const Binding& b, std::span<const uint16_t> arcs, size_t j, const Crossing& crossing,
                 int64_t most);
    void unite(uint32_t partition);
    bool take(uint32_t partition, Binding&& b);
    void decide(Held& h, uint32_t partition, int64_t low);
    void choose(uint32_t partition, Binding&& b);
    bool stands_back(Held& h, Binding& b);
    void cover(Held& h, uint32_t partition, const Event& event);
    void choose_output(uint32_t partition, int64_t clock);
    void choose_strict(int64_t clock);
    void living(const Held& h, uint32_t partition, int64_t low, int64_t clock, Alive& found);
    // The first and last positions of matches that were just given.
    using Given = std::vector<std::pair<int64_t, int64_t>>;
    void sort_out(const std::vector<Verdict>& verdicts, size_t& at, Held& h, Given& given);
    void end_runs(uint32_t partition, const Given& given);
    void wait_for_next_time(uint32_t partition, int64_t clock);
    int64_t expiry(int64_t start) const;
    void settle(uint32_t partition, int64_t clock);
    void release(uint32_t partition);
    void give(uint32_t partition, const Binding& b);
    void schedule(uint32_t partition, int64_t time);
    void forget_suspects(Held& h, int64_t low);
    void trim_suspects(uint32_t partition);
    Binding fresh();
    void recycle(Binding&& b);
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
    std::priority_queue<ReleasedEvents, std::vector<ReleasedEvents>, std::greater<ReleasedEvents>> due_;
};

}  // namespace acep
