// Load shedding: drops match nodes of low utility if the budget is insufficient for all, and logs trajectories of
// partial matches (docs/explanation/best_effort.md). The utilities come from a shedding table (`SheddingTable`).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "common/state.hpp"
#include "common/texts.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"
#include "shedding/sampling_unit.hpp"

namespace acep {

// A term of a new node's utility: a number computed from its registers, and the utility buckets that are added to the
// bucket of its vector, by bin of that number.
struct Term {
    enum Kind : int64_t { held = 0, ratio = 1, difference = 2, hashed = 3, partition = 4, text = 5 };
    static constexpr uint32_t buckets = 1024;  // of hashed values
    static constexpr size_t few = 16;  // bounds that are searched linearly
    Kind kind = held;
    uint32_t a = 0, b = 0;   // slots
    bool a_floats = false, b_floats = false;
    std::vector<double> bounds;  // rising; unused for hashed values
    std::vector<float> worth;    // utility buckets by bin; the last one: no number; empty: the number is only logged
    // Return the utility buckets that a number (NaN: none) adds.
    float of(double x) const {
        if (std::isnan(x)) return worth.back();
        if (kind >= hashed) return worth[static_cast<size_t>(x)];
        size_t bin = 0;
        if (bounds.size() > few) {
            bin = static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), x) - bounds.begin());
        } else {  // without branches
            for (const double bound : bounds) bin += bound <= x ? size_t{1} : size_t{0};
        }
        return worth[bin];
    }
};

struct SheddingTable {
    enum Ties : int64_t { newest = 0, oldest = 1, random = 2 };
    int64_t errors = 1, windows = 1, waits = 1, features = 1;  // sizes of the grid of match vectors
    std::vector<uint8_t> level;   // by vector: bucket of a node's utility for its cost; 0: no utility
    std::vector<int8_t> later;    // by state and log2 of the number of nodes made in its list since: buckets added
    std::vector<double> decay;    // by state: buckets that each better node of its partition and state subtracts
    std::vector<std::vector<Term>> terms;  // by state
    size_t most_terms = 0;
    uint32_t key_texts = 0;       // a bit for each part of the key that is a text
    int64_t error_step = 1;       // scaled error per bin of the grid
    std::vector<uint8_t> admit;   // by event class and place in the window: bucket of an event; empty: admit all
    int64_t places = 1;           // bins of the time since the oldest start of the partition
    Ties ties = newest;           // which nodes of one bucket stay
    int64_t noise = 0;            // random buckets added to each node and event: 0 .. noise - 1
    double first_price = 0;       // utility threshold before the first event
    bool clears = false;          // a match point removes all nodes of its partition that began before it
    uint64_t sample = 0;          // number of starts, of 2^32, that are logged with all their descendants
    uint64_t shadow = 0;          // number of sampling units, of 2^32, that are in the shadow sample
};

// The reason why a trajectory ended; an expired one ends with its window.
enum class EndReason : int64_t { expired = 0, shed = 1, taken = 2, cleared = 3, merged_into = 4 };

// The log of trajectories since it was last taken.
struct Trajectories {
    struct Made {
        int64_t trajectory, parent, partition, state, error, start, made, feature, age;  // age: nodes after the parent
    };
    struct Ended {
        int64_t trajectory, when, how, touches, age;  // touches: for merged_into, the other trajectory instead
    };
    struct Found {
        int64_t parent, partition, when, error, age;
    };
    // A match point in a shadow-sampled unit, found by the nodes that were kept (`kept`) or by all (`whole`); or the
    // time from which data are missing (`lost`), or the end of the unit. `begin`: of the unit; `blind`: last time of a
    // start that was not fully followed; `share`: how many of 2^32 units are sampled.
    struct Point {
        enum Kind : int64_t { ended = -2, lost = -1, whole = 0, kept = 1 };
        int64_t partition, begin, when, ts, kind, blind, share;
    };
    std::vector<Made> made;
    std::vector<Ended> ended;
    std::vector<Found> found;
    std::vector<double> values;  // of the terms of each trajectory in `made`, `most_terms` each; NaN: none
    std::vector<Point> points;
};

