// The costs and successes of searches, by a feature of the event that they begin at; and the limits on the rows that a
// search may look at with which searches find most match points for an allowance.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/state.hpp"

namespace acep {

// How many searches of each cost there were, what they cost together, and how many of them found a match.
struct CostHistogram {
    static constexpr size_t steps = 33;  // of cost: step k has those above edge(k - 1), up to edge(k)
    std::array<float, steps> searches{}, cost{}, successes{};

    // 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, ... 65,536.
    static constexpr int64_t edge(size_t step) {
        if (step < 2) return static_cast<int64_t>(step);
        return step % 2 == 0 ? int64_t{1} << (step / 2) : int64_t{3} << ((step - 3) / 2);
    }
    // Return the step of a cost: the first whose edge is not below it.
    static size_t step_of(int64_t cost);
    // Add a search.
    void add(int64_t cost, bool success);
    // Add a part of what another one has.
    void add(const CostHistogram& other, float part);
};

// The costs of searches to the end, by features of their events, and the limits that this suggests.
class SearchCosts {
public:
    static constexpr size_t bins = 17;  // of a feature; the last one has events without a value
    static constexpr size_t no_value = bins - 1;
    static constexpr int64_t endless = int64_t{1} << 20;  // more than any search may cost

    static constexpr int64_t no_search = -1;

    // Begin with features, which are `ranked` or else have at most 16 values; the first one is taken until more is
    // known.
    explicit SearchCosts(std::vector<bool> ranked = {});
    // Note a search that was not limited. `keys`: by feature, the value of the event; NEVER: none.
    void add(std::span<const int64_t> keys, int64_t cost, bool success);
    // Choose a feature, and the limit of each of its bins, so that a search costs `allowed` on average.
    void choose(double allowed);
    // Return how many rows a search may look at, or `no_search`, for an event with this value of the chosen feature.
    // `chance`: a random number in [0, 1).
    int64_t limit(int64_t key, double chance) const;
    // Return the number of the feature by which limits are chosen.
    size_t feature() const { return chosen_; }
    double size() const { return size_; }  // searches that are noted; older ones weigh less
    double mean() const { return size_ > 0 ? cost_ / size_ : 0; }  // cost of a search
    double expected() const { return expected_; }  // cost of a search within the limits that were chosen

    // Write or read what was noted.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Write what was noted, and the limits.
    void dump(Writer& out) const;
    // Read what `dump` wrote.
    void load(Reader& in);
    // Return the bytes on the heap.
    int64_t bytes() const;

private:
    static constexpr size_t few_rows = 16, first_rows = 128;  // from which limits, and bins of features, are chosen
    static constexpr double most_size = 8192;  // from which on older searches weigh less
    static constexpr float others = 8;  // searches of all bins that each bin is taken to have had besides its own
    // Limits by bin: `low`, and in one bin `high` with some chance.
    struct Limits {
        std::array<int64_t, bins> low{};
        size_t bin = 0;
        int64_t high = 0;
        double chance = 0;
    };

    // Return the bin of a feature's value.
    size_t bin_of(size_t feature, int64_t key) const;
    // Add a search to the histograms of all features.
    void note(std::span<const int64_t> keys, int64_t cost, bool success);
    // Set the bounds of bins so that the first searches are in equal parts, and note these.
    void set_bounds();
    // Find the limits by bin that give most successes for a budget, as a fractional knapsack: of each bin, the
    // limits on the upper convex hull of successes by cost. Return the successes to expect.
    double best_limits(std::span<const CostHistogram> histograms, double budget, Limits& limits, double& spent) const;

    std::vector<bool> ranked_;
    std::vector<std::vector<int64_t>> bounds_;  // by feature that is ranked: the least values of its bins but the first
    std::vector<int64_t> first_;  // of the first searches: values by feature, cost, success
    std::vector<std::array<CostHistogram, bins>> histograms_;  // by feature
    double size_ = 0, cost_ = 0, expected_ = 0;
    size_t chosen_ = 0;
    Limits limits_;
};

}  // namespace acep
