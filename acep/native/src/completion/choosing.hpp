// Which of the complete matches are given: NON OVERLAP and EARLIEST MAXIMAL (acep/reference/choosing.py).
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "common/texts.hpp"
#include "completion/conditions.hpp"

namespace acep {

enum class Verdict : uint8_t { wait, give, drop };

// Greedy by (error, match point, start, ids) within each cluster of overlapping matches. `horizon`: the earliest position at
// which a match yet to come may start; a cluster that ends before it is settled. With `order_by` ids are
// compared by that text of each event.
std::vector<Verdict> non_overlap(const std::vector<const Binding*>& waiting, int64_t horizon, const Tables& tables,
                                 const Texts& texts);

// Per first event, the matches that are earliest and maximal among all that begin there. `alive`: the first positions of
// what may still add to them.
std::vector<Verdict> earliest_maximal(const std::vector<const Binding*>& waiting, const std::unordered_set<int64_t>& alive);

}  // namespace acep
