// Match nodes of one state in one partition, as columns: latest start, chain, error, last position, registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "chains/register_index.hpp"
#include "common/arena.hpp"
#include "common/prefetch.hpp"

namespace acep {

// The kind of a register's content.
enum Tag : uint8_t { unbound = 0, null = 1, value = 2 };

// Columns of equal capacity in one buffer. A block of nodes is contiguous in each column, and an empty list needs no
// memory. The nodes are rows [head, end), in the order in which they were made.
class NodeList {
public:
    static constexpr int64_t none = std::numeric_limits<int64_t>::max();
    uint32_t head = 0;
    uint32_t end = 0;
    bool sorted = true;  // starts do not fall from head to end, so expired nodes are at the head
    bool plain = true;   // every register of every node is bound and not null
    bool apart = false;  // known: no two nodes have the same cell
    int64_t oldest = none;  // no node began before it; NEVER: it is not known
    uint64_t unsure = 0;  // what was spent on looking for nodes that have expired, since all of them were looked at
    bool tight = false;  // while it grows, it has room for at most twice its nodes, or 8
    // Hash table (open addressing) from registers to rows, made on demand. It covers the rows before `indexed`,
    // including those before `head`. It is invalid once rows have moved.
    std::vector<uint32_t> index;
    std::vector<uint32_t> before;  // by row: the last equal row before it; only for dominance
    uint32_t indexed = 0;
    uint64_t scanned = 0;  // rows compared without the index since rows moved
    std::vector<RegisterIndex> by_registers;  // by number of an arc's key (register_keys.hpp)
    // For shedding (shedding.hpp): how often each node was evaluated, and when the list was last pruned.
    int64_t touched = 0;
    int64_t pruned_at = 0;
    uint32_t births = 0;  // nodes made in it, modulo 2^16
    uint32_t popped = 0;  // `births` when the first node was last checked
    double pruned_threshold = 0;  // utility threshold when it was last pruned
    uint32_t limit = 0;  // number of nodes at which it is pruned again
    uint32_t patience = 0;  // the higher, the less often it is pruned for its age alone
    uint32_t room = 0;  // size at which expired nodes are removed; not the capacity, which a restart changes

    // Return the number of nodes.
    uint32_t size() const { return end - head; }
    // Return whether there are no nodes.
    bool empty() const { return head == end; }
    // Return for how many rows there is room.
    uint32_t capacity() const { return capacity_; }
    // Return the bytes on the heap, with those of the indexes.
    int64_t bytes() const {
        int64_t total = heap_bytes(bytes_, index, before, by_registers);
        for (const RegisterIndex& rows : by_registers) total += rows.bytes();
        return total;
    }

    // Return the column of latest starts, by row; like all columns it is valid until the buffer is replaced.
    int64_t* starts() { return word(0); }
    // Return the column of the positions of last events, by row.
    int64_t* positions() { return word(1); }
    // Return the column of chains, by row.
    uint32_t* cells() { return reinterpret_cast<uint32_t*>(word(2)); }
    const uint32_t* cells() const { return const_cast<NodeList*>(this)->cells(); }
    // Return the column of errors, by row.
    int32_t* errors() { return reinterpret_cast<int32_t*>(word(2)) + capacity_; }
    // Return the column of a register's words, by row.
    int64_t* slot(uint32_t s) { return word(3 + size_t{s}); }
    // Return the column of a register's tags; `slots`: the number of registers of each node.
    uint8_t* tags(uint32_t s, uint32_t slots) {
        return reinterpret_cast<uint8_t*>(word(3 + size_t{slots})) + size_t{s} * capacity_;
    }

    // Call f(column) for each column.
    void each_column(uint32_t slots, auto&& f) {
        f(starts());
        f(positions());
        f(cells());
        f(errors());
        for (uint32_t s = 0; s < slots; ++s) {
            f(slot(s));
            f(tags(s, slots));
        }
    }

