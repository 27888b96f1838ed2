#include "revision/ordered_rows.hpp"

#include <algorithm>
#include <stdexcept>

namespace acep {

namespace {

constexpr size_t spare = 4096;  // rows that were dropped, beyond as many as there are left, before they are removed
constexpr unsigned bucket_shift = 48;  // the bucket of a partition is the first 16 bits of its hash

template <class T>
std::vector<T> picked(const std::vector<T>& from, const std::vector<size_t>& rows) {
    std::vector<T> found(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) found[i] = from[rows[i]];
    return found;
}

// Rows that stay together: `old` ones that were there, followed by `fresh` ones.
struct Run {
    size_t old, fresh;
};

// Merge n new rows (nullptr: all are 1) into a column, as runs say how its last rows and these follow each other.
template <class T>
void merge(std::vector<T>& column, size_t n, const std::vector<Run>& runs, const T* added) {
    column.resize(column.size() + n, T{1});
    T* from = column.data() + (column.size() - n);
    T* to = column.data() + column.size();
    // From the back, so that no row is overwritten before it has moved.
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        to -= run->fresh;
        n -= run->fresh;
        if (added == nullptr) {
            std::fill_n(to, run->fresh, T{1});
        } else {
            std::copy_n(added + n, run->fresh, to);
        }
        to = std::move_backward(from - run->old, from, to);
        from -= run->old;
    }
}

// Make room for n more rows, so that adding them cannot fail.
template <class T>
void make_room(std::vector<T>& column, size_t n) {
    if (column.capacity() - column.size() < n) column.reserve(std::max(2 * column.capacity(), column.size() + n));
}

}  // namespace

OrderedRows::OrderedRows(size_t words, bool tied) : words_(words), tied_(tied) {
    if (words < (tied ? order : hash) + size_t{1}) throw std::invalid_argument("rows: too few columns");
}

void OrderedRows::add_flags() { flags_.emplace_back(words_[time].size(), uint8_t{1}); }

bool OrderedRows::before(int64_t ts, int64_t then, size_t row) const {
    if (ts != words_[time][row]) return ts < words_[time][row];
    return tied_ && then < words_[order][row];
}

void OrderedRows::insert(size_t n, const std::vector<const int64_t*>& words, const std::vector<const uint8_t*>& flags) {
    if (n == 0) return;
    const size_t end = words_[time].size();
    std::vector<uint16_t> buckets(n);
    for (size_t i = 0; i < n; ++i) {
        buckets[i] = static_cast<uint16_t>(static_cast<uint64_t>(words[hash][i]) >> bucket_shift);
    }
    const auto comes_before = [&](size_t i, size_t row) {
        return before(words[time][i], tied_ ? words[order][i] : 0, row);
    };
    size_t begin = end;
    if (size() > 0 && comes_before(0, end - 1)) {
        size_t low = begin_;
        while (low < begin) {
            const size_t middle = low + (begin - low) / 2;
            if (comes_before(0, middle)) {
                begin = middle;
            } else {
                low = middle + 1;
            }
        }
    }
    std::vector<Run> runs;
    for (size_t row = begin, fresh = 0; row < end || fresh < n;) {
        Run run{row, fresh};
        while (row < end && (fresh == n || !comes_before(fresh, row))) ++row;
        while (fresh < n && (row == end || comes_before(fresh, row))) ++fresh;
        runs.push_back({row - run.old, fresh - run.fresh});
    }
    // All memory is there before a column changes, so that they stay equally long.
    for (auto& column : words_) make_room(column, n);
    for (auto& column : flags_) make_room(column, n);
    make_room(bucket_, n);
    for (size_t c = 0; c < words_.size(); ++c) merge(words_[c], n, runs, words[c]);
    merge(bucket_, n, runs, buckets.data());
    for (size_t c = 0; c < flags_.size(); ++c) merge(flags_[c], n, runs, flags[c]);
}

size_t OrderedRows::lower(int64_t ts) const {
    const auto& times = words_[time];
    const auto first = times.begin() + static_cast<std::ptrdiff_t>(begin_);
    return static_cast<size_t>(std::lower_bound(first, times.end(), ts) - first);
}

RowColumns OrderedRows::chosen(size_t from, size_t to, const uint8_t* buckets, size_t& many) const {
    if (from > to || to > size()) throw std::out_of_range("rows: from, to");
    from += begin_;
    to += begin_;
    RowColumns found;
    if (buckets == nullptr) {
        const auto rest = [from](const auto& column) {
            return std::vector(column.begin() + static_cast<std::ptrdiff_t>(from), column.end());
        };
        for (const auto& column : words_) found.words.push_back(rest(column));
        for (const auto& column : flags_) found.flags.push_back(rest(column));
        many = to - from;
        return found;
    }
    std::vector<size_t> rows;
    for (size_t row = from; row < to; ++row) {
        if (buckets[bucket_[row]] != 0) rows.push_back(row);
    }
    many = rows.size();
    for (size_t row = to; row < words_[time].size(); ++row) rows.push_back(row);
    for (const auto& column : words_) found.words.push_back(picked(column, rows));
    for (const auto& column : flags_) found.flags.push_back(picked(column, rows));
    return found;
}

RowColumns OrderedRows::at(std::span<const int64_t> places) const {
    std::vector<size_t> rows;
    rows.reserve(places.size());
    for (const int64_t place : places) {
        if (place < 0 || static_cast<size_t>(place) >= size()) throw std::out_of_range("rows: place");
        rows.push_back(begin_ + static_cast<size_t>(place));
    }
    RowColumns found;
    for (const auto& column : words_) found.words.push_back(picked(column, rows));
    for (const auto& column : flags_) found.flags.push_back(picked(column, rows));
    return found;
}

std::span<const int64_t> OrderedRows::column(size_t which) const { return std::span(words_.at(which)).subspan(begin_); }

std::span<const uint8_t> OrderedRows::flags_of(size_t which) const {
    return std::span(flags_.at(which)).subspan(begin_);
}

void OrderedRows::drop(size_t n) {
    if (n > size()) throw std::out_of_range("rows: more than there are");
    begin_ += n;
    if (begin_ <= size() + spare) return;
    const auto rest = [this](auto& column) {
        column.erase(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(begin_));
    };
    for (auto& column : words_) rest(column);
    rest(bucket_);
    for (auto& column : flags_) rest(column);
    begin_ = 0;
}

void OrderedRows::keep(std::span<const uint8_t> stay) {
    if (stay.size() != size()) throw std::out_of_range("rows: one flag for each");
    const auto kept = [&](auto& column) {
        size_t at = begin_;
        for (size_t i = 0; i < stay.size(); ++i) {
            column[at] = column[begin_ + i];
            at += stay[i] != 0;
        }
        column.resize(at);
    };
    for (auto& column : words_) kept(column);
    kept(bucket_);
    for (auto& column : flags_) kept(column);
}

int64_t OrderedRows::bytes() const {
    size_t total = bucket_.capacity() * sizeof(uint16_t);
    for (const auto& column : words_) total += column.capacity() * sizeof(int64_t);
    for (const auto& column : flags_) total += column.capacity();
    return static_cast<int64_t>(total);
}

}  // namespace acep
