// Best effort: which match nodes stay when the allowance does not suffice for all, and the log of their lives
// (docs/explanation/best_effort.md). What is worth how much is told by tables, the orders; this applies them.
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

// What the registers of a node say of its worth when it is made: a number made of them, and what is added to the level of
// its vector, by bin of that number.
struct Term {
    enum Kind : int64_t { held = 0, ratio = 1, difference = 2, hashed = 3, partition = 4, text = 5 };
    static constexpr uint32_t buckets = 1024;  // of what is hashed
    static constexpr size_t few = 16;  // bounds
    Kind kind = held;
    uint32_t a = 0, b = 0;   // slots
    bool a_floats = false, b_floats = false;
    std::vector<double> bounds;  // rising; not of what is hashed
    std::vector<float> worth;    // levels, by bin; the last one where there is no number; empty: it is only logged
    // The level that a number (NaN: none) adds.
    float of(double x) const {
        if (std::isnan(x)) return worth.back();
        if (kind >= hashed) return worth[static_cast<size_t>(x)];
        size_t bin = 0;
        if (bounds.size() > few) {
            bin = static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), x) - bounds.begin());
        } else {  // without a branch for each
            for (const double bound : bounds) bin += bound <= x ? size_t{1} : size_t{0};
        }
        return worth[bin];
    }
};

struct SheddingTable {
    enum Ties : int64_t { newest = 0, oldest = 1, random = 2 };
    int64_t errors = 1, windows = 1, waits = 1, features = 1;  // of the grid of match vectors
    std::vector<uint8_t> level;   // by vector: what a waiting node is worth for its cost, in steps; 0: nothing
    std::vector<int8_t> later;    // by state and the binary logarithm of how many nodes were made in its list since: levels
    std::vector<double> decay;    // by state: how many steps less each further node of its partition and state is worth
    std::vector<std::vector<Term>> terms;  // by state
    size_t most_terms = 0;
    uint32_t key_texts = 0;       // a bit for each part of the key that is a text
    int64_t error_step = 1;       // of the error, scaled, to a level of it
    std::vector<uint8_t> admit;   // by event class and place in the window: the level of an event; empty: all come in
    int64_t places = 1;           // bins of the time since the oldest start of the partition
    Ties ties = newest;           // who stays among nodes of one level
    int64_t noise = 0;            // levels that each node and event has besides, by chance: 0 .. noise - 1
    double first_price = 0;       // what the price is before the first event
    bool clears = false;          // a match point ends all nodes of its partition that began before it
    uint64_t sample = 0;          // of 2^32 starts, so many are logged with all that comes of them
    uint64_t shadow = 0;          // of 2^32 units, so many are spared: what begins there lives on beside the others
};

// EndReason a life ended; expiry is told by its window.
enum class EndReason : int64_t { expired = 0, shed = 1, taken = 2, cleared = 3, merged_into = 4 };

// The log, in columns, since it was last taken.
struct Trajectories {
    struct Made {
        int64_t trajectory, parent, partition, state, error, start, made, feature, age;  // age: nodes made after its parent, in that one's list
    };
    struct Ended {
        int64_t trajectory, when, how, touches, age;  // merged_into: the life that it became one with, in place of touches
    };
    struct Found {
        int64_t parent, partition, when, error, age;
    };
    // What was found where a unit that is spared goes on: by what stayed, or by all that there was; or, from `when` on, not
    // all is known there. `begin`: of the unit; `blind`: the last time at which something began of which not all is known;
    // `share`: of 2^32 units, how many are spared.
    struct Point {
        enum Kind : int64_t { ended = -2, lost = -1, whole = 0, kept = 1 };
        int64_t partition, begin, when, ts, kind, blind, share;
    };
    std::vector<Made> made;
    std::vector<Ended> ended;
    std::vector<Found> found;
    std::vector<double> values;  // of the terms of each life, `most_terms` each; NaN: none
    std::vector<Point> points;
};

