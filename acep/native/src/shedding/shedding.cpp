// The shedding table and the utility threshold. All results depend on the events, the budget and the table alone.
#include "shedding/shedding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace acep {
namespace {

constexpr double most_price = Shedding::most_level + 1;  // no node reaches it
constexpr double least_step = 4, most_step = 32;  // of the threshold, if no budget is left
// The part of such a step that decays, and the share of it that decays at each update with some budget left.
constexpr double passing = 0.25, fades = 0.125;
// Numbers of events: for the mean; whose budget is the reserve (at most half of what may be carried over); and over
// which touches beyond the reserve are spread.
constexpr double mean_of = 2048, reserved = 2048, spread = 8192;
constexpr int64_t most_bounds = 32;    // up to so many bins of the window, their bounds are stored
constexpr double most_fall = 8;        // octaves
constexpr double sufficient = 2;            // a budget of this many times the touches is ample

}  // namespace

void Shedding::set(SheddingTable table) {
    table_ = std::move(table);
    if (arrived_ == 0) price = table_.first_price;
    key_hashes_.clear();
    drawn_units_.clear();
    tells_.clear();
    for (const auto& terms : table_.terms) {
        tells_.push_back(std::any_of(terms.begin(), terms.end(), [](const Term& t) { return !t.worth.empty(); }) ? 1
                                                                                                                 : 0);
    }
    set_bounds();
    look_ahead();
    recount();
    shadow_sample(table_.shadow);
}

void Shedding::shadow_sample(uint64_t share) {
    table_.shadow = share;
    if (share == 0 || samples_shadows_) return;
    samples_shadows_ = true;
    from_start_ = arrived_ == 0;
}

// Compute the bounds of window and wait bins once, as they are used for many nodes.
void Shedding::set_bounds() {
    window_bounds_.clear();
    wait_bounds_.clear();
    if (tables_.span < 0) return;
    for (int64_t wait = table_.waits - 1; wait > 0; --wait) wait_bounds_.push_back(tables_.span >> (2 * wait));
    if (table_.windows > most_bounds) return;
    bins_a_tick_ = static_cast<double>(table_.windows) / (static_cast<double>(tables_.span) + 1);
    window_bounds_.push_back(std::numeric_limits<int64_t>::max());
    for (int64_t bin = 1; bin < table_.windows; ++bin) {
        // Find the least age that is in a bin below `bin`; bins fall as ages rise.
        int64_t low = 0, high = tables_.span;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (window_by(middle) < bin) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        window_bounds_.push_back(window_by(low) < bin ? low : std::numeric_limits<int64_t>::max());
    }
    window_bounds_.push_back(-1);
}

// Check the budget, and remember the result in `sure_`: until touches are taken back, the budget only grows.
bool Shedding::affords_still(int64_t touches) {
    const double most = afforded();
    constexpr double exact = 1e15;  // below it a margin of 2 covers rounding errors
    if (!shadow && limited() && granted() < exact && most > 2) sure_ = spent() + static_cast<int64_t>(most) - 2;
    return most >= static_cast<double>(touches);
}

void Shedding::allow(double rate, double most_carried, int64_t arrived) {
    recount();
    const double left =
        rate_ < 0 ? 0 : granted_ + rate_ * static_cast<double>(arrived - since_) - static_cast<double>(spent());
    // A budget of time sets the rate again and again. If few touches were spent, as after a pause with hardly any
    // budget, the threshold falls faster than by `adjust`.
    if (rate_ >= 0 && rate > 2 * mean_) {
        const double octaves = std::min(std::log2(rate / std::max(mean_, 1e-9)), most_fall);
        price = std::max(0.0, price - 2 * octaves * std::min(1.0, static_cast<double>(arrived - since_) / mean_of));
    }
    granted_ = static_cast<double>(spent()) + std::min(left, most_carried);
    since_ = arrived;
    rate_ = rate;
    most_carried_ = most_carried;
    if (arrived == 0) calm_ = rate >= 0;
}

// Update the utility threshold. A constant one is best, as touches spent where they find little are missing where they
// would find much. So it follows the mean of the touches slowly, and bursts use carried-over budget. It rises at once
// only when no budget is left.
void Shedding::adjust() {
    const auto events = static_cast<double>(arrived_ - paced_);
    const auto used = static_cast<double>(spent() - paced_spent_);
    recount();
    paced_ = arrived_;
    paced_spent_ = spent();
    if (rate_ == 0 && std::isinf(most_carried_)) return;  // a fixed total budget needs no threshold
    if (rate_ < 0) {
        calm_ = false;
        return;
    }
    double left = tokens();
    if (left > most_carried_) {
        granted_ -= left - most_carried_;
        left = most_carried_;
    }
    const double part = std::min(1.0, static_cast<double>(table_.shadow) / held_for);
    held_ = std::min(held_ + rate_ * events * part * held_share, most_carried_ * part * held_most);
    // The shadow sample comes in bursts, which are not part of the mean, but reduce the budget left.
    const auto lent = static_cast<double>(shadow_sampling - std::exchange(lent_, shadow_sampling)) / events;
    lent_mean_ += std::min(1.0, events / spread) * (lent - lent_mean_);
    mean_ += std::min(1.0, events / mean_of) * (std::max(0.0, used / events - lent) - mean_);
    if (denied_ > 0) {
        price += step_;
        surge_ = std::min(surge_ + passing * step_, most_price);
        step_ = std::min(step_ * 2, most_step);
    } else {
        step_ = least_step;
        const double back = surge_ * fades;
        surge_ -= back;
        price -= back;
        const double beyond = std::max(0.0, lent_mean_ - rate_ * part * held_share);  // beyond the part held back
        const double wanted = std::max(rate_ / 16, rate_ - beyond + (left - reserve()) / spread);
        price += std::clamp(std::log2((mean_ + 1e-9) / wanted), -1.0, 1.0) * (events / pace);
    }
    denied_ = 0;
    price = std::clamp(price, 0.0, most_price);
    // A burst may spend more if at least half of the most that may be carried over is left.
    const bool bears = sufficient * used / events <= rate_ || 2 * left >= most_carried_;
    calm_ = price <= 0 && sufficient * mean_ <= rate_ && left >= rate_ && bears;
}

