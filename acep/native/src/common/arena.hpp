// The arena of partial matches: cells that share their pasts, in rings. Memory is freed by age or by compaction.
//
// A cell binds an event to a variable (or unites two chains) and points back. A partial match holds a *chain*: all
// sequences of bound events that lead to it. The cells of a chain are linked by `next`, the newest first. `past` of a
// cell is the chain of the events bound before (the tECS of CORE; see docs/internals/native.md). Each link carries the
// latest start that it leads to. So a walk skips parts that began before the window, and reads no freed memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "common/pooled.hpp"
#include "common/state.hpp"

namespace acep {

// No cell, no row and no partition: the greatest number of each is below it.
constexpr uint32_t NIL = 0xFFFFFFFFu;
constexpr uint16_t UNION = 0xFFFFu;  // variable of a cell that binds nothing
constexpr int64_t NEVER = std::numeric_limits<int64_t>::min();

// Return the earliest key (time or position) in a window that ends at `now`. Span -1: there is no window.
inline int64_t earliest(int64_t now, int64_t span) {
    int64_t low;
    return span < 0 || __builtin_sub_overflow(now, span, &low) ? NEVER + 1 : std::max(low, NEVER + 1);
}

// Elements with rising numbers, in a buffer whose size is a power of two; the oldest are dropped from the tail. Numbers
// wrap at 32 bits and skip NIL. At most 2^31 elements are held at once.
template <class T>
class Ring {
public:
    // Return the element with a number, which must be that of an element.
    T& operator[](uint32_t i) { return items_[i & mask_]; }
    const T& operator[](uint32_t i) const { return items_[i & mask_]; }
    // Return whether there are no elements.
    bool empty() const { return head_ == tail_; }
    // Return the number of elements.
    uint32_t size() const { return head_ - tail_; }
    // Return the number of the oldest element.
    uint32_t tail() const { return tail_; }
    // Return the number that the next element will get, unless it is NIL.
    uint32_t head() const { return head_; }
    // Return the size of the buffer.
    size_t capacity() const { return items_.size(); }

    // Add an element, and return its number. The buffer may move.
    uint32_t push(const T& item) {
        if (head_ == NIL) head_ = skip_nil();
        if (size() == items_.size()) grow();
        items_[head_ & mask_] = item;
        return head_++;
    }
    // Remove the oldest element; there must be one.
    void drop() {
        ++tail_;
        if (tail_ == NIL) tail_ = 0;
    }
    // Remove all elements; the next one gets a number above theirs.
    void clear() { tail_ = head_; }
    // Call visit(number) for the number of each element, from the oldest on.
    void each_number(auto&& visit) const {
        for (uint32_t i = tail_; i != head_; ++i) {
            if (i != NIL) visit(i);
        }
    }
    // Call visit(element) for each element, from the oldest on.
    void each(auto&& visit) const {
        each_number([&](uint32_t i) { visit((*this)[i]); });
    }
    // Shrink the buffer to what its elements need.
    void shrink() {
        const size_t wanted = std::bit_ceil(std::max<size_t>(64, size()));
        if (wanted < items_.size()) resize(wanted);
    }

    // Write or read the elements and their numbers.
    template <class Archive>
    static void fields(auto& self, Archive& archive) {
        std::vector<T> live;
        for (uint32_t i = self.tail_; i != self.head_ && !Archive::reads; ++i) live.push_back(self[i]);
        archive.within(0, int64_t{1} << 32, self.tail_);
        archive.items(live);
        if constexpr (Archive::reads) {
            if (live.size() > (size_t{1} << 31)) bad_state("length of a ring");
            self.head_ = self.tail_;
            for (const T& item : live) {
                if (self.size() == self.items_.size()) self.grow();
                self.items_[self.head_++ & self.mask_] = item;  // the place of number NIL is kept
            }
        }
    }
    // Keep the elements [tail, head). Call it after a compaction has moved the elements that stay to the front.
    void truncate(uint32_t head) { head_ = head; }

private:
    // Leave the place of number NIL empty, and return the number after it.
    uint32_t skip_nil() {
        // No element has the number NIL: an empty one is stored there so that numbers and places stay in step.
        if (size() == items_.size()) grow();
        items_[head_ & mask_] = T{};
        return 0;
    }
    // Double the buffer; throw std::bad_alloc if numbers do not suffice.
    void grow() {
        size_t wanted = items_.empty() ? 64 : items_.size() * 2;
        if (wanted > (size_t{1} << 31)) throw std::bad_alloc();  // more elements need numbers of more than 32 bits
        resize(wanted);
    }
    // Move the elements to a buffer of another size, a power of two that has room for them.
    void resize(size_t wanted) {
        std::vector<T> larger(wanted);
        uint32_t mask = static_cast<uint32_t>(wanted - 1);
        for (uint32_t i = tail_; i != head_; ++i) larger[i & mask] = items_[i & mask_];
        items_.swap(larger);
        mask_ = mask;
    }
    std::vector<T> items_;
    uint32_t mask_ = 0;
    uint32_t head_ = 0;
    uint32_t tail_ = 0;
};

// A bound event with the chain of those before it, in the list of cells that is a chain; or a union of two chains.
struct Cell {
    int64_t id;  // id of the event
    int64_t latest;  // latest start of a sequence through `past` (of a first event: its own start)
    int64_t below;  // latest start of a sequence through `next`; NEVER if there is none
    uint32_t past;  // chain of the events bound before; NIL: this event is the first
    uint32_t next;  // the rest of the chain that this cell heads
    uint32_t event;  // number in the ring of bound events
    uint16_t var;  // UNION: this cell stands for both its links
    uint16_t arc;  // the arc that bound the event
};

// A chain and the latest start in it.
struct Chain {
    uint32_t cell = NIL;
    int64_t latest = NEVER;
};

// An event that a cell binds.
struct BoundEvent {
    int64_t ts;
    int64_t position;
    int64_t id;
};

// Column values kept with bound events, stored by event number in step with the ring of events.
struct KeptRows {
    size_t width = 0;  // values per event
    std::vector<int64_t> values;
    std::vector<uint8_t> valid;

