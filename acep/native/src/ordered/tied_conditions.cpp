#include "ordered/tied_conditions.hpp"

#include <algorithm>
#include <utility>

namespace acep {

TiedConditions::TiedConditions(std::vector<TiedCondition> conditions, const Texts* texts, size_t rows)
    : conditions_(std::move(conditions)), texts_(texts), rows_(rows), computed_(conditions_.size()) {}

void TiedConditions::begin(size_t first) {
    first_ = first;
    for (Computed& computed : computed_) computed.size = 0;
}

bool TiedConditions::hold(uint32_t condition, size_t row) {
    Computed& computed = computed_[condition];
    while (row - first_ >= computed.size) compute(condition);
    return computed.bits[row - first_] != 0;
}

void TiedConditions::compute(uint32_t condition) {
    Computed& computed = computed_[condition];
    const size_t begin = first_ + computed.size;
    const size_t n = std::min(std::clamp(computed.size, few_rows, block_rows), rows_ - begin);
    const TiedCondition& tied = conditions_[condition];
    leaves_.clear();
    for (const TiedInput& input : tied.inputs) {
        const size_t at = input.of_first ? first_ : begin;
        const uint8_t* valid = input.valid == nullptr ? nullptr : input.valid + at;
        leaves_.push_back({input.values + at, valid, input.of_first ? 0u : 1u});
    }
    computed.bits.resize(std::max(computed.bits.size(), computed.size + n));
    tied.program.test(leaves_.data(), n, *texts_, scratch_, &computed.bits[computed.size]);
    computed.size += n;
}

}  // namespace acep