// Return the touches kept for bursts.
double Shedding::reserve() const { return std::min(rate_ * reserved, most_carried_ / 2); }

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
    const size_t logged = trajectories.made.capacity() * sizeof(Trajectories::Made) +
                          trajectories.ended.capacity() * sizeof(Trajectories::Ended) +
                          trajectories.found.capacity() * sizeof(Trajectories::Found) +
                          trajectories.points.capacity() * sizeof(Trajectories::Point) +
                          trajectories.values.capacity() * sizeof(double);
    return static_cast<int64_t>(logged + units_.capacity() * sizeof(SamplingUnit) + open_.size() * open_bytes +
                                levels_.capacity() * sizeof(uint32_t) + rows_.capacity() * sizeof(uint32_t)) +
           order_bytes();
}

int64_t Shedding::order_bytes() const {
    size_t total = table_.level.capacity() + table_.admit.capacity() + table_.later.capacity() +
                   table_.decay.capacity() * sizeof(double);
    for (const auto& terms : table_.terms) {
        for (const Term& t : terms)
            total += sizeof(Term) + t.bounds.capacity() * sizeof(double) + t.worth.capacity() * sizeof(float);
    }
    return static_cast<int64_t>(total);
}

void Shedding::shrink() {
    std::vector<uint32_t>().swap(levels_);
    std::vector<uint32_t>().swap(rows_);
}

// Write the state without the shedding table, which its caller keeps.
void Shedding::dump(Writer& out) const {
    for (double d : {rate_, granted_, most_carried_, step_, surge_, mean_, lent_mean_, held_, price})
        out.number(std::bit_cast<int64_t>(d));
    for (int64_t n : {since_, arrived_, touches_, paced_, paced_spent_, lent_, decided, refused, dropped, passed_over,
                      turned_away, points, shadow_sampling})
        out.number(n);
    out.number(static_cast<int64_t>(drawn_));
    out.number(denied_);
    out.number(calm_ ? 1 : 0);
    out.number(int64_t{next_trajectory_});
    std::vector<std::pair<uint32_t, int64_t>> open(open_.begin(), open_.end());
    std::sort(open.begin(), open.end());
    std::vector<int64_t> words;
    for (const auto& [trajectory, touched] : open) words.insert(words.end(), {int64_t{trajectory}, touched});
    out.items(words);
    out.items(trajectories.made);
    out.items(trajectories.ended);
    out.items(trajectories.found);
    out.items(trajectories.values);
    out.items(trajectories.points);
    out.number(samples_shadows_ ? 1 : 0);
    out.number(from_start_ ? 1 : 0);
    out.items(units_);
}

void Shedding::load(Reader& in) {
    for (double* d : {&rate_, &granted_, &most_carried_, &step_, &surge_, &mean_, &lent_mean_, &held_, &price}) {
        *d = std::bit_cast<double>(in.number());
        if (!std::isfinite(*d)) bad_state("allowance");
    }
    for (int64_t* n : {&since_, &arrived_, &touches_, &paced_, &paced_spent_, &lent_, &decided, &refused, &dropped,
                       &passed_over, &turned_away, &points, &shadow_sampling}) {
        *n = in.number(0, most_positions);
    }
    price = std::clamp(price, 0.0, most_price);
    step_ = std::clamp(step_, least_step, most_step);
    surge_ = std::clamp(surge_, 0.0, most_price);
    mean_ = std::max(mean_, 0.0);
    held_ = std::max(held_, 0.0);
    lent_mean_ = std::max(lent_mean_, 0.0);
    drawn_ = static_cast<uint64_t>(in.number());
    hit_ = -1;
    denied_ = in.number(0, most_positions);
    calm_ = in.number(0, 2) != 0;
    key_hashes_.clear();
    drawn_units_.clear();
    recount();
    next_trajectory_ = static_cast<uint32_t>(in.number(0, fresh));
    open_.clear();
    const auto words = in.items<int64_t>();
    if (words.size() % 2 != 0) bad_state("lives");
    for (size_t i = 0; i < words.size(); i += 2) {
        if (words[i] < 0 || words[i] >= fresh) bad_state("life");
        open_[static_cast<uint32_t>(words[i])] = words[i + 1];
    }
    trajectories.made = in.items<Trajectories::Made>();
    trajectories.ended = in.items<Trajectories::Ended>();
    trajectories.found = in.items<Trajectories::Found>();
    trajectories.values = in.items<double>();
    trajectories.points = in.items<Trajectories::Point>();
    samples_shadows_ = in.number(0, 2) != 0;
    from_start_ = in.number(0, 2) != 0;
    units_ = in.items<SamplingUnit>();
}

}  // namespace acep
