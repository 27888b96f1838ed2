// Load shedding: drops partial matches of low utility if the budget is insufficient for all, and logs the trajectories
// of partial matches (docs/explanation/best_effort.md). Utilities come from a shedding table (shedding_table.hpp).
#pragma once

#include <algorithm>
#include <bit>
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
#include "shedding/admission.hpp"
#include "shedding/allowance.hpp"
#include "shedding/mark.hpp"
#include "shedding/match_vectors.hpp"
#include "shedding/sampling_unit.hpp"
#include "shedding/shadow_sample.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/trajectories.hpp"

namespace acep {

class Shedding {
public:
    // The number of slots of every partial match after its registers: the time when it was made, and its Mark.
    static constexpr uint32_t hidden = 2;
    static constexpr uint32_t least_room = 64;
    static constexpr size_t most_logged = 1 << 14;  // at this length of the log no further starts are logged
    static constexpr size_t most_at_all = 1 << 16;  // at this length no trajectories are logged at all
    static constexpr int64_t pace = 128;  // events between two updates of the utility threshold
    static constexpr uint64_t most_unseen = uint64_t{1} << 28;  // the most of 2^32 units sampled for `calm`
    static constexpr int64_t unit_bytes = 72;  // bytes kept per partition
    static constexpr int64_t decided_a_touch = 4;  // utility look-ups that cost as much as a touch

    Shedding(const Tables& tables, const Texts& texts, const Partitions& partitions, uint64_t seed)
        : tables_(tables), texts_(texts), partitions_(partitions), seed_(mixed(seed)) {}

    // The table and the budget -------------------------------------------------------------------

    void set(SheddingTable table);
    void shadow_sample(uint64_t share);  // set how many of 2^32 units are shadow-sampled
    const SheddingTable& table() const { return table_; }
    // Set the touches per event from now on (negative: unlimited), and the most unused ones to carry over. `credit`: more of
    // them at once.
    void allow(double rate, double most_carried, int64_t arrived, double credit = 0);
    // Bound the bytes of the log; partial matches beyond it are not logged.
    void bound_log(int64_t bytes) {
        most_log_ = bytes;
        changed_ = true;
    }

    // Start an event. `arrived` events have come, including it, and `touches` touches were spent before it. Events
    // that are matched `again` are not logged, and their match points were counted.
    void arrive(uint32_t partition, int64_t arrived, int64_t touches, bool again) {
        here_ = partition;
        again_ = again;
        arrived_ = arrived;
        touches_ = touches;
        if (arrived - pace_.paced >= pace) adjust();
    }
    void touched(int64_t touches) { touches_ = touches; }
    void deny() { ++pace_.denied; }
    int64_t deciding() const { return decided / decided_a_touch; }
    int64_t spent() const { return touches_ + deciding(); }
    // Return the touches left of the budget.
    double tokens() const { return granted() - static_cast<double>(spent()); }
    bool limited() const { return allowance_.rate >= 0; }
    // Return whether the budget suffices for some more touches. A part is held back for the shadow sample. Without it,
    // the sample would be cut short when little is left, and losses would be unknown. Beyond that part, the bursts of
    // the sample must not use up the reserve, or no matches would be found elsewhere for a while.
    bool affords(int64_t touches = 1) { return (!shadow && spent() + touches <= sure_) || affords_still(touches); }
    double afforded() const {
        return shadow ? std::max(std::min(held(), tokens()),
                                 tokens() - std::min(reserve(), granted()) * ShadowSample::untouched)
                      : tokens() - held();
    }
    // Return whether partial matches need not be observed while tokens suffice: nothing is dropped, and the shadow sample is
    // small.
    bool may_rest() const { return limited() && price <= 0 && !bounded() && table_.shadow <= most_unseen; }
    // Return whether the allowance has become sufficient again.
    bool calm() const { return pace_.calm && may_rest(); }
    // Return the tokens that are left when a rest ends, so that there is something to learn from before they are spent.
    double kept_for_learning() const;
    // Return whether, since the last call, `may_rest` may have changed or the budget shrunk for other reasons than touches.
    bool changed() { return std::exchange(changed_, false); }

