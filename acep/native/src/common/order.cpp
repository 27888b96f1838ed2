// Sorting of matches for the output. Engines mostly write them by end, so most work is within groups of equal end. The
// ids in a group are close together: each has the least id at its place subtracted, and those of a match are packed
// into one word to sort.
#include "common/order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "common/hash.hpp"

namespace acep {

namespace {

constexpr size_t RADIX_FROM = 96;  // for fewer matches, comparing words is faster

size_t length(const Trails& t, size_t i) { return static_cast<size_t>(t.offsets[i + 1] - t.offsets[i]); }

uint16_t rank(const Trails& t, size_t at) {
    if (t.vars[at] >= t.variables) throw std::invalid_argument("vars: a variable without a rank");
    return t.ranks[t.vars[at]];
}

// Return a negative number, 0 or a positive one for match i of some trails and match j of others; the first `from` ids
// are known to be equal.
int compare(const Trails& t, size_t i, const Trails& u, size_t j, size_t from) {
    const size_t a = length(t, i), b = length(u, j);
    const auto x = static_cast<size_t>(t.offsets[i]), y = static_cast<size_t>(u.offsets[j]);
    for (size_t p = from; p < std::min(a, b); ++p) {
        if (t.ids[x + p] != u.ids[y + p]) return t.ids[x + p] < u.ids[y + p] ? -1 : 1;
    }
    if (a != b) return a < b ? -1 : 1;
    for (size_t p = 0; p < a; ++p) {
        const int left = rank(t, x + p), right = rank(u, y + p);
        if (left != right) return left - right;
    }
    return 0;
}

int compare(const Trails& t, size_t i, size_t j, size_t from) { return compare(t, i, t, j, from); }

// Sorts the matches of each group, and reuses its memory for the next group.
class Groups {
public:
    explicit Groups(const Trails& trails) : t(trails) {}

    // Sort `places`: k matches with one end, in rising order of their numbers.
    void sort(int64_t* places, size_t k) {
        size_t i = 1;
        while (i < k && compare(t, place(places, i - 1), place(places, i), 0) <= 0) ++i;
        if (i >= k) return;
        pack(places, k);
        if (bits > 0) {
            if (k < RADIX_FROM) {
                std::sort(words.begin(), words.end());
            } else {
                radix();
            }
        }
        moved.resize(k);
        const uint64_t mask = (uint64_t{1} << low) - 1;
        for (size_t j = 0; j < k; ++j) moved[j] = places[words[j] & mask];
        std::copy(moved.begin(), moved.end(), places);
        for (size_t begin = 0; begin < k;) {
            size_t stop = begin + 1;
            while (stop < k && words[stop] >> low == words[begin] >> low) ++stop;
            if (stop - begin > 1) rest(places + begin, places + stop);
            begin = stop;
        }
    }

private:
    static size_t place(const int64_t* places, size_t i) { return static_cast<size_t>(places[i]); }

    // Make the words: as many bits of the ids as fit, from the first id on, above the number of the match in its group.
    void pack(const int64_t* places, size_t k) {
        low = static_cast<unsigned>(std::bit_width(k - 1));
        bits = 0;
        whole = 0;
        words.assign(k, 0);
        size_t shortest = std::numeric_limits<size_t>::max(), longest = 0;
        for (size_t i = 0; i < k; ++i) {
            shortest = std::min(shortest, length(t, place(places, i)));
            longest = std::max(longest, length(t, place(places, i)));
        }
        for (; whole < longest && bits + low < 64; ++whole) {
            if (!append(places, k, shortest)) break;
        }
        for (size_t i = 0; i < k; ++i) words[i] = words[i] << low | i;
    }

    // Append the ids at place `whole` of the matches, 0 for shorter matches; false if not all of their bits fit.
    bool append(const int64_t* places, size_t k, size_t shortest) {
        int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
        const bool all = whole < shortest;
        for (size_t i = 0; i < k; ++i) {
            const size_t m = place(places, i);
            if (!all && whole >= length(t, m)) continue;
            const int64_t id = t.ids[static_cast<size_t>(t.offsets[m]) + whole];
            least = std::min(least, id);
            most = std::max(most, id);
        }
        const uint64_t span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
        const uint64_t ended = all ? 0 : 1;
        if (span > std::numeric_limits<uint64_t>::max() - ended) return false;
        const auto needed = static_cast<unsigned>(std::bit_width(span + ended));
        const unsigned used = std::min(needed, 64 - low - bits), dropped = needed - used;
        if (used == 0) return true;
        for (size_t i = 0; i < k; ++i) {
            const size_t m = place(places, i);
            uint64_t value = 0;
            if (all || whole < length(t, m)) {
                const int64_t id = t.ids[static_cast<size_t>(t.offsets[m]) + whole];
                value = static_cast<uint64_t>(id) - static_cast<uint64_t>(least) + ended;
            }
            words[i] = words[i] << used | value >> dropped;  // used < 64, as `low` is at least 1
        }
        bits += used;
        return dropped == 0;
    }

    void radix() {
        other.resize(words.size());
        for (unsigned shift = low; shift < low + bits; shift += 8) {
            std::array<size_t, 256> starts{};
            for (uint64_t word : words) ++starts[word >> shift & 255];
            std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), size_t{0});
            for (uint64_t word : words) other[starts[word >> shift & 255]++] = word;
            words.swap(other);
        }
    }

