// Dense numbers of partition keys: one table for each distinct tuple of key columns, shared by all plans that use it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/arena.hpp"
#include "common/columns.hpp"
#include "common/hash.hpp"
#include "common/state.hpp"

namespace acep {

// A number above all positions of events.
constexpr int64_t most_positions = int64_t{1} << 62;

// The partitions of a stream by the values of key columns, numbered from 0. Numbers of forgotten ones are used
// again.
class Partitions {
public:
    // `columns`: numbers of the key columns. Without any, there is one partition, 0.
    explicit Partitions(std::vector<uint32_t> columns) : columns_(std::move(columns)) {
        if (columns_.empty()) take({});
    }

    // Return the number of key columns.
    size_t width() const { return columns_.size(); }
    // Return the numbers of the key columns in a batch.
    std::span<const uint32_t> columns() const { return columns_; }
    uint32_t size() const { return static_cast<uint32_t>(positions.size()); }  // numbers in use or free
    size_t live() const { return live_; }  // numbers in use
    // Return whether a number is in use.
    bool used(uint32_t p) const { return used_[p] != 0; }
    // Return the key of a partition, `width` words.
    const int64_t* key(uint32_t p) const { return keys_.data() + p * columns_.size(); }

    // Find or add the partitions of rows [from, from + n). With key columns: NIL if a key is null or `wanted` is 0.
    void find(const Batch& batch, size_t from, size_t n, const uint8_t* wanted, uint32_t* found) {
        if (columns_.empty()) return std::fill_n(found, n, 0u), void();
        if (columns_.size() != 1) {
            for (size_t i = 0; i < n; ++i) found[i] = wanted[i] == 0 ? NIL : find(batch, from + i);
            return;
        }
        const Column c = batch.columns[columns_[0]];
        std::span<const uint32_t> direct = direct_;
        for (size_t i = 0; i < n; ++i) {
            found[i] = NIL;
            if (wanted[i] == 0) continue;
            const auto word = static_cast<uint64_t>(c.values[from + i]);
            const bool null = c.null(from + i);
            if (word < direct.size() && !null) [[likely]] {
                found[i] = direct[word];
                if (found[i] != NIL) [[likely]]
                    continue;
            }
            found[i] = find(batch, from + i);
            if (null || word >= most_direct) continue;
            if (word >= direct_.size()) direct_.resize(std::bit_ceil(word + 1), NIL);
            direct_[word] = found[i];
            direct = direct_;
        }
    }

    // Return which of so many lanes runs the partition of a row: the high bits of the hash of its key choose, as the
    // low ones choose places in the table. NIL if a key is null: no partition has the row. Without key columns: lane 0.
    uint32_t lane_of(const Batch& batch, size_t row, uint32_t lanes) const {
        if (null_key(batch, row)) return NIL;
        const uint64_t hash = hash_of([&](size_t k) { return batch.columns[columns_[k]].values[row]; });
        return lane_of_hash(hash, lanes);
    }
    // Return the same for a key of one word that is not null.
    static uint32_t lane_of_word(int64_t word, uint32_t lanes) {
        return lane_of_hash(mixed(static_cast<uint64_t>(word) + golden_step), lanes);
    }

    // Return whether no partition has the key of a row; false if the key contains null.
    bool unknown(const Batch& batch, size_t row) const { return !null_key(batch, row) && known(batch, row) == NIL; }

    // Return the partition of one row; NIL if there is none, or a key is null.
    uint32_t known(const Batch& batch, size_t row) const {
        if (columns_.empty()) return 0;
        return table_.empty() || null_key(batch, row) ? NIL : table_[place_of(batch, row)];
    }

    // Return whether two rows have the same words as their key.
    bool same_words(const Batch& batch, size_t row, size_t other) const {
        return std::all_of(columns_.begin(), columns_.end(), [&](uint32_t c) {
            const Column& column = batch.columns[c];
            return column.values[row] == column.values[other] && column.null(row) == column.null(other);
        });
    }

    // Return the partition of one row, adding a new one; NIL if a key is null.
    uint32_t find(const Batch& batch, size_t row) {
        if (columns_.empty()) return 0;
        if (null_key(batch, row)) return NIL;
        if (2 * (live_ + 1) > table_.size()) rehash(table_.empty() ? 16 : table_.size() * 2);
        uint32_t& p = table_[place_of(batch, row)];
        if (p == NIL) {
            key_.resize(columns_.size());
            for (size_t k = 0; k < columns_.size(); ++k) key_[k] = batch.columns[columns_[k]].values[row];
            p = take(key_);
        }
        return p;
    }

    // Forget the partitions for which `gone(p)` holds.
    template <class Gone>
    void forget(Gone&& gone) {
        if (columns_.empty()) return;
        bool any = false;
        for (uint32_t p = 0; p < size(); ++p) {
            if (used_[p] == 0 || !gone(p)) continue;
            used_[p] = 0;
            positions[p] = 0;
            --live_;
            any = true;
        }
        if (!any) return;
        list_free();
        rehash(table_.size());
        direct_.clear();
    }