class Shedding {
public:
    // Number of slots of every node after its registers: the time when it was made, and its Mark.
    static constexpr uint32_t hidden = 2;
    static constexpr uint32_t least_room = 64;
    // In place of a trajectory number: not logged; to be logged without a parent.
    static constexpr uint32_t unlogged = 0xFFFFFFFFu, fresh = 0xFFFFFFFEu;
    static constexpr size_t ages = 16;  // bins of the number of later nodes: 0, 1, 2 to 3, 4 to 7, ...
    static constexpr size_t most_logged = 1 << 14;  // at this length of the log no further starts are logged
    static constexpr double untouched = 1.0 / 4;  // of the reserve: not for the shadow sample
    // Touches held back for the shadow sample: a share of the budget, and of the most that may be carried over. The
    // share is smaller in proportion if fewer than one unit in 512 is sampled.
    static constexpr double held_share = 1.0 / 32, held_most = 1.0 / 64, held_for = 8388608;  // of 2^32 units
    static constexpr size_t most_at_all = 1 << 16;  // at this length no trajectories are logged at all
    static constexpr int64_t most_level = 254;  // the highest utility bucket of a node
    static constexpr int64_t unit = 8;  // windows of one partition in a sampling unit
    static constexpr int64_t most_losses = 128;  // events with losses, after which a unit is given up
    static constexpr int64_t pace = 128;  // events between two updates of the utility threshold

    static constexpr uint8_t most_chance = 63;

    // The content of the second extra slot.
    struct Mark {
        uint32_t trajectory = unlogged;
        uint16_t birth = 0;  // number of nodes made in its list before it, modulo 2^16
        uint8_t feature = 128;  // 128 plus the buckets that its registers add
        uint8_t chance = 0;  // 0 .. most_chance
        bool decided = false;  // it was admitted before it was made
        bool put_off = false;  // the buckets that its registers add are not computed yet
        int64_t word() const {
            return static_cast<int64_t>(uint64_t{trajectory} | uint64_t{birth} << 32 | uint64_t{feature} << 48 |
                                        uint64_t{chance} << 56 | uint64_t{decided} << 62 | uint64_t{put_off} << 63);
        }
        static Mark of(int64_t word) {
            const auto w = static_cast<uint64_t>(word);
            return {static_cast<uint32_t>(w),
                    static_cast<uint16_t>(w >> 32),
                    static_cast<uint8_t>(w >> 48),
                    static_cast<uint8_t>(w >> 56 & 63),
                    (w >> 62 & 1) != 0,
                    (w >> 63) != 0};
        }
        bool logged() const { return trajectory < fresh; }
        static constexpr int64_t decided_bit = int64_t{1} << 62;
    };

    Shedding(const Tables& tables, const Texts& texts, const Partitions& partitions, uint64_t seed)
        : tables_(tables), texts_(texts), partitions_(partitions), seed_(mixed(seed)) {}

    // The input for a node that may be made: its parent's row in a list, and an event.
    struct Coming {
        NodeList& parents;
        uint32_t row;
        uint32_t slots;  // of the parent
        const Event& event;
        int64_t start;
        int64_t error;
        int64_t now;
    };
    // Whether the nodes of an arc must and can be scored before they are made (admission.cpp).
    bool foresees(const Arc& arc) const {
        return price > 0 && !shadow && arc.number < admission_.size() && admission_[arc.number].scorable;
    }
    // Whether the node that an arc would make is admitted; else it is not made. `mark`: its parent's, then its own.
    bool foresee(const Arc& arc, const Coming& coming, Mark& mark);

    void set(SheddingTable table);
    void shadow_sample(uint64_t share);  // set how many of 2^32 units are shadow-sampled
    const SheddingTable& table() const { return table_; }
    bool clears() const { return table_.clears && price > 0; }
    // Set the touches per event from now on (negative: unlimited), and the most unused ones to carry over.
    void allow(double rate, double most_carried, int64_t arrived);

