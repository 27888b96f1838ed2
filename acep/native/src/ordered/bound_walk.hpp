// Whether matches that wait for rows still wait once some have come, where conditions read what was bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/columns.hpp"
#include "ordered/bound_rows.hpp"
#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"
#include "ordered/reachable.hpp"
#include "ordered/row_conditions.hpp"

namespace acep {

// The part of a pattern that a walk needs: its states, and the conditions of labels. The last label is that of the open
// row.
struct WalkedPattern {
    PatternGraph graph;
    std::vector<LabelSet> sets;
    std::vector<Reference> references;
    std::vector<RowCondition> conditions;
};

// Rows of a partition, among those of all partitions: `columns` and `local` are of all, and the rows of the partition
// are the `rows` ones from `begin` on. The last one of them is the open row.
struct WalkedRows {
    std::span<const Column> columns;
    std::span<const uint8_t* const> local;
    size_t begin, rows;
    const Texts* texts;
};

// Open matches by the number of their partition. Each keeps the rows that it has bound and the values that conditions
// read of them, so that a walk over new rows takes no time for those of before. All ways preferred to that of an open
// match had failed for good; so it stays open as long as a way from where it stood leads to the open row.
class BoundWalks {
public:
    // Throw std::invalid_argument for references and conditions that do not fit each other.
    explicit BoundWalks(WalkedPattern pattern);
    BoundWalks(const BoundWalks&) = delete;  // its parts refer to the pattern
    BoundWalks& operator=(const BoundWalks&) = delete;

    // Return the number of columns that references read.
    size_t columns() const { return columns_; }
    // Return the number of labels, with that of the open row.
    size_t labels() const { return pattern_.graph.labels(); }
    // Take in the open match of a partition: it starts at row `first` of the partition, and its rows have `labels`, the
    // open row too. `behind`: how many rows before the first one are read. Return whether it can be walked on.
    bool begin(int64_t code, const WalkedRows& rows, size_t first, size_t behind, std::span<const uint16_t> labels,
               int64_t match_number);
    // Walk the match of a partition on; the rows before position `fresh` of it came before. Return whether it is still
    // open. If it is not, it is dropped.
    bool walk(int64_t code, const WalkedRows& rows, size_t fresh, size_t memory, Polling& polling);
    // Drop the match of a partition, if there is one.
    void drop(int64_t code) { matches_.erase(code); }
    // Drop all matches.
    void clear() { matches_.clear(); }
    // Return the number of open matches.
    size_t size() const { return matches_.size(); }

private:
    // An open match: the columns of its rows, which rows it has bound, and where its way stands.
    struct Match {
        Match(const WalkedPattern& pattern, size_t columns)
            : values(columns), valid(columns), bound(pattern.references, pattern.sets, pattern.graph.labels()) {}
        std::vector<std::vector<int64_t>> values;  // by column
        std::vector<std::vector<uint8_t>> valid;
        OrderedRowsView view;  // of these
        BoundRows bound;
        uint32_t state = 0;  // at which the way came to the open row
    };
    // A way that was not taken, and the state at which the way before it came to its position.
    struct Choice {
        size_t rows;
        uint32_t state, entered;
    };

    // Append rows to the columns of a match.
    void append(Match& match, const WalkedRows& rows, size_t from, size_t to) const;
    // Find the state at which a way with these labels comes to the open row; return false if that takes too long.
    bool find_state(std::span<const uint16_t> labels, bool is_first, uint32_t& state) const;
    // Walk a match on over new rows. Return whether a way leads to the open row; false too if that takes too long.
    bool walk_on(Match& match, const WalkedRows& rows, size_t fresh, Polling& polling);

    WalkedPattern pattern_;
    size_t columns_ = 0;  // that references read
    Reachable reachable_;
    RowConditions conditions_;
    std::unordered_map<int64_t, std::unique_ptr<Match>> matches_;
    std::vector<Choice> choices_;
};

}  // namespace acep
