// The number of sequences of a chain, by adding up those of the cells that it reaches.
#include "chains/sequences.hpp"

namespace acep {

int64_t Sequences::count(uint32_t chain, int64_t low) {
    counting_.assign(1, chain);
    while (!counting_.empty()) {
        const uint32_t at = counting_.back();
        if (counts_.contains(at)) {
            counting_.pop_back();
            continue;
        }
        const Cell& c = arena_.cells[at];
        const size_t before = counting_.size();
        int64_t total = 0;
        const auto add = [&](int64_t more) {
            if (__builtin_add_overflow(total, more, &total)) total = too_many;
        };
        const auto follow = [&](uint32_t link) {
            const auto known = counts_.find(link);
            if (known == counts_.end()) return counting_.push_back(link);
            add(known->second);
        };
        if (c.latest >= low) {
            if (c.var != UNION && c.past == NIL) {
                add(1);
            } else {
                follow(c.past);
            }
        }
        if (c.next != NIL && c.below >= low) follow(c.next);
        if (counting_.size() != before) continue;  // again, once those that it adds up are known
        counts_.emplace(at, total);
        counting_.pop_back();
    }
    return counts_.at(chain);
}

}  // namespace acep
