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

class SampledEngine final : public Engine {
public:
    SampledEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
                  std::unique_ptr<BoundedEngine> behind)
        : Engine(std::move(tables), classifier, partitions), behind_(std::move(behind)) {}

    Engine& behind() { return *behind_; }
    // Set the seed; call it before any event. `key_texts`: a bit for each part of the key that is a text.
    void start(uint64_t seed, uint32_t key_texts);
    // Set the touches per event after `seen` events (negative: unlimited), and the most unused touches to carry over.
    void allow(double rate, double most_carried, int64_t seen);

    Output& output() override { return behind_->output(); }
    const Work& work() const override { return behind_->work(); }
    void event(uint32_t partition, const Event& event) override {
        if (gated_) return gate(partition, event);
        behind_->event(partition, event);
        if (behind_->denied) [[unlikely]]
            meet(partition, event);
    }
    void advance(int64_t clock) override { behind_->advance(clock); }
    void end() override { behind_->end(); }
    bool idle(uint32_t partition, int64_t soonest) override { return behind_->idle(partition, soonest); }
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

    double tokens() const { return allowance_.up_to(arrived) - static_cast<double>(behind_->work().touches); }
    int64_t withheld() const { return behind_->walks.withheld; }  // match points with matches left out
    int64_t dropped() const { return dropped_; }
    int64_t skipped() const { return passed_over_; }
    // Sums over the admitted units. A unit is admitted with probability p; it has x match points and e events before
    // which nothing was skipped for a window. `x` and `e` sum x / p and e / p, `squares` the squares of x / p; `xx`,
    // `xe` and `ee` sum the squares and the product of x / p and e / p, times 1 - p.
    struct Sums {
        double units = 0, x = 0, e = 0, squares = 0, xx = 0, xe = 0, ee = 0;
    };
    Sums sums() const;
    int64_t points() const { return behind_->match_points; }  // found; `certain`: found while nothing was skipped
    int64_t certain() const { return certain_ + (gated_ ? 0 : behind_->match_points - gated_points_); }
    int64_t let_in() const { return let_in_; }  // events admitted since something was first skipped

private:
    static constexpr int64_t windows = 8;  // windows in a unit
    static constexpr int64_t events = 1 << 16;  // events of the stream in a unit, if there is no window
    static constexpr uint64_t all = uint64_t{1} << 32;
    struct SamplingUnit {
        int64_t begin = NEVER;
        uint64_t draw = 0;  // a random number below 2^32
        uint64_t share = all;  // the least share of admitted units during this one
        int64_t since = NEVER;  // time or position up to which events of it were skipped
        int64_t points = 0, events = 0;  // those before which nothing was skipped for a window
        bool any = false;
        bool off = false;  // skipped from some event on
    };

    template <class Archive>
    static void fields(auto& self, Archive& archive);
    void look_up();
    void meet(uint32_t partition, const Event& event);
    void gate(uint32_t partition, const Event& event);
    void pass_over(SamplingUnit& unit, uint32_t partition, const Event& event, int64_t now);
    double reserve() const;
    void mark_pace();
    void adjust();
    void turn(SamplingUnit& unit, uint32_t partition, int64_t now);
    void close(const SamplingUnit& unit, Sums& sums) const;

    std::unique_ptr<BoundedEngine> behind_;
    uint64_t seed_ = 0;
    uint32_t key_texts_ = 0;
    Allowance allowance_;
    bool gated_ = false;  // units are skipped, as the budget does not suffice
    bool paused_ = false;  // no budget is left
    double share_ = 1;  // of units that are admitted
    double need_ = 0;  // mean touches per event if all units were admitted, over `told_` events
    double told_ = 0;
    int64_t paced_ = 0, paced_touches_ = 0, paced_in_ = 0, paced_out_ = 0, paced_denied_ = 0;  // at the last `adjust`
    std::vector<SamplingUnit> units_;  // by partition
    Sums sums_;  // over units that have ended
    int64_t certain_ = 0, gated_points_ = 0;
    int64_t let_in_ = 0, passed_over_ = 0, dropped_ = 0, denied_ = 0;
};

}  // namespace acep
