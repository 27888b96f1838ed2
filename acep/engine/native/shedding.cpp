// Prices, levels and the log. Whatever happens here is a function of the events and the orders alone.
#include "shedding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace acep {
namespace {

constexpr double least_step = 4, most_step = 32;  // of the price, where nothing is left
// Of such a step, what goes again, and how much of that each time that something is left.
constexpr double passing = 0.25, fades = 0.125;
// Events: over which the mean is taken, whose allowance is a reserve (but half of what may be carried over), and over which
// what is beyond that is spread.
constexpr double mean_of = 2048, reserved = 2048, spread = 8192;
constexpr uint32_t few = 32;           // nodes of a list that are put in order; of more, levels are counted
constexpr int64_t most_bounds = 32;    // bins of the window that are told apart one by one
constexpr double most_fall = 8;        // octaves
constexpr double ample = 4;            // times what is spent: an allowance that is not nearly used
constexpr uint32_t least_limit = 2;    // nodes of a list that are never worth looking through
constexpr int64_t looks = 16;          // a list is looked through so many times a window at most, for its age
constexpr uint32_t most_patience = 3;  // or 2 to the power of this less often

}  // namespace

void Shedding::set(Orders orders) {
    orders_ = std::move(orders);
    if (arrived_ == 0) price = orders_.first_price;
    key_hashes_.clear();
    drawn_units_.clear();
    set_bounds();
    look_ahead();
    recount();
    if (orders_.spared == 0 || sparing_) return;
    sparing_ = true;
    from_start_ = arrived_ == 0;
}

