// The choice of the units of the shadow sample, and their match points in the log.
#include "shedding/shadow_sample.hpp"

namespace acep {

int64_t ShadowSample::unit_length() const {
    int64_t length;
    return tables_.span < 0 || __builtin_mul_overflow(tables_.span + 1, windows, &length) ? -1 : length;
}

bool ShadowSample::within(const ShadowUnit& unit, int64_t now) const {
    const int64_t length = unit_length();
    return length < 0 || (now >= unit.begin && apart(now, unit.begin) < length);
}

SamplingUnitAt ShadowSample::drawn_unit(uint32_t partition, int64_t now) {
    if (!keys_.bounded() && partition < drawn_.size()) {
        const Drawn& last = drawn_[partition];
        if (now >= last.begin && now < last.end) return {last.begin, last.draw};
    }
    const int64_t length = unit_length();
    const SamplingUnitAt unit = unit_at(mixed(keys_.of(partition, table_.key_texts) + seed_), length, now);
    const bool bounded_unit = length >= 0 && unit.begin != std::numeric_limits<int64_t>::min();
    int64_t end;
    if (keys_.bounded() || !bounded_unit || __builtin_add_overflow(unit.begin, length, &end)) return unit;
    if (partition >= drawn_.size()) drawn_.resize(partition + size_t{1});
    drawn_[partition] = {unit.begin, end, unit.draw};
    return unit;
}

bool ShadowSample::samples(uint32_t partition, int64_t now) {
    constexpr int64_t never = std::numeric_limits<int64_t>::min();
    const bool counted = tables_.counted && unit_length() >= 0;
    while (units_.size() <= partition) {
        units_.emplace_back();
        if (!from_start_ && !counted && now > never) units_.back().blind = now - 1;
    }
    const auto [begin, draw] = drawn_unit(partition, now);
    ShadowUnit& unit = units_[partition];
    // Positions count within a partition: a first one above 0 shows that earlier events were not watched.
    if (counted && unit.begin == never && !from_start_ && now > 0) unit.blind = now - 1;
    if (unit.begin != begin) {
        // Nothing else shows the end of a unit of positions, so it is logged here.
        if (counted && unit.share != 0 && !log_.full_of_points()) {
            log_.trajectories.points.push_back({partition, unit.begin, unit.begin + unit_length(), now,
                                                Trajectories::Point::ended, unit.blind, unit.share});
        }
        unit.begin = begin;
        unit.share = unit.losses = 0;
    }
    const int64_t share = std::max(unit.share, static_cast<int64_t>(table_.shadow));
    if (static_cast<int64_t>(draw) < share) {
        unit.share = share;
        if (unit.losses < most_losses) return true;
    }
    unit.blind = now;
    return false;
}

void ShadowSample::record_loss(uint32_t partition, int64_t now) {
    if (partition >= units_.size() || units_[partition].blind == now) return;
    ++units_[partition].losses;
    log_point(partition, now, now, Trajectories::Point::lost);
    units_[partition].blind = now;
}

void ShadowSample::log_point(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind) {
    if (partition >= units_.size()) return;
    ShadowUnit& unit = units_[partition];
    if (unit.share == 0 || !within(unit, when) || (hopeless(partition) && kind != Trajectories::Point::lost)) return;
    std::vector<Trajectories::Point>& points = log_.trajectories.points;
    if (!points.empty()) {
        const Trajectories::Point& last = points.back();
        if (last.partition == partition && last.ts == ts && last.kind == kind) return;
    }
    if (log_.full_of_points()) {
        unit.blind = when;
        return;
    }
    points.push_back({partition, unit_length() < 0 ? unit.again : unit.begin, when, ts, kind, unit.blind, unit.share});
}

void ShadowSample::forget(uint32_t partition) {
    if (partition < drawn_.size()) drawn_[partition] = {};
    if (partition < units_.size() && (unit_length() < 0 || tables_.counted)) {
        ShadowUnit fresh;
        fresh.again = units_[partition].again + 1;
        if (unit_length() >= 0) fresh.blind = -1;  // a key that returns was not fully followed
        units_[partition] = fresh;
    }
}

}  // namespace acep
