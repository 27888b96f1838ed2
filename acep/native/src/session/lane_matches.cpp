// The matches of lanes (lane_matches.hpp).
#include "session/lane_matches.hpp"

#include <algorithm>

namespace acep {

LaneMatches::LaneMatches(std::vector<Output*> lanes, std::span<const uint16_t> ranks) {
    for (Output* output : lanes) {
        if (output->size() == 0) continue;
        const Trails trails{output->size(),         output->ids.size(), ranks.size(),        output->end.data(),
                            output->offsets.data(), output->ids.data(), output->vars.data(), ranks.data()};
        lanes_.push_back({output, trails, {}});
    }
    const Output& first = *lanes_.at(0).output;
    width_ = first.keys.size() / first.size();
    values_ = first.values.size() / first.size();
}

size_t LaneMatches::Sorted::before(int64_t end) const {
    size_t low = 0, high = trails.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trails.end[row(middle)] < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

std::vector<LaneMatches::Part> LaneMatches::cut(size_t parts) const {
    const Sorted& largest = *std::ranges::max_element(lanes_, {}, [](const Sorted& lane) { return lane.trails.n; });
    std::vector<Part> found;
    std::vector<size_t> from(lanes_.size(), 0);
    for (size_t number = 1; number <= parts; ++number) {
        Part part;
        part.from = from;
        for (const Sorted& lane : lanes_) {
            const size_t at = largest.trails.n * number / parts;
            part.to.push_back(number == parts ? lane.trails.n : lane.before(largest.trails.end[largest.row(at)]));
        }
        from = part.to;
        found.push_back(std::move(part));
    }
    return found;
}

void LaneMatches::count_events(Part& part) const {
    for (size_t k = 0; k < lanes_.size(); ++k) {
        const Sorted& lane = lanes_[k];
        if (lane.places.empty()) {
            part.events += static_cast<size_t>(lane.trails.offsets[part.to[k]] - lane.trails.offsets[part.from[k]]);
            continue;
        }
        for (size_t at = part.from[k]; at < part.to[k]; ++at) part.events += lane.length(lane.row(at));
    }
}

void LaneMatches::copy(const Output& from, size_t row, Output& result, size_t match, size_t event) const {
    result.start[match] = from.start[row];
    result.end[match] = from.end[row];
    result.error[match] = from.error[row];
    result.bundle[match] = from.bundle[row];
    // Loops, as most matches have few of each.
    for (size_t i = 0; i < width_; ++i) result.keys[match * width_ + i] = from.keys[row * width_ + i];
    for (size_t i = 0; i < values_; ++i) {
        result.values[match * values_ + i] = from.values[row * values_ + i];
        result.valid[match * values_ + i] = from.valid[row * values_ + i];
    }
    const auto begin = static_cast<size_t>(from.offsets[row]),
               size = static_cast<size_t>(from.offsets[row + 1]) - begin;
    for (size_t i = 0; i < size; ++i) {
        result.ids[event + i] = from.ids[begin + i];
        result.vars[event + i] = from.vars[begin + i];
    }
    result.offsets[match + 1] = static_cast<int64_t>(event + size);
}

void LaneMatches::write(const Part& part, Output& result) const {
    // A heap of lanes: the next match of each comes before those of the two below it.
    struct Next {
        size_t lane, at, row;
    };
    std::vector<Next> heap;
    const auto before = [&](const Next& a, const Next& b) {
        const Trails &own = lanes_[a.lane].trails, &other = lanes_[b.lane].trails;
        return a.lane < b.lane ? !precedes(other, b.row, own, a.row) : precedes(own, a.row, other, b.row);
    };
    const auto sink = [&](size_t at) {
        for (size_t below = 2 * at + 1; below < heap.size(); below = 2 * at + 1) {
            if (below + 1 < heap.size() && before(heap[below + 1], heap[below])) ++below;
            if (before(heap[at], heap[below])) return;
            std::swap(heap[at], heap[below]);
            at = below;
        }
    };
    for (size_t k = 0; k < lanes_.size(); ++k) {
        if (part.from[k] < part.to[k]) heap.push_back({k, part.from[k], lanes_[k].row(part.from[k])});
    }
    for (size_t at = heap.size(); at-- > 0;) sink(at);
    for (size_t match = part.match, event = part.event; !heap.empty(); ++match) {
        Next& next = heap.front();
        const Sorted& lane = lanes_[next.lane];
        copy(*lane.output, next.row, result, match, event);
        event += lane.length(next.row);
        if (++next.at < part.to[next.lane]) {
            next.row = lane.row(next.at);
        } else {
            next = heap.back();
            heap.pop_back();
        }
        sink(0);
    }
}

Output LaneMatches::together(size_t parts, const Runner& run) {
    run(lanes_.size(), [&](size_t k) {
        Sorted& lane = lanes_[k];
        check(lane.trails);
        if (!lane.output->ordered && !in_order(lane.trails)) lane.places = output_order(lane.trails);
    });
    std::vector<Part> found = cut(parts);
    run(found.size(), [&](size_t k) { count_events(found[k]); });
    size_t matches = 0, events = 0;
    for (Part& part : found) {
        part.match = matches;
        part.event = events;
        for (size_t k = 0; k < lanes_.size(); ++k) matches += part.to[k] - part.from[k];
        events += part.events;
    }
    Output result;
    result.resize(matches, width_);
    result.resize_events(events);
    result.values.resize(matches * values_);
    result.valid.resize(matches * values_);
    run(found.size(), [&](size_t k) { write(found[k], result); });
    const Output& first = *lanes_[0].output;
    result.ordered = true;
    result.uniform = std::ranges::all_of(
        lanes_, [&](const Sorted& lane) { return lane.output->uniform && lane.output->shape == first.shape; });
    if (result.uniform) result.shape = first.shape;
    return result;
}

}  // namespace acep
