// Compaction of the arena. Cells point to older cells only: one pass from the newest to the oldest finds those that
// are reached, and one pass back moves them.
#include "common/arena.hpp"

namespace acep {
namespace {

constexpr int64_t UNREACHED = std::numeric_limits<int64_t>::max();

// The number after `number`, skipping NIL.
uint32_t after(uint32_t number) { return number + 1 == NIL ? 0 : number + 1; }

}  // namespace

void Arena::begin_marking() { low_.assign(cells.size(), UNREACHED); }

void Arena::sweep() {
    const uint32_t tail = cells.tail(), first = events.tail();
    moved_events_.assign(events.size(), NIL);
    for (uint32_t k = cells.size(); k-- > 0;) {
        const int64_t low = low_[k];
        if (low == UNREACHED) continue;
        Cell& c = cells[tail + k];
        // A cell whose sequences began too early stays only as a link to the rest of its chain.
        if (c.latest < low) c.past = NIL;
        if (c.below < low) {
            c.next = NIL;
            c.below = NEVER;
        }
        if (c.past != NIL) mark(c.past, low);
        if (c.next != NIL) mark(c.next, low);
        moved_events_[c.event - first] = 0;
    }
    uint32_t to = first;
    for (uint32_t k = 0; k < moved_events_.size(); ++k) {
        if (moved_events_[k] == NIL) continue;
        events[to] = events[first + k];
        if (kept.width != 0) kept.move(first + k, to);
        moved_events_[k] = to;
        to = after(to);
    }
    events.truncate(to);
    moved_.resize(low_.size());
    to = tail;
    for (uint32_t k = 0; k < low_.size(); ++k) {
        if (low_[k] == UNREACHED) continue;
        Cell c = cells[tail + k];
        if (c.past != NIL) c.past = moved_[c.past - tail];
        if (c.next != NIL) c.next = moved_[c.next - tail];
        c.event = moved_events_[c.event - first];
        cells[to] = c;
        moved_[k] = to;
        to = after(to);
    }
    cells.truncate(to);
}

}  // namespace acep
