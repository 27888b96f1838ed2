// Matches as the graph that they share: kept whole, of a size that grows with events and not with matches, to be
// counted, drawn from and enumerated later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/big_integer.hpp"
#include "merged/merged.hpp"

namespace acep {

// How many trails of a chain began at `low` or later. What is known of cells is kept as long as `low` is the same.
class TrailCounts {
public:
    static constexpr size_t most_words = size_t{1} << 28;  // of numbers beyond 64 bits, at once

    // Until the next call.
    NaturalView of(const Arena& arena, uint32_t chain, int64_t low);
    size_t bytes() const;

private:
    struct Known {
        uint64_t number;  // or where its words begin in the pool, if there are more than one
        uint32_t words;
        uint32_t turn;  // 0: never known
    };
    NaturalView words(const Known& known) const {
        return {known.words > 1 ? pool_.data() + known.number : &known.number, known.words};
    }

    std::vector<Known> known_;  // by place of the cell
    std::vector<uint64_t> pool_;
    std::vector<uint32_t> stack_;
    Natural sum_;
    uint32_t turn_ = 0;
    int64_t low_ = NEVER;
};

class Compressed {
public:
    // `keys` are `width` values for each partition number of the roots; `counted`: starts are positions.
    Compressed(Arena arena, std::vector<Root> roots, std::vector<int64_t> keys, size_t width, bool counted)
        : arena_(std::move(arena)), roots_(std::move(roots)), keys_(std::move(keys)), width_(width), counted_(counted) {}

    size_t ends() const { return roots_.size(); }  // distinct ways in which matches end
    size_t cells() const { return arena_.cells.size(); }
    size_t bytes();

    // How many matches there are.
    Natural count();
    // So many matches, drawn one by one from all of them with equal probability, put in the order of their numbers.
    // None if there is none to draw.
    Output sample(size_t n, uint64_t seed);

private:
    friend class Walk;
    struct Place {
        size_t root = 0;
        Natural before;  // matches of the roots before it
    };
    static constexpr size_t stride = 64;

    const int64_t* key(const Root& root) const { return keys_.data() + root.partition * width_; }
    NaturalView count_of(const Root& root);
    void prepare();
    // Goes on to the match of this number, which there is; `place` is where the last one was found, or the start.
    void find(const Natural& number, Place& place, Cursor& cursor);

    const Arena arena_;
    const std::vector<Root> roots_;
    const std::vector<int64_t> keys_;
    const size_t width_;
    const bool counted_;

    std::mutex mutex_;  // of what follows
    TrailCounts counts_;
    bool prepared_ = false;
    Natural total_;
    std::vector<Natural> before_;  // matches of the roots before every stride-th one
};

// Where an enumeration is; matches come root by root, so that match points rise.
class Walk {
public:
    // Begins at match number `first`.
    Walk(std::shared_ptr<Compressed> matches, const Natural& first);

    // At most so many matches; none after the last.
    Output next(size_t limit);

private:
    std::shared_ptr<Compressed> matches_;
    Cursor cursor_;
    size_t root_;  // the next one to open
};

class CompressedEngine final : public Engine {
public:
    CompressedEngine(Tables tables, Front& front, Partitions& partitions);

    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t) override {}
    bool idle(uint32_t partition, int64_t clock) override { return merger_.idle(partition, clock); }
    void forget(uint32_t partition) override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return merger_.partial_matches(clock); }

    // The matches found since the last time; what may still grow is copied. After the `last` time nothing is left here.
    std::shared_ptr<Compressed> take(bool last);

private:
    Merger merger_;
    std::vector<Root> roots_;           // their partitions are places among the keys
    std::vector<uint32_t> place_of_;    // by partition; NIL: none yet
    std::vector<int64_t> keys_;
    uint32_t places_ = 0;
};

}  // namespace acep
