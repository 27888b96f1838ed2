// Sets of states as words, for patterns with few states that consume a row.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ordered/pattern_graph.hpp"

namespace acep {

// Where a position is in its partition: before its first row, between two, or after its last.
enum class Place : uint8_t { first, middle, last };

// A bit for each state that consumes a row, and one for all that accept.
class StateMasks {
public:
    static constexpr size_t most_rows = 63;

    // Return whether a pattern has few enough states that consume a row.
    static bool fit(const PatternGraph& graph);
    explicit StateMasks(const PatternGraph& graph);

    // Return the set of all states that accept.
    uint64_t accept() const { return uint64_t{1} << rows_.size(); }
    // Return what a state leads to without a row.
    uint64_t closure(Place place, size_t state) const { return closures_[static_cast<size_t>(place)][state]; }
    // Return the states that consume a row before a position in the middle and then lead to one of `live` there.
    uint64_t before(uint64_t live) const { return looked_up(before_, live); }
    // Return the same before the last position.
    uint64_t before_last(uint64_t live) const;
    // Return what states that consume a row before a position in the middle lead to there.
    uint64_t after(uint64_t states) const { return looked_up(after_, states); }
    // Return the same before the last position.
    uint64_t after_last(uint64_t states) const;
    // Set out[i] to the states that may consume row `begin` + i, by the conditions of single rows; n <= block.
    void allowed(std::span<const uint8_t* const> local, size_t begin, size_t n, uint64_t* out) const;
    // Return a set of one state, which consumes a row.
    uint64_t of_state(size_t state) const;
    // Return the states of a label; those that have no flag.
    uint64_t of_label(size_t label) const;
    // Return the states of labels that have no flag.
    uint64_t without(const std::vector<uint8_t>& flags) const;

    static constexpr size_t block = 256;

private:
    using Table = std::array<uint64_t, 256>;
    // A label, and its states that consume a row.
    struct Label {
        uint32_t label;
        uint64_t states;
    };
    // Return what a set leads to, by a table for each byte of it.
    uint64_t looked_up(const std::vector<Table>& tables, uint64_t states) const {
        uint64_t all = 0;
        for (const Table& table : tables) {
            all |= table[states & 255];
            states >>= 8;
        }
        return all;
    }
    // Fill the tables for positions in the middle.
    void fill_tables();

    std::vector<uint32_t> states_, rows_;  // by bit: the state, and the one that follows
    std::array<std::vector<uint64_t>, 3> closures_;
    std::vector<Table> before_, after_;  // by byte of a set
    std::vector<Label> labels_;
};

}  // namespace acep
