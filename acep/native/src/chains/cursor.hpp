// Enumeration of complete matches: a root for each ending, and a cursor that can stop after any match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/arena.hpp"
#include "common/output.hpp"
#include "common/state.hpp"
#include "plan/tables.hpp"

namespace acep {

// All matches that end with one event bound to one variable; their beginnings are one chain.
struct Root {
    int64_t low;  // the earliest start
    int64_t ts;
    int64_t id;
    int64_t error;
    int64_t bundle;
    uint32_t past;  // NIL: the event alone is a match
    uint32_t partition;
    uint16_t var;
};

// Matches as columns with spare room: columns are longer than their content until they are trimmed.
class MatchWriter {
public:
    explicit MatchWriter(size_t width) : width_(width) {}

    // Trim the columns and return them, to be read or taken as a whole.
    Output& trimmed();
    // Return the number of matches that are written and not taken.
    size_t written() const { return trimmed_ ? output_.size() : n_; }

private:
    friend class Cursor;
    friend class OrderedWalk;
    // Prepare to write behind the matches in the columns, if they were trimmed. Call it before each batch of
    // matches.
    void begin();
    // Make the columns long enough for `matches` more matches with `items` more bound events in all.
    void make_room(size_t matches, size_t items);
    // Record that the matches written last bind these variables; `first`: there are no matches before them.
    void shaped(const std::vector<uint16_t>& vars, bool first);
    // Record that the matches are neither in output order nor alike in their variables.
    void shapeless();

    Output output_;
    size_t width_;  // number of key columns
    size_t n_ = 0, items_ = 0;  // matches and bound events written
    size_t most_ = 256, most_items_ = 1024;  // initial room
    bool trimmed_ = true;
};

// A walk over the matches of one root at a time.
class Cursor {
public:
    // `counted`: starts are positions, and times of first events are looked up. `width`: number of key columns.
    Cursor(bool counted, size_t width) : counted_(counted), key_(width), ids_(64), vars_(64) {}

    // Start the matches of a root; `key` has the values of its partition's key.
    void open(const Root& root, const int64_t* key);
    // Skip the remaining matches of the root.
    void stop() {
        alone_ = false;
        at_ = NIL;
        stack_.clear();
    }
    // Return whether no match of the root is left.
    bool done() const { return !alone_ && at_ == NIL && stack_.empty(); }
    // Return the root that was opened last.
    const Root& root() const { return root_; }

    // Write at most `most` matches, and return their number. With `shortens`, links to cells that began before the
    // window are shortened, so that none is skipped twice. Then the arena must not be walked for earlier windows.
    template <bool shortens, class Arena_>
    size_t next(Arena_& arena, MatchWriter& writer, size_t most);

    // Move to one match of a root that was just opened. passes(cell) is called for cells that lead to a start in the
    // window; it returns whether to skip all matches through the cell.
    template <class Passes>
    void seek(const Arena& arena, Passes&& passes);

    // Write or read the state of the cursor. `places`: the number of keys that roots may refer to.
    template <class Archive>
    static void fields(auto& self, Archive& archive, const Tables& tables, const Arena& arena, size_t places,
                       int64_t end);

    // Call f(cell, low) for the cells at which the walk continues; compaction needs them.
    template <class F>
    void visit(F&& f) {
        f(at_, root_.low);
        for (Step& s : stack_) f(s.cell, root_.low);
    }

private:
    // A place where the walk continues.
    struct Step {
        uint32_t cell;   // the walk continues at `next` of this cell
        uint32_t depth;  // number of events bound after it
    };
    // Put an event before the `depth` events that are bound after it.
    void put(uint32_t depth, int64_t id, uint16_t var) {
        if (depth + 1 >= ids_.size()) deepen();
        ids_[ids_.size() - 1 - depth] = id;
        vars_[vars_.size() - 1 - depth] = var;
    }
    // Double the buffers of bound events, which stay at their ends.
    void deepen();

