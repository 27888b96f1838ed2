// Matches kept as the graph that they share, to be counted, sampled and enumerated later. Its size grows with the
// number of events, not of matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/big_integer.hpp"
#include "merged/merged.hpp"

namespace acep {

// The number of sequences in a chain that began at `low` or later. Numbers are cached as long as `low` is the same.
class TrailCounts {
public:
    static constexpr size_t most_words = size_t{1} << 28;  // for all numbers beyond 64 bits together

    // Return the number for a chain; it is valid until the next call.
    BigIntegerView of(const Arena& arena, uint32_t chain, int64_t low);
    int64_t bytes() const { return heap_bytes(known_, pool_, sum_, stack_); }

private:
    // The number of a chain, as far as it is computed.
    struct Known {
        uint64_t number;  // or the offset of its words in the pool, if there are several
        uint32_t words;
        uint32_t round;  // `round_` at which it was computed; 0: never
    };
    // Return the words of a number that is computed; they are valid until another one is.
    BigIntegerView words(const Known& known) const {
        return {known.words > 1 ? pool_.data() + known.number : &known.number, known.words};
    }

    std::vector<Known> known_;  // by offset of the cell in the arena
    std::vector<uint64_t> pool_;
    std::vector<uint32_t> stack_;
    BigInteger sum_;
    uint32_t round_ = 0;
    int64_t low_ = NEVER;
};

// All matches of a stream as chains: they are counted, drawn and enumerated without being written.
class Compressed {
public:
    // `keys` has `width` values for each partition number in the roots; `counted`: starts are positions.
    Compressed(Arena arena, std::vector<Root> roots, std::vector<int64_t> keys, size_t width, bool counted)
        : arena_(std::move(arena)),
          roots_(std::move(roots)),
          keys_(std::move(keys)),
          width_(width),
          counted_(counted) {}

    size_t ends() const { return roots_.size(); }  // distinct endings of matches
    // Return the number of cells.
    size_t cells() const { return arena_.cells.size(); }
    // Return the bytes on the heap, with those for counting.
    int64_t bytes();

    // Return the number of matches.
    BigInteger count();
    // Draw `n` matches independently, each with equal probability, in the order of their numbers; none if there are no
    // matches.
    Output sample(size_t n, uint64_t seed);

private:
    friend class Walk;
    // The root of a match that was found, to find the next one from there.
    struct Place {
        size_t root = 0;
        BigInteger before;  // number of matches of the roots before `root`
    };
    static constexpr size_t stride = 64;

    // Return the key of a root's partition.
    const int64_t* key(const Root& root) const { return keys_.data() + root.partition * width_; }
    // Return the number of matches of a root; it is valid until the next call.
    BigIntegerView count_of(const Root& root);
    // Count the matches before every stride-th root, unless that is done. The mutex must be held.
    void prepare();
    // Move the cursor to match `number`, which exists. `place` is the place of the match found before, or the start.
    void find(const BigInteger& number, Place& place, Cursor& cursor);

    const Arena arena_;
    const std::vector<Root> roots_;
    const std::vector<int64_t> keys_;
    const size_t width_;
    const bool counted_;

    std::mutex mutex_;  // guards the members below
    TrailCounts counts_;
    bool prepared_ = false;
    BigInteger total_;
    std::vector<BigInteger> before_;  // number of matches before every stride-th root
};

// An enumeration of all matches, root by root, so that match points do not fall.
class Walk {
public:
    // Start at match number `first`.
    Walk(std::shared_ptr<Compressed> matches, const BigInteger& first);

    // Return at most `limit` matches; none after the last.
    Output next(size_t limit);

private:
    std::shared_ptr<Compressed> matches_;
    Cursor cursor_;
    size_t root_;  // next root to open
};

// The engine that gives all matches as `Compressed`.
class CompressedEngine final : public Engine {
public:
    CompressedEngine(Tables tables, EventClassifier& classifier, Partitions& partitions);

    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t) override {}
    bool expire_partition(uint32_t partition, int64_t soonest) override {
        return merger_.expire_partition(partition, soonest);
    }
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override { used.add(keys_); }
    void used_ids(std::vector<int64_t>& ids) const override;
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override;
    int64_t partial_matches(int64_t clock) const override { return merger_.partial_matches(clock); }

    // Return the matches found since the last call. Chains that may still grow are copied; with `last`, none is kept.
    std::shared_ptr<Compressed> take(bool last);

private:
    // Write or read the state.
    template <class Archive>
    static void fields(auto& self, Archive& archive);

    Merger merger_;
    std::vector<Root> roots_;           // their partitions are indices into the keys
    std::vector<uint32_t> place_of_;    // by partition; NIL: none yet
    std::vector<int64_t> keys_;
    uint32_t places_ = 0;
};

}  // namespace acep
