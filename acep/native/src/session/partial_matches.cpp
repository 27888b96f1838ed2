// The choice and the columns of the partial matches that a user wants to see.
#include "session/partial_matches.hpp"

#include <algorithm>
#include <tuple>

namespace acep {

bool ListingRequest::wants(uint32_t state) const {
    return states.empty() || std::ranges::find(states, state) != states.end();
}

void PartialMatchList::add(const ListedMatch& match) {
    const int64_t rows = request_.apart ? sequences_.count(match.cell, match.low) : 1;
    if (__builtin_add_overflow(total_, rows, &total_)) total_ = Sequences::too_many;
    matches_.push_back(match);
    if (matches_.size() / 2 >= request_.most + 512) keep_latest();
}

void PartialMatchList::keep_latest() {
    const auto key = [&](const ListedMatch& match) {
        return std::tuple(recency(match), match.start, -match.error, match.state, match.cell);
    };
    const size_t most = std::min(request_.most, matches_.size());
    const auto last = matches_.begin() + static_cast<std::ptrdiff_t>(most);
    std::partial_sort(matches_.begin(), last, matches_.end(),
                      [&](const ListedMatch& a, const ListedMatch& b) { return key(a) > key(b); });
    matches_.erase(last, matches_.end());
}

ListedColumns PartialMatchList::columns() {
    keep_latest();
    ListedColumns columns;
    columns.total = total_ == Sequences::too_many ? -1 : total_;
    for (const ListedMatch& match : matches_) {
        if (columns.states.size() == request_.most) break;
        write(columns, match);
    }
    return columns;
}

void PartialMatchList::write(ListedColumns& columns, const ListedMatch& match) {
    Output& rows = columns.matches;
    const int64_t sequences = request_.apart ? 1 : sequences_.count(match.cell, match.low);
    sequences_.each(match.cell, request_.apart ? match.low : match.start, [&](std::span<const Cell* const> cells) {
        const int64_t start = arena_.events[cells.front()->event].ts, end = arena_.events[cells.back()->event].ts;
        rows.add(start, end, match.error, 0, partitions_.key(match.partition), partitions_.width());
        for (const Cell* cell : cells) {
            rows.ids.push_back(cell->id);
            rows.vars.push_back(cell->var);
        }
        rows.offsets.push_back(static_cast<int64_t>(rows.ids.size()));
        columns.states.push_back(match.state);
        columns.utility.push_back(match.utility);
        columns.sequences.push_back(sequences == Sequences::too_many ? -1 : sequences);
        return request_.apart && columns.states.size() < request_.most;
    });
}

}  // namespace acep
