// A search that keeps to an allowance of rows to look at. While the allowance suffices it is the exact run. Else each
// event that may end a match has a limit on its search, by what searches have cost and found; some are searched to the
// end, which tells what the others miss (docs/internals/search.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "search/search_costs.hpp"
#include "search/switching.hpp"
#include "shedding/allowance.hpp"

namespace acep {

// The search engine under a budget: where the allowance does not suffice, searches have limits, and some are not
// begun.
class BudgetedSearchEngine final : public Engine {
public:
    // How the values of a column are told apart: in order of their words, as doubles, or by their texts.
    enum class ValueKind : uint8_t { word = 0, real = 1, text = 2 };

    BudgetedSearchEngine(Tables tables, const Dominance& dominance, EventClassifier& classifier, Partitions& partitions)
        : Engine(std::move(tables), classifier, partitions),
          switching_(tables_, dominance, classifier, partitions),
          search_(switching_.search()) {}

    // Set the seed, the kinds of the session's columns, the texts among the parts of the key (as bits), the share of
    // the allowance that searches to the end may cost beside the others, and the number of events whose allowance may
    // be spent ahead; call it before any event.
    void start(uint64_t seed, const std::vector<ValueKind>& kinds, uint32_t key_texts, double sampling, double ahead);
    // Set the touches per event after `seen` events (negative: unlimited), and the most unused touches to carry over.
    void allow(double rate, double most_carried, int64_t seen);

    // Return the plan of the search.
    const SearchPlan& plan() const { return switching_.plan(); }
    Output& output() override { return switching_.output(); }
    const Work& work() const override { return switching_.work(); }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override { switching_.advance(clock); }
    bool expire_partition(uint32_t partition, int64_t soonest) override {
        return switching_.expire_partition(partition, soonest);
    }
    void forget(uint32_t partition) override;
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override {
        switching_.expect(batch, from, stream_row, last);
    }
    void take_ways(Taking index, Taking future) override { switching_.take_ways(index, future); }
    void used_texts(UsedTexts& used) const override { switching_.used_texts(used); }
    void used_ids(std::vector<int64_t>& ids) const override { switching_.used_ids(ids); }
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override {
        return switching_.bytes() + costs_[0].bytes() + costs_[1].bytes() +
               heap_bytes(features_, last_points_, moments_);
    }
    int64_t partial_matches(int64_t clock) const override { return switching_.partial_matches(clock); }

    // Return the touches left of the allowance.
    double tokens() const { return allowance_.up_to(arrived) - static_cast<double>(work().touches); }
    // Return whether the allowance does not suffice.
    bool is_short() const { return short_; }

    // Counts of match points and searches. All events of a partition with one time are one match point, if any of them
    // ends a match. They are searched from to the end together, or each within its limit until one is found to end a
    // match.
    struct Sums {
        int64_t points = 0;  // found
        int64_t given_up = 0;  // searches that were not ended
        int64_t sampled = 0;  // times that are searched to the end, drawn with some probability p
        int64_t unknown = 0;  // those of them that were given up all the same
        int64_t extra = 0;  // match points that only these have found, as their limit was less than the cost
        int64_t limited = 0;  // times with limits, of which some were sampled
        double weights = 0;  // sum of 1 / p over them
        double missed = 0, missed_variance = 0;  // sums of 1 / p and (1 - p) / p^2 over the extra ones
        double unknown_missed = 0;  // sum of 1 / p over the unknown ones
    };
    // Return the counts so far.
    const Sums& sums() const { return sums_; }

private:
    static constexpr int64_t pace = 128;  // events between two looks at the allowance
    static constexpr int64_t plan_events = 4096;  // between two choices of limits,
    static constexpr int64_t first_plan = 256;  // at first
    static constexpr double spread = 8192;  // number of events over which touches that are left, or lacking, are spread
    static constexpr double nearly = 0.9;  // of what may be carried over: enough for an exact run
    static constexpr double first_share = 1.0 / 8, least_share = 0x1p-20,
                            most_share = 1.0 / 2;  // of sampled searches
    static constexpr double few = 64;  // searches to the end from which on their share is set by what they cost
    // The feature that tells searches apart: the partition, how recently a match ended there, or the value of a column.
    struct Feature {
        // The kind of feature; `values` and `place` are those of a column.
        enum Kind : uint8_t { partition, recency, value } kind;
        ValueKind values;
        size_t place;
    };