// What there is for each age and wait, found once: looks at nodes are many.
void Shedding::set_bounds() {
    window_bounds_.clear();
    wait_bounds_.clear();
    if (tables_.span < 0) return;
    for (int64_t wait = orders_.waits - 1; wait > 0; --wait) wait_bounds_.push_back(tables_.span >> (2 * wait));
    if (orders_.windows > most_bounds) return;
    bins_a_tick_ = static_cast<double>(orders_.windows) / (static_cast<double>(tables_.span) + 1);
    window_bounds_.push_back(std::numeric_limits<int64_t>::max());
    for (int64_t bin = 1; bin < orders_.windows; ++bin) {
        // The least age at which less than `bin` is left; bins fall as ages rise.
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

// Until something is taken back, what is allowed only grows: so what is found to be there is remembered.
bool Shedding::affords_still(int64_t touches) {
    const double most = afforded();
    constexpr double exact = 1e15;  // below it numbers are whole, so that a margin of 2 makes up for what is rounded
    if (!shadow && limited() && granted() < exact && most > 2) sure_ = spent() + static_cast<int64_t>(most) - 2;
    return most >= static_cast<double>(touches);
}

void Shedding::allow(double rate, double most_carried, int64_t arrived) {
    recount();
    const double left = rate_ < 0 ? 0 : granted_ + rate_ * static_cast<double>(arrived - since_) - static_cast<double>(spent());
    // A budget of time tells again and again what there is. Where little of that was spent, as after a pause in which there
    // was next to nothing, the price comes down faster than by `adjust`.
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

// One price for all times is best, as what is spent where it finds little is missing where it would find much: so the price
// follows a mean of what was spent, slowly, and bursts are met from what was left over. Only where nothing is left does it
// rise at once.
void Shedding::adjust() {
    const auto events = static_cast<double>(arrived_ - paced_);
    const auto used = static_cast<double>(spent() - paced_spent_);
    recount();
    paced_ = arrived_;
    paced_spent_ = spent();
    if (rate_ == 0 && std::isinf(most_carried_)) return;  // what there is was given once and for all: there is no price
    if (rate_ < 0) {
        calm_ = false;
        return;
    }
    double left = tokens();
    if (left > most_carried_) {
        granted_ -= left - most_carried_;
        left = most_carried_;
    }
    const double part = std::min(1.0, static_cast<double>(orders_.spared) / held_for);
    held_ = std::min(held_ + rate_ * events * part * held_share, most_carried_ * part * held_most);
    // What is spared comes in bursts, which say nothing of the price: what is left tells of them.
    const auto lent = static_cast<double>(watching - std::exchange(lent_, watching)) / events;
    lent_mean_ += std::min(1.0, events / spread) * (lent - lent_mean_);
    mean_ += std::min(1.0, events / mean_of) * (std::max(0.0, used / events - lent) - mean_);
    if (denied_ > 0) {
        price += step_;
        surge_ += passing * step_;
        step_ = std::min(step_ * 2, most_step);
    } else {
        step_ = least_step;
        const double back = surge_ * fades;
        surge_ -= back;
        price -= back;
        const double beyond = std::max(0.0, lent_mean_ - rate_ * part * held_share);  // what the reserve does not suffice for
        const double wanted = std::max(rate_ / 16, rate_ - beyond + (left - reserve()) / spread);
        price += std::clamp(std::log2((mean_ + 1e-9) / wanted), -1.0, 1.0) * (events / pace);
    }
    denied_ = 0;
    price = std::clamp(price, 0.0, static_cast<double>(most_level + 1));
    calm_ = price <= 0 && ample * std::max(mean_, used / events) <= rate_ && left >= rate_;
}

// What is kept for bursts.
double Shedding::reserve() const { return std::min(rate_ * reserved, most_carried_ / 2); }

bool Shedding::admits(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest) {
    if (orders_.admit.empty() || price <= 0) return true;
    const int64_t places = orders_.places;
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
        best = std::max<int64_t>(best, orders_.admit[c * static_cast<size_t>(places) + static_cast<size_t>(place)]);
    }
    if (orders_.noise > 0) best += chance() * orders_.noise >> 8;
    if (static_cast<double>(best) >= price) return true;
    ++passed_over;
    return false;
}

Shedding::Mark Shedding::begin(uint32_t partition, const Event& event) {
    Mark found;
    if ((!shadow && orders_.sample == 0) || lives.made.size() >= most_logged) return found;
    const uint64_t own = mixed(static_cast<uint64_t>(event.position) * 0x9E3779B97F4A7C15u + partition + seed_);
    if (shadow || own >> 32 < orders_.sample) found.life = fresh;
    return found;
}

// Units that are spared ------------------------------------------------------------------------

int64_t Shedding::unit_length() const {
    int64_t length;
    return tables_.span < 0 || __builtin_mul_overflow(tables_.span + 1, unit, &length) ? -1 : length;
}

bool Shedding::within(const Unit& one, int64_t now) const {
    const int64_t length = unit_length();
    return length < 0 || (now >= one.begin && apart(now, one.begin) < length);
}

// The unit of a partition in which `now` is. Most events are in that of the one before.
UnitAt Shedding::drawn_unit(uint32_t partition, int64_t now) {
    if (!bounded() && partition < drawn_units_.size()) {
        const Drawn& last = drawn_units_[partition];
        if (now >= last.begin && now < last.end) return {last.begin, last.draw};
    }
    const int64_t length = unit_length();
    const UnitAt found = unit_at(mixed(key_hash(partition, orders_.key_texts) + seed_), length, now);
    const bool known = !bounded() && length >= 0 && found.begin != std::numeric_limits<int64_t>::min();
    int64_t end;
    if (!known || __builtin_add_overflow(found.begin, length, &end)) return found;
    if (partition >= drawn_units_.size()) drawn_units_.resize(partition + size_t{1});
    drawn_units_[partition] = {found.begin, end, found.draw};
    return found;
}

bool Shedding::spares(uint32_t partition, int64_t now) {
    while (units_.size() <= partition) {
        units_.emplace_back();
        if (!from_start_ && now > std::numeric_limits<int64_t>::min()) units_.back().blind = now - 1;
    }
    const auto [begin, draw] = drawn_unit(partition, now);
    Unit& own = units_[partition];
    if (own.begin != begin) {
        own.begin = begin;
        own.share = own.losses = 0;
    }
    const int64_t share = std::max(own.share, static_cast<int64_t>(orders_.spared));
    if (static_cast<int64_t>(draw) < share) {
        own.share = share;
        if (own.losses < most_losses) return true;
    }
    own.blind = now;
    return false;
}

void Shedding::lose(uint32_t partition, int64_t now) {
    if (partition >= units_.size() || units_[partition].blind == now) return;
    ++units_[partition].losses;
    note(partition, now, now, Lives::Point::lost);
    units_[partition].blind = now;
}

void Shedding::note(uint32_t partition, int64_t when, int64_t ts, Lives::Point::Kind kind) {
    if (partition >= units_.size()) return;
    Unit& own = units_[partition];
    if (own.share == 0 || !within(own, when) || (hopeless(partition) && kind != Lives::Point::lost)) return;
    if (!lives.points.empty()) {
        const Lives::Point& last = lives.points.back();
        if (last.partition == partition && last.ts == ts && last.kind == kind) return;
    }
    if (lives.points.size() >= 4 * most_at_all || crowded()) {
        own.blind = when;
        return;
    }
    lives.points.push_back({partition, unit_length() < 0 ? own.again : own.begin, when, ts, kind, own.blind, own.share});
}

// Of the key itself, which is the same in every run; `texts` has a bit for each part of it that is a text.
uint64_t Shedding::key_hash(uint32_t partition, uint32_t texts) const {
    if (!bounded() && partition >= key_hashes_.size()) key_hashes_.resize(partition + 1, 0);
    uint64_t own = 0;
    uint64_t& hash = bounded() ? own : key_hashes_[partition];
    if (hash != 0) return hash;
    return hash = acep::key_hash(partitions_, texts_, partition, texts, !bounded());
}

double Shedding::number(NodeList& list, uint32_t row, uint32_t slots, const Term& term, uint32_t partition) const {
    return number(term, partition, [&](bool second, int64_t& word) {
        const uint32_t slot = second ? term.b : term.a;
        word = list.slot(slot)[row];
        return list.tags(slot, slots)[row] == value;
    });
}

uint8_t Shedding::worth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) const {
    double total = 0;
    for (const Term& term : orders_.terms[state]) {
        if (!term.worth.empty()) total += static_cast<double>(term.of(number(list, row, tables_.states[state].slots, term, partition)));
    }
    return added(total);
}

bool Shedding::weigh(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark own) {
    if (!orders_.terms.empty()) own.feature = worth(made, row, state, partition);
    if (orders_.noise > 0) own.chance = chance() >> 2;
    set_mark(made, row, state, own);
    if (price <= 0 || shadow) return true;
    if (!affords()) {
        ++refused;
        return false;
    }
    ++decided;
    const uint32_t found = level(state, made.errors()[row], made.starts()[row], now, own, now, own.birth);
    if (found != 0 && static_cast<double>(found) >= price) return true;
    ++refused;
    return false;
}

void Shedding::drop(NodeList& list, uint32_t row, uint32_t state, int64_t now) {
    ++dropped;
    died(list, row, state, now, Death::shed);
}

void Shedding::tend(NodeList& list, uint32_t state, int64_t now, int64_t low, int64_t arcs) {
    if (!limited()) return;
    if (price > 0 && !shadow) {
        // What is oldest is worth the least, as a rule: it goes first, without a look at the others.
        while (list.popped != list.births && !list.empty() && list.starts()[list.head] >= low && tokens() >= 1) {
            const uint32_t row = list.head;
            ++decided;
            const uint32_t own = level(state, list.errors()[row], list.starts()[row], made(list, row, state), mark(list, row, state), now, list.births);
            if (own != 0 && static_cast<double>(own) >= price) break;
            drop(list, row, state, now);
            ++list.head;
        }
        list.popped = list.births;
        if (list.empty()) return list.clear();
        const bool old = tables_.span >= 0 && apart(now, list.tended) > tables_.span / looks * (int64_t{1} << list.patience);
        const bool grown = list.size() > std::max(list.limit, least_limit) || price > list.price + 2;
        if (grown || old) prune(list, state, now, low, grown);
    }
    if (affords(list.size() * arcs + 1)) return;
    const double most = std::max(0.0, afforded()) / static_cast<double>(arcs);
    if (static_cast<double>(list.size()) <= most) return;
    // The newest stay.
    if (shadow) lose(now);
    denied_ += static_cast<int64_t>((static_cast<double>(list.size()) - most) * static_cast<double>(arcs));
    const uint32_t from = list.end - static_cast<uint32_t>(most);
    for (uint32_t i = list.head; i < from; ++i) {
        ++dropped;
        died(list, i, state, now, Death::shed);
    }
    list.keep(tables_.states[state].slots, [&](uint32_t i) { return i >= from; });
}

// As `choose`: they are put in order.
uint32_t Shedding::choose_few(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    const double decay = orders_.decay[state];
    // One number tells which of two is better: its level, then by `ties`; of those alike the one that was made later, or
    // of the oldest earlier.
    uint64_t order[few];
    uint32_t wanted = 0, least = most_level;
    for (uint32_t i = 0; i < n; ++i) {
        if (static_cast<double>(levels_[i]) < price) levels_[i] = 0;
        if (levels_[i] == 0) continue;
        least = std::min(least, levels_[i]);
        ++wanted;
    }
    if (wanted == 0 || static_cast<double>(least) >= price + decay * (wanted - 1)) return wanted;
    wanted = 0;
    const int64_t* starts = list.starts() + list.head;
    const bool by_start = orders_.ties != Orders::random && !std::is_sorted(starts, starts + n);
    for (uint32_t i = 0; i < n; ++i) {
        if (levels_[i] == 0) continue;
        uint64_t tie = 0;
        if (orders_.ties == Orders::random) {
            tie = uint64_t{mark(list, list.head + i, state).chance};
        } else if (by_start) {
            uint32_t earlier = 0;
            for (uint32_t k = 0; k < n; ++k) earlier += starts[k] < starts[i] ? 1u : 0u;
            tie = orders_.ties == Orders::newest ? earlier : n - earlier;
        }
        const uint64_t last = orders_.ties == Orders::oldest ? n - i : i;
        const uint64_t own = uint64_t{levels_[i]} << 32 | tie << 16 | last << 8 | i;
        uint32_t at = wanted++;
        for (; at > 0 && order[at - 1] < own; --at) order[at] = order[at - 1];
        order[at] = own;
    }
    uint32_t rank = 0;
    while (rank < wanted && static_cast<double>(order[rank] >> 32) >= price + decay * rank) ++rank;
    for (uint32_t k = rank; k < wanted; ++k) levels_[order[k] & 0xFF] = 0;
    return rank;
}

// Of the nodes of a list, best first, number r stays if its level is at least the price and `decay` times r; the levels of
// the others become 0. How many stay.
uint32_t Shedding::choose(NodeList& list, uint32_t state) {
    const uint32_t n = list.size();
    if (n <= few) return choose_few(list, state);
    const double decay = orders_.decay[state];
    const auto better = [&](uint32_t a, uint32_t b) {
        if (orders_.ties == Orders::random) {
            const uint8_t x = mark(list, list.head + a, state).chance, y = mark(list, list.head + b, state).chance;
            return x != y ? x > y : a > b;
        }
        const int64_t x = list.starts()[list.head + a], y = list.starts()[list.head + b];
        const bool newest = orders_.ties == Orders::newest;
        return x != y ? (newest ? x > y : x < y) : (newest ? a > b : a < b);
    };
    uint32_t kept = 0, rank = 0;
    rows_.clear();
    uint32_t at_level[256] = {}, stays[256] = {};
    for (uint32_t i = 0; i < n; ++i) ++at_level[levels_[i]];
    for (auto l = static_cast<uint32_t>(most_level); l > 0 && static_cast<double>(l) >= price; --l) {
        if (at_level[l] == 0) continue;
        const double most = decay > 0 ? std::floor((static_cast<double>(l) - price) / decay) + 1 : static_cast<double>(n);
        const uint32_t room = most <= rank ? 0 : static_cast<uint32_t>(std::min(most, static_cast<double>(n))) - rank;
        stays[l] = std::min(at_level[l], room);
        rank += stays[l];
        kept += stays[l];
        if (stays[l] < at_level[l]) break;
    }
    // Where not all of a level stay, the first by `ties` do.
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t l = levels_[i];
        if (stays[l] == at_level[l] && l != 0) continue;
        if (stays[l] == 0) {
            levels_[i] = 0;
        } else {
            rows_.push_back(i);
        }
    }
    if (rows_.empty()) return kept;
    const uint32_t wanted = stays[levels_[rows_[0]]];
    std::nth_element(rows_.begin(), rows_.begin() + wanted, rows_.end(), better);
    for (size_t k = wanted; k < rows_.size(); ++k) levels_[rows_[k]] = 0;
    return kept;
}

