// Choosing limits on searches by what they have cost and found.
#include "search/search_costs.hpp"

#include <algorithm>

#include "common/arena.hpp"
#include "common/pooled.hpp"

namespace acep {
namespace {

// To go from one limit of a bin to a higher one.
struct Raise {
    double cost, successes;
    size_t bin, step;
};

}  // namespace

size_t CostHistogram::step_of(int64_t cost) {
    size_t step = 0;
    while (step + 1 < steps && edge(step) < cost) ++step;
    return step;
}

void CostHistogram::add(int64_t spent, bool success) {
    const size_t step = step_of(spent);
    searches[step] += 1;
    cost[step] += static_cast<float>(spent);
    successes[step] += success ? 1 : 0;
}

void CostHistogram::add(const CostHistogram& other, float part) {
    for (size_t step = 0; step < steps; ++step) {
        searches[step] += part * other.searches[step];
        cost[step] += part * other.cost[step];
        successes[step] += part * other.successes[step];
    }
}

SearchCosts::SearchCosts(std::vector<bool> ranked)
    : ranked_(std::move(ranked)), bounds_(ranked_.size()), histograms_(ranked_.size()) {}

size_t SearchCosts::bin_of(size_t feature, int64_t key) const {
    if (key == NEVER) return no_value;
    if (!ranked_[feature]) return static_cast<size_t>(key) % no_value;
    const auto& bounds = bounds_[feature];
    return static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), key) - bounds.begin());
}

void SearchCosts::add(std::span<const int64_t> keys, int64_t cost, bool success) {
    if (size_ < first_rows) {
        first_.insert(first_.end(), keys.begin(), keys.end());
        first_.insert(first_.end(), {cost, success ? 1 : 0});
        size_ += 1;
        cost_ += static_cast<double>(cost);
        if (size_ >= first_rows) set_bounds();
        return;
    }
    note(keys, cost, success);
    size_ += 1;
    cost_ += static_cast<double>(cost);
    if (size_ < most_size) return;
    for (auto& feature : histograms_) {
        for (CostHistogram& histogram : feature) {
            CostHistogram half;
            half.add(histogram, 0.5f);
            histogram = half;
        }
    }
    size_ /= 2;
    cost_ /= 2;
}

void SearchCosts::note(std::span<const int64_t> keys, int64_t cost, bool success) {
    for (size_t feature = 0; feature < ranked_.size(); ++feature) {
        histograms_[feature][bin_of(feature, keys[feature])].add(cost, success);
    }
}

void SearchCosts::set_bounds() {
    const size_t width = ranked_.size() + 2;
    for (size_t feature = 0; feature < ranked_.size(); ++feature) {
        std::vector<int64_t> keys;
        for (size_t at = 0; at < first_.size(); at += width) {
            if (ranked_[feature] && first_[at + feature] != NEVER) keys.push_back(first_[at + feature]);
        }
        std::ranges::sort(keys);
        auto& bounds = bounds_[feature];
        for (size_t k = 1; k < no_value && !keys.empty(); ++k) bounds.push_back(keys[k * keys.size() / no_value]);
        bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    }
    for (size_t at = 0; at < first_.size(); at += width) {
        note({first_.data() + at, ranked_.size()}, first_[at + width - 2], first_[at + width - 1] != 0);
    }
    first_ = {};
}

void SearchCosts::choose(double allowed) {
    chosen_ = 0;
    if (size_ < few_rows || ranked_.empty()) {
        // Too little is known: searches may cost a few times what they are allowed on average.
        limits_ = {};
        limits_.low.fill(std::min(endless, static_cast<int64_t>(std::min(4 * allowed, 1e9))));
        expected_ = std::min(allowed, mean());
        return;
    }
    if (size_ < first_rows) {
        CostHistogram all;
        const size_t width = ranked_.size() + 2;
        for (size_t at = width; at <= first_.size(); at += width) all.add(first_[at - 2], first_[at - 1] != 0);
        double spent = 0;
        best_limits({&all, 1}, allowed * size_, limits_, spent);
        expected_ = spent / size_;
        return;
    }
    double most = -1;
    for (size_t feature = 0; feature < ranked_.size(); ++feature) {
        Limits limits;
        double spent = 0;
        const double successes = best_limits(histograms_[feature], allowed * size_, limits, spent);
        if (successes <= most) continue;
        most = successes;
        limits_ = limits;
        chosen_ = feature;
        expected_ = spent / size_;
    }
}