    // A search has a level for matches without errors, and one for the others. The first one comes first, also where
    // the allowance is chosen.
    static constexpr size_t most_levels = 2;
    using Limits = std::array<int64_t, most_levels>;
    // The outcome of a search.
    struct Outcome {
        std::array<int64_t, most_levels> cost{};
        size_t reached = 0;  // how many levels it came to, and how many of these were searched
        size_t searched = 0;
        bool success = false;  // at the last level that was searched
        bool given_up = false;
    };

    // The last time of a partition with events that may end matches.
    struct Moment {
        int64_t time = NEVER;
        double weight = 1;  // 1 / p
        bool is_sampled = false;
        bool is_extra = false;  // only a search to the end has found the match point
        bool is_found = false;  // within the limits
        bool is_unknown = false;
    };

    // Write or read the state beside the search, its notes and its costs.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Return the touches that may be spent ahead of the allowance.
    double overdraft() const { return std::min(allowance_.rate * ahead_, allowance_.most_carried); }
    // Return a value of the current event by which searches are told apart; NEVER: it has none.
    int64_t key_of(const Feature& feature, uint32_t partition, int64_t now);
    // Give up what is more than may be carried over; see whether the allowance suffices again, or may soon not do
    // so.
    void check_allowance();
    // Begin to limit searches, as the allowance does not suffice.
    void begin_short();
    // Choose limits for the next events: by what was allowed for those since the last choice, and what is left.
    // Matches with errors have what those without leave.
    void choose();
    // Process an event exactly, and note what its search costs.
    void watch(uint32_t partition, const Event& event);
    // Process an event while the allowance does not suffice for all.
    void decide(uint32_t partition, const Event& event);
    // Search from an event within its limits, or to the end, and count what became of it.
    void search_one(uint32_t partition, const Event& event, Moment& now);
    // Return the limits of a search from the current event.
    Limits limits_for(uint32_t partition, int64_t now);
    // Search within limits, and give the match point if there is one.
    Outcome search_within(uint32_t partition, const Event& event, const Limits& limits);
    // Return the share of searches to the end. Where much more than may be spent ahead is lacking, it is less.
    double share_now() const;
    // Return what is known of the current time of a partition.
    Moment& moment(uint32_t partition, int64_t now);
    // Note that a match ends in a partition.
    void note_point(uint32_t partition, int64_t now);
    // Set `keys_` to the values of all features for the current event.
    void take_keys(uint32_t partition, int64_t now);
    // Note what a search to the end has cost, by the keys that the event had before it.
    void note(const Outcome& outcome);
    // Return the next random number, in [0, 1).
    double random();

    SwitchingEngine switching_;
    SearchEngine& search_;
    Allowance allowance_;
    std::array<SearchCosts, most_levels> costs_;
    size_t levels_ = 1;
    std::vector<Feature> features_;
    std::vector<int64_t> last_points_;  // by partition: time of the last match point
    std::vector<Moment> moments_;  // by partition
    std::vector<int64_t> keys_;
    uint64_t seed_ = 0, drawn_ = 0;
    uint32_t key_texts_ = 0;
    double sampling_ = 0, ahead_ = 0;
    bool watching_ = false;  // what searches cost is noted, as the allowance may not suffice
    bool short_ = false;  // the allowance does not suffice
    double share_ = first_share;
    int64_t checked_ = 0, planned_ = 0,
            plan_after_ = first_plan;  // events at the last check and choice; until the next one
    std::array<int64_t, most_levels> reached_{};  // searches that reached each level since the last choice
    Sums sums_;
};

}  // namespace acep
