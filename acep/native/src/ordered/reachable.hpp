// The backward pass: from which states, before which rows, a match can still end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"
#include "ordered/state_masks.hpp"

namespace acep {

// A bit for each position of a partition and each state, as the conditions of single rows decide alone. Position p is
// before row p; there is one more of them than rows. If they need too much memory, only those at the ends of stretches
// stay, and stretches are computed anew when they are looked at.
class Reachable {
public:
    explicit Reachable(const PatternGraph& graph);

    // Compute the bits of the partition of `rows` rows from `begin` on. local[label]: a byte a row, or nullptr: any
    // row.
    void start(std::span<const uint8_t* const> local, size_t begin, size_t rows, size_t memory, Polling& polling);
    // Ask another one from now on whether to stop: the one of before is gone.
    void poll(Polling& polling) { polling_ = &polling; }
    // Return whether a match can end from a state before a position.
    bool at(size_t position, size_t state) {
        const uint64_t* const words = words_at(position);
        if (masks_) return (*words & masks_->closure(place(position), state)) != 0;
        return (words[state / 64] >> state % 64 & 1) != 0;
    }
    // Return the first position from `position` on from which a match can end; the number of rows if there is none.
    size_t next_start(size_t position);
    // Return the bits as sets of states, where the pattern has few.
    const StateMasks* masks() const { return masks_ ? &*masks_ : nullptr; }
    // Return the states from which a match can end before a position, as a set; only with `masks`.
    uint64_t mask_at(size_t position) { return *words_at(position); }
    // Return where a position is in its partition.
    Place place(size_t position) const {
        return position == 0 ? Place::first : position == rows_ ? Place::last : Place::middle;
    }
    // Return the bytes on the heap.
    size_t bytes() const;

private:
    // The words of some consecutive positions.
    struct Stretch {
        size_t number = none;
        size_t used = 0;  // when it was last looked at
        std::vector<uint64_t> words;
    };
    static constexpr size_t none = static_cast<size_t>(-1);

    // Return the words of a position, which are valid until another one is asked for.
    const uint64_t* words_at(size_t position) {
        if (position - first_ >= count_) look_at(position / length_);
        return current_ + (position - first_) * width_;
    }
    // Make a stretch the one that is looked at, in place of the one that was not looked at for longest.
    void look_at(size_t number);
    // Compute the words of a stretch, from those after it.
    void fill(Stretch& stretch, size_t number);
    // Compute the words of some positions from those after them (nullptr: there are none).
    void fill_masks(uint64_t* words, size_t first, size_t count, const uint64_t* after) const;
    // Compute the words of one position from those after it (nullptr: there are none), where the pattern has many
    // states.
    void fill_bits(uint64_t* words, size_t position, const uint64_t* after) const;
    // Return whether a match can begin at one of some positions, by their words.
    bool any_start(size_t first, size_t count, const uint64_t* words) const;

    const PatternGraph& graph_;
    std::optional<StateMasks> masks_;
    size_t width_;  // words a position
    std::span<const uint8_t* const> local_;
    size_t begin_ = 0, rows_ = 0;
    Polling* polling_ = nullptr;
    size_t length_ = 1;  // positions of a stretch
    std::vector<Stretch> stretches_;  // those that are there
    std::vector<uint64_t> ends_;  // by stretch: the words after it
    std::vector<uint8_t> starts_;  // by stretch: whether a match can begin in it
    size_t clock_ = 0;
    // The stretch looked at last.
    size_t first_ = 0, count_ = 0;
    const uint64_t* current_ = nullptr;
};

}  // namespace acep
