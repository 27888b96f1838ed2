// The output of an engine: matches as columns, or counts of matches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/pooled.hpp"
#include "common/texts.hpp"

namespace acep {

// Rows of counts, as columns. A row stands for a match point, a match bundle, or all matches with one error that end
// with one event. For bundles, `first` and `last` are the first and the last match point. Else both are the time of
// the event, and `bundle` is the first match point of its bundle.
struct CountRows {
    Numbers<int64_t> keys;  // n times the number of key columns
    Numbers<int64_t> first, last, bundle;
    Numbers<int64_t> error;  // scaled; the least error of the row
    Numbers<int64_t> count;
    Numbers<int64_t> at;     // the number in the stream of the event that began the row

    // Return the number of rows.
    size_t size() const { return first.size(); }
    // Add a row without its count and its event.
    void add(const int64_t* key, size_t width, int64_t from, int64_t to, int64_t in, int64_t cost) {
        keys.insert(keys.end(), key, key + width);
        first.push_back(from);
        last.push_back(to);
        bundle.push_back(in);
        error.push_back(cost);
    }
};

// Counts of matches that are not written: their number, and a row for each match point or match bundle. A match
// point or bundle may have several rows if rows were taken in between.
struct Tally {
    // Counted is nothing, or the matches alone, or with a row for each match point, or for each match bundle.
    enum Kind : int64_t { off = 0, count = 1, points = 2, bundles = 3 };
    Kind kind = off;
    int64_t total = 0;
    CountRows rows;
    std::vector<uint32_t> row;  // by partition: the number of its last row plus one; 0: none

    // Count a match of a partition with its key. `end`, `in`: its match point and the first one of its bundle.
    // `at_event`: the number in the stream of the event by which the match is known.
    void add(uint32_t partition, const int64_t* key, size_t width, int64_t end, int64_t in, int64_t cost,
             int64_t at_event) {
        ++total;
        if (kind == count) return;
        if (row.size() <= partition) row.resize(size_t{partition} + 1);
        if (row[partition] != 0) {
            const size_t at = row[partition] - size_t{1};
            if (rows.bundle[at] == in && (kind == bundles || rows.last[at] == end) &&
                std::equal(key, key + width, rows.keys.data() + at * width)) {
                rows.last[at] = std::max(rows.last[at], end);
                rows.error[at] = std::min(rows.error[at], cost);
                ++rows.count[at];
                return;
            }
        }
        rows.add(key, width, kind == bundles ? in : end, end, in, cost);
        rows.count.push_back(1);
        rows.at.push_back(at_event);
        row[partition] = static_cast<uint32_t>(rows.size());
    }
};

// Matches in the order of their completion; the events of each are in stream order.
struct Output {
    Numbers<int64_t> start, end, error, bundle;  // n each; errors scaled
    Numbers<int64_t> keys;                       // n times the number of key columns
    Numbers<int64_t> offsets{0};                 // n + 1, into ids and vars
    Numbers<int64_t> ids;
    Numbers<uint16_t> vars;
    Numbers<int64_t> values;   // n times the number of RETURN values
    Numbers<uint8_t> valid;    // as `values`

    Numbers<int64_t> at;       // of match points alone: the number in the stream of the event of each

    bool ordered = false;      // the matches are known to be in output order, by end and ids
    bool uniform = false;      // all matches bind the variables of `shape`, in this order
    std::vector<uint16_t> shape;

    Tally tally;

    // Add a match without its events.
    void add(int64_t from, int64_t to, int64_t cost, int64_t in, const int64_t* key, size_t width) {
        start.push_back(from);
        end.push_back(to);
        error.push_back(cost);
        bundle.push_back(in);
        keys.insert(keys.end(), key, key + width);
    }
    // Set the number of matches, which have `width` key columns; `resize_events` sets that of their events.
    void resize(size_t n, size_t width) {
        for (auto* column : {&start, &end, &error, &bundle}) column->resize(n);
        keys.resize(n * width);
        offsets.resize(n + 1);
    }
    // Set the number of bound events of all matches.
    void resize_events(size_t n) {
        ids.resize(n);
        vars.resize(n);
    }
    // Remove all matches; counts and `ordered` stay.
    void clear_matches() {
        for (auto* column : {&start, &end, &error, &bundle, &keys, &ids, &values, &at}) column->clear();
        vars.clear();
        valid.clear();
        offsets = {0};
    }
    // Mark the texts, or add the ids, of matches and counts that have not been taken.
    void used_texts(UsedTexts& used) const {
        for (const auto* words : {&keys, &values, &tally.rows.keys}) used.add(*words);
    }
    // Add the ids of the events of matches that have not been taken.
    void used_ids(std::vector<int64_t>& all) const { all.insert(all.end(), ids.begin(), ids.end()); }
    // Return the number of matches that are written and not taken.
    size_t size() const { return start.size(); }
    // Return the number of matches, including those that were only counted.
    size_t given() const { return size() + static_cast<size_t>(tally.total); }
};

// The last match point of a partition, and the first one of its bundle (Definition 3 of the 2016 paper).
struct Bundle {
    int64_t last_ts = 0;
    int64_t last_position = 0;
    int64_t first = 0;
    bool any = false;

    // Write or read the bundle.
    static void fields(auto& self, auto& archive) {
        archive.words(self.any, self.last_ts, self.last_position, self.first);
        if (self.any) archive.saw(self.last_ts);
    }
    // Return whether no match point from `low` on, a time or a position, can join the bundle.
    bool closed(int64_t low, bool counted) const { return !any || (counted ? last_position : last_ts) < low; }
    // Add a match point, not before the last one, and return the first match point of its bundle. Span -1: no
    // window.
    int64_t at(int64_t ts, int64_t position, int64_t span, bool counted) {
        // Neither time nor position falls, so the difference fits in an unsigned word.
        auto gap = counted ? static_cast<uint64_t>(position) - static_cast<uint64_t>(last_position)
                           : static_cast<uint64_t>(ts) - static_cast<uint64_t>(last_ts);
        if (!any || (span >= 0 && gap > static_cast<uint64_t>(span))) first = ts;
        any = true;
        last_ts = ts;
        last_position = position;
        return first;
    }
};

}  // namespace acep