    // Sort matches with equal words.
    void rest(int64_t* begin, int64_t* stop) {
        std::sort(begin, stop, [this](int64_t a, int64_t b) {
            const int order = compare(t, static_cast<size_t>(a), static_cast<size_t>(b), whole);
            return order != 0 ? order < 0 : a < b;
        });
    }

    const Trails& t;
    unsigned low = 0, bits = 0;  // bits of the number in the group, and of the ids
    size_t whole = 0;            // number of ids with all their bits in the words
    std::vector<uint64_t> words, other;
    std::vector<int64_t> moved;
};

// Sort places stably by the end of their matches. The matches of some lanes come as a few rising runs: these are
// merged.
void sort_by_end(const Trails& t, std::vector<int64_t>& places) {
    constexpr size_t most_runs = 64;
    const auto earlier = [&t](int64_t a, int64_t b) {
        return t.end[static_cast<size_t>(a)] < t.end[static_cast<size_t>(b)];
    };
    std::vector<std::ptrdiff_t> edges{0};
    for (size_t i = 1; i < t.n && edges.size() <= most_runs; ++i) {
        if (t.end[i - 1] > t.end[i]) edges.push_back(static_cast<std::ptrdiff_t>(i));
    }
    if (edges.size() > most_runs) return std::stable_sort(places.begin(), places.end(), earlier);
    edges.push_back(static_cast<std::ptrdiff_t>(t.n));
    while (edges.size() > 2) {
        std::vector<std::ptrdiff_t> merged{0};
        for (size_t k = 2; k < edges.size(); k += 2) {
            std::inplace_merge(places.begin() + edges[k - 2], places.begin() + edges[k - 1], places.begin() + edges[k],
                               earlier);
            merged.push_back(edges[k]);
        }
        if (edges.size() % 2 == 0) merged.push_back(edges.back());
        edges.swap(merged);
    }
}

}  // namespace

void check(const Trails& t) {
    bool rising = t.offsets[0] == 0;
    for (size_t i = 0; i < t.n; ++i) rising &= t.offsets[i] <= t.offsets[i + 1];
    if (!rising || t.offsets[t.n] != static_cast<int64_t>(t.m)) {
        throw std::invalid_argument("offsets: not rising from 0 to the number of ids");
    }
}

bool in_order(const Trails& t) {
    for (size_t i = 1; i < t.n; ++i) {
        if (t.end[i - 1] > t.end[i]) return false;
        if (t.end[i - 1] == t.end[i] && compare(t, i - 1, i, 0) > 0) return false;
    }
    return true;
}

bool precedes(const Trails& some, size_t i, const Trails& others, size_t j) {
    if (some.end[i] != others.end[j]) return some.end[i] < others.end[j];
    return compare(some, i, others, j, 0) < 0;
}

std::vector<int64_t> output_order(const Trails& t) {
    std::vector<int64_t> places(t.n);
    std::iota(places.begin(), places.end(), int64_t{0});
    sort_by_end(t, places);
    Groups groups(t);
    for (size_t begin = 0; begin < t.n;) {
        size_t stop = begin + 1;
        const int64_t end = t.end[static_cast<size_t>(places[begin])];
        while (stop < t.n && t.end[static_cast<size_t>(places[stop])] == end) ++stop;
        if (stop - begin > 1) groups.sort(places.data() + begin, stop - begin);
        begin = stop;
    }
    return places;
}

std::vector<int64_t> contents(const Trails& trails, const std::vector<const int64_t*>& columns) {
    std::vector<int64_t> found(trails.n);
    for (size_t i = 0; i < trails.n; ++i) {
        uint64_t hash = mixed(static_cast<uint64_t>(trails.end[i]));
        for (const int64_t* column : columns) hash = mixed(hash + golden_step + static_cast<uint64_t>(column[i]));
        for (int64_t k = trails.offsets[i]; k < trails.offsets[i + 1]; ++k) {
            // Id and variable in one word: the step puts ids further apart than there are variables.
            hash = mixed(hash + golden_step * static_cast<uint64_t>(trails.ids[k]) + trails.vars[k] + 1);
        }
        found[i] = static_cast<int64_t>(hash);
    }
    return found;
}

Changes changes(std::vector<int64_t> places, const int64_t* numbers, std::span<const int64_t> now) {
    const size_t size = std::bit_ceil(2 * places.size() + 1);
    std::vector<int64_t> table(size);
    std::vector<uint8_t> used(size, 0);  // 1: there is a number; 2: it is there now, too
    const auto place_of = [&](int64_t number) {  // the numbers are hashes
        size_t at = static_cast<uint64_t>(number) & (size - 1);
        while (used[at] != 0 && table[at] != number) at = (at + 1) & (size - 1);
        return at;
    };
    std::vector<size_t> own;  // by place: that in the table
    own.reserve(places.size());
    for (const int64_t place : places) {
        const int64_t number = numbers[place];
        const size_t at = place_of(number);
        used[at] = 1;
        table[at] = number;
        own.push_back(at);
    }
    Changes found;
    for (size_t i = 0; i < now.size(); ++i) {
        uint8_t& use = used[place_of(now[i])];
        if (use == 0) {
            found.come.push_back(static_cast<int64_t>(i));
        } else {
            use = 2;
        }
    }
    for (size_t i = 0; i < places.size(); ++i) {
        if (used[own[i]] != 2) found.gone.push_back(places[i]);
    }
    return found;
}

}  // namespace acep
