#include "ordered/interval_search.hpp"

#include <algorithm>
#include <utility>

namespace acep {

namespace {

bool holds(const uint8_t* bits, size_t row) { return bits == nullptr || bits[row] != 0; }

}  // namespace

uint64_t IntervalSearch::after(uint64_t states, size_t row) const {
    uint64_t reached = 0;
    for (const IntervalArc& arc : in_.arcs) {
        if ((states >> arc.source & 1) != 0 && holds(arc.holds, row)) reached |= uint64_t{1} << arc.target;
    }
    return reached;
}

uint64_t IntervalSearch::before(uint64_t states, size_t row) const {
    uint64_t sources = 0;
    for (const IntervalArc& arc : in_.arcs) {
        if ((states >> arc.target & 1) != 0 && holds(arc.holds, row)) sources |= uint64_t{1} << arc.source;
    }
    return sources;
}

uint64_t IntervalSearch::ending(size_t row) const {
    uint64_t states = 0;
    for (const IntervalEnd& end : in_.ends) {
        if (holds(end.holds, row)) states |= uint64_t{1} << end.state;
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
        if (in_.longest) {
            find_longest(begin, end, found, polling);
        } else {
            find_first(begin, end, found, polling);
        }
        if (more) found.open.push_back(static_cast<int64_t>(first_open(begin, end, polling)));
    }
    return found;
}

// Return the first row of a partition with which a match may begin that goes on after its last row; its end if none.
size_t IntervalSearch::first_open(size_t begin, size_t end, Polling& polling) {
    std::vector<size_t> earliest(IntervalInput::most_states, none), next(earliest);  // by state: the first first row
    for (size_t row = begin; row < end; ++row) {
        meet(polling);
        std::fill(next.begin(), next.end(), none);
        for (const IntervalArc& arc : in_.arcs) {
            const size_t first = arc.source == 0 ? row : earliest[arc.source];
            if (first != none && holds(arc.holds, row)) next[arc.target] = std::min(next[arc.target], first);
        }
        std::swap(earliest, next);
    }
    size_t open = end;
    for (const IntervalArc& arc : in_.arcs) {
        if (arc.source != 0) open = std::min(open, earliest[arc.source]);
    }
    while (open < end && !inside(open, end - 1)) ++open;
    return open;
}

void IntervalSearch::find_longest(size_t begin, size_t end, Intervals& found, Polling& polling) {
    live_.resize(end - begin);
    uint64_t live = 0;
    for (size_t row = end; row-- > begin;) {
        meet(polling);
        const uint64_t going = row + 1 < end ? before(live, row + 1) : 0;
        live = live_[row - begin] = ending(row) | going;
    }
    for (size_t first = begin; first < end;) {
        meet(polling);
        const size_t last = longest_from(first, begin, end, polling);
        if (last == none) {
            ++first;
            continue;
        }
        give(first, last, found, polling);
        first = last + 1;
    }
}

size_t IntervalSearch::longest_from(size_t first, size_t begin, size_t end, Polling& polling) {
    size_t last = none;
    uint64_t states = start;
    // Without a window the states that are left lead to an end, so that no row after the last one is met.
    for (size_t row = first; row < end && inside(first, row); ++row) {
        states = after(states, row) & live_[row - begin];
        if (states == 0) break;
        meet(polling);
        if ((states & ending(row)) != 0) last = row;
    }
    return last;
}

void IntervalSearch::find_first(size_t begin, size_t end, Intervals& found, Polling& polling) {
    size_t free = begin;  // the first row after the last match
    std::vector<size_t> latest(IntervalInput::most_states, none), next(latest);  // by state: the last first row
    for (size_t row = begin; row < end; ++row) {
        meet(polling);
        std::fill(next.begin(), next.end(), none);
        for (const IntervalArc& arc : in_.arcs) {
            const size_t first = arc.source == 0 ? row : latest[arc.source];
            if (first == none || !holds(arc.holds, row)) continue;
            if (next[arc.target] == none || next[arc.target] < first) next[arc.target] = first;
        }
        std::swap(latest, next);
        const uint64_t states = ending(row);
        size_t last_start = none;
        for (size_t state = 1; state < IntervalInput::most_states; ++state) {
            const size_t first = (states >> state & 1) != 0 ? latest[state] : none;
            if (first != none && (last_start == none || last_start < first)) last_start = first;
        }
        if (last_start != none && last_start >= free) ends_.push_back({row, last_start});
        const bool over = row + 1 == end || in_.times[row + 1] != in_.times[row];
        if (over && !ends_.empty()) {
            choose_of_time(free, found, polling);
            ends_.clear();
        }
    }
}

// Give the matches that end at one time: the one that starts first, then what does not overlap it.
void IntervalSearch::choose_of_time(size_t& free, Intervals& found, Polling& polling) {
    while (true) {
        size_t first = none, last = none;
        for (const End& end : ends_) {
            if (end.latest < free || !inside(end.latest, end.row)) continue;
            const size_t start_row = earliest(end.row, free, polling);
            if (first == none || start_row < first) {
                first = start_row;
                last = end.row;
            }
        }
        if (first == none) return;
        give(first, last, found, polling);
        free = last + 1;
    }
}

// Return the first row of the longest match that ends with a row and begins with `free` or later. There must be one.
size_t IntervalSearch::earliest(size_t last, size_t free, Polling& polling) {
    size_t first = none;
    uint64_t states = ending(last);
    for (size_t row = last; states != 0 && inside(row, last); --row) {
        meet(polling);
        states = before(states, row);
        if ((states & start) != 0) first = row;
        states &= ~start;
        if (row == free) break;
    }
    return first;
}

// Add the match from one row to another, with the least labels.
void IntervalSearch::give(size_t first, size_t last, Intervals& found, Polling& polling) {
    ways_.resize(last - first + 1);
    uint64_t states = ways_.back() = ending(last);
    for (size_t row = last; row > first; --row) {
        meet(polling);
        states = ways_[row - 1 - first] = before(states, row);
    }
    states = start;
    for (size_t row = first; row <= last; ++row) {
        uint32_t label = std::numeric_limits<uint32_t>::max();
        uint64_t reached = 0;
        for (const IntervalArc& arc : in_.arcs) {
            const uint64_t target = uint64_t{1} << arc.target;
            if ((states >> arc.source & 1) == 0 || (ways_[row - first] & target) == 0 || arc.label > label) continue;
            if (!holds(arc.holds, row)) continue;
            reached = arc.label < label ? target : reached | target;
            label = arc.label;
        }
        states = reached;
        found.labels.push_back(static_cast<uint16_t>(label));
    }
    found.first.push_back(static_cast<int64_t>(first));
    found.last.push_back(static_cast<int64_t>(last));
}

}  // namespace acep