void Shedding::prune(NodeList& list, uint32_t state, int64_t now, int64_t low, bool grown) {
    const uint32_t n = list.size();
    if (tokens() < decide_cost * n + 1) return;
    decided += n;
    list.tended = now;
    list.price = price;
    if (levels_.size() < n) levels_.resize(n);
    const uint32_t slots = tables_.states[state].slots;
    const int64_t *starts = list.starts(), *births = list.slot(slots - 2), *marks = list.slot(slots - 1);
    const int32_t* errors = list.errors();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t k = list.head + i;
        levels_[i] = starts[k] < low ? 0 : level(state, errors[k], starts[k], births[k], Mark::of(marks[k]), now, list.births);
    }
    const uint32_t kept = choose(list, state);
    // Where time passes and little becomes worth less, the next look is later.
    list.patience = grown ? list.patience : 4 * (n - kept) > n ? 0 : std::min(list.patience + 1, most_patience);
    list.limit = 2 * kept;
    if (kept == n) return;
    const uint32_t head = list.head;
    for (uint32_t i = 0; i < n; ++i) {
        if (levels_[i] != 0) continue;
        if (list.starts()[head + i] < low) {
            died(list, head + i, state, expiry(list.starts()[head + i]), Death::expired);
        } else {
            drop(list, head + i, state, now);
        }
    }
    list.keep(tables_.states[state].slots, [&](uint32_t i) { return levels_[i - head] != 0; });
}