    // Copy row `from` of another list with the same slots to row `to`, but with the given start and chain.
    void take(uint32_t to, NodeList& other, uint32_t from, uint32_t slots, int64_t start, uint32_t cell) {
        if (to + 1 != end) replaced(to, other, from, slots);
        if (to > head && starts()[to - 1] > start) sorted = false;
        if (to + 1 < end && starts()[to + 1] < start) sorted = false;
        starts()[to] = start;
        oldest = std::min(oldest, start);
        positions()[to] = other.positions()[from];
        cells()[to] = cell;
        errors()[to] = other.errors()[from];
        plain = plain && other.plain;
        int64_t* words = slot(0);
        uint8_t* known = tags(0, slots);
        const int64_t* others = other.slot(0);
        const uint8_t* theirs = other.tags(0, slots);
        size_t at = to, others_at = from;
        for (uint32_t s = 0; s < slots; ++s, at += capacity_, others_at += other.capacity_) {
            words[at] = others[others_at];
            known[at] = theirs[others_at];
        }
    }

    // Load the first nodes into the processor's cache.
    void fetch(uint32_t slots) const {
        if (empty()) return;
        const size_t wide = capacity_ * sizeof(int64_t), columns = 3 + std::min<size_t>(slots, 5);
        for (size_t c = 0; c < columns; ++c) prefetch(bytes_.data() + c * wide + head * sizeof(int64_t), 1);
    }

    // Exchange the nodes with those of another list with the same slots.
    void exchange(NodeList& other) {
        std::swap(head, other.head);
        std::swap(end, other.end);
        std::swap(sorted, other.sorted);
        std::swap(plain, other.plain);
        std::swap(oldest, other.oldest);
        std::swap(apart, other.apart);
        bytes_.swap(other.bytes_);
        std::swap(capacity_, other.capacity_);
        moved();
        other.moved();
    }

    // Remove expired nodes if they are at the head; return whether no expired node is left.
    bool expire(int64_t low) {
        if (!sorted) return false;
        const int64_t* start = starts();
        while (head < end && start[head] < low) ++head;
        if (head == end) clear();
        return true;
    }

    // Return the number of nodes that began at `low` or later.
    uint32_t living(int64_t low) {
        const int64_t *first = starts() + head, *last = starts() + end;
        if (sorted) return static_cast<uint32_t>(last - std::lower_bound(first, last, low));
        return static_cast<uint32_t>(std::count_if(first, last, [&](int64_t start) { return start >= low; }));
    }

    // Look at all nodes: return how many began at `low` or later, and when the oldest of these did.
    std::pair<uint32_t, int64_t> survey(int64_t low) {
        const int64_t *first = starts() + head, *last = starts() + end;
        uint32_t many = 0;
        int64_t first_start = none;
        for (const int64_t* start = first; start != last; ++start) {
            const bool lives = *start >= low;
            many += lives ? 1 : 0;
            first_start = std::min(first_start, lives ? *start : none);
        }
        unsure = 0;
        return {many, first_start};
    }

    // Remove all nodes; the buffer stays.
    void clear() {
        head = end = 0;
        sorted = plain = true;
        oldest = none;
        moved();
    }

    // Invalidate the index, as rows or registers have changed.
    void moved() {
        indexed = 0;
        scanned = unsure = 0;
        for (RegisterIndex& rows : by_registers) rows.moved();
    }

    // Remove all nodes, and free the buffer and the indexes.
    void release() {
        clear();
        capacity_ = 0;
        std::vector<std::byte>().swap(bytes_);
        release_indexes();
    }

    // Shrink the buffer to what its nodes need.
    void shrink(uint32_t slots) {
        if (empty()) return release();
        release_indexes();
        moved();
        if (head != 0) keep(slots, [](uint32_t) { return true; });
        if (const uint32_t wanted = std::max(8u, end); wanted < capacity_) resize(slots, wanted);
    }

    // Add a row at `end` for the caller to fill in; expired nodes are removed first if the buffer is full.
    uint32_t add(uint32_t slots, int64_t low) {
        apart = false;
        if (end == capacity_) {
            if (capacity_ != 0) keep(slots, [&](uint32_t i) { return starts()[i] >= low; });
            if (tight) {
                if (capacity_ == 0 || 4 * size_t{end} > 3 * size_t{capacity_})
                    resize(slots, std::max(8u, capacity_ + capacity_ / 2));
            } else if (2 * size_t{end} > capacity_ || capacity_ == 0) {
                resize(slots, capacity_ == 0 ? 8 : capacity_ * 2);
            }
        }
        return end++;
    }