    // Start an event: `arrived` have come, with it, and there were `touches` before it.
    void arrive(uint32_t partition, int64_t arrived, int64_t touches) {
        here_ = partition;
        arrived_ = arrived;
        touches_ = touches;
        if (arrived - paced_ >= pace) adjust();
    }
    void deny() { ++denied_; }
    // Touches left of the budget.
    double tokens() const { return granted() - static_cast<double>(spent()); }
    bool limited() const { return rate_ >= 0; }
    // Whether the budget suffices for one more touch. A part is held back for the shadow sample; else it would be cut
    // short when little is left, and losses would be unknown. Beyond that part, a sampled unit, which is a burst, may
    // not use up the reserve, or for a while no matches would be found elsewhere.
    bool affords() { return (!shadow && spent() <= sure_) || affords_still(1); }
    // The same for several touches.
    bool affords(int64_t touches) { return (!shadow && spent() + touches <= sure_) || affords_still(touches); }
    double afforded() const {
        return shadow ? std::max(std::min(held(), tokens()), tokens() - std::min(reserve(), granted()) * untouched)
                      : tokens() - held();
    }
    // Touches held back for the shadow sample.
    double held() const { return shadow ? std::max(0.0, held_ - static_cast<double>(spent() - shadowed_)) : held_; }
    // All touches granted so far.
    double granted() const { return granted_ + rate_ * static_cast<double>(arrived_ - since_); }
    // Begin and end work on the lists of the shadow sample.
    void enter(int64_t touches) {
        touched(touches);
        shadow = true;
        shadowed_ = spent();
    }
    void leave(int64_t touches) {
        touched(touches);
        held_ = held();
        shadow_sampling += spent() - shadowed_;
        shadow = false;
    }
    // Record that partial matches of a shadow-sampled unit were given up at `now`.
    void lose(uint32_t partition, int64_t now);
    void lose(int64_t now) { lose(here_, now); }
    static constexpr int64_t unit_bytes = 72;  // bytes kept per partition
    int64_t deciding() const { return decided / decided_a_touch; }
    int64_t spent() const { return touches_ + deciding(); }
    static constexpr int64_t decided_a_touch = 4;
    static constexpr double decide_cost = 1.0 / decided_a_touch;
    void touched(int64_t touches) { touches_ = touches; }
    // Whether an event of some classes is admitted. `oldest`: the earliest start in its partition.
    bool admits(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest);

    // Return the mark of nodes that begin with an event.
    Mark begin(uint32_t partition, const Event& event);
    // Whether nodes that begin with an event are shadow-sampled; to be called for each event that begins nodes.
    bool is_shadow(uint32_t partition, int64_t now);
    // Whether a partition's unit had too many losses to be followed further.
    bool hopeless(uint32_t partition) const {
        return partition < units_.size() && units_[partition].losses >= most_losses;
    }
    // Whether some start at `since` or later was not fully followed.
    bool blind_since(uint32_t partition, int64_t since) const {
        return partition < units_.size() && units_[partition].blind >= since;
    }
    bool samples_shadows() const { return samples_shadows_; }
    bool shadow = false;  // the nodes being processed are shadow-sampled
    // Whether a new node is admitted; sets its feature and chance.
    bool admit(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now) {
        int64_t& word = made.slot(tables_.states[state].slots - 1)[row];
        if ((word & Mark::decided_bit) == 0) return weigh(made, row, state, partition, now, Mark::of(word));
        word &= ~Mark::decided_bit;
        return true;
    }
    // The utility that registers add is computed when first needed: while the threshold is 0, few nodes need it. Before
    // the shedding table changes, it is computed for all. Whether any nodes lack it; compute it for a list.
    bool puts_off() { return std::exchange(puts_off_, false); }
    void catch_up(NodeList& list, uint32_t state, uint32_t partition);
    // Before an event evaluates the nodes of a list, at `arcs` touches each, drop those below the utility threshold,
    // and those for which the budget is insufficient.
    void tend(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs);