// The log --------------------------------------------------------------------------------------

void Shedding::log_birth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark own, int64_t age) {
    const int64_t parent = own.logged() ? int64_t{own.life} : -1;
    own.life = next_life_++;
    if (next_life_ >= fresh) next_life_ = 0;
    set_mark(list, row, state, own);
    open_[own.life] = list.touched;
    lives.made.push_back({own.life, parent, partition, state, list.errors()[row], list.starts()[row], made(list, row, state),
                          own.feature, age});
    log_values(list, row, state, partition);
}

void Shedding::log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
    const size_t at = lives.values.size();
    lives.values.resize(at + orders_.most_terms, std::numeric_limits<double>::quiet_NaN());
    if (orders_.terms.empty()) return;
    size_t k = 0;
    for (const Term& term : orders_.terms[state]) {
        lives.values[at + k++] = number(list, row, tables_.states[state].slots, term, partition);
    }
}

void Shedding::joined(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now) {
    Mark there = mark(list, row, state);
    if (parent.life == unlogged || lives.made.size() >= most_at_all || crowded()) return;
    if (!there.logged()) {
        there.life = parent.life;
        there.birth = parent.birth;
        set_mark(list, row, state, there);
        born(list, row, state, partition);
        return;
    }
    const uint32_t life = next_life_++;
    if (next_life_ >= fresh) next_life_ = 0;
    lives.made.push_back({life, parent.logged() ? int64_t{parent.life} : -1, partition, state, list.errors()[row],
                          list.starts()[row], now, there.feature, parent.birth});
    log_values(list, row, state, partition);
    lives.ended.push_back({life, now, static_cast<int64_t>(Death::merged_into), there.life, 0});
}