    // Admission ----------------------------------------------------------------------------------

    // Return whether the partial matches of an arc must and can be scored before they are made (admission.cpp).
    bool foresees(const Arc& arc) const {
        return price > 0 && !shadow && arc.number < admission_.size() && admission_[arc.number].scorable;
    }
    // Return whether a partial match is admitted before an arc makes it. `mark`: that of the parent, then its own.
    bool foresee(const Arc& arc, const Coming& coming, Mark& mark);
    // Return whether a new partial match is admitted, and set its feature and chance.
    bool admit(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now) {
        int64_t& word = made.slot(tables_.states[state].slots - 1)[row];
        if ((word & Mark::decided_bit) == 0) return weigh(made, row, state, partition, now, Mark::of(word));
        word &= ~Mark::decided_bit;
        return true;
    }
    // Return whether an event of some classes is admitted. `oldest`: the earliest start in its partition.
    bool admits(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest);
    // The utility that registers add is computed when it is first needed, as few partial matches need it while the
    // threshold is 0. Before the shedding table changes, it is computed for all. `puts_off` returns whether any partial
    // match lacks it; `catch_up` computes it for a list.
    bool puts_off() { return std::exchange(puts_off_, false); }
    void catch_up(NodeList& list, uint32_t state, uint32_t partition);

    // Eviction -----------------------------------------------------------------------------------

    // Before an event evaluates the partial matches of a list, at `arcs` touches each, drop those below the utility
    // threshold, and those for which the budget is insufficient.
    void tend(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs);
    // Append a score for each partial match of a list to `scores`, to choose among them if memory is short: its utility
    // bucket, less `decay` for each better one of the list; equal ones rank by `ties`.
    void score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores);
    bool clears() const { return table_.clears && price > 0; }
    // Return the utility bucket of a partial match at `now`, 0 if it has no utility; -1 before there is a table. Nothing is
    // recorded, and no cost counted.
    int64_t utility(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, int64_t now) const;

    // The shadow sample --------------------------------------------------------------------------