class Shedding {
public:
    // Slots that every node has besides its registers, the last ones: when it was made; its number and more (Mark).
    static constexpr uint32_t hidden = 2;
    static constexpr uint32_t least_room = 64;
    // No life: not logged, or logged without a parent.
    static constexpr uint32_t unlogged = 0xFFFFFFFFu, fresh = 0xFFFFFFFEu;
    static constexpr size_t ages = 16;    // how many later nodes are told apart: 0, 1, 2 to 3, 4 to 7, ...
    static constexpr size_t most_logged = 1 << 14;   // lives: no start is logged any more until the log is taken
    static constexpr double untouched = 1.0 / 4;         // of the reserve, by units that are spared
    // Held back for them: so much of what is allowed, and of what may be carried over at most; where fewer than one unit in
    // 512 is spared, as much less.
    static constexpr double held_share = 1.0 / 32, held_most = 1.0 / 64, held_for = 8388608;  // of 2^32 units
    static constexpr size_t most_at_all = 1 << 16;   // nor is anything that comes of those that were
    static constexpr int64_t most_level = 254;  // of what may be shed
    static constexpr int64_t unit = 8;     // windows of one partition that are spared together
    static constexpr int64_t most_losses = 128;  // events at which something of a unit was lost: then it is given up
    static constexpr int64_t pace = 128;  // events between two looks at the price

    static constexpr uint8_t most_chance = 63;

    // What the second hidden slot holds.
    struct Mark {
        uint32_t trajectory = unlogged;
        uint16_t birth = 0;      // how many nodes had been made in its list before it, modulo 2^16
        uint8_t feature = 128;   // 128 levels more than what its registers add
        uint8_t chance = 0;      // 0 .. most_chance
        bool decided = false;    // it stays: that was told before it was made
        bool put_off = false;    // what its registers add is not known yet
        int64_t word() const {
            return static_cast<int64_t>(uint64_t{trajectory} | uint64_t{birth} << 32 | uint64_t{feature} << 48 |
                                        uint64_t{chance} << 56 | uint64_t{decided} << 62 | uint64_t{put_off} << 63);
        }
        static Mark of(int64_t word) {
            const auto w = static_cast<uint64_t>(word);
            return {static_cast<uint32_t>(w), static_cast<uint16_t>(w >> 32), static_cast<uint8_t>(w >> 48),
                    static_cast<uint8_t>(w >> 56 & 63), (w >> 62 & 1) != 0, (w >> 63) != 0};
        }
        bool logged() const { return trajectory < fresh; }
        static constexpr int64_t decided_bit = int64_t{1} << 62;
    };

    Shedding(const Tables& tables, const Texts& texts, const Partitions& partitions, uint64_t seed)
        : tables_(tables), texts_(texts), partitions_(partitions), seed_(mixed(seed)) {}

    // What a node would be made of: a row of the list that its parent is in, and an event.
    struct Coming {
        NodeList& parents;
        uint32_t row;
        uint32_t slots;  // of the parent
        const Event& event;
        int64_t start;
        int64_t error;
        int64_t now;
    };
    // Whether it can be told what a node is worth before it is made, and has to be (admission.cpp).
    bool foresees(const Arc& arc) const {
        return price > 0 && !shadow && arc.number < admission_.size() && admission_[arc.number].told;
    }
    // Whether the node that an arc would make stays; it is not made otherwise. `mark`: that of its parent, and then its own.
    bool foresee(const Arc& arc, const Coming& coming, Mark& mark);

    void set(SheddingTable table);
    void shadow_sample(uint64_t share);  // of 2^32 units
    const SheddingTable& table() const { return table_; }
    bool clears() const { return table_.clears && price > 0; }
    // Touches an event from now on (negative: without bound), and how many unused ones are kept at most.
    void allow(double rate, double most_carried, int64_t arrived);

    // An event: `arrived` have come, with it, and `touches` nodes were looked at before it.
    void arrive(uint32_t partition, int64_t arrived, int64_t touches) {
        here_ = partition;
        arrived_ = arrived;
        touches_ = touches;
        if (arrived - paced_ >= pace) adjust();
    }
    void deny() { ++denied_; }
    // What is left of the allowance.
    double tokens() const {
        return granted() - static_cast<double>(spent());
    }
    bool limited() const { return rate_ >= 0; }
    // Whether one more touch can be paid for. Some of the allowance is held back for units that are spared: else they would be
    // cut short where there is little, and it would not be known what is lost there. Beyond that a unit, which is a burst, may
    // not take the last of the reserve, or for a while nothing would be found anywhere else.
    bool affords() { return (!shadow && spent() <= sure_) || affords_still(1); }
    // The same for several.
    bool affords(int64_t touches) { return (!shadow && spent() + touches <= sure_) || affords_still(touches); }
    double afforded() const { return shadow ? std::max(std::min(held(), tokens()), tokens() - std::min(reserve(), granted()) * untouched) : tokens() - held(); }
    // What is held back.
    double held() const { return shadow ? std::max(0.0, held_ - static_cast<double>(spent() - shadowed_)) : held_; }
    // All that was ever allowed.
    double granted() const { return granted_ + rate_ * static_cast<double>(arrived_ - since_); }
    // The lists of units that are spared are looked at: from here on, and up to here.
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
    // Something in a unit that is spared was given up all the same, at `now`.
    void lose(uint32_t partition, int64_t now);
    void lose(int64_t now) { lose(here_, now); }
    static constexpr int64_t unit_bytes = 72;  // that are kept of a partition
    int64_t deciding() const { return decided / decided_a_touch; }
    int64_t spent() const { return touches_ + deciding(); }
    static constexpr int64_t decided_a_touch = 4;
    static constexpr double decide_cost = 1.0 / decided_a_touch;
    void touched(int64_t touches) { touches_ = touches; }
    // Whether an event of some classes comes in. `oldest`: the earliest start in its partition.
    bool admits(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest);

