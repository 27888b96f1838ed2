// Cluster sampling under a budget: the choice of the units to admit, and sums to estimate what skipped units held.
#include "shedding/sampling_units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/numbers.hpp"

namespace acep {
namespace {

constexpr int64_t pace = 128;  // events between two updates of the share
// Numbers of events: for the mean; whose budget is the reserve (at most half of what may be carried over); and over
// which touches beyond the reserve are spread.
constexpr double units_mean = 4096, units_reserve = 2048, units_spread = 8192;
constexpr double scarce = 1.0 / 4;  // of the reserve
constexpr double least_share = 1.0 / 256;
constexpr double slowly = 0.99;  // most that the share falls by in an update, as a factor, while there is a reserve
constexpr double at_once = 0.8;  // factor by which it falls at least after the budget was insufficient for an event
constexpr double nearly = 0.9;   // of what may be carried over: enough to admit all units again
// Larger budgets are treated like these.
constexpr double most_rate = 1e12, most_touches = 1e17, most_number = 1e19;

// Return the whole touches of a budget.
int64_t whole(double touches) {
    constexpr double most = 4e18;
    return static_cast<int64_t>(std::floor(std::clamp(touches, -most, most)));
}

}  // namespace

void SampledEngine::start(uint64_t seed, uint32_t key_texts) {
    seed_ = mixed(seed);
    key_texts_ = key_texts;
}

void SampledEngine::allow(double rate, double most_carried, int64_t seen) {
    const auto spent = static_cast<double>(behind_->work().touches);
    const double left = allowance_.rate < 0 ? 0 : allowance_.up_to(seen) - spent;
    most_carried = std::min(most_carried, most_touches);
    allowance_ = {std::min(rate, most_rate), spent + std::min(left, most_carried), most_carried, seen};
    behind_->limit = rate < 0 ? std::numeric_limits<int64_t>::max() : 0;  // set by `renew_limit` when needed
}

void SampledEngine::renew_limit() {
    const auto spent = static_cast<double>(behind_->work().touches);
    Allowance& own = allowance_;
    own.granted -= std::max(0.0, own.up_to(arrived) - spent - own.most_carried - own.rate);
    behind_->limit = whole(own.up_to(arrived));
    behind_->over_limit = false;
}

void SampledEngine::process_over_limit(uint32_t partition, const Event& event) {
    renew_limit();
    behind_->event(partition, event);
    if (!behind_->over_limit) return;
    behind_->over_limit = false;
    gated_ = true;
    certain_ += behind_->match_points - gated_points_;
    need_ = std::max(static_cast<double>(behind_->work().touches) / static_cast<double>(arrived), allowance_.rate);
    need_events_ = std::min(static_cast<double>(arrived), units_mean);
    share_ = std::clamp(allowance_.rate / std::max(need_, 1e-9), least_share, 1.0);
    paced_over_limit_ = n_over_limit_;
    mark_pace();
    process_gated(partition, event);
}

void SampledEngine::process_gated(uint32_t partition, const Event& event) {
    if (arrived - paced_ >= pace) update_share();
    if (!gated_) {  // all units are admitted again
        return this->event(partition, event);
    }
    if (units_.size() <= partition) units_.resize(size_t{partition} + 1);
    SamplingUnit& unit = units_[partition];
    const int64_t now = tables_.span < 0 ? arrived : tables_.key(event);
    enter_unit(unit, partition, now);
    const auto share = static_cast<uint64_t>(share_ * static_cast<double>(all));
    if (!unit.off && unit.draw >= share) {
        unit.off = true;
        dropped_ += behind_->drop(partition, event.ts);
    }
    if (paused_) {
        renew_limit();
        paused_ = tokens() < scarce * reserve();
    }
    if (unit.off || paused_) return skip(unit, partition, event, now);
    unit.share = std::min(unit.share, share);
    const int64_t before = behind_->match_points;
    behind_->event(partition, event);
    if (behind_->over_limit) [[unlikely]] {
        renew_limit();
        behind_->event(partition, event);
    }
    if (behind_->over_limit) {
        behind_->over_limit = false;
        paused_ = true;
        ++n_over_limit_;
        return skip(unit, partition, event, now);
    }
    ++admitted_;
    if (tables_.span >= 0 && earliest(now, tables_.span) > unit.since) {
        ++unit.events;
        unit.points += behind_->match_points - before;
    }
}

void SampledEngine::skip(SamplingUnit& unit, uint32_t partition, const Event& event, int64_t now) {
    ++skipped_;
    unit.since = now;
    // If strategies restrict ignored events, no partial match may continue that has not seen the event.
    if (!unit.off && tables_.strategy != Strategy::any) dropped_ += behind_->drop(partition, event.ts);
}

void SampledEngine::mark_pace() {
    paced_ = arrived;
    paced_touches_ = behind_->work().touches;
    paced_in_ = admitted_;
    paced_out_ = skipped_;
}

double SampledEngine::reserve() const { return allowance_.reserve(units_reserve); }

void SampledEngine::update_share() {
    const auto since = static_cast<double>(arrived - paced_);
    const auto used = static_cast<double>(behind_->work().touches - paced_touches_);
    const auto in = static_cast<double>(admitted_ - paced_in_), out = static_cast<double>(skipped_ - paced_out_);
    need_events_ = std::min(need_events_ + since, units_mean);
    if (in > 0) need_ += since / need_events_ * (used / since * (in + out) / in - need_);
    mark_pace();
    renew_limit();
    const double left = tokens(), reserve = this->reserve();
    const double wanted = (allowance_.rate + (left - reserve) / units_spread) / std::max(need_, 1e-9);
    double share = wanted;
    if (left > scarce * reserve) share = std::max(share, slowly * share_);
    if (std::exchange(paced_over_limit_, n_over_limit_) != n_over_limit_) share = std::min(share, at_once * share_);
    share_ = std::clamp(share, least_share, 1.0);
    if (share_ < 1 || left < nearly * allowance_.most_carried) return;
    gated_ = false;
    sums_ = sums();
    units_.clear();
    gated_points_ = behind_->match_points;
}

void SampledEngine::enter_unit(SamplingUnit& unit, uint32_t partition, int64_t now) {
    int64_t length = events;
    if (tables_.span >= 0 && __builtin_mul_overflow(tables_.span + 1, windows, &length)) length = int64_max;
    const auto into = static_cast<uint64_t>(now) - static_cast<uint64_t>(unit.begin);
    if (unit.any && now >= unit.begin && into < static_cast<uint64_t>(length)) return;
    const SamplingUnitAt at =
        unit_at(mixed(key_hash(partitions_, classifier_.texts, partition, key_texts_, true) + seed_), length, now);
    add_unit(unit, sums_);
    unit = {at.begin, at.draw, all, at.begin == NEVER ? NEVER : at.begin - 1, 0, 0, true, false};
}

void SampledEngine::add_unit(const SamplingUnit& unit, Sums& sums) const {
    if (!unit.any || unit.off || unit.events == 0) return;
    const double p = static_cast<double>(unit.share) / static_cast<double>(all);
    const double x = static_cast<double>(unit.points) / p, e = static_cast<double>(unit.events) / p;
    sums.units += 1;
    sums.x += x;
    sums.e += e;
    sums.squares += x * x;
    sums.xx += (1 - p) * x * x;
    sums.xe += (1 - p) * x * e;
    sums.ee += (1 - p) * e * e;
}

SampledEngine::Sums SampledEngine::sums() const {
    Sums found = sums_;
    for (const SamplingUnit& unit : units_) add_unit(unit, found);
    return found;
}

void SampledEngine::forget(uint32_t partition) {
    behind_->forget(partition);
    if (partition >= units_.size()) return;
    add_unit(units_[partition], sums_);
    units_[partition] = {};
}

template <class Archive>
void SampledEngine::fields(auto& self, Archive& archive) {
    auto& behind = *self.behind_;
    auto& a = self.allowance_;
    archive.words(behind.limit);
    if constexpr (Archive::reads) behind.limit = std::max(behind.limit, -(int64_t{1} << 62));
    archive.within(0, most_positions, behind.match_points, behind.walks.withheld);
    archive.finite("allowance", a.rate, a.granted, a.most_carried, self.share_, self.need_, self.need_events_);
    for (const double d : {a.rate, a.granted, a.most_carried, self.share_, self.need_, self.need_events_}) {
        if (Archive::reads && std::abs(d) > most_number) bad_state("allowance");
    }
    auto& sums = self.sums_;
    archive.finite("allowance", sums.units, sums.x, sums.e, sums.squares, sums.xx, sums.xe, sums.ee);
    if (Archive::reads && (self.share_ < 0 || self.share_ > 1 || self.need_events_ < 0)) bad_state("share of units");
    archive.within(0, most_positions, a.since, self.paced_, self.paced_touches_, self.paced_in_, self.paced_out_,
                   self.paced_over_limit_, self.certain_, self.gated_points_, self.admitted_, self.skipped_,
                   self.dropped_, self.n_over_limit_);
    archive.words(self.gated_, self.paused_);
    archive.size(self.units_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (auto& unit : self.units_) {
        archive.words(unit.begin);
        archive.within(0, static_cast<int64_t>(all), unit.draw);
        archive.within(1, static_cast<int64_t>(all) + 1, unit.share);
        archive.words(unit.since);
        archive.within(0, most_positions, unit.points, unit.events);
        int kind = (unit.any ? 1 : 0) + (unit.off ? 2 : 0);
        archive.within(0, 4, kind);
        if constexpr (Archive::reads) {
            unit.any = (kind & 1) != 0;
            unit.off = (kind & 2) != 0;
        }
    }
}

void SampledEngine::dump(Writer& out) const {
    behind_->dump(out);
    fields(*this, out);
}

void SampledEngine::load(Reader& in) {
    behind_->load(in);
    fields(*this, in);
    behind_->over_limit = false;
}

}  // namespace acep