    // Return whether partial matches that begin with an event are shadow-sampled. Call it for each such event.
    bool is_shadow(uint32_t partition, int64_t now);
    // Begin and end work on the lists of the shadow sample.
    void enter(int64_t touches) {
        touched(touches);
        shadow = true;
        sample_.entered = spent();
    }
    void leave(int64_t touches) {
        touched(touches);
        sample_.held = held();
        shadow_sampling += spent() - sample_.entered;
        shadow = false;
    }
    // Record that partial matches of a shadow-sampled unit were given up at `now`.
    void lose(uint32_t partition, int64_t now);
    void lose(int64_t now) { lose(here_, now); }
    // Give up a shadow-sampled unit until it ends.
    void give_up_unit(uint32_t partition, int64_t now) {
        lose(partition, now);
        if (partition < sample_.units.size()) sample_.units[partition].losses = ShadowSample::most_losses;
    }
    const ShadowSample& sample() const { return sample_; }
    // Start to watch partial matches, and note whether all events are watched.
    void alert() {
        sample_.from_start = sample_.from_start && arrived_ <= 1;
        rests_ = pace_.calm = false;
    }
    // Note that nothing of a partition was watched up to `now`.
    void note_unwatched(uint32_t partition, int64_t now) {
        if (partition < sample_.units.size()) sample_.units[partition].blind = now;
    }
    // Watch partial matches no longer: the log has the end of none of them.
    void rest() {
        rests_ = true;
        open_.clear();
        puts_off_ = false;
    }
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition) {
        if (partition < key_hashes_.size()) key_hashes_[partition] = 0;
        if (partition < sample_.drawn.size()) sample_.drawn[partition] = {};
        if (partition < sample_.units.size() && (unit_length() < 0 || tables_.counted)) {
            ShadowUnit fresh;
            fresh.again = sample_.units[partition].again + 1;
            if (unit_length() >= 0) fresh.blind = -1;  // a key that returns was not fully followed
            sample_.units[partition] = fresh;
        }
    }

    // The log ------------------------------------------------------------------------------------

    // Return the mark of partial matches that begin with an event.
    Mark begin(uint32_t partition, const Event& event);
    // Log a new partial match, which is in its list with the mark inherited from its parent.
    void born(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark own = mark(list, row, state);
        const int64_t age = own.birth;
        own.birth = static_cast<uint16_t>(list.births);
        list.births = (list.births + 1) & 0xFFFFu;
        if (own.trajectory == Mark::unlogged || trajectories.made.size() >= most_at_all || crowded()) {
            own.trajectory = Mark::unlogged;
            return set_mark(list, row, state, own);
        }
        log_birth(list, row, state, partition, own, age);
    }
    // Log that a new partial match, with mark `parent`, was united with the equal one in a row.
    void joined(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now);
    void died(NodeList& list, uint32_t row, uint32_t state, int64_t when, EndReason how) {
        if (const Mark own = mark(list, row, state); own.logged()) log_end(list, own, when, how);
    }
    // Record that the current event completes a match.
    void hit() { points += std::exchange(hit_, arrived_) != arrived_ && !again_ ? 1 : 0; }
    void found(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error);
    bool logs() const { return !open_.empty() || table_.sample != 0 || table_.shadow != 0; }

    // The hidden slots ---------------------------------------------------------------------------

    Mark mark(NodeList& list, uint32_t row, uint32_t state) const {
        return Mark::of(list.slot(tables_.states[state].slots - 1)[row]);
    }
    void set_mark(NodeList& list, uint32_t row, uint32_t state, Mark mark) const {
        list.slot(tables_.states[state].slots - 1)[row] = mark.word();
    }
    int64_t made(NodeList& list, uint32_t row, uint32_t state) const {
        return list.slot(tables_.states[state].slots - 2)[row];
    }
    // Return the time when a partial match that began at `start` leaves the window.
    int64_t expiry(int64_t start) const {
        int64_t end;
        return __builtin_add_overflow(start, tables_.span, &end) ? std::numeric_limits<int64_t>::max() : end;
    }

    void fields(Writer& out) const;
    void fields(Reader& in);
    int64_t bytes() const;
    int64_t order_bytes() const;
    void shrink();

    bool shadow = false;  // the partial matches being processed are shadow-sampled
    int64_t decided = 0;  // number of utility look-ups
    int64_t refused = 0;  // new partial matches that were not kept
    int64_t dropped = 0;  // partial matches that were removed later
    int64_t passed_over = 0;  // events that were skipped
    int64_t turned_away = 0;  // those of them skipped for lack of room for another key
    int64_t points = 0;  // match points, without those found by the shadow sample alone
    int64_t withheld = 0;  // match points for which some matches were not written
    int64_t shadow_sampling = 0;  // touches of the shadow sample
    int64_t weighed = 0;  // partial matches whose terms were computed, in this session
    double price = 0;  // utility threshold, in buckets
    Trajectories trajectories;

