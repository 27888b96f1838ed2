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

// A reference of a condition. `set`: of labels; `shift`: rows from there. FIRST and LAST are counted from 0 by `offset`.
struct Reference {
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
        last_label
    };
    Kind kind;
    size_t set;
    size_t offset;
    int64_t shift;
    size_t column;
    int64_t type;  // of an aggregated column, as order_of takes it

    bool reads_column() const { return kind != count && kind != match_number; }
    bool reads_set() const { return kind != current && kind != match_number; }
    bool reads_label() const { return kind == first_label || kind == last_label; }
    bool aggregates() const { return kind >= count_valid && kind <= greatest; }
};

// A set of labels.
class LabelSet {
public:
    // Throw std::invalid_argument for a label that does not exist.
    LabelSet(const std::vector<int64_t>& members, size_t labels);
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
    const std::vector<uint16_t>& labels() const { return labels_; }
    size_t next_row() const { return first_ + labels_.size(); }
    const std::vector<Reference>& references() const { return references_; }
    // Return the value of a reference for the row bound last, in `cell` unless it is one of a column. Throws
    // std::overflow_error for a sum beyond 64 bits.
    Leaf value(size_t reference, Scratch::Cell& cell) const;
    // Append to a key what decides all later values of some references.
    void append_key(std::span<const uint32_t> references, std::vector<int64_t>& key) const;
    // Return those references that suffice for a key of all of them: equal ones, and what the row decides, are left out.
    std::vector<uint32_t> key_references(std::span<const uint32_t> references) const;
    size_t bytes() const;

private:
    // An aggregate of the rows of a set; sums have 128 bits.
    struct Total {
        int64_t word;
        int64_t high;
        bool valid;
    };
    struct Totals {
        Reference::Kind kind;
        size_t column;
        int64_t type;
        std::vector<Total> values;  // after each row of the set
    };
    struct Track {
        size_t set;
        std::vector<size_t> rows;
        std::vector<Totals> totals;
    };
    // Where a reference has its values.
    struct Source {
        size_t track = 0, totals = 0;
    };

    Source source_of(const Reference& reference);
    void track(uint16_t label, size_t row);
    void untrack(uint16_t label);
    Total added(const Totals& totals, size_t row) const;
    Leaf at_row(const Reference& reference, size_t row) const;
    Leaf at_label(const Reference& reference, size_t row) const;
    Leaf total(const Reference& reference, const Source& source, Scratch::Cell& cell) const;
    void append_first(const Reference& reference, const Track& track, std::vector<int64_t>& key) const;
    void append_last(const Reference& reference, const Track& track, std::vector<int64_t>& key) const;
    void append_labels(size_t row, int64_t shift, std::vector<int64_t>& key) const;
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