void Shedding::log_death(const NodeList& list, Mark own, int64_t when, Death how) {
    const auto known = open_.find(own.life);
    if (known == open_.end()) return;
    lives.ended.push_back({own.life, when, static_cast<int64_t>(how), apart(list.touched, known->second),
                           static_cast<int64_t>((list.births - own.birth) & 0xFFFFu)});
    open_.erase(known);
}

void Shedding::found(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error) {
    if (sparing()) note(partition, when, ts, shadow ? Lives::Point::whole : Lives::Point::kept);
    if (parent.life == unlogged || lives.found.size() >= 4 * most_at_all || crowded()) return;
    lives.found.push_back({parent.logged() ? int64_t{parent.life} : -1, partition, when, error, parent.birth});
}

// State ----------------------------------------------------------------------------------------

int64_t Shedding::bytes() const {
    const size_t logged = lives.made.capacity() * sizeof(Lives::Made) + lives.ended.capacity() * sizeof(Lives::Ended) +
                          lives.found.capacity() * sizeof(Lives::Found) + lives.points.capacity() * sizeof(Lives::Point) + lives.values.capacity() * sizeof(double);
    return static_cast<int64_t>(logged + units_.capacity() * sizeof(Unit) + open_.size() * open_bytes + levels_.capacity() * sizeof(uint32_t) +
                                rows_.capacity() * sizeof(uint32_t)) + order_bytes();
}

