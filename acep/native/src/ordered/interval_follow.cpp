#include "ordered/interval_follow.hpp"

#include <algorithm>
#include <utility>

namespace acep {

namespace {

bool passes(const uint8_t* bits, size_t row) { return bits == nullptr || bits[row] != 0; }

// Add the starts of one state to those of another.
void unite(OpenStarts& all, const OpenStarts& more) {
    if (more.first < all.first) {
        all.first = more.first;
        all.first_place = more.first_place;
    }
    if (more.last > all.last) {
        all.last = more.last;
        all.last_place = more.last_place;
    }
}

}  // namespace

size_t follow_intervals(const IntervalInput& input, const int64_t* numbers, size_t n_states,
                        std::vector<OpenStarts>& starts, std::vector<uint8_t>& ended, Polling& polling) {
    const size_t n_partitions = ended.size();
    std::vector<OpenStarts> now(n_states), next(n_states);
    // The places rise, and their difference may exceed 63 bits.
    const auto inside = [&](const OpenStarts& state, size_t row) {
        return input.places == nullptr ||
               static_cast<uint64_t>(input.places[row]) - static_cast<uint64_t>(state.last_place) <= input.width;
    };
    for (size_t p = 0; p < n_partitions; ++p) {
        OpenStarts* of_partition = starts.data() + p * n_states;
        std::copy(of_partition, of_partition + n_states, now.begin());
        for (size_t row = input.partitions[p]; row < input.partitions[p + 1]; ++row) {
            polling.work(input.arcs.size());
            std::fill(next.begin(), next.end(), OpenStarts{});
            const int64_t place = input.places == nullptr ? 0 : input.places[row];
            now[0] = {numbers[row], place, numbers[row], place};
            for (const IntervalArc& arc : input.arcs) {
                if (now[arc.source].last < 0 || !inside(now[arc.source], row) || !passes(arc.holds, row)) continue;
                unite(next[arc.target], now[arc.source]);
            }
            for (const IntervalEnd& end : input.ends) {
                if (next[end.state].last >= 0 && passes(end.holds, row)) ended[p] = 1;
            }
            for (const IntervalSkip& skip : input.skips) {
                if (now[skip.source].last < 0 || !inside(now[skip.source], row) || !passes(skip.holds, row)) continue;
                unite(next[skip.target], now[skip.source]);
            }
            std::swap(now, next);
        }
        now[0] = {};
        std::copy(now.begin(), now.end(), of_partition);
    }
    return input.partitions.empty() ? 0 : input.partitions.back() - input.partitions.front();
}

}  // namespace acep
