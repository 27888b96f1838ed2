// Rows in stream order, into which late ones are merged: the events of a stream that may be matched again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace acep {

// The columns of some rows: words, and flags of columns that may be null.
struct RowColumns {
    std::vector<std::vector<int64_t>> words;
    std::vector<std::vector<uint8_t>> flags;
};

// Rows of words, the first of which are those below, and of flags. Rows are sorted by time, and where they are `tied`
// by their order; of equal rows the one that came first is first.
class OrderedRows {
public:
    static constexpr size_t bucket_count = size_t{1} << 16;
    enum : size_t { time, number, hash, order };  // columns of words; `order` only where rows are tied

    // Throw std::invalid_argument for fewer columns than those above.
    OrderedRows(size_t words, bool tied);

    // Return the number of rows.
    size_t size() const { return words_[time].size() - begin_; }
    // Return the number of columns of words.
    size_t columns() const { return words_.size(); }
    // Return the number of columns of flags.
    size_t flags() const { return flags_.size(); }
    // Add a column of flags, which are 1 in all rows so far.
    void add_flags();
    // Insert n sorted rows, of n words in each column. Flags that are not given (nullptr) are 1.
    void insert(size_t n, const std::vector<const int64_t*>& words, const std::vector<const uint8_t*>& flags);
    // Return the first place whose time is not before this one.
    size_t lower(int64_t ts) const;
    // Return the rows of [from, to) whose partition is in a bucket with a flag (nullptr: all rows), followed by all
    // rows from `to` on; set how many the former are.
    RowColumns chosen(size_t from, size_t to, const uint8_t* buckets, size_t& many) const;
    // The methods below throw std::out_of_range for places, columns and numbers of rows that are not there.

    // Return the rows at some places, in the order of these.
    RowColumns at(std::span<const int64_t> places) const;
    // Return a column of words, valid until rows are inserted or removed.
    std::span<const int64_t> column(size_t which) const;
    // Return a column of flags, valid until rows are inserted or removed.
    std::span<const uint8_t> flags_of(size_t which) const;
    // Remove the first n rows.
    void drop(size_t n);
    // Remove all rows that have no flag in `stay`.
    void keep(std::span<const uint8_t> stay);
    // Return the bytes that are reserved.
    int64_t bytes() const;

private:
    // Return whether a new row comes before one that is there.
    bool before(int64_t ts, int64_t then, size_t row) const;

    std::vector<std::vector<int64_t>> words_;
    std::vector<std::vector<uint8_t>> flags_;
    std::vector<uint16_t> bucket_;  // of the partition of each row
    bool tied_;
    size_t begin_ = 0;  // rows that were dropped, and are still there
};

}  // namespace acep
