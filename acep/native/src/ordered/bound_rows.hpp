// The rows that a search has bound to labels so far, and what conditions read of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/columns.hpp"
#include "common/numbers.hpp"
#include "common/texts.hpp"
#include "expression/vm.hpp"

namespace acep {

// An input that is null.
inline constexpr int64_t null_word = 0;
inline constexpr uint8_t null_byte = 0;
inline constexpr Leaf null_leaf{&null_word, &null_byte, 0};

// A reference of a condition. `set`: of labels; `shift`: rows from there. FIRST and LAST are counted from 0 by
// `offset`.
struct Reference {
    // A reference reads the row itself, the n-th first or last row of the set, an aggregate of the set, the
    // number of the match, or the label of the n-th first or last row. An average is one of integers, in units of
    // 10^-offset.
    enum Kind : uint8_t {
        current,
        first,
        last,
        count,
        count_valid,
        sum,
        least,
        greatest,
        match_number,
        first_label,
        last_label,
        average
    };
    Kind kind;
    size_t set;
    size_t offset;
    int64_t shift;
    size_t column;
    int64_t type;  // of an aggregated column, as order_of takes it

    // Return whether the value comes from a column.
    bool reads_column() const { return kind != count && kind != match_number; }
    // Return whether it depends on the rows of the set.
    bool reads_set() const { return kind != current && kind != match_number; }
    // Return whether it reads the label of a row, through a column with a value for each label.
    bool reads_label() const { return kind == first_label || kind == last_label; }
    // Return whether it is an aggregate of a column.
    bool aggregates() const { return (kind >= count_valid && kind <= greatest) || kind == average; }
};

// A set of labels.
class LabelSet {
public:
    // Throw std::invalid_argument for a label that does not exist.
    LabelSet(const std::vector<int64_t>& members, size_t labels);
    // Return whether a label is in the set.
    bool contains(size_t label) const { return (words_[label / 64] >> label % 64 & 1) != 0; }

private:
    std::vector<uint64_t> words_;
};

// The columns of all partitions.
struct OrderedRowsView {
    size_t rows = 0;
    std::vector<Column> columns;
    std::vector<size_t> lengths;
    const Texts* texts = nullptr;
};

// Rows are bound one after the other, and given back from the last one on.
class BoundRows {
public:
    BoundRows(std::vector<Reference> references, const std::vector<LabelSet>& sets, size_t labels);

    // Begin a match at row `first` of the partition [begin, end).
    void begin(const OrderedRowsView& view, size_t begin, size_t end, size_t first, int64_t match_number);
    // Note that more rows have come at the end of the partition, which now ends with row `end`.
    void extend(size_t end) { end_ = end; }
    // Bind the next row to a label.
    void bind(uint16_t label) {
        labels_.push_back(label);
        if (!tracks_.empty()) track(label, next_row() - 1);
    }
    // Bind a later row, as if the rows before it had labels that no condition reads; give it back.
    void bind_apart(uint16_t label, size_t row) { track(label, row); }
    // Give back the row that was bound last by `bind_apart`, with the same label.
    void unbind_apart(uint16_t label) { untrack(label); }
    // Give rows back until `rows` are left.
    void unbind(size_t rows) {
        if (tracks_.empty()) {
            labels_.resize(rows);
        } else {
            while (labels_.size() > rows) {
                untrack(labels_.back());
                labels_.pop_back();
            }
        }
    }
    // Return the labels of the bound rows.
    const std::vector<uint16_t>& labels() const { return labels_; }
    // Return the row that is bound next.
    size_t next_row() const { return first_ + labels_.size(); }
    // Return the references.
    const std::vector<Reference>& references() const { return references_; }
    // Return the value of a reference for the row bound last, in `cell` unless it is one of a column. A sum beyond 64
    // bits is null.
    Leaf value(size_t reference, Scratch::Cell& cell) const;
    // Append to a key what decides all later values of some references.
    void append_key(std::span<const uint32_t> references, std::vector<int64_t>& key) const;
    // Return those references that suffice for a key of all of them: equal ones, and what the row decides, are left
    // out.
    std::vector<uint32_t> key_references(std::span<const uint32_t> references) const;
    // Return the bytes on the heap.
    size_t bytes() const;

private:
    // An aggregate of the rows of a set, and how many of its values are not null; sums have 128 bits.
    struct Total {
        int64_t word;
        int64_t high;
        int64_t count;
    };
    // An aggregate of a track: after each of its rows.
    struct Totals {
        Reference::Kind kind;
        size_t column;
        int64_t type;
        std::vector<Total> values;  // after each row of the set
    };
    // The bound rows of a set of labels, with the aggregates over them that references read.
    struct Track {
        size_t set;
        std::vector<size_t> rows;
        std::vector<Totals> totals;
    };
    // Where a reference has its values.
    struct Source {
        size_t track = 0, totals = 0;
    };

    // Return the source of a reference, a new one if no other has it.
    Source source_of(const Reference& reference);
    // Add a row to the tracks of its label.
    void track(uint16_t label, size_t row);
    // Remove the last row of the tracks of its label.
    void untrack(uint16_t label);
    // Return the aggregate with one more row.
    Total added(const Totals& totals, size_t row) const;
    // Return the value of a column some rows from a row; null outside of the partition.
    Leaf at_row(const Reference& reference, size_t row) const;
    // Return the value of a column for the label of the row some rows from a row; null if that row is not bound.
    Leaf at_label(const Reference& reference, size_t row) const;
    // Return an aggregate, in `cell`; null for a sum beyond 64 bits.
    Leaf total(const Reference& reference, const Source& source, Scratch::Cell& cell) const;
    // Append to a key what a reference to a first row depends on: the number of the row at its offset, or as long as
    // there is none the number of rows.
    void append_first(const Reference& reference, const Track& track, std::vector<int64_t>& key) const;
    // Append to a key what a reference to a last row depends on: the rows that are the last ones up to its offset.
    void append_last(const Reference& reference, const Track& track, std::vector<int64_t>& key) const;
    // Append the labels of the bound rows that `shift` rows from a row and from later ones can be, and their
    // number.
    void append_labels(size_t row, int64_t shift, std::vector<int64_t>& key) const;
    // Return a row some rows from another one; the end of the partition if it is outside of it.
    size_t shifted(size_t row, int64_t shift) const;

    std::vector<Reference> references_;
    std::vector<Source> sources_;
    std::vector<Track> tracks_;
    std::vector<uint32_t> tracks_of_;  // those of each label, one after the other
    std::vector<size_t> offsets_;  // by label
    std::vector<uint16_t> labels_;
    const OrderedRowsView* view_ = nullptr;
    size_t begin_ = 0, end_ = 0, first_ = 0;
    int64_t match_number_ = 0;
};

}  // namespace acep
