// The states of a row pattern, and the moves between them that consume no row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace acep {

// A state of a pattern, with the move that leads on from it.
struct PatternState {
    // row: consume a row that label b allows, and go to a; split: prefer a to b; jump: go to a; first, last: go to a
    // only before the first, or after the last row of a partition; accept: the end of a match.
    enum Op : uint8_t { row, split, jump, first, last, accept };
    Op op;
    uint32_t a, b;
};

// Checked when it is made: states and labels exist, and moves that consume no row lead into no circle.
class PatternGraph {
public:
    static constexpr size_t most_states = 200'000;
    static constexpr size_t most_labels = 65'535;

    // Throw std::invalid_argument for anything else.
    PatternGraph(std::vector<PatternState> states, size_t labels);

    // Return a state by its number.
    const PatternState& operator[](size_t state) const { return states_[state]; }
    // Return the number of states.
    size_t size() const { return states_.size(); }
    // Return the number of labels.
    size_t labels() const { return labels_; }
    // Return all states, each after those that its moves without a row lead to.
    const std::vector<uint32_t>& order() const { return order_; }
    // Return whether there are several ways into a state; the start of a match is one into state 0.
    bool joins(size_t state) const { return ways_[state] > 1; }
    // Return a flag for each state: whether a row of a label with a flag can still be consumed, from there on.
    std::vector<uint8_t> leading_to(std::span<const uint8_t> labels) const;

    // Return a flag for each state: whether a match can end from there without a row of a label with a flag.
    std::vector<uint8_t> avoiding(std::span<const uint8_t> labels) const;

private:
    // Throw std::invalid_argument unless all states and labels exist.
    void check() const;
    // Compute the order of the states; throw std::invalid_argument for a circle of moves without a row.
    void find_order();
    // Set the flags of all states that lead to states with a flag, without a row of a label in `closed`.
    void spread(std::vector<uint8_t>& flags, std::span<const uint8_t> closed) const;
    // Call fn for each state that a state leads to in one move; with `rows`, also in one row.
    template <class Fn>
    void each_next(size_t state, bool rows, Fn fn) const;

    std::vector<PatternState> states_;
    size_t labels_;
    std::vector<uint32_t> order_;
    std::vector<uint32_t> ways_;  // into each state
};

}  // namespace acep
