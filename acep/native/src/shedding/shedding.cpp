// The shedding table and the utility threshold. All results depend on the events, the budget and the table alone.
#include "shedding/shedding.hpp"

#include <cmath>

namespace acep {
namespace {

constexpr double most_price = SheddingTable::most_level + 1;  // no node reaches it
constexpr double least_step = 4, most_step = 32;  // of the threshold, if no budget is left
// The part of such a step that decays, and the share of it that decays at each update with some budget left.
constexpr double passing = 0.25, fades = 0.125;
// Numbers of events: for the mean; whose budget is the reserve (at most half of what may be carried over); and over
// which touches beyond the reserve are spread.
constexpr double mean_of = 2048, reserved = 2048, spread = 8192;
constexpr double most_fall = 8;  // octaves
// A rest ends before the tokens of as many events as these are spent at the rate of late, or three quarters of what may be
// carried over; it begins again once those of `saved` events are left, and less than `restful` of the rate is spent.
constexpr double lasting = 1024, most_kept = 0.25, saved = 512, restful = 0.9;

}  // namespace

void Shedding::set(SheddingTable table) {
    table_ = std::move(table);
    if (arrived_ == 0) price = table_.first_price;
    key_hashes_.clear();
    sample_.drawn.clear();
    tells_.clear();
    for (const auto& terms : table_.terms) {
        tells_.push_back(std::any_of(terms.begin(), terms.end(), [](const Term& t) { return !t.worth.empty(); }) ? 1
                                                                                                                 : 0);
    }
    vectors_.set(table_, tables_.span);
    look_ahead();
    recount();
    shadow_sample(table_.shadow);
}

void Shedding::shadow_sample(uint64_t share) {
    table_.shadow = share;
    if (share == 0 || sample_.any) return;
    sample_.any = true;
    sample_.from_start = arrived_ == 0;
}

// Check the budget, and remember the result in `sure_`: until touches are taken back, the budget only grows.
bool Shedding::affords_still(int64_t touches) {
    const double most = afforded();
    constexpr double exact = 1e15;  // below it a margin of 2 covers rounding errors
    if (!shadow && limited() && granted() < exact && most > 2) sure_ = spent() + static_cast<int64_t>(most) - 2;
    return most >= static_cast<double>(touches);
}

void Shedding::allow(double rate, double most_carried, int64_t arrived, double credit) {
    recount();
    Allowance& old = allowance_;
    const auto events = static_cast<double>(arrived - old.since);
    const double left = old.rate < 0 ? 0 : old.up_to(arrived) - static_cast<double>(spent());
    // A budget of time sets the rate again and again. If few touches were spent, as after a pause with hardly any
    // budget, the threshold falls faster than by `adjust`.
    if (old.rate >= 0 && rate > 2 * pace_.mean) {
        const double octaves = std::min(std::log2(rate / std::max(pace_.mean, 1e-9)), most_fall);
        price = std::max(0.0, price - 2 * octaves * std::min(1.0, events / mean_of));
    }
    allowance_ = {rate, static_cast<double>(spent()) + std::min(left + credit, most_carried), most_carried, arrived};
}

double Shedding::kept_for_learning() const {
    const double excess = (pace_.mean - allowance_.rate) * lasting;
    return excess <= 0 ? 0 : std::min(excess, most_kept * allowance_.most_carried);
}

// Update the utility threshold. A constant one is best, as touches spent where they find little are missing where they
// would find much. So it follows the mean of the touches slowly, and bursts use carried-over budget. It rises at once
// only when no budget is left.
void Shedding::adjust() {
    ThresholdPace& p = pace_;
    const double rate = allowance_.rate, most_carried = allowance_.most_carried;
    const auto events = static_cast<double>(arrived_ - p.paced);
    const auto used = static_cast<double>(spent() - p.spent);
    recount();
    p.paced = arrived_;
    p.spent = spent();
    if (rate == 0 && std::isinf(most_carried)) return;  // a fixed total budget needs no threshold
    if (rate < 0) {
        p.calm = false;
        return;
    }
    double left = tokens();
    if (left > most_carried) {
        allowance_.granted -= left - most_carried;
        left = most_carried;
    }
    const double part = std::min(1.0, static_cast<double>(table_.shadow) / ShadowSample::held_for);
    const double share = part * ShadowSample::held_share;
    sample_.held = std::min(sample_.held + rate * events * share, most_carried * part * ShadowSample::held_most);
    // The shadow sample comes in bursts, which are not part of the mean, but reduce the budget left.
    const auto lent = static_cast<double>(shadow_sampling - std::exchange(p.lent, shadow_sampling)) / events;
    p.lent_mean += std::min(1.0, events / spread) * (lent - p.lent_mean);
    p.mean += std::min(1.0, events / mean_of) * (std::max(0.0, used / events - lent) - p.mean);
    if (rests_) return;
    if (p.denied > 0) {
        price += p.step;
        p.surge = std::min(p.surge + passing * p.step, most_price);
        p.step = std::min(p.step * 2, most_step);
    } else {
        p.step = least_step;
        const double back = p.surge * fades;
        p.surge -= back;
        price -= back;
        const double beyond = std::max(0.0, p.lent_mean - rate * share);  // beyond the part held back
        const double wanted = std::max(rate / 16, rate - beyond + (left - reserve()) / spread);
        // Where much is left, as after a crowd, it falls faster.
        const double reserves = left / std::max(reserve(), 1e-9), most_down = reserves > 2 ? reserves * reserves : 1;
        const double change = std::clamp(std::log2((p.mean + 1e-9) / wanted), -1.0, 1.0);
        price += change * (change < 0 ? most_down : 1) * (events / pace);
    }
    price = std::clamp(price, 0.0, most_price);
    const bool has_saved = left >= std::min(saved * rate, most_carried / 2);
    p.calm = price <= 0 && p.denied == 0 && has_saved && p.mean <= restful * rate;
    p.denied = 0;
}

double Shedding::reserve() const { return allowance_.reserve(reserved); }

bool Shedding::admits(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest) {
    if (table_.admit.empty() || price <= 0) return true;
    const int64_t places = table_.places;
    int64_t place = 0;
    if (tables_.span >= 0 && oldest < now && places > 1) {
        const double share = static_cast<double>(apart(now, oldest)) / (static_cast<double>(tables_.span) + 1);
        place = std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(places)), 0, places - 1);
    }
    if (!affords()) {
        ++passed_over;
        return false;
    }
    ++decided;
    int64_t best = 0;
    for (uint32_t c : classes) {
        best = std::max<int64_t>(best, table_.admit[c * static_cast<size_t>(places) + static_cast<size_t>(place)]);
    }
    if (table_.noise > 0) best += chance() * table_.noise >> 8;
    if (static_cast<double>(best) >= price) return true;
    ++passed_over;
    return false;
}