    // The log. Log a new node, which is in its list with the mark inherited from its parent.
    void born(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark own = mark(list, row, state);
        const int64_t age = own.birth;
        own.birth = static_cast<uint16_t>(list.births);
        list.births = (list.births + 1) & 0xFFFFu;
        if (own.trajectory == unlogged || trajectories.made.size() >= most_at_all || crowded()) {
            own.trajectory = unlogged;
            return set_mark(list, row, state, own);
        }
        log_birth(list, row, state, partition, own, age);
    }
    // Log that a new node, with mark `parent`, was united with the equal node in a row.
    void joined(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now);
    void died(NodeList& list, uint32_t row, uint32_t state, int64_t when, EndReason how) {
        if (const Mark own = mark(list, row, state); own.logged()) log_end(list, own, when, how);
    }
    // Record that the current event completes a match.
    void hit() { points += std::exchange(hit_, arrived_) != arrived_ ? 1 : 0; }
    void found(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error);
    // Bound the bytes of the log; nodes beyond it are not logged.
    void bound_log(int64_t bytes) {
        most_log_ = bytes;
        changed_ = true;
    }
    bool logs() const { return !open_.empty() || table_.sample != 0 || table_.shadow != 0; }
    // Whether nothing needs to be dropped, much of the budget is unused, and the shadow sample is small.
    bool calm() const { return calm_ && price <= 0 && !bounded() && table_.shadow <= most_unseen; }
    static constexpr uint64_t most_unseen = uint64_t{1} << 28;  // of 2^32 units
    // Whether, since the last call, `calm` may have changed or the budget shrunk other than by touches.
    bool changed() { return std::exchange(changed_, false); }
    // Start to watch nodes, and note whether all events are watched.
    void alert() { from_start_ = from_start_ && arrived_ <= 1; }
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition) {
        if (partition < key_hashes_.size()) key_hashes_[partition] = 0;
        if (partition < drawn_units_.size()) drawn_units_[partition] = Drawn();
        if (partition < units_.size() && (unit_length() < 0 || tables_.counted)) {
            const int64_t again = units_[partition].again + 1;
            units_[partition] = SamplingUnit();
            units_[partition].again = again;
            if (unit_length() >= 0) units_[partition].blind = -1;  // a key that returns was not fully followed
        }
    }

    // The time when a node that began at `start` leaves the window.
    int64_t expiry(int64_t start) const {
        int64_t end;
        return __builtin_add_overflow(start, tables_.span, &end) ? std::numeric_limits<int64_t>::max() : end;
    }
    Mark mark(NodeList& list, uint32_t row, uint32_t state) const {
        return Mark::of(list.slot(tables_.states[state].slots - 1)[row]);
    }
    void set_mark(NodeList& list, uint32_t row, uint32_t state, Mark mark) const {
        list.slot(tables_.states[state].slots - 1)[row] = mark.word();
    }
    int64_t made(NodeList& list, uint32_t row, uint32_t state) const {
        return list.slot(tables_.states[state].slots - 2)[row];
    }

    // Append a score for each node of a list to `scores`, to choose nodes if memory is short: its utility bucket, less
    // `decay` for each better node of the list; equal nodes rank by `ties`.
    void score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores);

    void dump(Writer& out) const;
    void load(Reader& in);
    int64_t bytes() const;
    int64_t order_bytes() const;
    void shrink();

    int64_t decided = 0;  // number of utility look-ups
    int64_t refused = 0;  // new nodes that were not kept
    int64_t dropped = 0;  // nodes that were removed later
    int64_t passed_over = 0;  // events that were skipped
    int64_t turned_away = 0;  // those of them skipped for lack of room for another key
    int64_t points = 0;  // match points, without those found by the shadow sample alone
    int64_t withheld = 0;  // match points not all of whose matches were written
    int64_t shadow_sampling = 0;  // touches of the shadow sample
    int64_t weighed = 0;  // nodes whose terms were computed, in this session
    double price = 0;  // utility threshold, in buckets
    Trajectories trajectories;

