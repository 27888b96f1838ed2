// Data for learning: the shadow sample (units in which nothing is dropped), and the log of partial matches.
#include "shedding/shedding.hpp"

namespace acep {

Mark Shedding::begin(uint32_t partition, const Event& event) {
    Mark found;
    if ((!shadow && table_.sample == 0) || again_ || trajectories.made.size() >= most_logged) return found;
    const uint64_t own = mixed(static_cast<uint64_t>(event.position) * golden_step + partition + seed_);
    if (shadow || own >> 32 < table_.sample) found.trajectory = Mark::fresh;
    return found;
}

// Shadow sample ---------------------------------------------------------------------------------

int64_t Shedding::unit_length() const {
    int64_t length;
    return tables_.span < 0 || __builtin_mul_overflow(tables_.span + 1, ShadowSample::windows, &length) ? -1 : length;
}

bool Shedding::within(const ShadowUnit& one, int64_t now) const {
    const int64_t length = unit_length();
    return length < 0 || (now >= one.begin && apart(now, one.begin) < length);
}

// Return the unit of a partition that contains `now`; cached, as most events are in the unit of the one before.
SamplingUnitAt Shedding::drawn_unit(uint32_t partition, int64_t now) {
    if (!bounded() && partition < sample_.drawn.size()) {
        const ShadowSample::Drawn& last = sample_.drawn[partition];
        if (now >= last.begin && now < last.end) return {last.begin, last.draw};
    }
    const int64_t length = unit_length();
    const SamplingUnitAt found = unit_at(mixed(key_hash(partition, table_.key_texts) + seed_), length, now);
    const bool known = !bounded() && length >= 0 && found.begin != std::numeric_limits<int64_t>::min();
    int64_t end;
    if (!known || __builtin_add_overflow(found.begin, length, &end)) return found;
    if (partition >= sample_.drawn.size()) sample_.drawn.resize(partition + size_t{1});
    sample_.drawn[partition] = {found.begin, end, found.draw};
    return found;
}

bool Shedding::is_shadow(uint32_t partition, int64_t now) {
    constexpr int64_t never = std::numeric_limits<int64_t>::min();
    const bool counted = tables_.counted && unit_length() >= 0;
    while (sample_.units.size() <= partition) {
        sample_.units.emplace_back();
        if (!sample_.from_start && !counted && now > never) sample_.units.back().blind = now - 1;
    }
    const auto [begin, draw] = drawn_unit(partition, now);
    ShadowUnit& own = sample_.units[partition];
    // Positions count within a partition: a first one above 0 shows that earlier events were not watched.
    if (counted && own.begin == never && !sample_.from_start && now > 0) own.blind = now - 1;
    if (own.begin != begin) {
        // Nothing else shows the end of a unit of positions, so it is logged here.
        if (counted && own.share != 0 && trajectories.points.size() < 4 * most_at_all && !crowded()) {
            trajectories.points.push_back({partition, own.begin, own.begin + unit_length(), now,
                                           Trajectories::Point::ended, own.blind, own.share});
        }
        own.begin = begin;
        own.share = own.losses = 0;
    }
    const int64_t share = std::max(own.share, static_cast<int64_t>(table_.shadow));
    if (static_cast<int64_t>(draw) < share) {
        own.share = share;
        if (own.losses < ShadowSample::most_losses) return true;
    }
    own.blind = now;
    return false;
}

void Shedding::lose(uint32_t partition, int64_t now) {
    if (partition >= sample_.units.size() || sample_.units[partition].blind == now) return;
    ++sample_.units[partition].losses;
    note(partition, now, now, Trajectories::Point::lost);
    sample_.units[partition].blind = now;
}

void Shedding::note(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind) {
    if (partition >= sample_.units.size()) return;
    ShadowUnit& own = sample_.units[partition];
    if (own.share == 0 || !within(own, when) || (sample_.hopeless(partition) && kind != Trajectories::Point::lost))
        return;
    if (!trajectories.points.empty()) {
        const Trajectories::Point& last = trajectories.points.back();
        if (last.partition == partition && last.ts == ts && last.kind == kind) return;
    }
    if (trajectories.points.size() >= 4 * most_at_all || crowded()) {
        own.blind = when;
        return;
    }
    trajectories.points.push_back(
        {partition, unit_length() < 0 ? own.again : own.begin, when, ts, kind, own.blind, own.share});
}

// Return a hash of the key itself, the same in every run; `texts` has a bit for each part of it that is a text.
uint64_t Shedding::key_hash(uint32_t partition, uint32_t texts) const {
    if (!bounded() && partition >= key_hashes_.size()) key_hashes_.resize(partition + 1, 0);
    uint64_t own = 0;
    uint64_t& hash = bounded() ? own : key_hashes_[partition];
    if (hash != 0) return hash;
    return hash = acep::key_hash(partitions_, texts_, partition, texts, !bounded());
}

// The log --------------------------------------------------------------------------------------

void Shedding::log_birth(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark own, int64_t age) {
    const int64_t parent = own.logged() ? int64_t{own.trajectory} : -1;
    own.trajectory = new_trajectory();
    set_mark(list, row, state, own);
    own = whole_mark(list, row, state, partition);
    open_[own.trajectory] = list.touched;
    trajectories.made.push_back({own.trajectory, parent, partition, state, list.errors()[row], list.starts()[row],
                                 made(list, row, state), own.feature, age});
    log_values(list, row, state, partition);
}

void Shedding::log_values(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
    const size_t at = trajectories.values.size();
    trajectories.values.resize(at + table_.most_terms, std::numeric_limits<double>::quiet_NaN());
    if (table_.terms.empty()) return;
    size_t k = 0;
    for (const Term& term : table_.terms[state]) {
        trajectories.values[at + k++] = number(list, row, tables_.states[state].slots, term, partition);
    }
}

void Shedding::joined(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, Mark parent, int64_t now) {
    Mark there = mark(list, row, state);
    if (parent.trajectory == Mark::unlogged || trajectories.made.size() >= most_at_all || crowded()) return;
    if (!there.logged()) {
        there.trajectory = parent.trajectory;
        there.birth = parent.birth;
        set_mark(list, row, state, there);
        born(list, row, state, partition);
        return;
    }
    const uint32_t trajectory = new_trajectory();
    trajectories.made.push_back({trajectory, parent.logged() ? int64_t{parent.trajectory} : -1, partition, state,
                                 list.errors()[row], list.starts()[row], now, there.feature, parent.birth});
    log_values(list, row, state, partition);
    trajectories.ended.push_back({trajectory, now, static_cast<int64_t>(EndReason::merged_into), there.trajectory, 0});
}

void Shedding::log_end(const NodeList& list, Mark own, int64_t when, EndReason how) {
    const auto known = open_.find(own.trajectory);
    if (known == open_.end()) return;
    trajectories.ended.push_back({own.trajectory, when, static_cast<int64_t>(how), apart(list.touched, known->second),
                                  static_cast<int64_t>((list.births - own.birth) & 0xFFFFu)});
    open_.erase(known);
}

void Shedding::found(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error) {
    if (sample_.any) note(partition, when, ts, shadow ? Trajectories::Point::whole : Trajectories::Point::kept);
    if (parent.trajectory == Mark::unlogged || trajectories.found.size() >= 4 * most_at_all || crowded()) return;
    trajectories.found.push_back(
        {parent.logged() ? int64_t{parent.trajectory} : -1, partition, when, error, parent.birth});
}

}  // namespace acep