    // Copy the nodes of another list with the same slots into this one, which is empty.
    void copy(NodeList& other, uint32_t slots) {
        extend(slots, other.size());
        const auto column = [&](auto* to, const auto* from) { std::copy_n(from + other.head, end, to); };
        column(starts(), other.starts());
        column(positions(), other.positions());
        column(cells(), other.cells());
        column(errors(), other.errors());
        for (uint32_t s = 0; s < slots; ++s) {
            column(slot(s), other.slot(s));
            column(tags(s, slots), other.tags(s, slots));
        }
        sorted = other.sorted;
        plain = other.plain;
        oldest = other.oldest;
        apart = other.apart;
    }

    // Add rows at `end` for the caller to fill in, and return the first one.
    uint32_t extend(uint32_t slots, size_t rows) {
        const uint32_t first = end;
        const size_t wanted = first + rows;
        while (wanted > capacity_) resize(slots, capacity_ == 0 ? 8 : capacity_ * 2);
        end = static_cast<uint32_t>(wanted);
        oldest = NEVER;
        return first;
    }

    // Add slots after the existing ones of each node.
    void widen(uint32_t slots, uint32_t more) {
        if (empty()) return release();
        rebuild(slots, slots + more, capacity_);
        moved();
    }

    // Remove the last slots of each node.
    void narrow(uint32_t slots, uint32_t fewer) {
        if (empty()) return release();
        rebuild(slots, slots - fewer, capacity_);
        moved();
    }

    // Keep the nodes for which `wanted(index)` holds, and move them to the front of the buffer.
    template <class Wanted>
    void keep(uint32_t slots, Wanted&& wanted) {
        uint32_t to = 0;
        for (uint32_t i = head; i < end; ++i) {
            if (!wanted(i)) continue;
            const uint32_t from = i;
            while (i + 1 < end && wanted(i + 1)) ++i;
            if (to != from) move(slots, from, i + 1 - from, to);
            to += i + 1 - from;
            ++i;
        }
        if (to != end) moved();
        head = 0;
        end = to;
        if (end == 0) clear();
        if (!sorted) sorted = std::is_sorted(starts(), starts() + end);
    }

private:
    // Free the memory of all indexes.
    void release_indexes() {
        std::vector<uint32_t>().swap(index);
        std::vector<uint32_t>().swap(before);
        std::vector<RegisterIndex>().swap(by_registers);
    }
    // Invalidate the indexes that cover a row whose registers become others: those of a row of another list.
    void replaced(uint32_t row, NodeList& other, uint32_t from, uint32_t slots) {
        for (RegisterIndex& rows : by_registers) {
            const auto stays = [&](uint32_t s) {
                return slot(s)[row] == other.slot(s)[from] && tags(s, slots)[row] == other.tags(s, slots)[from];
            };
            if (row < rows.indexed && !std::ranges::all_of(rows.slots, stays)) rows.moved();
        }
    }
    int64_t* word(size_t column) {
        return reinterpret_cast<int64_t*>(bytes_.data() + column * capacity_ * sizeof(int64_t));
    }
    // Move `count` rows to earlier ones.
    void move(uint32_t slots, uint32_t from, uint32_t count, uint32_t to) {
        each_column(slots, [=](auto* column) { std::copy_n(column + from, count, column + to); });
    }
    void resize(uint32_t slots, uint32_t wanted) { rebuild(slots, slots, wanted); }
    // Move the nodes to a buffer with room for `wanted` of them, with `others` slots in place of `slots`.
    void rebuild(uint32_t slots, uint32_t others, uint32_t wanted) {
        NodeList larger;
        larger.capacity_ = wanted;
        larger.bytes_.resize((3 + size_t{others}) * wanted * sizeof(int64_t) + size_t{others} * wanted);
        if (end != 0) {
            std::memcpy(larger.starts(), starts(), end * sizeof(int64_t));
            std::memcpy(larger.positions(), positions(), end * sizeof(int64_t));
            std::memcpy(larger.cells(), cells(), end * sizeof(uint32_t));
            std::memcpy(larger.errors(), errors(), end * sizeof(int32_t));
            for (uint32_t s = 0; s < std::min(slots, others); ++s) {
                std::memcpy(larger.slot(s), slot(s), end * sizeof(int64_t));
                std::memcpy(larger.tags(s, others), tags(s, slots), end);
            }
        }
        bytes_.swap(larger.bytes_);
        capacity_ = wanted;
    }
    std::vector<std::byte> bytes_;
    uint32_t capacity_ = 0;
};

}  // namespace acep
