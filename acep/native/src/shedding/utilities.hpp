// Utilities of partial matches by a shedding table: the bucket of a match vector, and what registers add to it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/texts.hpp"
#include "plan/tables.hpp"
#include "shedding/hidden_slots.hpp"
#include "shedding/key_hashes.hpp"
#include "shedding/mark.hpp"
#include "shedding/match_vectors.hpp"
#include "shedding/shedding_table.hpp"

namespace acep {

// The table must be one that `use_table` has been called for, before any utility is asked.
class Utilities {
public:
    static constexpr int64_t no_utility = std::numeric_limits<int64_t>::min();

    Utilities(const Tables& tables, const SheddingTable& table, const Texts& texts, const KeyHashes& keys,
              uint64_t seed)
        : slots_(tables), tables_(tables), table_(table), texts_(texts), keys_(keys), seed_(seed) {}

    // Prepare the look-ups for the shedding table, which has changed.
    void use_table();
    // Draw the next random number, 0 .. 255.
    uint8_t draw() { return static_cast<uint8_t>(mixed(++draws_ * golden_step + seed_) >> 56); }
    // Draw the chance of a partial match, 0 .. Mark::most_chance.
    uint8_t draw_chance() { return draw() >> 2; }

    // Return the number of a term; `read(second, word)` reads slot a or b, and returns false if it has no value.
    template <class Read>
    double number(const Term& term, uint32_t partition, Read&& read) const {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        if (term.kind == Term::partition) {
            return static_cast<double>(keys_.of(partition, table_.key_texts) % Term::buckets);
        }
        int64_t word = 0, other = 0;
        if (!read(false, word)) return none;
        if (term.kind >= Term::hashed) {
            return static_cast<double>(mixed(word_hash(texts_, word, term.kind == Term::text, !keys_.bounded())) %
                                       Term::buckets);
        }
        const double x = term.a_floats ? std::bit_cast<double>(word) : static_cast<double>(word);
        if (term.kind == Term::held) return x;
        if (!read(true, other)) return none;
        const double y = term.b_floats ? std::bit_cast<double>(other) : static_cast<double>(other);
        if (term.kind == Term::difference) return x - y;
        return y != 0 ? x / y : none;
    }
    // Return the number of a term of a partial match.
    double number(NodeList& list, uint32_t row, uint32_t state, const Term& term, uint32_t partition) const;
    // Return the buckets that registers add, as a mark stores them.
    static uint8_t feature_of(double buckets) {
        return static_cast<uint8_t>(std::clamp(buckets, -127.0, 127.0) + 128.0);
    }
    // Set what shedding knows of a new partial match: the feature of its registers, unless it can be computed later
    // (`may_defer`), and its chance.
    void set_feature(Mark& mark, NodeList& list, uint32_t row, uint32_t state, uint32_t partition, bool may_defer);
    // Return the mark of a partial match, whose feature is computed and stored if it was deferred.
    Mark complete_mark(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) {
        Mark mark = slots_.mark(list, row, state);
        if (!mark.deferred) return mark;
        mark.deferred = false;
        ++n_computed_;
        mark.feature = registers_feature(list, row, state, partition);
        slots_.set_mark(list, row, state, mark);
        return mark;
    }
    // The feature of registers is computed when it is first needed, as few partial matches need it while the threshold
    // is 0. Before the shedding table changes, it must be computed for all (`complete_marks`). Return whether any
    // partial match may lack it, and forget that.
    bool take_deferred() { return std::exchange(deferred_, false); }
    // Compute the deferred features of a list.
    void complete_marks(NodeList& list, uint32_t state, uint32_t partition) {
        for (uint32_t row = list.head; row < list.end; ++row) complete_mark(list, row, state, partition);
    }

    // Return the utility bucket of a partial match before it is clamped; `no_utility`: its vector has none. `births`:
    // of its list, to tell how many were made after it.
    int64_t unclamped(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                      uint32_t births) const {
        const int64_t bucket = table_.level[vectors_.at(state, error, start, made, mark.feature, now)];
        if (bucket == 0) return no_utility;
        const auto age = static_cast<size_t>(std::bit_width((births - mark.birth) & 0xFFFFu));
        return bucket + (table_.features == 1 ? mark.feature - 128 : 0) + (mark.chance * table_.noise >> 6) +
               table_.later[state * SheddingTable::ages + std::min(age, SheddingTable::ages - 1)];
    }
    // Return the utility bucket for what `unclamped` returned: 0 for none, else 1 to most_level.
    static uint32_t clamped(int64_t bucket) {
        return bucket == no_utility ? 0
                                    : static_cast<uint32_t>(std::clamp<int64_t>(bucket, 1, SheddingTable::most_level));
    }
    // Return the utility bucket of a partial match; 0: none. The parameters are those of `unclamped`.
    uint32_t bucket(uint32_t state, int64_t error, int64_t start, int64_t made, Mark mark, int64_t now,
                    uint32_t births) const {
        return clamped(unclamped(state, error, start, made, mark, now, births));
    }
    // Return the utility bucket at `now` of a partial match with a mark.
    uint32_t bucket(NodeList& list, uint32_t row, uint32_t state, Mark mark, int64_t now) const {
        return bucket(state, list.errors()[row], list.starts()[row], slots_.made_at(list, row, state), mark, now,
                      list.births);
    }
    // Return the utility bucket of a partial match for users; -1 before there is a table. Nothing is stored or counted.
    int64_t bucket_to_show(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, int64_t now) const;

    // Return how many partial matches had their feature computed in this session.
    int64_t n_computed() const { return n_computed_; }
    // Note that partial matches lose their marks, so that none lacks its feature.
    void drop_marks() { deferred_ = false; }

    // Write or read how many random numbers were drawn.
    template <class Archive>
    static void fields(auto& self, Archive& archive) {
        archive.words(self.draws_);
    }

private:
    // Compute the feature of a partial match's registers.
    uint8_t registers_feature(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) const;

    const HiddenSlots slots_;
    const Tables& tables_;
    const SheddingTable& table_;
    const Texts& texts_;
    const KeyHashes& keys_;
    const uint64_t seed_;
    MatchVectors vectors_;
    std::vector<uint8_t> register_utility_;  // by state: whether registers add utility
    bool deferred_ = false;  // the features of some partial matches may not be computed yet
    uint64_t draws_ = 0;  // random numbers drawn so far
    int64_t n_computed_ = 0;
};

}  // namespace acep