private:
    void adjust();
    bool weigh(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark own);
    // For the nodes of an arc: the terms that are known before they are made, with the sources of their numbers. Terms
    // of the largest `range` come first; `most` is what a term and those after it add at most.
    struct Origin {
        int32_t slot = -1;  // of the parent
        int32_t column = -1;  // of the event, if the parent's slot is unbound
        bool held = false;  // whether the parent's slot is used
    };
    struct TermRange {
        uint32_t term;
        float most, range;
        const Term* of;  // in the shedding table
        Origin a, b;
    };
    struct Admission {
        bool scorable = false;  // nodes can be scored
        int64_t ends = 0;  // least error that an ending there adds
        bool whole = true;  // all terms are known
        double later = 0;  // buckets that the unknown terms add at most
        std::vector<TermRange> terms;
    };
    void look_ahead();
    static bool origin(const Arc& arc, uint32_t slot, Origin& found);
    std::vector<Admission> admission_;  // by arc
    void log_birth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark own, int64_t age);
    void log_end(const NodeList& list, Mark own, int64_t when, EndReason how);
    void log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition);
    uint8_t chance() { return static_cast<uint8_t>(mixed(++drawn_ * 0x9E3779B97F4A7C15u + seed_) >> 56); }
    bool affords_still(int64_t touches);
    // Return the number of a term; `held(second, word)` reads slot a or b, and is false if it has no value.
    template <class Held>
    double number(const Term& term, uint32_t partition, Held&& held) const {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        if (term.kind == Term::partition) {
            return static_cast<double>(key_hash(partition, table_.key_texts) % Term::buckets);
        }
        int64_t word = 0, other = 0;
        if (!held(false, word)) return none;
        if (term.kind >= Term::hashed) {
            return static_cast<double>(mixed(word_hash(texts_, word, term.kind == Term::text, !bounded())) %
                                       Term::buckets);
        }
        const double x = term.a_floats ? std::bit_cast<double>(word) : static_cast<double>(word);
        if (term.kind == Term::held) return x;
        if (!held(true, other)) return none;
        const double y = term.b_floats ? std::bit_cast<double>(other) : static_cast<double>(other);
        if (term.kind == Term::difference) return x - y;
        return y != 0 ? x / y : none;
    }
    double number(NodeList& list, uint32_t row, uint32_t slots, const Term& term, uint32_t partition) const;
    static uint8_t added(double levels) { return static_cast<uint8_t>(std::clamp(levels, -127.0, 127.0) + 128.0); }
    uint8_t worth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition);
    // Return the mark of a node, and complete it if its utility was put off.
    Mark whole_mark(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark own = mark(list, row, state);
        if (!own.put_off) return own;
        own.put_off = false;
        own.feature = worth(list, row, state, partition);
        set_mark(list, row, state, own);
        return own;
    }
    // Return the utility bucket of a node before it is clamped; `nothing`: its vector has no utility.
    static constexpr int64_t nothing = std::numeric_limits<int64_t>::min();
    int64_t sum(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                uint32_t births) const {
        const int64_t errors = table_.errors == 1 ? 0 : std::min(error / table_.error_step, table_.errors - 1);
        int64_t window = 0, wait = 0;
        if (tables_.span >= 0) {
            window = window_at(apart(now, start));
            const int64_t since = apart(now, made);
            for (const int64_t bound : wait_bounds_) wait += since >= bound ? 1 : 0;
        }
        const int64_t place = ((state * table_.errors + errors) * table_.windows + window) * table_.waits + wait;
        const int64_t vector = place * table_.features + (mark.feature * table_.features >> 8);
        const int64_t found = table_.level[static_cast<size_t>(vector)];
        if (found == 0) return nothing;
        const auto age = static_cast<size_t>(std::bit_width((births - mark.birth) & 0xFFFFu));
        return found + (table_.features == 1 ? mark.feature - 128 : 0) + (mark.chance * table_.noise >> 6) +
               table_.later[state * ages + std::min(age, ages - 1)];
    }
    // Return now - then without overflow, as a loaded state may hold any times.
    static int64_t apart(int64_t now, int64_t then) {
        return static_cast<int64_t>(static_cast<uint64_t>(now) - static_cast<uint64_t>(then));
    }
    // Return the bin of the time left in the window: by its definition, and by the ages at which bins end.
    int64_t window_by(int64_t age) const {
        const auto rest = static_cast<double>(apart(tables_.span, age)), windows = static_cast<double>(table_.windows);
        const auto bin = static_cast<int64_t>(rest * windows / (static_cast<double>(tables_.span) + 1));
        return std::clamp<int64_t>(bin, 0, table_.windows - 1);
    }
    int64_t window_at(int64_t age) const {
        if (table_.windows == 1) return 0;
        if (window_bounds_.empty() || age < 0 || age > tables_.span) return window_by(age);
        // Rounding changes the bin by at most one.
        const auto rest = static_cast<double>(tables_.span - age);
        const int64_t near = std::min(static_cast<int64_t>(rest * bins_a_tick_), table_.windows - 1);
        const int64_t* end = window_bounds_.data() + near;
        return near - (age >= end[0] ? 1 : 0) + (age < end[1] ? 1 : 0);
    }
    void set_bounds();
    static uint32_t clamped(int64_t sum) {
        return sum == nothing ? 0 : static_cast<uint32_t>(std::clamp<int64_t>(sum, 1, most_level));
    }
    uint32_t level(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                   uint32_t births) const {
        return clamped(sum(state, error, start, made, mark, now, births));
    }
    // `grown`: the list has grown, or the threshold has risen; else it is pruned for its age.
    void prune(NodeList& list, uint32_t state, int64_t now, int64_t low, bool grown);
    uint32_t choose(NodeList& list, uint32_t state);
    uint32_t choose_few(NodeList& list, uint32_t state);
    // Count and log a node that is shed.
    void drop(NodeList& list, uint32_t row, uint32_t state, int64_t now);
    double reserve() const;
    double lent_mean_ = 0;  // recent touches per event in the shadow sample
    double held_ = 0;  // touches held back for the shadow sample
    int64_t shadowed_ = 0;  // `spent` when work on the shadow sample last began
    // The current unit of a partition: its cached random draw, whether it is sampled, and since when data are missing.
    struct Drawn {
        int64_t begin = 0, end = 0;  // of the unit looked up last
        uint64_t draw = 0;
    };
    struct SamplingUnit {
        int64_t begin = std::numeric_limits<int64_t>::min(), blind = std::numeric_limits<int64_t>::min();
        int64_t share = 0;  // how many of 2^32 units are sampled; 0: this one is not
        int64_t losses = 0;
        int64_t again = 0;  // if a partition is one unit: how many keys had its number before
    };
    int64_t unit_length() const;  // -1: each partition is one unit
    bool within(const SamplingUnit& unit, int64_t now) const;
    SamplingUnitAt drawn_unit(uint32_t partition, int64_t now);
    void note(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind);
    uint64_t key_hash(uint32_t partition, uint32_t texts) const;

    const Tables& tables_;
    const Texts& texts_;
    const Partitions& partitions_;
    const uint64_t seed_;
    uint32_t here_ = 0;
    bool samples_shadows_ = false;  // there has been a shadow sample
    bool from_start_ = false;  // since the first event
    std::vector<SamplingUnit> units_;  // by partition
    std::vector<Drawn> drawn_units_;  // by partition, if memory is not bounded
    SheddingTable table_;
    std::vector<uint8_t> tells_;  // by state: whether registers add utility
    bool puts_off_ = false;
    double rate_ = -1;  // touches per event; negative: unlimited
    double granted_ = 0;  // touches granted up to event `since_`
    int64_t since_ = 0;
    double most_carried_ = 0;
    int64_t hit_ = -1;  // the last event that completed a match
    int64_t arrived_ = 0;
    int64_t touches_ = 0;
    int64_t paced_ = 0;
    int64_t paced_spent_ = 0;
    int64_t sure_ = std::numeric_limits<int64_t>::min();  // the budget suffices up to this `spent`
    std::vector<int64_t> window_bounds_;  // by bin: the least age that is in a lower bin; and a last one for none
    double bins_a_tick_ = 0;
    std::vector<int64_t> wait_bounds_;  // rising
    double step_ = 4;  // of the threshold
    double surge_ = 0;  // part of the threshold that was added when no budget was left, and decays
    double mean_ = 0;  // recent touches per event, without the shadow sample
    int64_t lent_ = 0;  // `watching` at the last update of the threshold
    // Whether one more row of the log may exceed its bound, as vectors double.
    bool bounded() const { return most_log_ != std::numeric_limits<int64_t>::max(); }
    bool crowded() const {
        const size_t rows =
            trajectories.made.size() * (sizeof(Trajectories::Made) + sizeof(double) * table_.most_terms) +
            trajectories.ended.size() * sizeof(Trajectories::Ended) +
            trajectories.found.size() * sizeof(Trajectories::Found) +
            trajectories.points.size() * sizeof(Trajectories::Point);
        return static_cast<int64_t>(2 * rows + open_.size() * (open_bytes + 2 * sizeof(Trajectories::Ended)) + 1024) >
               most_log_;
    }
    static constexpr size_t open_bytes = 64;  // of an entry of `open_`
    int64_t most_log_ = std::numeric_limits<int64_t>::max();
    bool calm_ = false;
    bool changed_ = true;
    // Discard what was derived from the previous budget and table.
    void recount() {
        changed_ = true;
        sure_ = std::numeric_limits<int64_t>::min();
    }
    int64_t denied_ = 0;  // touches denied since the last update of the threshold
    uint64_t drawn_ = 0;  // number of chances drawn so far
    uint32_t next_trajectory_ = 0;
    std::unordered_map<uint32_t, int64_t> open_;  // logged nodes still there: their list's touches when made
    std::vector<uint32_t> levels_;  // of the nodes of a list
    mutable std::vector<uint64_t> key_hashes_;  // by partition; 0: not computed yet
    std::vector<uint32_t> rows_;
};

}  // namespace acep