    // Return the index of the first value of an event.
    size_t at(uint32_t number) const { return (number & (capacity - 1)) * width; }
    // Make room for as many events as their ring has; the values of those in the ring stay.
    void fit(const Ring<BoundEvent>& events) {
        const size_t old = capacity;
        if (width == 0 || old == events.capacity()) return;
        std::vector<int64_t> words(events.capacity() * width);
        std::vector<uint8_t> known(events.capacity() * width);
        capacity = events.capacity();
        for (uint32_t i = events.tail(); old != 0 && i != events.head(); ++i) {
            const size_t from = (i & (old - 1)) * width;
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), width,
                        words.begin() + static_cast<std::ptrdiff_t>(at(i)));
            std::copy_n(valid.begin() + static_cast<std::ptrdiff_t>(from), width,
                        known.begin() + static_cast<std::ptrdiff_t>(at(i)));
        }
        values.swap(words);
        valid.swap(known);
    }
    // Keep `more` values of each event from now on. Those that are added are null for the events so far.
    void widen(size_t more, const Ring<BoundEvent>& events) {
        if (more <= width) return;
        const auto wide = [&](auto& all) {
            std::remove_reference_t<decltype(all)> made(capacity * more);
            for (size_t i = 0; i < capacity; ++i) {
                std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                            made.begin() + static_cast<std::ptrdiff_t>(i * more));
            }
            all.swap(made);
        };
        wide(values);
        wide(valid);
        width = more;
        fit(events);
    }
    // Copy the values of an event to another number.
    void move(uint32_t from, uint32_t to) {
        for (size_t k = 0; k < width; ++k) {
            values[at(to) + k] = values[at(from) + k];
            valid[at(to) + k] = valid[at(from) + k];
        }
    }
    // Call this after the events themselves.
    template <class Archive>
    static void fields(auto& self, const Ring<BoundEvent>& events, Archive& archive) {
        if constexpr (Archive::reads) self.fit(events);
        for (uint32_t i = events.tail(); self.width != 0 && i != events.head(); ++i) {
            archive.items(self.values.data() + self.at(i), self.width, "kept values");
            archive.items(self.valid.data() + self.at(i), self.width, "kept values");
        }
    }
    // Return its bytes on the heap.
    int64_t bytes() const { return heap_bytes(values, valid); }

private:
    size_t capacity = 0;
};

// The cells of all chains of an engine, with the events that they bind. A chain is named by its first cell (NIL:
// empty). Cells refer to older cells only, so that age frees them from the tail.
class Arena {
public:
    Ring<Cell> cells;
    Ring<BoundEvent> events;
    KeptRows kept;

    // Return the chain that a cell heads; an empty one for NIL.
    Chain chain(uint32_t cell) const {
        if (cell == NIL) return {};
        const Cell& c = cells[cell];
        return {cell, std::max(c.latest, c.below)};
    }

    // Write or read the cells and the events. The cells must be checked after they were read.
    template <class Archive>
    static void fields(auto& self, Archive& archive) {
        Ring<Cell>::fields(self.cells, archive);
        Ring<BoundEvent>::fields(self.events, archive);
        for (uint32_t i = self.events.tail(); Archive::reads && i != self.events.head(); ++i) {
            if (i != NIL) archive.saw(self.events[i].ts);
        }
    }

    // Return whether a number is that of a cell.
    bool holds(uint32_t cell) const { return cell != NIL && cell - cells.tail() < cells.size(); }

    // Bind `event` after `past`, and put its cell before `rest`. If `past` is empty, the event is the first one and
    // begins at `start`.
    Chain bind(uint32_t event, int64_t id, uint16_t var, uint16_t arc, Chain past, int64_t start, Chain rest) {
        int64_t latest = past.cell == NIL ? start : past.latest;
        uint32_t cell = cells.push({id, latest, rest.latest, past.cell, rest.cell, event, var, arc});
        return {cell, std::max(latest, rest.latest)};
    }

