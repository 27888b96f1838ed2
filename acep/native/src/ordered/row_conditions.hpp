// The conditions of labels that read more than their own row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/texts.hpp"
#include "expression/vm.hpp"
#include "ordered/bound_rows.hpp"

namespace acep {

// A condition of a label: a program, and the references that are its inputs.
struct RowCondition {
    size_t label;
    BlockProgram program;
    std::vector<uint32_t> references;
};

// All conditions of a pattern, by label.
class RowConditions {
public:
    RowConditions(std::vector<RowCondition> conditions, size_t labels);

    // Return whether all conditions of a label hold for the row that was bound last.
    bool hold(size_t label, const BoundRows& rows, const Texts& texts);
    // Return the numbers of the conditions of a label.
    const std::vector<uint32_t>& of_label(size_t label) const { return by_label_[label]; }
    // Return a condition by its number.
    const RowCondition& operator[](size_t condition) const { return conditions_[condition]; }
    // Return the number of conditions.
    size_t size() const { return conditions_.size(); }
    // Return how many conditions were evaluated, for one row each.
    size_t evaluated() const { return evaluated_; }
    // Count conditions that were evaluated elsewhere.
    void count(size_t rows) { evaluated_ += rows; }

private:
    std::vector<RowCondition> conditions_;
    std::vector<std::vector<uint32_t>> by_label_;
    std::vector<Leaf> leaves_;
    std::vector<Scratch::Cell> cells_;
    Scratch scratch_;
    size_t evaluated_ = 0;
};

}  // namespace acep
