// The choice among complete matches, as OUTPUT says (acep/reference/choosing.py).
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "common/texts.hpp"
#include "completion/conditions.hpp"

namespace acep {

// The state of a complete match: more must be known, it is given, or it can never be given.
enum class Verdict : uint8_t { wait, give, drop };

// Matches that may still come: they begin at position `first`, have the error `error` or a greater one, and end at the
// time `end` or later.
struct Prospect {
    int64_t first, error, end;
};

// Return whether a match is chosen before another one: by (error, match point, start, ids), for LONGEST by (error,
// first event, last event from the latest on, most events, ids), and for SHORTEST by (error, first event, last event,
// ids). With `Tables::order_by`, a text of each event is compared instead of its id.
bool before(const Binding& a, const Binding& b, const Tables& tables, const Texts& texts);

// Choose for NON OVERLAP: go through the matches in this order. One is given once no match that may come can stand
// before it and overlap it, nor one that waits. Those that can never be given are dropped.
std::vector<Verdict> non_overlap(const std::vector<const Binding*>& waiting, std::vector<Prospect> prospects,
                                 const Tables& tables, const Texts& texts);

// Return the last position at which no other match may begin once a match is given.
int64_t last_skipped(const Binding& m, const SkipTarget& skip);

// Choose for LONGEST and SHORTEST: greedily, in this order, within each cluster of overlapping matches. No later match
// starts before position `horizon`, so a cluster behind which others may begin there is decided; the others wait.
std::vector<Verdict> choose_by_first_event(const std::vector<const Binding*>& waiting, int64_t horizon,
                                           const Tables& tables, const Texts& texts);

// Choose, for each first event, the matches that are earliest and maximal among all that begin with it. `alive` has
// the positions at which partial matches begin; matches that begin there wait.
std::vector<Verdict> earliest_maximal(const std::vector<const Binding*>& waiting,
                                      const std::unordered_set<int64_t>& alive);

}  // namespace acep