int64_t Shedding::order_bytes() const {
    size_t total = orders_.level.capacity() + orders_.admit.capacity() + orders_.later.capacity() + orders_.decay.capacity() * sizeof(double);
    for (const auto& terms : orders_.terms) {
        for (const Term& t : terms) total += sizeof(Term) + t.bounds.capacity() * sizeof(double) + t.worth.capacity() * sizeof(float);
    }
    return static_cast<int64_t>(total);
}

void Shedding::shrink() {
    std::vector<uint32_t>().swap(levels_);
    std::vector<uint32_t>().swap(rows_);
}

void Shedding::score(NodeList& list, uint32_t state, int64_t now, std::vector<float>& scores) {
    const uint32_t n = list.size();
    const size_t from = scores.size();
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t row = list.head + i;
        const Mark own = mark(list, row, state);
        const auto place = static_cast<float>(i) / static_cast<float>(n);  // the later the newer
        const float tie = orders_.ties == Orders::newest ? place : orders_.ties == Orders::oldest ? 1 - place : static_cast<float>(own.chance) / 64;
        const uint32_t found = level(state, list.errors()[row], list.starts()[row], made(list, row, state), own, now, list.births);
        scores.push_back(static_cast<float>(found) + tie / 2);
    }
    const auto decay = static_cast<float>(orders_.decay[state]);
    if (decay == 0) return;
    rows_.resize(n);
    std::iota(rows_.begin(), rows_.end(), 0u);
    std::sort(rows_.begin(), rows_.end(), [&](uint32_t a, uint32_t b) {
        const float x = scores[from + a], y = scores[from + b];
        return x != y ? x > y : a > b;
    });
    for (uint32_t rank = 0; rank < n; ++rank) scores[from + rows_[rank]] -= decay * static_cast<float>(rank);
}

// The orders are not in it: whoever gives them keeps them. Nor is the log, which is taken before.
void Shedding::dump(Writer& out) const {
    for (double d : {rate_, granted_, most_carried_, step_, surge_, mean_, lent_mean_, held_, price}) out.number(std::bit_cast<int64_t>(d));
    for (int64_t n : {since_, arrived_, touches_, paced_, paced_spent_, lent_, decided, refused, dropped, passed_over, turned_away, points, watching}) out.number(n);
    out.number(static_cast<int64_t>(drawn_));
    out.number(denied_);
    out.number(calm_ ? 1 : 0);
    out.number(int64_t{next_life_});
    std::vector<std::pair<uint32_t, int64_t>> open(open_.begin(), open_.end());
    std::sort(open.begin(), open.end());
    std::vector<int64_t> words;
    for (const auto& [life, touched] : open) words.insert(words.end(), {int64_t{life}, touched});
    out.items(words);
    out.items(lives.made);
    out.items(lives.ended);
    out.items(lives.found);
    out.items(lives.values);
    out.items(lives.points);
    out.number(sparing_ ? 1 : 0);
    out.number(from_start_ ? 1 : 0);
    out.items(units_);
}

void Shedding::load(Reader& in) {
    for (double* d : {&rate_, &granted_, &most_carried_, &step_, &surge_, &mean_, &lent_mean_, &held_, &price}) {
        *d = std::bit_cast<double>(in.number());
        if (!std::isfinite(*d)) bad_state("allowance");
    }
    for (int64_t* n : {&since_, &arrived_, &touches_, &paced_, &paced_spent_, &lent_, &decided, &refused, &dropped, &passed_over, &turned_away, &points, &watching}) {
        *n = in.number(0, most_positions);
    }
    price = std::clamp(price, 0.0, 256.0);
    step_ = std::clamp(step_, least_step, most_step);
    surge_ = std::clamp(surge_, 0.0, 256.0);
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
    next_life_ = static_cast<uint32_t>(in.number(0, fresh));
    open_.clear();
    const auto words = in.items<int64_t>();
    if (words.size() % 2 != 0) bad_state("lives");
    for (size_t i = 0; i < words.size(); i += 2) {
        if (words[i] < 0 || words[i] >= fresh) bad_state("life");
        open_[static_cast<uint32_t>(words[i])] = words[i + 1];
    }
    lives.made = in.items<Lives::Made>();
    lives.ended = in.items<Lives::Ended>();
    lives.found = in.items<Lives::Found>();
    lives.values = in.items<double>();
    lives.points = in.items<Lives::Point>();
    sparing_ = in.number(0, 2) != 0;
    from_start_ = in.number(0, 2) != 0;
    units_ = in.items<Unit>();
}

}  // namespace acep
