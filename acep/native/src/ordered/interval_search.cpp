#include "ordered/interval_search.hpp"

#include <algorithm>
#include <utility>

namespace acep {

namespace {

bool holds(const uint8_t* bits, size_t row) { return bits == nullptr || bits[row] != 0; }

bool has(uint64_t states, size_t state) { return (states >> state & 1) != 0; }

}  // namespace

template <class Tested>
bool IntervalSearch::passes(const Tested& it, size_t row) {
    return holds(it.holds, row) && (it.tests.empty() || first_ == none || pass(it.tests, row));
}

bool IntervalSearch::pass(const std::vector<TiedTest>& tests, size_t row) {
    return std::all_of(tests.begin(), tests.end(), [&](const TiedTest& test) {
        const bool passed =
            holds(test.holds, row) && std::all_of(test.conditions.begin(), test.conditions.end(),
                                                  [&](uint32_t condition) { return tied_.hold(condition, row); });
        return passed != test.negated;
    });
}

template <class Transition>
uint64_t IntervalSearch::targets(const std::vector<Transition>& transitions, uint64_t states, size_t row) {
    uint64_t reached = 0;
    for (const Transition& it : transitions) {
        if (has(states, it.source) && passes(it, row)) reached |= uint64_t{1} << it.target;
    }
    return reached;
}

template <class Transition>
uint64_t IntervalSearch::sources(const std::vector<Transition>& transitions, uint64_t states, size_t row) {
    uint64_t leading = 0;
    for (const Transition& it : transitions) {
        if (has(states, it.target) && passes(it, row)) leading |= uint64_t{1} << it.source;
    }
    return leading;
}

IntervalSearch::IntervalSearch(IntervalInput input)
    : in_(std::move(input)),
      tied_(std::move(in_.tied), in_.texts, in_.partitions.empty() ? 0 : in_.partitions.back()),
      is_tied_(false) {
    const auto tests = [&](const auto& all) {
        return std::any_of(all.begin(), all.end(), [](const auto& it) { return !it.tests.empty(); });
    };
    is_tied_ = tests(in_.arcs) || tests(in_.ends) || tests(in_.skips);
    for (const IntervalArc& arc : in_.arcs) {
        n_states_ = std::max<size_t>({n_states_, arc.source + size_t{1}, arc.target + size_t{1}});
    }
}

uint64_t IntervalSearch::after(uint64_t states, size_t row) { return targets(in_.arcs, states, row); }

uint64_t IntervalSearch::before(uint64_t states, size_t row) { return sources(in_.arcs, states, row); }

uint64_t IntervalSearch::after_skip(uint64_t states, size_t row) { return targets(in_.skips, states, row); }

uint64_t IntervalSearch::before_skip(uint64_t states, size_t row) { return sources(in_.skips, states, row); }

uint64_t IntervalSearch::ending(size_t row) {
    uint64_t states = 0;
    for (const IntervalEnd& end : in_.ends) {
        if (passes(end, row)) states |= uint64_t{1} << end.state;
    }
    return states;
}

bool IntervalSearch::inside(size_t first, size_t last) const {
    // The places rise, and their difference may exceed 63 bits.
    return in_.places == nullptr ||
           static_cast<uint64_t>(in_.places[last]) - static_cast<uint64_t>(in_.places[first]) <= in_.width;
}

Intervals IntervalSearch::run(bool more, Polling& polling) {
    Intervals found;
    for (size_t p = 0; p + 1 < in_.partitions.size(); ++p) {
        const size_t begin = in_.partitions[p], end = in_.partitions[p + 1];
        if (in_.order == IntervalOrder::first_end) {
            find_first(begin, end, found, polling);
        } else {
            find_by_start(begin, end, found, polling);
        }
        if (more) found.open.push_back(static_cast<int64_t>(first_open(begin, end, polling)));
    }
    return found;
}

size_t IntervalSearch::first_open(size_t begin, size_t end, Polling& polling) {
    std::vector<size_t> first(n_states_, none), next(first);  // by state: the first first row
    for (size_t row = begin; row < end; ++row) {
        count_row(polling);
        std::fill(next.begin(), next.end(), none);
        for (const IntervalSkip& skip : in_.skips) {
            if (passes(skip, row)) next[skip.target] = std::min(next[skip.target], first[skip.source]);
        }
        for (const IntervalArc& arc : in_.arcs) {
            const size_t begun = arc.source == 0 ? row : first[arc.source];
            if (begun != none && passes(arc, row)) next[arc.target] = std::min(next[arc.target], begun);
        }
        std::swap(first, next);
    }
    size_t open = end;
    for (const IntervalArc& arc : in_.arcs) {
        if (arc.source != 0) open = std::min(open, first[arc.source]);
    }
    while (open < end && !inside(open, end - 1)) ++open;
    return open;
}

void IntervalSearch::find_by_start(size_t begin, size_t end, Intervals& found, Polling& polling) {
    find_soonest(begin, end, polling);
    for (size_t first = begin; first < end;) {
        count_row(polling);
        if (is_tied_) {
            first_ = first;
            tied_.begin(first);
        }
        const bool passes_rows = is_tied_ || in_.order == IntervalOrder::longest;
        const size_t last = passes_rows ? end_from(first, begin, polling) : shortest_from(first, begin);
        if (last != none) give(first, last, found, polling);
        first = last == none ? first + 1 : next_start(found);
    }
    first_ = none;
}

size_t IntervalSearch::next_start(const Intervals& found) const {
    const auto offset = static_cast<size_t>(found.offsets[found.offsets.size() - 2]);
    const auto first = static_cast<size_t>(found.rows[offset]);
    if (in_.skip_to == IntervalSkipTo::past_last) return static_cast<size_t>(found.rows.back()) + 1;
    size_t target = first;
    for (size_t i = offset; i < found.rows.size() && in_.skip_to != IntervalSkipTo::next; ++i) {
        if (found.labels[i] != in_.skip_label) continue;
        target = static_cast<size_t>(found.rows[i]);
        if (in_.skip_to == IntervalSkipTo::first_of) break;
    }
    return std::max(target, first + 1);
}

void IntervalSearch::find_soonest(size_t begin, size_t end, Polling& polling) {
    soonest_.assign((end - begin) * n_states_, none);
    for (size_t row = end; row-- > begin + 1;) {
        count_row(polling);
        const uint64_t ended = ending(row);
        const size_t* behind = &soonest_[(row - begin) * n_states_];
        size_t* here = &soonest_[(row - begin - 1) * n_states_];
        for (const IntervalSkip& skip : in_.skips) {
            if (passes(skip, row)) here[skip.source] = std::min(here[skip.source], behind[skip.target]);
        }
        for (const IntervalArc& arc : in_.arcs) {
            if (!passes(arc, row)) continue;
            here[arc.source] = std::min(here[arc.source], has(ended, arc.target) ? row : behind[arc.target]);
        }
    }
}

size_t IntervalSearch::end_from(size_t first, size_t begin, Polling& polling) {
    size_t last = none;
    uint64_t states = start;
    // The states that are left lead to an end in the window, so that no row after the last one is met.
    for (size_t row = first; states != 0; ++row) {
        const uint64_t reached = after(states, row);
        if ((reached & ending(row)) != 0) {
            last = row;
            if (in_.order == IntervalOrder::shortest) return last;
        }
        const uint64_t going = reached | after_skip(states, row);
        const size_t* soonest = &soonest_[(row - begin) * n_states_];
        states = 0;
        for (size_t state = 1; state < n_states_; ++state) {
            if (has(going, state) && soonest[state] != none && inside(first, soonest[state])) {
                states |= uint64_t{1} << state;
            }
        }
        if (states != 0) count_row(polling);
    }
    return last;
}

size_t IntervalSearch::shortest_from(size_t first, size_t begin) {
    size_t last = none;
    for (const IntervalArc& arc : in_.arcs) {
        if (arc.source != 0 || !passes(arc, first)) continue;
        last =
            std::min(last, has(ending(first), arc.target) ? first : soonest_[(first - begin) * n_states_ + arc.target]);
    }
    return last != none && inside(first, last) ? last : none;
}

void IntervalSearch::find_first(size_t begin, size_t end, Intervals& found, Polling& polling) {
    size_t free = begin;  // the first row after the last match
    std::vector<size_t> latest(n_states_, none), next(latest);  // by state: the last first row
    const auto later = [](size_t one, size_t other) {
        return one == none || (other != none && other > one) ? other : one;
    };
    for (size_t row = begin; row < end; ++row) {
        count_row(polling);
        std::fill(next.begin(), next.end(), none);
        for (const IntervalArc& arc : in_.arcs) {
            if (!passes(arc, row)) continue;
            next[arc.target] = later(next[arc.target], arc.source == 0 ? row : latest[arc.source]);
        }
        const uint64_t ended = ending(row);
        size_t last_start = none;
        for (size_t state = 1; state < n_states_; ++state) {
            if (has(ended, state)) last_start = later(last_start, next[state]);
        }
        for (const IntervalSkip& skip : in_.skips) {
            if (passes(skip, row)) next[skip.target] = later(next[skip.target], latest[skip.source]);
        }
        std::swap(latest, next);
        if (last_start != none && last_start >= free) ends_.push_back({row, last_start});
        const bool over = row + 1 == end || in_.times[row + 1] != in_.times[row];
        if (over && !ends_.empty()) {
            choose_of_time(free, found, polling);
            ends_.clear();
        }
    }
}

void IntervalSearch::choose_of_time(size_t& free, Intervals& found, Polling& polling) {
    while (true) {
        size_t first = none;
        std::vector<size_t> lasts;
        for (const End& end : ends_) {
            if (end.latest < free || !inside(end.latest, end.row)) continue;
            const size_t begun = earliest(end.row, free, polling);
            if (begun < first) lasts.clear();
            if (begun <= first) lasts.push_back(end.row);
            first = std::min(first, begun);
        }
        if (lasts.empty()) return;
        size_t last = lasts.front();
        std::vector<uint8_t> least;
        for (size_t i = 0; i < lasts.size() && lasts.size() > 1; ++i) {
            bind_rows(first, lasts[i], polling);
            // Where two differ first, that one has the lesser row that binds a row there; one that ends comes before.
            const size_t common = std::min(least.size(), bound_.size());
            const auto [one, other] =
                std::mismatch(bound_.begin(), bound_.begin() + static_cast<ptrdiff_t>(common), least.begin());
            const bool differs = one != bound_.begin() + static_cast<ptrdiff_t>(common);
            if (i == 0 || (differs && *one != 0)) {
                last = lasts[i];
                least = bound_;
            }
        }
        give(first, last, found, polling);
        free = last + 1;
    }
}

size_t IntervalSearch::earliest(size_t last, size_t free, Polling& polling) {
    size_t first = none;
    uint64_t states = ending(last), kept = 0;
    for (size_t row = last; states != 0 && inside(row, last); --row) {
        count_row(polling);
        kept = row == last ? 0 : before_skip(states, row);
        states = before(states, row);
        if ((states & start) != 0) first = row;
        states = (states & ~start) | kept;
        if (row == free) break;
    }
    return first;
}

void IntervalSearch::find_ways(size_t first, size_t last, Polling& polling) {
    ways_.resize(last - first + 1);
    ways_.back() = ending(last);
    for (size_t row = last; row > first; --row) {
        count_row(polling);
        const uint64_t states = ways_[row - first];
        ways_[row - 1 - first] = before(states, row) | (row == last ? 0 : before_skip(states, row));
    }
}

void IntervalSearch::count_rows(size_t first, size_t last, Polling& polling) {
    counts_.assign((last - first + 1) * n_states_, -1);
    for (size_t state = 1; state < n_states_; ++state) {
        if (has(ending(last), state)) counts_[(last - first) * n_states_ + state] = 0;
    }
    for (size_t row = last; row > first; --row) {
        count_row(polling);
        const int64_t* behind = &counts_[(row - first) * n_states_];
        int64_t* here = &counts_[(row - 1 - first) * n_states_];
        for (const IntervalSkip& skip : in_.skips) {
            if (row == last || !passes(skip, row)) continue;
            here[skip.source] = std::max(here[skip.source], behind[skip.target]);
        }
        for (const IntervalArc& arc : in_.arcs) {
            if (behind[arc.target] < 0 || !passes(arc, row)) continue;
            here[arc.source] = std::max(here[arc.source], behind[arc.target] + 1);
        }
    }
}

void IntervalSearch::bind_rows(size_t first, size_t last, Polling& polling) {
    find_ways(first, last, polling);
    bound_.assign(last - first + 1, 1);
    if (in_.skips.empty()) return;
    const bool longest = in_.order == IntervalOrder::longest;
    if (longest) count_rows(first, last, polling);
    uint64_t states = start;
    int64_t left = -1;  // the rows that are bound after this one
    for (size_t row = first; row <= last; ++row) {
        const uint64_t wanted = ways_[row - first];
        uint64_t reached = after(states, row) & wanted;
        if (longest) {
            const int64_t* counts = &counts_[(row - first) * n_states_];
            if (row == first) {
                for (size_t state = 1; state < n_states_; ++state) {
                    if (has(reached, state)) left = std::max(left, counts[state] + 1);
                }
            }
            for (size_t state = 1; state < n_states_; ++state) {
                if (has(reached, state) && counts[state] != left - 1) reached &= ~(uint64_t{1} << state);
            }
        }
        if (reached != 0) {
            states = reached;
            --left;
            continue;
        }
        bound_[row - first] = 0;
        states = after_skip(states, row) & wanted;
        if (!longest) continue;
        for (size_t state = 1; state < n_states_; ++state) {
            const bool fewer = counts_[(row - first) * n_states_ + state] != left;
            if (has(states, state) && fewer) states &= ~(uint64_t{1} << state);
        }
    }
}

void IntervalSearch::keep_ways(size_t first, size_t last) {
    for (size_t row = last; row > first; --row) {
        const uint64_t states = ways_[row - first];
        ways_[row - 1 - first] = bound_[row - first] != 0 ? before(states, row) : before_skip(states, row);
    }
}

void IntervalSearch::give(size_t first, size_t last, Intervals& found, Polling& polling) {
    bind_rows(first, last, polling);
    if (!in_.skips.empty()) keep_ways(first, last);
    uint64_t states = start;
    for (size_t row = first; row <= last; ++row) {
        const uint64_t wanted = ways_[row - first];
        if (bound_[row - first] == 0) {
            states = after_skip(states, row) & wanted;
            continue;
        }
        uint32_t label = std::numeric_limits<uint32_t>::max();
        uint64_t reached = 0;
        for (const IntervalArc& arc : in_.arcs) {
            if (!has(states, arc.source) || !has(wanted, arc.target) || arc.label > label) continue;
            if (!passes(arc, row)) continue;
            const uint64_t target = uint64_t{1} << arc.target;
            reached = arc.label < label ? target : reached | target;
            label = arc.label;
        }
        states = reached;
        found.rows.push_back(static_cast<int64_t>(row));
        found.labels.push_back(static_cast<uint16_t>(label));
    }
    found.offsets.push_back(static_cast<int64_t>(found.rows.size()));
}

}  // namespace acep
