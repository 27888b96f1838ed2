// Budgets for engines that need not choose among partial matches. Where the budget does not suffice for all events,
// whole sampling units (eight windows of one partition) are skipped; the others run as without a budget
// (docs/explanation/best_effort.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/texts.hpp"
#include "shedding/allowance.hpp"
#include "shedding/bounded_engine.hpp"
#include "shedding/sampling_unit.hpp"

namespace acep {

// An engine under a budget, before an engine that need not choose among partial matches: it gets the events of
// admitted units only, and of all units while the budget suffices.
class SampledEngine final : public Engine {
public:
    SampledEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
                  std::unique_ptr<BoundedEngine> behind)
        : Engine(std::move(tables), classifier, partitions), behind_(std::move(behind)) {}

    // Return the engine behind.
    Engine& behind() { return *behind_; }
    // Set the seed; call it before any event. `key_texts`: a bit for each part of the key that is a text.
    void start(uint64_t seed, uint32_t key_texts);
    // Set the touches per event after `seen` events (negative: unlimited), and the most unused touches to carry over.
    void allow(double rate, double most_carried, int64_t seen);

    Output& output() override { return behind_->output(); }
    const Work& work() const override { return behind_->work(); }
    void event(uint32_t partition, const Event& event) override {
        if (gated_) return process_gated(partition, event);
        behind_->event(partition, event);
        if (behind_->over_limit) [[unlikely]]
            process_over_limit(partition, event);
    }
    void advance(int64_t clock) override { behind_->advance(clock); }
    void end() override { behind_->end(); }
    bool expire_partition(uint32_t partition, int64_t soonest) override {
        return behind_->expire_partition(partition, soonest);
    }
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override { behind_->used_texts(used); }
    void used_ids(std::vector<int64_t>& ids) const override { behind_->used_ids(ids); }
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override { return behind_->bytes() + heap_bytes(units_); }
    int64_t partial_matches(int64_t clock) const override { return behind_->partial_matches(clock); }
    ListedColumns list_partial_matches(const ListingRequest& request) const override {
        return behind_->list_partial_matches(request);
    }
    std::unique_ptr<Engine> copy(int64_t arrivals) const override { return behind_->copy(arrivals); }

    // Return the touches left of the allowance.
    double tokens() const { return allowance_.up_to(arrived) - static_cast<double>(behind_->work().touches); }
    int64_t withheld() const { return behind_->walks.withheld; }  // match points with matches left out
    // Return how many chains or sums were dropped.
    int64_t dropped() const { return dropped_; }
    // Return how many events were skipped.
    int64_t skipped() const { return skipped_; }
    // Sums over the admitted units. A unit is admitted with probability p; it has x match points and e events before
    // which nothing was skipped for a window. `x` and `e` sum x / p and e / p, `squares` the squares of x / p; `xx`,
    // `xe` and `ee` sum the squares and the product of x / p and e / p, times 1 - p.
    struct Sums {
        double units = 0, x = 0, e = 0, squares = 0, xx = 0, xe = 0, ee = 0;
    };
    // Return the sums, with the units that have not ended.
    Sums sums() const;
    int64_t points() const { return behind_->match_points; }  // found; `certain`: found while nothing was skipped
    // Return the match points found while nothing was skipped.
    int64_t certain() const { return certain_ + (gated_ ? 0 : behind_->match_points - gated_points_); }
    int64_t admitted() const { return admitted_; }  // events admitted since something was first skipped

private:
    static constexpr int64_t windows = 8;  // windows in a unit
    static constexpr int64_t events = 1 << 16;  // events of the stream in a unit, if there is no window
    static constexpr uint64_t all = uint64_t{1} << 32;
    // The current unit of a partition, while units are skipped.
    struct SamplingUnit {
        int64_t begin = NEVER;
        uint64_t draw = 0;  // a random number below 2^32
        uint64_t share = all;  // the least share of admitted units during this one
        int64_t since = NEVER;  // time or position up to which events of it were skipped
        int64_t points = 0, events = 0;  // those before which nothing was skipped for a window
        bool any = false;
        bool off = false;  // skipped from some event on
    };

    // Write or read the state beside that of the engine behind.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Set the limit on touches up to and with the current event; carry over what the allowance permits.
    void renew_limit();
    // Handle an event beyond the limit: update the limit, and start skipping units if it is still insufficient.
    void process_over_limit(uint32_t partition, const Event& event);
    // Process an event while units are skipped: pass it to the engine behind if its unit is admitted and the budget
    // suffices.
    void process_gated(uint32_t partition, const Event& event);
    // Skip an event of a unit, at `now`.
    void skip(SamplingUnit& unit, uint32_t partition, const Event& event, int64_t now);
    // Return the touches kept for bursts.
    double reserve() const;
    // Note what was done up to now, for the next `update_share`.
    void mark_pace();
    // Update the share of admitted units from the touches per event if all were admitted, and from the budget left.
    // It falls fast only if no budget is left, as the partial matches of a unit are lost when it is skipped.
    void update_share();
    // Move a partition to the unit that contains `now`. Units begin at random offsets, so they are not aligned with
    // days.
    void enter_unit(SamplingUnit& unit, uint32_t partition, int64_t now);
    // Add a unit that has ended to sums.
    void add_unit(const SamplingUnit& unit, Sums& sums) const;

    std::unique_ptr<BoundedEngine> behind_;
    uint64_t seed_ = 0;
    uint32_t key_texts_ = 0;
    Allowance allowance_;
    bool gated_ = false;  // units are skipped, as the budget does not suffice
    bool paused_ = false;  // no budget is left
    double share_ = 1;  // of units that are admitted
    double need_ = 0;  // mean touches per event if all units were admitted, over `need_events_` events
    double need_events_ = 0;
    int64_t paced_ = 0, paced_touches_ = 0, paced_in_ = 0, paced_out_ = 0,
            paced_over_limit_ = 0;  // at the last `update_share`
    std::vector<SamplingUnit> units_;  // by partition
    Sums sums_;  // over units that have ended
    int64_t certain_ = 0, gated_points_ = 0;
    int64_t admitted_ = 0, skipped_ = 0, dropped_ = 0, n_over_limit_ = 0;
};

}  // namespace acep
