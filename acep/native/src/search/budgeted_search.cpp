// Searching within an allowance.
#include "search/budgeted_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/hash.hpp"
#include "shedding/sampling_unit.hpp"

namespace acep {
namespace {

constexpr size_t most_values = 6;  // columns by which searches are told apart
constexpr uint64_t kinds_of_hash = 16;
constexpr double last_part = 0.75;  // of what may be spent ahead; the rest is for matches without errors
constexpr double most_ahead = 4096;  // events whose allowance must be left for an exact run

constexpr std::array<int64_t, 2> to_the_end = {SwitchingEngine::most_of_search, SwitchingEngine::most_of_search};

// Return a word that is in the order of a double.
int64_t ordered(int64_t word) { return word < 0 ? word ^ std::numeric_limits<int64_t>::max() : word; }

}  // namespace

void BudgetedSearchEngine::start(uint64_t seed, const std::vector<ValueKind>& kinds, uint32_t key_texts,
                                 double sampling, double ahead) {
    seed_ = mixed(seed);
    key_texts_ = key_texts;
    sampling_ = sampling;
    ahead_ = ahead;
    features_ = {{Feature::recency, ValueKind::word, 0}};
    if (partitions_.width() > 0) features_.push_back({Feature::partition, ValueKind::text, 0});
    const auto& columns = plan().columns;
    for (size_t place = 0; place < std::min(columns.size(), most_values); ++place) {
        const ValueKind kind = columns[place] < kinds.size() ? kinds[columns[place]] : ValueKind::word;
        features_.push_back({Feature::value, kind, place});
    }
    std::vector<bool> ranked;
    for (const Feature& feature : features_) {
        ranked.push_back(feature.kind == Feature::value && feature.values != ValueKind::text);
    }
    costs_.fill(SearchCosts(ranked));
    levels_ = plan().paths.back().error > 0 ? 2 : 1;
    keys_.resize(features_.size());
}

void BudgetedSearchEngine::allow(double rate, double most_carried, int64_t seen) {
    const auto spent = static_cast<double>(work().touches);
    const double left = allowance_.rate < 0 ? 0 : allowance_.up_to(seen) - spent;
    allowance_ = {rate, spent + std::min(left, most_carried), most_carried, seen};
}

int64_t BudgetedSearchEngine::key_of(const Feature& feature, uint32_t partition, int64_t now) {
    if (feature.kind == Feature::recency) {
        // How long ago a match ended in the partition, in halves of the window.
        const int64_t last = partition < last_points_.size() ? last_points_[partition] : NEVER;
        if (last == NEVER || last > now) return NEVER;
        const double since =
            (static_cast<double>(now) - static_cast<double>(last)) / (static_cast<double>(tables_.span) + 1);
        return std::clamp<int64_t>(15 + static_cast<int64_t>(std::floor(std::log2(since + 1e-9))), 0, 15);
    }
    if (feature.kind == Feature::partition) {
        const uint64_t hash = key_hash(partitions_, classifier_.texts, partition, key_texts_, true);
        return static_cast<int64_t>(mixed(hash) % kinds_of_hash);
    }
    const auto value = search_.value(feature.place);
    if (!value) return NEVER;
    if (feature.values == ValueKind::text) {
        return static_cast<int64_t>(mixed(word_hash(classifier_.texts, *value, true, true)) % kinds_of_hash);
    }
    return std::max(feature.values == ValueKind::real ? ordered(*value) : *value, NEVER + 1);
}

double BudgetedSearchEngine::random() {
    return static_cast<double>(mixed(++drawn_ * golden_step + seed_) >> 11) * 0x1p-53;
}

void BudgetedSearchEngine::event(uint32_t partition, const Event& event) {
    if (arrived - checked_ >= pace) check_allowance();
    if (short_) return decide(partition, event);
    if (watching_ && !switching_.follows()) {
        watch(partition, event);
    } else {
        switching_.arrived = arrived;
        switching_.again = again;
        const size_t rows = output().size();
        switching_.event(partition, event);
        if (output().size() > rows) note_point(partition, event.ts);
    }
    if (allowance_.rate >= 0 && tokens() < -overdraft()) begin_short();
}

void BudgetedSearchEngine::note_point(uint32_t partition, int64_t now) {
    if (last_points_.size() <= partition) last_points_.resize(size_t{partition} + 1, NEVER);
    sums_.points += last_points_[partition] == now ? 0 : 1;
    last_points_[partition] = now;
}

void BudgetedSearchEngine::check_allowance() {
    checked_ = arrived;
    if (allowance_.rate < 0) return;
    const double left = tokens();
    if (left > allowance_.most_carried) allowance_.granted -= left - allowance_.most_carried;
    if (!short_) {
        watching_ = left < -overdraft() / 2;
    } else if (left >= std::min(allowance_.rate * most_ahead, nearly * allowance_.most_carried)) {
        short_ = watching_ = false;
    } else if (arrived - planned_ >= plan_after_) {
        choose();
    }
}

void BudgetedSearchEngine::begin_short() {
    short_ = true;
    switching_.drop_nodes();
    if (costs_[0].size() < few) {
        share_ = first_share;
        plan_after_ = first_plan;
    }
    planned_ = checked_ = arrived;
    reached_ = {};
    for (SearchCosts& costs : costs_) costs.choose(allowance_.rate);
}

void BudgetedSearchEngine::choose() {
    const auto events = static_cast<double>(arrived - planned_);
    const auto many = static_cast<double>(std::max<int64_t>(reached_[0], 1));
    const double each = std::max(allowance_.rate / 16, allowance_.rate + tokens() / spread) * events / many;
    const double for_samples = std::max(sampling_, 1.0 / 64) * each;
    double left = costs_[0].size() >= few ? each - for_samples : each, extra = 0;
    for (size_t level = 0; level < levels_; ++level) {
        SearchCosts& costs = costs_[level];
        const double part = level == 0 ? 1 : std::max(static_cast<double>(reached_[level]) / many, 1e-3);
        costs.choose(std::max(left, 0.0) / part);
        left -= part * costs.expected();
        extra += part * std::max(costs.mean() - costs.expected(), 0.0);
    }
    if (costs_[0].size() >= few) {
        // It rises slowly, as a search of a small share stands for many of a time in which few were drawn.
        const double wanted = std::clamp(extra > 0 ? for_samples / extra : most_share, least_share, most_share);
        share_ = wanted < share_ ? std::max(wanted, share_ / 4) : share_ + (wanted - share_) / 4;
    }
    planned_ = arrived;
    plan_after_ = std::min(2 * plan_after_, plan_events);
    reached_ = {};
}

void BudgetedSearchEngine::watch(uint32_t partition, const Event& event) {
    search_.arrived = arrived;
    search_.again = again;
    if (!search_.begin(partition, event)) return;
    if (search_.may_end(partition)) {
        take_keys(partition, event.ts);
        const Outcome outcome = search_within(partition, event, to_the_end);
        note(outcome);
        if (outcome.given_up) {
            ++sums_.given_up;
            begin_short();
        }
    }
    search_.keep(partition);
}

BudgetedSearchEngine::Outcome BudgetedSearchEngine::search_within(uint32_t partition, const Event& event,
                                                                  const Limits& limits) {
    Outcome outcome;
    const Work before = search_.work();
    search_.hop_limit = SwitchingEngine::most_hops_of_search;
    for (size_t level = 0; level < levels_ && !outcome.success && !outcome.given_up; ++level) {
        ++outcome.reached;
        outcome.given_up = limits[level] == SearchCosts::no_search;
        if (outcome.given_up) break;
        const int64_t touches = search_.work().touches;
        search_.limit = limits[level];
        const int64_t error = level == 0 ? search_.least_error(partition, 0, 0) : search_.least_error(partition, 1);
        outcome.cost[level] = search_.work().touches - touches;
        outcome.given_up = search_.has_given_up();
        outcome.success = !outcome.given_up && error != SearchEngine::no_error;
        ++outcome.searched;
        if (!outcome.success) continue;
        search_.give(partition, event, error);
        note_point(partition, event.ts);
    }
    switching_.add(before);
    return outcome;
}

void BudgetedSearchEngine::take_keys(uint32_t partition, int64_t now) {
    for (size_t k = 0; k < features_.size(); ++k) keys_[k] = key_of(features_[k], partition, now);
}

void BudgetedSearchEngine::note(const Outcome& outcome) {
    for (size_t level = 0; level < outcome.searched; ++level) {
        costs_[level].add(keys_, outcome.cost[level], outcome.success && level + 1 == outcome.searched);
    }
}

BudgetedSearchEngine::Limits BudgetedSearchEngine::limits_for(uint32_t partition, int64_t now) {
    Limits limits;
    limits.fill(SearchCosts::no_search);
    for (size_t level = 0; level < levels_; ++level) {
        const double chance = random();
        const int64_t limit = costs_[level].limit(key_of(features_[costs_[level].feature()], partition, now), chance);
        limits[level] = std::min(limit, SwitchingEngine::most_of_search);
    }
    return limits;
}

double BudgetedSearchEngine::share_now() const {
    const double lacking = -tokens(), most = 2 * overdraft() + allowance_.rate * pace;
    const double part = lacking > most ? most / lacking : 1.0;
    return std::max(share_ * part * part, least_share);
}

BudgetedSearchEngine::Moment& BudgetedSearchEngine::moment(uint32_t partition, int64_t now) {
    if (moments_.size() <= partition) moments_.resize(size_t{partition} + 1);
    Moment& moment = moments_[partition];
    if (moment.time == now) return moment;
    const double share = share_now();
    moment = {now, 1 / share, random() < share, false, false, false};
    ++sums_.limited;
    sums_.weights += moment.weight;
    sums_.sampled += moment.is_sampled ? 1 : 0;
    return moment;
}

// Process an event while the allowance does not suffice for all.
void BudgetedSearchEngine::decide(uint32_t partition, const Event& event) {
    search_.arrived = arrived;
    search_.again = again;
    if (!search_.begin(partition, event)) return;
    if (search_.may_end(partition)) {
        const bool has_point = partition < last_points_.size() && last_points_[partition] == event.ts;
        Moment& now = moment(partition, event.ts);
        // A match point that is found needs no more searches, but where these tell whether limits would have sufficed,
        // or may find a match with less errors.
        if (!has_point || now.is_extra || levels_ > 1) search_one(partition, event, now);
    }
    search_.keep(partition);
}

void BudgetedSearchEngine::search_one(uint32_t partition, const Event& event, Moment& now) {
    Limits limits = limits_for(partition, event.ts);
    const double lacking = -tokens();
    if (lacking > overdraft() * last_part) limits[1] = SearchCosts::no_search;
    if (lacking > overdraft()) limits[0] = SearchCosts::no_search;
    const bool to_end = now.is_sampled && !now.is_extra;
    if (to_end) take_keys(partition, event.ts);
    const Outcome outcome = search_within(partition, event, to_end ? to_the_end : limits);
    for (size_t level = 0; level < outcome.reached; ++level) ++reached_[level];
    sums_.given_up += outcome.given_up ? 1 : 0;
    bool is_within = true;
    for (size_t level = 0; level < outcome.searched; ++level) {
        is_within = is_within && outcome.cost[level] <= limits[level];
    }
    if (to_end) {
        note(outcome);
        if (outcome.given_up && !now.is_unknown) {
            now.is_unknown = true;
            ++sums_.unknown;
            sums_.unknown_missed += now.weight;
        }
    }
    if (!outcome.success) return;
    const double variance = now.weight * (now.weight - 1);
    if (is_within && now.is_extra) {
        // The limits have found it after all, from another event.
        now.is_extra = false;
        --sums_.extra;
        sums_.missed = std::max(0.0, sums_.missed - now.weight);
        sums_.missed_variance = std::max(0.0, sums_.missed_variance - variance);
    } else if (!is_within && !now.is_found) {
        now.is_extra = true;
        ++sums_.extra;
        sums_.missed += now.weight;
        sums_.missed_variance += variance;
    }
    now.is_found = now.is_found || is_within;
}

void BudgetedSearchEngine::forget(uint32_t partition) {
    switching_.forget(partition);
    if (partition < last_points_.size()) last_points_[partition] = NEVER;
    if (partition < moments_.size()) moments_[partition] = {};
}

template <class Archive>
void BudgetedSearchEngine::fields(auto& self, Archive& archive) {
    auto& a = self.allowance_;
    auto& sums = self.sums_;
    archive.finite("allowance", a.rate, a.granted, a.most_carried, self.share_, sums.weights, sums.missed,
                   sums.missed_variance, sums.unknown_missed);
    archive.within(0, most_positions, a.since, self.checked_, self.planned_, self.plan_after_, sums.given_up,
                   sums.points, sums.limited, sums.sampled, sums.unknown, sums.extra);
    for (auto& reached : self.reached_) archive.within(0, most_positions, reached);
    archive.words(self.drawn_, self.watching_, self.short_);
    archive.size(self.last_points_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (auto& last : self.last_points_) archive.words(last);
    archive.size(self.moments_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (auto& moment : self.moments_) {
        archive.finite("weight of a search", moment.weight);
        archive.words(moment.time, moment.is_sampled, moment.is_extra, moment.is_found, moment.is_unknown);
    }
}

void BudgetedSearchEngine::dump(Writer& out) const {
    switching_.dump(out);
    search_.dump_notes(out);
    for (const SearchCosts& costs : costs_) costs.dump(out);
    fields(*this, out);
}

void BudgetedSearchEngine::load(Reader& in) {
    switching_.load(in);
    search_.load_notes(in);
    for (SearchCosts& costs : costs_) costs.load(in);
    fields(*this, in);
    for (const double number : {allowance_.rate, allowance_.granted, allowance_.most_carried}) {
        if (std::abs(number) > 1e19) bad_state("allowance");
    }
    for (const double number : {sums_.weights, sums_.missed, sums_.missed_variance, sums_.unknown_missed}) {
        if (number < 0 || number > 1e19) bad_state("sums of searches");
    }
    for (const Moment& moment : moments_) {
        if (moment.weight < 1 || moment.weight > 1 / least_share) bad_state("weight of a search");
    }
    if (!(share_ >= least_share && share_ <= most_share) || plan_after_ < 1) bad_state("share of searches");
}

}  // namespace acep
