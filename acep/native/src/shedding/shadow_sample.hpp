// The shadow sample: the sampling units whose partial matches are followed without shedding, to learn from them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/state.hpp"
#include "plan/tables.hpp"
#include "shedding/key_hashes.hpp"
#include "shedding/match_vectors.hpp"
#include "shedding/sampling_unit.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/trajectory_log.hpp"

namespace acep {

// The current unit of a partition. `blind` is the last start that was not fully followed.
struct ShadowUnit {
    int64_t begin = std::numeric_limits<int64_t>::min(), blind = std::numeric_limits<int64_t>::min();
    int64_t share = 0;  // how many of 2^32 units are sampled; 0: this one is not
    int64_t losses = 0;
    int64_t again = 0;  // if a partition is one unit: how many keys had its number before
};

// Units are drawn by the key and the time. Losses of a sampled unit are logged among its match points.
class ShadowSample {
public:
    ShadowSample(const Tables& tables, const SheddingTable& table, const KeyHashes& keys, TrajectoryLog& log,
                 uint64_t seed)
        : tables_(tables), table_(table), keys_(keys), log_(log), seed_(seed) {}

    // Note that units are sampled from now on. `from_start`: no event has come before.
    void begin(bool from_start) {
        any_ = true;
        from_start_ = from_start;
    }
    // Note that partial matches are watched from now on. `from_start`: no event before the current one has come.
    void watch(bool from_start) { from_start_ = from_start_ && from_start; }
    // Return whether there has been a shadow sample.
    bool any() const { return any_; }
    // Discard the stored draws of units, as keys have other hashes.
    void clear_draws() { drawn_.clear(); }

    // Return whether partial matches that begin with an event are shadow-sampled. Call it for each such event.
    bool samples(uint32_t partition, int64_t now);
    // Record that partial matches of a shadow-sampled unit were given up at `now`.
    void record_loss(uint32_t partition, int64_t now);
    // Give up a shadow-sampled unit until it ends.
    void give_up_unit(uint32_t partition, int64_t now) {
        record_loss(partition, now);
        if (partition < units_.size()) units_[partition].losses = most_losses;
    }
    // Note that nothing of a partition was watched up to `now`.
    void note_unwatched(uint32_t partition, int64_t now) {
        if (partition < units_.size()) units_[partition].blind = now;
    }
    // Log a match point of a partition, or what else is known of its unit at `when`, if the unit is sampled.
    void log_point(uint32_t partition, int64_t when, int64_t ts, Trajectories::Point::Kind kind);
    // Return whether a partition's unit had too many losses to be followed further.
    bool hopeless(uint32_t partition) const {
        return partition < units_.size() && units_[partition].losses >= most_losses;
    }
    // Return whether some start at `since` or later was not fully followed.
    bool blind_since(uint32_t partition, int64_t since) const {
        return partition < units_.size() && units_[partition].blind >= since;
    }
    // Forget a partition, as its number may be reused for another key.
    void forget(uint32_t partition);

    // Return the bytes of the units.
    int64_t bytes() const { return heap_bytes(units_); }
    // Write or read the units.
    template <class Archive>
    static void fields(auto& self, Archive& archive) {
        archive.words(self.any_, self.from_start_);
        archive.items(self.units_);
        if constexpr (Archive::reads) self.clear_draws();
    }

private:
    static constexpr int64_t windows = 8;  // of one partition in a sampling unit
    static constexpr int64_t most_losses = 128;  // events with losses, after which a unit is given up
    // The random draw of the unit that was looked up last.
    struct Drawn {
        int64_t begin = 0, end = 0;
        uint64_t draw = 0;
    };

    // Return the length of a unit; -1: each partition is one unit.
    int64_t unit_length() const;
    // Return whether a unit contains `now`.
    bool within(const ShadowUnit& unit, int64_t now) const;
    // Return the unit of a partition that contains `now`. It is stored, as most events are in the unit of the one
    // before.
    SamplingUnitAt drawn_unit(uint32_t partition, int64_t now);

    const Tables& tables_;
    const SheddingTable& table_;
    const KeyHashes& keys_;
    TrajectoryLog& log_;
    const uint64_t seed_;
    bool any_ = false;  // there has been a shadow sample
    bool from_start_ = false;  // since the first event
    std::vector<ShadowUnit> units_;  // by partition
    std::vector<Drawn> drawn_;  // by partition, if memory is not bounded
};

}  // namespace acep