    // The mark of a node that begins with an event.
    Mark begin(uint32_t partition, const Event& event);
    // Whether what begins with an event is spared. It is called for all that begins.
    bool is_shadow(uint32_t partition, int64_t now);
    // Whether too much of the unit was lost for the rest to be worth it.
    bool hopeless(uint32_t partition) const { return partition < units_.size() && units_[partition].losses >= most_losses; }
    // Whether something began since then of which not all is known.
    bool blind_since(uint32_t partition, int64_t since) const {
        return partition < units_.size() && units_[partition].blind >= since;
    }
    bool sparing() const { return sparing_; }
    bool shadow = false;  // what is done now is done with nodes of a unit that is spared
    // Whether a new node stays for now; it is given its feature bin and its chance.
    bool admit(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now) {
        int64_t& word = made.slot(tables_.states[state].slots - 1)[row];
        if ((word & Mark::decided_bit) == 0) return weigh(made, row, state, partition, now, Mark::of(word));
        word &= ~Mark::decided_bit;
        return true;
    }
    // What the registers of nodes add is found where it is needed first, for without a price most are never asked for it.
    // Before other orders come it is found for all: whether any have to be looked at, and those of a list.
    bool puts_off() { return std::exchange(puts_off_, false); }
    void catch_up(NodeList& list, uint32_t state, uint32_t partition);
    // Before an event looks at the nodes of a list, at `arcs` touches each: drops what is not worth its price, and what the
    // allowance does not suffice for.
    void tend(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs);

    // The log. A node is in its list, with the mark of its parent.
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
    // A node like one that is there: `parent` is its mark.
    void joined(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now);
    void died(NodeList& list, uint32_t row, uint32_t state, int64_t when, EndReason how) {
        if (const Mark own = mark(list, row, state); own.logged()) log_end(list, own, when, how);
    }
    // The event completes a match.
    void hit() { points += std::exchange(hit_, arrived_) != arrived_ ? 1 : 0; }
    void found(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error);
    // At most so many bytes of log: beyond it nodes are not logged.
    void bound_log(int64_t bytes) {
        most_log_ = bytes;
        changed_ = true;
    }
    bool logs() const { return !open_.empty() || table_.sample != 0 || table_.shadow != 0; }
    // Nothing need be dropped, the allowance is not nearly used, and there is no wish to see many units all the same.
    bool calm() const { return calm_ && price <= 0 && !bounded() && table_.shadow <= most_unseen; }
    static constexpr uint64_t most_unseen = uint64_t{1} << 28;  // of 2^32 units
    // Whether that may have become otherwise, or the allowance less, for another reason than what was spent; told once.
    bool changed() { return std::exchange(changed_, false); }
    // From now on nodes are watched.
    void alert() { from_start_ = from_start_ && arrived_ <= 1; }
    // A partition's number may be given to another one.
    void forget(uint32_t partition) {
        if (partition < key_hashes_.size()) key_hashes_[partition] = 0;
        if (partition < drawn_units_.size()) drawn_units_[partition] = Drawn();
        if (partition < units_.size() && (unit_length() < 0 || tables_.counted)) {
            const int64_t again = units_[partition].again + 1;
            units_[partition] = SamplingUnit();
            units_[partition].again = again;
            if (unit_length() >= 0) units_[partition].blind = -1;  // of a key that comes again not all is known
        }
    }

    // When what began at `start` leaves the window.
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

