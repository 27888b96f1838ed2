// The part of a utility that registers add.
#include "shedding/utilities.hpp"

namespace acep {

void Utilities::use_table() {
    register_utility_.clear();
    for (const auto& terms : table_.terms) {
        const bool any = std::any_of(terms.begin(), terms.end(), [](const Term& t) { return !t.utility.empty(); });
        register_utility_.push_back(any ? 1 : 0);
    }
    vectors_.set(table_, tables_.span);
}

double Utilities::number(NodeList& list, uint32_t row, uint32_t state, const Term& term, uint32_t partition) const {
    return number(term, partition, [&](bool second, int64_t& word) {
        const uint32_t slot = second ? term.b : term.a;
        word = list.slot(slot)[row];
        return list.tags(slot, slots_.slots(state))[row] == value;
    });
}

uint8_t Utilities::registers_feature(NodeList& list, uint32_t row, uint32_t state, uint32_t partition) const {
    double buckets = 0;
    for (const Term& term : table_.terms[state]) {
        if (!term.utility.empty()) buckets += static_cast<double>(term.of(number(list, row, state, term, partition)));
    }
    return feature_of(buckets);
}

void Utilities::set_feature(Mark& mark, NodeList& list, uint32_t row, uint32_t state, uint32_t partition,
                            bool may_defer) {
    if (!table_.terms.empty()) {
        mark.deferred = register_utility_[state] != 0 && may_defer && !keys_.bounded();
        deferred_ = deferred_ || mark.deferred;
        const bool computes = register_utility_[state] != 0 && !mark.deferred;
        n_computed_ += computes ? 1 : 0;
        mark.feature = computes ? registers_feature(list, row, state, partition) : 128;
    }
    if (table_.noise > 0) mark.chance = draw_chance();
}

int64_t Utilities::bucket_to_show(NodeList& list, uint32_t row, uint32_t state, uint32_t partition, int64_t now) const {
    if (table_.level.empty()) return -1;
    Mark mark = slots_.mark(list, row, state);
    if (mark.deferred) mark.feature = registers_feature(list, row, state, partition);
    return bucket(list, row, state, mark, now);
}

}  // namespace acep