    bool counted_;
    bool alone_ = false;
    Root root_{};
    std::vector<int64_t> key_;
    uint32_t at_ = NIL;
    uint32_t depth_ = 0;
    std::vector<Step> stack_;
    // The events bound after the current cell, in stream order, at the end of the buffers.
    std::vector<int64_t> ids_;
    std::vector<uint16_t> vars_;
};

template <class Passes>
void Cursor::seek(const Arena& arena, Passes&& passes) {
    while (at_ != NIL) {
        const Cell& c = arena.cells[at_];
        const bool more = c.below >= root_.low;
        if (c.latest < root_.low || passes(c)) {
            at_ = more ? c.next : NIL;
            continue;
        }
        if (c.var != UNION && c.past == NIL) return;
        if (more) stack_.push_back({at_, depth_});
        if (c.var != UNION) put(depth_++, c.id, c.var);
        at_ = c.past;
    }
}

template <bool shortens, class Arena_>
size_t Cursor::next(Arena_& arena, MatchWriter& writer, size_t most) {
    if (most == 0 || done()) return 0;
    writer.begin();
    Output& o = writer.output_;
    const size_t width = writer.width_;
    size_t n = writer.n_, items = writer.items_, left = most;
    const int64_t low = root_.low;
    auto emit = [&](int64_t start, int64_t id, uint16_t var, uint32_t after) {
        if (n + 1 >= o.offsets.size() || items + after + 1 > o.ids.size()) {
            writer.n_ = n;
            writer.items_ = items;
            writer.make_room(1, after + 1);
        }
        o.start[n] = start;
        o.end[n] = root_.ts;
        o.error[n] = root_.error;
        o.bundle[n] = root_.bundle;
        for (size_t k = 0; k < width; ++k) o.keys[n * width + k] = key_[k];
        int64_t* ids = o.ids.data() + items;
        uint16_t* vars = o.vars.data() + items;
        const int64_t* later_ids = ids_.data() + (ids_.size() - after);
        const uint16_t* later_vars = vars_.data() + (vars_.size() - after);
        ids[0] = id;
        vars[0] = var;
        for (uint32_t k = 0; k < after; ++k) {
            ids[k + 1] = later_ids[k];
            vars[k + 1] = later_vars[k];
        }
        items += after + 1;
        o.offsets[++n] = static_cast<int64_t>(items);
        --left;
    };
    uint32_t at = at_;
    uint32_t unlinked = NIL;  // used when there is no link to shorten
    uint32_t* link = &unlinked;
    if (alone_) {
        emit(root_.ts, root_.id, root_.var, 0);
        alone_ = false;
    }
    while (left > 0) {
        if (at == NIL) {
            if (stack_.empty()) break;
            const Step step = stack_.back();
            stack_.pop_back();
            depth_ = step.depth;
            at = arena.cells[step.cell].next;
            if constexpr (shortens) link = &arena.cells[step.cell].next;
        }
        auto& c = arena.cells[at];
        const bool more = c.below >= low;
        if (c.latest < low) {
            if constexpr (shortens) {
                *link = c.next;
                if (link == &unlinked) link = &c.next;
            }
            at = more ? c.next : NIL;
        } else if (c.var == UNION) {
            if (more) {
                stack_.push_back({at, depth_});
                if constexpr (shortens) link = &c.past;
            } else if constexpr (shortens) {
                *link = c.past;
            }
            at = c.past;
        } else if (c.past != NIL) {
            if (more) stack_.push_back({at, depth_});
            put(depth_++, c.id, c.var);
            if constexpr (shortens) link = &c.past;
            at = c.past;
        } else {
            // Emits the first events of a chain in a loop.
            const auto* first = &c;
            for (;;) {
                emit(counted_ ? arena.events[first->event].ts : first->latest, first->id, first->var, depth_);
                if constexpr (shortens) link = const_cast<uint32_t*>(&first->next);
                if (first->below < low) {
                    at = NIL;
                    break;
                }
                at = first->next;
                if (left == 0) break;
                first = &arena.cells[at];
                if (first->past != NIL || first->var == UNION || first->latest < low) break;
            }
        }
    }
    at_ = at;
    writer.shapeless();
    writer.n_ = n;
    writer.items_ = items;
    return most - left;
}

}  // namespace acep