    // What a node is worth beside others where memory is short: its level, and less the more of its list are worth more.
    // Of nodes alike it prefers by `ties`. One for each node of the list, into `scores`.
    void score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores);

    void dump(Writer& out) const;
    void load(Reader& in);
    int64_t bytes() const;
    int64_t order_bytes() const;
    void shrink();

    int64_t decided = 0;  // how often something's worth was looked up
    int64_t refused = 0;  // new nodes that were not kept
    int64_t dropped = 0;  // nodes that were kept for a while
    int64_t passed_over = 0;  // events that were not let in
    int64_t turned_away = 0;  // those of them for want of room for another key
    int64_t points = 0;       // events at which something was found, but for what units that are spared find
    int64_t withheld = 0;     // match points of which not all matches were given
    int64_t shadow_sampling = 0;     // touches in units that are spared
    int64_t weighed = 0;      // nodes whose registers were looked at for what they add; of this session
    double price = 0;     // in levels: what a node must be worth
    Trajectories trajectories;

private:
    void adjust();
    bool weigh(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark own);
    // Of an arc: whether all is known, and of each term that tells something where its numbers come from, those first that
    // may tell most: `range`. `most`: what they and those after them add at most.
    struct Origin {
        int32_t slot = -1;    // of the parent
        int32_t column = -1;  // of the event, where the parent holds nothing
        bool held = false;    // whether the parent counts at all
    };
    struct Told {
        uint32_t term;
        float most, range;
        const Term* of;  // among the orders
        Origin a, b;
    };
    struct Admission {
        bool told = false;
        int64_t ends = 0;  // errors with which a match may end there, or more
        bool whole = true;
        double later = 0;  // levels that terms of which nothing is known before add at most
        std::vector<Told> terms;
    };
    void look_ahead();
    static bool origin(const Arc& arc, uint32_t slot, Origin& found);
    std::vector<Admission> admission_;  // by arc
    void log_birth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark own, int64_t age);
    void log_end(const NodeList& list, Mark own, int64_t when, EndReason how);
    void log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition);
    uint8_t chance() { return static_cast<uint8_t>(mixed(++drawn_ * 0x9E3779B97F4A7C15u + seed_) >> 56); }
    bool affords_still(int64_t touches);
    // The number of a term; `held` gives the word in slot a, or b, if there is one.
    template <class Held>
    double number(const Term& term, uint32_t partition, Held&& held) const {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        if (term.kind == Term::partition) {
            return static_cast<double>(key_hash(partition, table_.key_texts) % Term::buckets);
        }
        int64_t word = 0, other = 0;
        if (!held(false, word)) return none;
        if (term.kind >= Term::hashed) {
            return static_cast<double>(mixed(word_hash(texts_, word, term.kind == Term::text, !bounded())) % Term::buckets);
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
    // The mark of a node, of which all is known then.
    Mark whole_mark(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark own = mark(list, row, state);
        if (!own.put_off) return own;
        own.put_off = false;
        own.feature = worth(list, row, state, partition);
        set_mark(list, row, state, own);
        return own;
    }
    // What a node's level comes to, and as a level; `nothing`: it is worth nothing whatever else is known.
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
    // Of times that a state may hold, which need not be sensible.
    static int64_t apart(int64_t now, int64_t then) {
        return static_cast<int64_t>(static_cast<uint64_t>(now) - static_cast<uint64_t>(then));
    }
    // The bin of what is left of the window: as it is defined, and by the ages at which bins end.
    int64_t window_by(int64_t age) const {
        const auto rest = static_cast<double>(apart(tables_.span, age)), windows = static_cast<double>(table_.windows);
        const auto bin = static_cast<int64_t>(rest * windows / (static_cast<double>(tables_.span) + 1));
        return std::clamp<int64_t>(bin, 0, table_.windows - 1);
    }
    int64_t window_at(int64_t age) const {
        if (table_.windows == 1) return 0;
        if (window_bounds_.empty() || age < 0 || age > tables_.span) return window_by(age);
        // What is rounded makes a bin of difference at most.
        const auto rest = static_cast<double>(tables_.span - age);
        const int64_t near = std::min(static_cast<int64_t>(rest * bins_a_tick_), table_.windows - 1);
        const int64_t* end = window_bounds_.data() + near;
        return near - (age >= end[0] ? 1 : 0) + (age < end[1] ? 1 : 0);
    }
    void set_bounds();
    static uint32_t clamped(int64_t sum) { return sum == nothing ? 0 : static_cast<uint32_t>(std::clamp<int64_t>(sum, 1, most_level)); }
    uint32_t level(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now, uint32_t births) const {
        return clamped(sum(state, error, start, made, mark, now, births));
    }
    // `grown`: not only for its age.
    void prune(NodeList& list, uint32_t state, int64_t now, int64_t low, bool grown);
    uint32_t choose(NodeList& list, uint32_t state);
    uint32_t choose_few(NodeList& list, uint32_t state);
    // A node is not worth its price.
    void drop(NodeList& list, uint32_t row, uint32_t state, int64_t now);
    double reserve() const;
    double lent_mean_ = 0;    // touches an event in units that are spared, of late
    double held_ = 0;         // touches held back for units that are spared
    int64_t shadowed_ = 0;    // spent when their lists were last gone to
    // What is known of the units of a partition: the present one, whether it is spared, and since when not all is known.
    struct Drawn {
        int64_t begin = 0, end = 0;  // of the last unit that was asked for
        uint64_t draw = 0;
    };
    struct SamplingUnit {
        int64_t begin = std::numeric_limits<int64_t>::min(), blind = std::numeric_limits<int64_t>::min();
        int64_t share = 0;  // of 2^32 units, so many are spared; 0: this one is not
        int64_t losses = 0;
        int64_t again = 0;  // where all of a partition is one unit: how many keys had its number before
    };
    int64_t unit_length() const;  // -1: all of a partition is one
    bool within(const SamplingUnit& unit, int64_t now) const;
    SamplingUnitAt drawn_unit(uint32_t partition, int64_t now);
    void note(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind);
    uint64_t key_hash(uint32_t partition, uint32_t texts) const;

    const Tables& tables_;
    const Texts& texts_;
    const Partitions& partitions_;
    const uint64_t seed_;
    uint32_t here_ = 0;
    bool sparing_ = false;    // units were spared
    bool from_start_ = false; // since the first event
    std::vector<SamplingUnit> units_; // by partition
    std::vector<Drawn> drawn_units_;  // the same, where memory is not bound
    SheddingTable table_;
    std::vector<uint8_t> tells_;  // by state: whether registers tell something
    bool puts_off_ = false;
    double rate_ = -1;        // touches an event; negative: no bound
    double granted_ = 0;      // up to event `since_`
    int64_t since_ = 0;
    double most_carried_ = 0;
    int64_t hit_ = -1;  // the last event that completed a match
    int64_t arrived_ = 0;
    int64_t touches_ = 0;
    int64_t paced_ = 0;
    int64_t paced_spent_ = 0;
    int64_t sure_ = std::numeric_limits<int64_t>::min();  // so much may be spent, until something is taken back
    std::vector<int64_t> window_bounds_;  // by bin, the least age that is not in it or a later one; and one for none
    double bins_a_tick_ = 0;
    std::vector<int64_t> wait_bounds_;    // rising
    double step_ = 4;         // of the price
    double surge_ = 0;        // of it, what was added in need and goes again
    double mean_ = 0;         // touches an event, of late, of what is not spared
    int64_t lent_ = 0;        // touches in units that are spared, when the price was last looked at
    // Whether one more row of the log might be too much: vectors double.
    bool bounded() const { return most_log_ != std::numeric_limits<int64_t>::max(); }
    bool crowded() const {
        const size_t rows = trajectories.made.size() * (sizeof(Trajectories::Made) + sizeof(double) * table_.most_terms) +
                            trajectories.ended.size() * sizeof(Trajectories::Ended) + trajectories.found.size() * sizeof(Trajectories::Found) +
                            trajectories.points.size() * sizeof(Trajectories::Point);
        return static_cast<int64_t>(2 * rows + open_.size() * (open_bytes + 2 * sizeof(Trajectories::Ended)) + 1024) > most_log_;
    }
    static constexpr size_t open_bytes = 64;  // of a life in `open_`
    int64_t most_log_ = std::numeric_limits<int64_t>::max();
    bool calm_ = false;
    bool changed_ = true;
    // What there is from now on has nothing to do with what there was.
    void recount() {
        changed_ = true;
        sure_ = std::numeric_limits<int64_t>::min();
    }
    int64_t denied_ = 0;      // touches that there was no allowance for, since then
    uint64_t drawn_ = 0;      // chances so far
    uint32_t next_trajectory_ = 0;
    std::unordered_map<uint32_t, int64_t> open_;  // logged nodes that live: the touches of their list when they were made
    std::vector<uint32_t> levels_;  // of the nodes of a list
    mutable std::vector<uint64_t> key_hashes_;  // of partitions; 0: not known
    std::vector<uint32_t> rows_;
};

}  // namespace acep