private:
    static constexpr size_t open_bytes = 64;  // of an entry of `open_`
    static constexpr int64_t endless = std::numeric_limits<int64_t>::max();

    template <class Archive>
    static void fields(auto& self, Archive& archive);

    // The budget.
    double granted() const { return allowance_.up_to(arrived_); }
    double reserve() const;
    // Return the touches held back for the shadow sample.
    double held() const {
        return shadow ? std::max(0.0, sample_.held - static_cast<double>(spent() - sample_.entered)) : sample_.held;
    }
    bool affords_still(int64_t touches);
    void adjust();
    // Discard what was derived from the previous budget and table.
    void recount() {
        changed_ = true;
        sure_ = std::numeric_limits<int64_t>::min();
    }

    // Utility.
    uint8_t chance() { return static_cast<uint8_t>(mixed(++drawn_ * golden_step + seed_) >> 56); }
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
    uint8_t worth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) const;
    // Return the mark of a partial match, and complete it if its utility was put off.
    Mark whole_mark(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark own = mark(list, row, state);
        if (!own.put_off) return own;
        own.put_off = false;
        ++weighed;
        own.feature = worth(list, row, state, partition);
        set_mark(list, row, state, own);
        return own;
    }
    // Return the utility bucket of a partial match before it is clamped; `nothing`: its vector has no utility.
    static constexpr int64_t nothing = std::numeric_limits<int64_t>::min();
    int64_t sum(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                uint32_t births) const {
        const int64_t found = table_.level[vectors_.at(state, error, start, made, mark.feature, now)];
        if (found == 0) return nothing;
        const auto age = static_cast<size_t>(std::bit_width((births - mark.birth) & 0xFFFFu));
        return found + (table_.features == 1 ? mark.feature - 128 : 0) + (mark.chance * table_.noise >> 6) +
               table_.later[state * SheddingTable::ages + std::min(age, SheddingTable::ages - 1)];
    }
    static uint32_t clamped(int64_t sum) {
        return sum == nothing ? 0 : static_cast<uint32_t>(std::clamp<int64_t>(sum, 1, SheddingTable::most_level));
    }
    uint32_t level(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                   uint32_t births) const {
        return clamped(sum(state, error, start, made, mark, now, births));
    }

    // Admission and eviction.
    void look_ahead();
    static bool origin(const Arc& arc, uint32_t slot, Origin& found);
    bool weigh(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark own);
    // Prune a list. `grown`: it has grown, or the threshold has risen; else it is pruned for its age.
    void prune(NodeList& list, uint32_t state, int64_t now, int64_t low, bool grown);
    uint32_t choose(NodeList& list, uint32_t state);
    uint32_t choose_few(NodeList& list, uint32_t state);
    // Count and log a partial match that is shed.
    void drop(NodeList& list, uint32_t row, uint32_t state, int64_t now);

    // The shadow sample and the log.
    int64_t unit_length() const;  // -1: each partition is one unit
    bool within(const ShadowUnit& unit, int64_t now) const;
    SamplingUnitAt drawn_unit(uint32_t partition, int64_t now);
    void note(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind);
    uint64_t key_hash(uint32_t partition, uint32_t texts) const;
    uint32_t new_trajectory() { return std::exchange(next_trajectory_, (next_trajectory_ + 1) % Mark::fresh); }
    void log_birth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark own, int64_t age);
    void log_end(const NodeList& list, Mark own, int64_t when, EndReason how);
    void log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition);
    bool bounded() const { return most_log_ != endless; }
    // Return whether one more row of the log may exceed its bound, as vectors double.
    bool crowded() const {
        const size_t rows =
            trajectories.made.size() * (sizeof(Trajectories::Made) + sizeof(double) * table_.most_terms) +
            trajectories.ended.size() * sizeof(Trajectories::Ended) +
            trajectories.found.size() * sizeof(Trajectories::Found) +
            trajectories.points.size() * sizeof(Trajectories::Point);
        return static_cast<int64_t>(2 * rows + open_.size() * (open_bytes + 2 * sizeof(Trajectories::Ended)) + 1024) >
               most_log_;
    }

    const Tables& tables_;
    const Texts& texts_;
    const Partitions& partitions_;
    const uint64_t seed_;
    uint32_t here_ = 0;  // partition of the current event
    int64_t arrived_ = 0;
    bool again_ = false;
    int64_t touches_ = 0;
    int64_t hit_ = -1;  // the last event that completed a match
    int64_t sure_ = std::numeric_limits<int64_t>::min();  // the budget suffices while `spent` is at most this
    bool changed_ = true;
    bool rests_ = true;  // partial matches are not watched
    SheddingTable table_;
    MatchVectors vectors_;
    Allowance allowance_;
    ThresholdPace pace_;
    ShadowSample sample_;
    std::vector<ArcAdmission> admission_;  // by arc
    std::vector<uint8_t> tells_;  // by state: whether registers add utility
    bool puts_off_ = false;
    uint64_t drawn_ = 0;  // number of chances drawn so far
    uint32_t next_trajectory_ = 0;
    std::unordered_map<uint32_t, int64_t> open_;  // by open trajectory: `touched` of its list when made
    int64_t most_log_ = endless;  // bytes
    mutable std::vector<uint64_t> key_hashes_;  // by partition; 0: not computed yet
    std::vector<uint32_t> levels_, rows_;  // of the partial matches of a list
};

}  // namespace acep
