#include "ordered/row_conditions.hpp"

#include <algorithm>
#include <utility>

namespace acep {

RowConditions::RowConditions(std::vector<RowCondition> conditions, size_t labels)
    : conditions_(std::move(conditions)), by_label_(labels) {
    size_t inputs = 0;
    for (size_t i = 0; i < size(); ++i) {
        by_label_[conditions_[i].label].push_back(static_cast<uint32_t>(i));
        inputs = std::max(inputs, conditions_[i].references.size());
    }
    leaves_.resize(inputs);
    cells_.resize(inputs);
}

bool RowConditions::hold(size_t label, const BoundRows& rows, const Texts& texts) {
    for (const uint32_t number : by_label_[label]) {
        const RowCondition& condition = conditions_[number];
        for (size_t i = 0; i < condition.references.size(); ++i) {
            leaves_[i] = rows.value(condition.references[i], cells_[i]);
        }
        ++evaluated_;
        uint8_t pass = 0;
        condition.program.test(leaves_.data(), 1, texts, scratch_, &pass);
        if (pass == 0) return false;
    }
    return true;
}

}  // namespace acep