// State ----------------------------------------------------------------------------------------

int64_t Shedding::bytes() const {
    const Trajectories& log = trajectories;
    return heap_bytes(log.made, log.ended, log.found, log.points, log.values, sample_.units, levels_, rows_) +
           static_cast<int64_t>(open_.size() * open_bytes) + order_bytes();
}

int64_t Shedding::order_bytes() const {
    int64_t total = heap_bytes(table_.level, table_.admit, table_.later, table_.decay);
    for (const auto& terms : table_.terms) {
        total += static_cast<int64_t>(terms.size() * sizeof(Term));
        for (const Term& t : terms) total += heap_bytes(t.bounds, t.worth);
    }
    return total;
}

void Shedding::shrink() {
    std::vector<uint32_t>().swap(levels_);
    std::vector<uint32_t>().swap(rows_);
}

// Write or read the state without the shedding table, which the caller keeps.
template <class Archive>
void Shedding::fields(auto& self, Archive& archive) {
    auto& [paced, paced_spent, lent, step, surge, mean, lent_mean, denied, calm] = self.pace_;
    auto& [rate, granted, most_carried, since] = self.allowance_;
    auto& log = self.trajectories;
    archive.finite("allowance", rate, granted, most_carried, step, surge, mean, lent_mean, self.sample_.held,
                   self.price);
    archive.within(0, most_positions, since, self.arrived_, self.touches_, paced, paced_spent, lent, self.decided,
                   self.refused, self.dropped, self.passed_over, self.turned_away, self.points, self.shadow_sampling);
    archive.words(self.drawn_);
    archive.within(0, most_positions, denied);
    archive.words(calm);
    archive.within(0, Mark::fresh, self.next_trajectory_);
    std::vector<std::pair<uint32_t, int64_t>> open(self.open_.begin(), self.open_.end());
    std::sort(open.begin(), open.end());
    std::vector<int64_t> words;
    for (const auto& [trajectory, touched] : open) words.insert(words.end(), {int64_t{trajectory}, touched});
    archive.items(words);
    if constexpr (Archive::reads) {
        self.open_.clear();
        if (words.size() % 2 != 0) bad_state("lives");
        for (size_t i = 0; i < words.size(); i += 2) {
            if (words[i] < 0 || words[i] >= Mark::fresh) bad_state("life");
            self.open_[static_cast<uint32_t>(words[i])] = words[i + 1];
        }
    }
    archive.items(log.made);
    archive.items(log.ended);
    archive.items(log.found);
    archive.items(log.values);
    archive.items(log.points);
    archive.words(self.sample_.any, self.sample_.from_start);
    archive.items(self.sample_.units);
}

void Shedding::fields(Writer& out) const { fields(*this, out); }

void Shedding::fields(Reader& in) {
    fields(*this, in);
    price = std::clamp(price, 0.0, most_price);
    pace_.step = std::clamp(pace_.step, least_step, most_step);
    pace_.surge = std::clamp(pace_.surge, 0.0, most_price);
    for (double* mean : {&pace_.mean, &pace_.lent_mean, &sample_.held}) *mean = std::max(*mean, 0.0);
    hit_ = -1;
    key_hashes_.clear();
    sample_.drawn.clear();
    recount();
}

}  // namespace acep
