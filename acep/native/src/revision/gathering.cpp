#include "revision/gathering.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <stdexcept>

namespace acep {

namespace {

size_t length(const Trails& trails, int64_t row) {
    return static_cast<size_t>(trails.offsets[row + 1] - trails.offsets[row]);
}

template <class T>
void append(std::vector<T>& to, const T* from, std::span<const int64_t> rows) {
    const size_t size = to.size();
    to.resize(size + rows.size());
    T* own = to.data() + size;
    for (const int64_t row : rows) *own++ = from[row];
}

// Add some rows of a part to matches. `source`: for each match of the part, the number of the row that it is.
void add(Gathered& to, const MatchPart& part, std::span<const int64_t> rows, const int64_t* source) {
    const Trails& trails = part.trails;
    for (size_t i = 0; i < to.numbers.size(); ++i) append(to.numbers[i], part.numbers[i], rows);
    append(to.end, trails.end, rows);
    if (source != nullptr) append(to.source, source, rows);
    size_t at = to.ids.size(), match = to.offsets.size();
    to.offsets.resize(match + rows.size());
    for (const int64_t row : rows) to.offsets[match++] = static_cast<int64_t>(at += length(trails, row));
    to.ids.resize(at);
    to.vars.resize(at);
    for (const int64_t row : rows | std::views::reverse) {
        at -= length(trails, row);
        std::copy_n(trails.ids + trails.offsets[row], length(trails, row), to.ids.data() + at);
        std::copy_n(trails.vars + trails.offsets[row], length(trails, row), to.vars.data() + at);
    }
}

// Return the rows of some parts as they come.
Gathered as_they_come(std::span<const MatchPart> parts, int64_t source) {
    Gathered found;
    for (const MatchPart& part : parts) {
        const auto is_there = [&](int64_t row) { return row >= 0 && static_cast<size_t>(row) < part.trails.n; };
        if (!std::ranges::all_of(part.rows, is_there)) throw std::out_of_range("rows: no such match");
        add(found, part, part.rows, nullptr);
    }
    found.source.resize(found.end.size());
    std::iota(found.source.begin(), found.source.end(), source);
    return found;
}

}  // namespace

Gathered gathered(std::span<const MatchPart> parts, size_t back) {
    Gathered found;
    for (const auto some : {parts.first(back), parts.subspan(back)}) {
        const Gathered group = as_they_come(some, static_cast<int64_t>(found.end.size()));
        if (group.end.empty()) continue;
        const auto& [one, two, three] = group.numbers;
        const Trails& like = parts.front().trails;
        const Trails trails{group.end.size(),     group.ids.size(), like.variables,    group.end.data(),
                            group.offsets.data(), group.ids.data(), group.vars.data(), like.ranks};
        const MatchPart whole{trails, {one.data(), two.data(), three.data()}, {}};
        add(found, whole, output_order(trails), group.source.data());
    }
    return found;
}

}  // namespace acep