    // Return a chain with the sequences of two chains; `event`: the number of a bound event of theirs.
    Chain unite(Chain a, Chain b, uint32_t event) {
        if (a.cell == NIL) return b;
        if (b.cell == NIL) return a;
        if (a.latest < b.latest) std::swap(a, b);
        uint32_t cell = cells.push({0, a.latest, b.latest, a.cell, b.cell, event, UNION, 0});
        return {cell, a.latest};
    }

    // Call emit(path, length) for each sequence of the chain that began at `low` or later. path[0] is `last` if given
    // (it need not be in the arena), then come cells from newest to oldest. The walk stops when `emit` returns false.
    template <class Emit>
    bool walk(Chain chain, int64_t low, const Cell* last, Emit&& emit) {
        begin_walk(chain, low, last);
        return go_on(low, emit);
    }
    // Begin a walk in parts: `go_on` continues where `emit` stopped it. No cell may be added or freed in between.
    void begin_walk(Chain chain, int64_t low, const Cell* last) {
        size_t first = 0;
        if (path_.size() < 64) path_.resize(64);
        if (last != nullptr) path_[first++] = last;
        stack_.clear();
        if (chain.cell != NIL && chain.latest >= low) stack_.push_back({chain.cell, static_cast<uint32_t>(first)});
    }
    // Return whether the walk that was begun last is at its end.
    bool walked() const { return stack_.empty(); }
    // Continue the walk that was begun last; return false if `emit` stopped it.
    template <class Emit>
    bool go_on(int64_t low, Emit&& emit) {
        while (!stack_.empty()) {
            auto [at, depth] = stack_.back();
            stack_.pop_back();
            if (depth + 1 >= path_.size()) path_.resize(path_.size() * 2);
            // Follows one chain of cells; the past of a cell is walked before the rest of its chain.
            for (;;) {
                const Cell& c = cells[at];
                bool more = c.next != NIL && c.below >= low;
                if (c.latest >= low) {
                    if (c.var == UNION || c.past != NIL) {
                        if (more) stack_.push_back({c.next, depth});
                        if (c.var == UNION) {
                            at = c.past;
                            continue;
                        }
                        path_[depth] = &c;
                        at = c.past;
                        ++depth;
                        if (depth + 1 >= path_.size()) path_.resize(path_.size() * 2);
                        continue;
                    }
                    path_[depth] = &c;
                    if (more) stack_.push_back({c.next, depth});
                    if (!emit(path_.data(), depth + 1)) return false;
                    break;
                }
                if (!more) break;
                at = c.next;
            }
        }
        return true;
    }

    // Free the cells and events that no sequence within its window can reach, if age does not free them. `visit(f)`
    // calls f(uint32_t& cell, int64_t low) for each reference held outside; `low` is the earliest start that still
    // counts for it, and must never fall from one compaction to the next. `visit` is called twice. First, references
    // that reach nothing become NIL; then the others get their new numbers.
    template <class Visit>
    void compact(Visit&& visit) {
        begin_marking();
        visit([this](uint32_t& cell, int64_t low) {
            if (cell == NIL) return;
            if (chain(cell).latest < low) {
                cell = NIL;
            } else {
                mark(cell, low);
            }
        });
        sweep();
        visit([this](uint32_t& cell, int64_t) {
            if (cell != NIL) cell = moved_[cell - cells.tail()];
        });
    }

    // Shrink all buffers, and free those of compaction.
    void shrink() {
        cells.shrink();
        events.shrink();
        kept.fit(events);
        std::vector<int64_t>().swap(low_);
        std::vector<uint32_t>().swap(moved_);
        std::vector<uint32_t>().swap(moved_events_);
    }

    // Return the bytes on the heap, without the kept rows.
    int64_t bytes() const { return heap_bytes(cells, events, low_, moved_, moved_events_); }
    // Add the ids of all events.
    void used_ids(std::vector<int64_t>& ids) const {
        events.each([&](const BoundEvent& event) { ids.push_back(event.id); });
    }

private:
    // Mark all cells as not reached.
    void begin_marking();
    // Mark a cell as reached from a reference whose sequences count from `low` on.
    void mark(uint32_t cell, int64_t low) {
        int64_t& known = low_[cell - cells.tail()];
        known = std::min(known, low);
    }
    // Mark what the marked cells reach, free the others, and set the new number of each cell that stays (`moved_`).
    void sweep();

    std::vector<int64_t> low_;  // by cell that is reached: the earliest start that counts
    std::vector<uint32_t> moved_;  // by cell: its new number
    std::vector<uint32_t> moved_events_;
    std::vector<const Cell*> path_;
    // A place where a walk continues: the cell, and the number of events bound after it.
    struct Step {
        uint32_t cell, depth;
    };
    std::vector<Step> stack_;
};

}  // namespace acep
