// Under a budget: a plan runs on an engine that need not choose among partial matches. Where the allowance does not suffice
// for all events, whole units are passed over, eight windows of one partition each, and the others are as without a budget
// (docs/explanation/best_effort.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/texts.hpp"
#include "shedding/bounded_engine.hpp"
#include "shedding/sampling_unit.hpp"

namespace acep {

class UnitsEngine final : public Engine {
public:
    UnitsEngine(Tables tables, Front& front, Partitions& partitions, std::unique_ptr<EasyEngine> behind)
        : Engine(std::move(tables), front, partitions), behind_(std::move(behind)) {}

    Engine& behind() { return *behind_; }
    // Before any event. `key_texts`: a bit for each part of the key that is a text.
    void start(uint64_t seed, uint32_t key_texts);
    // Touches an event from now on (negative: without bound), and how many unused ones are kept at most; `seen` events have come.
    void allow(double rate, double most_carried, int64_t seen);

    Output& output() override { return behind_->output(); }
    const Work& work() const override { return behind_->work(); }
    void event(uint32_t partition, const Event& event) override {
        if (gated_) return gate(partition, event);
        behind_->event(partition, event);
        if (behind_->denied) [[unlikely]] meet(partition, event);
    }
    void advance(int64_t clock) override { behind_->advance(clock); }
    void end() override { behind_->end(); }
    bool idle(uint32_t partition, int64_t clock) override { return behind_->idle(partition, clock); }
    void forget(uint32_t partition) override;
    int64_t oldest() const override { return behind_->oldest(); }
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override { return behind_->bytes() + static_cast<int64_t>(units_.capacity() * sizeof(Unit)); }

    int64_t partial_matches(int64_t clock) const override { return behind_->partial_matches(clock); }

    double tokens() const { return granted(arrived) - static_cast<double>(behind_->work().touches); }
    int64_t withheld() const { return behind_->walks.withheld; }  // match points of which not all matches were given
    int64_t dropped() const { return dropped_; }
    int64_t passed_over() const { return passed_over_; }
    // Of units that were let in, each with a chance p: how many they are, and sums of the match points x and the events e of
    // which it is known that nothing was passed over for a window: x / p, e / p, the squares of x / p; and the squares and the
    // product of both, times 1 - p.
    struct Sums {
        double units = 0, x = 0, e = 0, squares = 0, xx = 0, xe = 0, ee = 0;
        void visit(auto&& each) {
            for (double* d : {&units, &x, &e, &squares, &xx, &xe, &ee}) each(*d);
        }
    };
    Sums sums() const;
    int64_t points() const { return behind_->match_points; }       // that were found
    int64_t certain() const { return certain_ + (gated_ ? 0 : behind_->match_points - gated_points_); }  // where nothing was passed over
    int64_t let_in() const { return let_in_; }               // events, since something was first passed over

private:
    static constexpr int64_t windows = 8;         // in a unit
    static constexpr int64_t events = 1 << 16;    // of the stream, in a unit where there is no window
    static constexpr uint64_t all = uint64_t{1} << 32;
    struct Unit {
        int64_t begin = NEVER;
        uint64_t draw = 0;     // of 2^32
        uint64_t share = all;  // the least share of units that was let in while it lasted
        int64_t since = NEVER; // up to here something of it was passed over
        int64_t points = 0, events = 0;  // of which all is known
        bool any = false;
        bool off = false;      // passed over from some event on
    };

    double granted(int64_t seen) const { return granted_ + rate_ * static_cast<double>(seen - since_); }
    void look_up();
    void meet(uint32_t partition, const Event& event);
    void gate(uint32_t partition, const Event& event);
    void pass_over(Unit& unit, uint32_t partition, const Event& event, int64_t now);
    double reserve() const;
    void adjust();
    void turn(Unit& unit, uint32_t partition, int64_t now);
    void close(const Unit& unit, Sums& sums) const;

    std::unique_ptr<EasyEngine> behind_;
    uint64_t seed_ = 0;
    uint32_t key_texts_ = 0;
    double rate_ = -1;
    double granted_ = 0;   // up to event `since_`
    double most_carried_ = 0;
    int64_t since_ = 0;
    bool gated_ = false;   // the allowance did not suffice
    bool paused_ = false;  // nothing is left of it
    double share_ = 1;     // of units that are let in
    double need_ = 0;      // touches an event if all were, of `told_` events
    double told_ = 0;
    int64_t paced_ = 0, paced_touches_ = 0, paced_in_ = 0, paced_out_ = 0, paced_denied_ = 0;  // when the share was last looked at
    std::vector<Unit> units_;  // by partition
    Sums sums_;                // of units that have ended
    int64_t certain_ = 0, gated_points_ = 0;
    int64_t let_in_ = 0, passed_over_ = 0, dropped_ = 0, denied_ = 0;
};

}  // namespace acep