    // Write or read the partitions.
    template <class Archive>
    static void fields(auto& self, Archive& archive) {
        archive.items(self.keys_);
        archive.items(self.used_);
        archive.items(self.positions);
        if constexpr (Archive::reads) self.loaded(archive.events);
    }
    // Return the number above the positions of a partition's events in a state. `strict`: they are counted in the whole
    // stream.
    template <class Archive>
    int64_t end(uint32_t p, bool strict, const Archive& archive) const {
        if constexpr (Archive::reads) {
            return strict ? archive.events : positions[p];
        } else {
            return most_positions;
        }
    }

    std::vector<int64_t> positions;  // number of events in each partition

    // Return the bytes on the heap.
    int64_t bytes() const { return heap_bytes(keys_, positions, used_, free_, table_, direct_); }
    // Return the most bytes of one partition, if they are found row by row; vectors and the table double to grow.
    int64_t bytes_each() const {
        return static_cast<int64_t>(2 * ((columns_.size() + 1) * sizeof(int64_t) + 1 + sizeof(uint32_t)) +
                                    4 * sizeof(uint32_t));
    }
    // Return whether a number is free to be used again.
    bool has_free() const { return !free_.empty(); }

private:
    // Check the loaded state, and compute the rest from it. `events`: their number in the whole stream.
    void loaded(int64_t events) {
        if (used_.size() != positions.size() || keys_.size() != used_.size() * columns_.size() || used_.size() >= NIL) {
            bad_state("partitions");
        }
        if (columns_.empty() && (used_.size() != 1 || used_[0] == 0)) bad_state("partitions");
        for (int64_t position : positions) {
            if (position < 0 || position > events) bad_state("position");
        }
        direct_.clear();
        list_free();
        live_ = size() - free_.size();
        if (!columns_.empty()) rehash(std::bit_ceil(std::max<size_t>(16, 2 * live_ + 2)));
    }
    // List the free numbers so that the least is used first, whatever the order in which they became free.
    void list_free() {
        free_.clear();
        for (uint32_t p = size(); p > 0; --p) {
            if (used_[p - 1] == 0) free_.push_back(p - 1);
        }
    }
    // Return whether the key of a row contains null.
    bool null_key(const Batch& batch, size_t row) const {
        return std::any_of(columns_.begin(), columns_.end(), [&](uint32_t c) { return batch.columns[c].null(row); });
    }
    // Return the lane of a key's hash.
    static uint32_t lane_of_hash(uint64_t hash, uint32_t lanes) {
        return static_cast<uint32_t>(((hash >> 32) * lanes) >> 32);
    }
    // Return the hash of a key; word(k): its k-th part.
    uint64_t hash_of(auto&& word) const {
        uint64_t hash = 0;
        for (size_t k = 0; k < columns_.size(); ++k) {
            hash = mixed(hash + static_cast<uint64_t>(word(k)) + golden_step);
        }
        return hash;
    }
    // Return the place of a key in the table, or the free place for it. word(k): its k-th part.
    size_t place_of(auto&& word) const {
        const uint64_t hash = hash_of(word);
        const size_t mask = table_.size() - 1;
        const auto same = [&](uint32_t p) {
            for (size_t k = 0; k < columns_.size(); ++k) {
                if (key(p)[k] != word(k)) return false;
            }
            return true;
        };
        size_t at = hash & mask;
        while (table_[at] != NIL && !same(table_[at])) at = (at + 1) & mask;
        return at;
    }
    // Return the place of a row's key in the table, or the free place for it.
    size_t place_of(const Batch& batch, size_t row) const {
        return place_of([&](size_t k) { return batch.columns[columns_[k]].values[row]; });
    }
    // Return the number of a new partition with a key, which no other has.
    uint32_t take(const std::vector<int64_t>& key) {
        ++live_;
        uint32_t p;
        if (!free_.empty()) {
            p = free_.back();
            free_.pop_back();
            used_[p] = 1;
            std::copy(key.begin(), key.end(), keys_.begin() + static_cast<std::ptrdiff_t>(p * columns_.size()));
            return p;
        }
        p = size();
        if (p == NIL) throw std::length_error("too many partitions");
        positions.push_back(0);
        used_.push_back(1);
        keys_.insert(keys_.end(), key.begin(), key.end());
        return p;
    }
    // Make the table anew with so many places, a power of two.
    void rehash(size_t wanted) {
        table_.assign(wanted, NIL);
        for (uint32_t p = 0; p < size(); ++p) {
            if (used_[p] != 0) table_[place_of([&](size_t k) { return key(p)[k]; })] = p;
        }
    }
    std::vector<uint32_t> columns_;
    std::vector<int64_t> keys_;   // width() values per partition
    std::vector<uint8_t> used_;
    std::vector<uint32_t> free_;
    std::vector<uint32_t> table_;  // open addressing; NIL: free
    static constexpr uint64_t most_direct = uint64_t{1} << 16;
    std::vector<uint32_t> direct_;  // partitions by keys that are one small number, such as a text code
    std::vector<int64_t> key_;
    size_t live_ = 0;
};

}  // namespace acep