double SearchCosts::best_limits(std::span<const CostHistogram> histograms, double budget, Limits& limits,
                                double& spent) const {
    CostHistogram all;
    for (const CostHistogram& histogram : histograms) all.add(histogram, 1);
    std::vector<Raise> raises;
    double successes = 0;
    spent = 0;
    for (size_t bin = 0; bin < histograms.size(); ++bin) {
        const CostHistogram& own = histograms[bin];
        CostHistogram likely = own;
        likely.add(all, others / static_cast<float>(size_));
        double many = 0, own_many = 0;
        for (size_t step = 0; step < CostHistogram::steps; ++step) {
            many += likely.searches[step];
            own_many += own.searches[step];
        }
        const double scale = own_many / many;
        const size_t begin = raises.size();
        double cost = 0, found = 0, before_cost = 0, before_found = 0;
        double left = many;
        for (size_t step = 0; step < CostHistogram::steps; ++step) {
            left -= likely.searches[step];
            cost += likely.cost[step];
            found += likely.successes[step];
            // A search that is given up has looked at one row more than its limit.
            const double total = cost + std::max(left, 0.0) * static_cast<double>(CostHistogram::edge(step) + 1);
            Raise raise{total - before_cost, found - before_found, bin, step};
            // A raise that pays more than the one before it is taken together with it.
            while (raises.size() > begin &&
                   raise.successes * raises.back().cost >= raises.back().successes * raise.cost) {
                raise.cost += raises.back().cost;
                raise.successes += raises.back().successes;
                raises.pop_back();
            }
            raises.push_back(raise);
            before_cost = total;
            before_found = found;
        }
        for (size_t k = begin; k < raises.size(); ++k) {
            raises[k].cost *= scale;
            raises[k].successes *= scale;
        }
    }
    limits = {};
    limits.low.fill(no_search);
    std::ranges::stable_sort(
        raises, [](const Raise& a, const Raise& b) { return a.successes * b.cost > b.successes * a.cost; });
    for (const Raise& raise : raises) {
        if (raise.cost <= 0 || spent + raise.cost <= budget) {
            spent += raise.cost;
            successes += raise.successes;
            limits.low[raise.bin] = raise.step + 1 == CostHistogram::steps ? endless : CostHistogram::edge(raise.step);
            continue;
        }
        const double part = std::max(0.0, (budget - spent) / raise.cost);
        limits.bin = raise.bin;
        limits.high = raise.step + 1 == CostHistogram::steps ? endless : CostHistogram::edge(raise.step);
        limits.chance = part;
        spent += part * raise.cost;
        successes += part * raise.successes;
        break;
    }
    return successes;
}

int64_t SearchCosts::limit(int64_t key, double chance) const {
    if (ranked_.empty()) return endless;
    const size_t bin = size_ < first_rows ? 0 : bin_of(chosen_, key);
    return bin == limits_.bin && chance < limits_.chance ? limits_.high : limits_.low[bin];
}

template <class Archive>
void SearchCosts::fields(auto& self, Archive& archive) {
    constexpr int64_t most_count = int64_t{1} << 40;
    archive.finite("costs of searches", self.size_, self.cost_, self.expected_, self.limits_.chance);
    archive.within(0, static_cast<int64_t>(std::max<size_t>(self.ranked_.size(), 1)), self.chosen_);
    archive.within(0, static_cast<int64_t>(bins), self.limits_.bin);
    archive.within(0, most_count, self.limits_.high);
    for (auto& low : self.limits_.low) archive.within(no_search, most_count, low);
    archive.items(self.first_);
    for (size_t feature = 0; feature < self.ranked_.size(); ++feature) {
        archive.items(self.bounds_[feature]);
        for (auto& histogram : self.histograms_[feature]) {
            archive.items(histogram.searches.data(), histogram.searches.size(), "costs of searches");
            archive.items(histogram.cost.data(), histogram.cost.size(), "costs of searches");
            archive.items(histogram.successes.data(), histogram.successes.size(), "costs of searches");
        }
    }
}

void SearchCosts::dump(Writer& out) const { fields(*this, out); }

void SearchCosts::load(Reader& in) {
    fields(*this, in);
    const auto counts = [](float number) { return number >= 0 && number <= 1e15f; };
    if (size_ < 0 || size_ > most_size || cost_ < 0 || limits_.chance < 0) bad_state("costs of searches");
    const size_t rows = size_ < first_rows ? static_cast<size_t>(size_) : 0;
    if (first_.size() != rows * (ranked_.size() + 2)) bad_state("costs of searches");
    for (size_t feature = 0; feature < ranked_.size(); ++feature) {
        const auto& bounds = bounds_[feature];
        if (bounds.size() >= no_value || !std::ranges::is_sorted(bounds)) bad_state("costs of searches");
        for (const CostHistogram& histogram : histograms_[feature]) {
            for (const auto* numbers : {&histogram.searches, &histogram.cost, &histogram.successes}) {
                if (!std::ranges::all_of(*numbers, counts)) bad_state("costs of searches");
            }
        }
    }
}

int64_t SearchCosts::bytes() const {
    int64_t total = heap_bytes(first_, histograms_, bounds_);
    for (const auto& bounds : bounds_) total += heap_bytes(bounds);
    return total;
}

}  // namespace acep
