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

// Cut the result at ends of matches, so that all matches with one end are in one part.
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
    std::copy_n(from.keys.data() + row * width_, width_, result.keys.data() + match * width_);
    std::copy_n(from.values.data() + row * values_, values_, result.values.data() + match * values_);
    std::copy_n(from.valid.data() + row * values_, values_, result.valid.data() + match * values_);
    const auto begin = static_cast<size_t>(from.offsets[row]),
               size = static_cast<size_t>(from.offsets[row + 1]) - begin;
    std::copy_n(from.ids.data() + begin, size, result.ids.data() + event);
    std::copy_n(from.vars.data() + begin, size, result.vars.data() + event);
    result.offsets[match + 1] = static_cast<int64_t>(event + size);
}

void LaneMatches::write(const Part& part, Output& result) const {
    // A heap of lanes: the next match of the first one comes before those of the others.
    struct Next {
        size_t lane, at, row;
    };
    const auto later = [&](const Next& a, const Next& b) {
        if (precedes(lanes_[b.lane].trails, b.row, lanes_[a.lane].trails, a.row)) return true;
        return b.lane < a.lane && !precedes(lanes_[a.lane].trails, a.row, lanes_[b.lane].trails, b.row);
    };
    std::vector<Next> heap;
    for (size_t k = 0; k < lanes_.size(); ++k) {
        if (part.from[k] < part.to[k]) heap.push_back({k, part.from[k], lanes_[k].row(part.from[k])});
    }
    std::make_heap(heap.begin(), heap.end(), later);
    for (size_t match = part.match, event = part.event; !heap.empty(); ++match) {
        std::pop_heap(heap.begin(), heap.end(), later);
        Next& next = heap.back();
        const Sorted& lane = lanes_[next.lane];
        copy(*lane.output, next.row, result, match, event);
        event += lane.length(next.row);
        if (++next.at < part.to[next.lane]) {
            next.row = lane.row(next.at);
            std::push_heap(heap.begin(), heap.end(), later);
        } else {
            heap.pop_back();
        }
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
