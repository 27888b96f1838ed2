// The counting engine: it counts the matches that end with each event, by error and bundle, without enumerating any.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "counting/counting_sums.hpp"
#include "shedding/bounded_engine.hpp"

namespace acep {

// The requested result: the number of all matches; match points (Definition 2 of the 2016 paper) with the least error
// of each; bundles (Definition 3) with their numbers of matches; or rows by event that ends matches and by error.
enum class Asked { count, points, bundles, ends };

// The counting engine: numbers of runs by D-state instead of partial matches, so that no match is made.
class CountingEngine final : public BoundedEngine {
public:
    CountingEngine(Tables tables, EventClassifier& classifier, Partitions& partitions, Asked asked);

    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t) override {}
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override { used.add(rows_.keys); }
    void used_ids(std::vector<int64_t>&) const override {}
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override;
    int64_t drop(uint32_t partition, int64_t ts) override;
    // The state does not include rows that were not taken yet.
    void dump(Writer& out) const override;
    void load(Reader& in) override;

    // Final rows. A count that is too large for 64 bits is -1 there, and `large` has it with the number of its row.
    struct Rows : CountRows {
        std::vector<std::pair<size_t, BigInteger>> large;

        // Sort the rows by the events that began them: bundles come as they end.
        void sort();
    };
    // Take the final rows, in the order of the events that began them. With `all`, bundles that later matches could
    // join are closed and taken too.
    Rows take(bool all);
    // Return the number of all matches so far, by error (scaled).
    std::vector<std::pair<int64_t, BigInteger>> totals() const;

private:
    // For points, the latest start in each D-state suffices.
    struct Latest {
        uint32_t state;
        int64_t start;
    };
    // The state of a partition: latest starts, or sums in small or large numbers; `large` if small ones do not
    // suffice.
    struct Part {
        std::vector<Latest> latest;
        Sums<Small> small;
        std::unique_ptr<Sums<Large>> large;
        Bundle bundle;
        int64_t last = -1;  // position of the last event
    };
    struct Open {  // a bundle that may still grow
        int64_t best = 0;
        Amount count;
        bool any = false;
        int64_t at = 0;  // the number in the stream of the first event that ends a match of it
    };
    // The number of matches with one error.
    struct Found {
        int64_t error;
        Amount count;
    };

    // Write or read all that `dump` and `load` keep.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Count the D-states with partial matches that began at `low` or later.
    int64_t waiting(const Part& part, int64_t low) const;
    // Return the most touches that an event can need: each latest start may be bound once per variable; an update of
    // the sum of a D-state is one touch.
    size_t most_touches(const Part& part) const;
    // Count the touches that an event needs. `low`: the earliest start that counts.
    int64_t needs(const Part& part, const Event& event, int64_t low);
    // Apply an event where match points are asked for; `found_` gets the least error of the matches that end with
    // it.
    void points(Part& part, uint32_t pattern, int64_t key, int64_t low);
    // Apply an event where numbers are asked for; `found_` gets the matches that end with it, by error.
    void sums(Part& part, uint32_t pattern, int64_t key, int64_t low);
    // Add matches with one error to `found_`.
    void found(int64_t error, const Amount& count);
    // Count the matches in `found_`, or add rows for them, or add them to the partition's bundle.
    void give(Part& part, uint32_t partition, const Event& event);
    // Add a final row; without `count` it has none. `at`: the number in the stream of the event that began it.
    void row(uint32_t partition, int64_t first, int64_t last, int64_t bundle, int64_t error, const Amount* count,
             int64_t at);
    // Add the row of a partition's open bundle, if there is one, as no later match joins it.
    void close(uint32_t partition);

    Asked asked_;
    Automaton automaton_;
    std::vector<Part> parts_;
    std::vector<Open> open_;      // by partition, of bundles
    std::vector<Found> totals_;   // by error
    std::vector<Found> found_;    // matches that end with the current event, by error
    std::vector<Latest> made_;
    CountScratch<Small> small_;
    CountScratch<Large> large_;
    Rows rows_;
};

}  // namespace acep
