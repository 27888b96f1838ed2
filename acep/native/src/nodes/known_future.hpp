// The known future: the rest of a batch says which partial matches can go on, so that others need not be made.
//
// A partial match is made only if a later row of the batch can follow it, and after that others, until a run ends
// within its window. A row can follow by an arc if it has the arc's event class and equal partition keys, and if its
// attributes are equal to those registers that the arc compares with them. Rows are entered from the last one
// backwards, each with the earliest time at which a run may end that binds it. What comes after the batch may end a run
// at any time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "common/state.hpp"
#include "nodes/equal_nodes.hpp"
#include "nodes/future_trials.hpp"
#include "nodes/register_keys.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/engine.hpp"

namespace acep {

// A row of a batch, and its place among those rows ahead that concern the plan.
struct PlacedRow {
    size_t row;
    uint32_t place;
};

// The rows that an arc may bind, by partition and by attributes that must be equal to registers. They are numbered by
// their places. Rows of one key are linked in the order of the batch.
class RowsAhead {
public:
    // Begin without rows. `parts`: what must be equal; only their columns matter.
    RowsAhead(uint32_t of_arc, std::vector<RegisterKey::Part> parts) : arc(of_arc), parts_(std::move(parts)) {}

    const uint32_t arc;  // number
    // Return what must be equal.
    std::span<const RegisterKey::Part> parts() const { return parts_; }
    // Return whether it is for this arc and these parts.
    bool has_key(uint32_t of_arc, const std::vector<RegisterKey::Part>& parts) const {
        return arc == of_arc && parts_ == parts;
    }

    // Forget all rows, and make room for `rows` ones.
    void clear(size_t rows);
    // Enter a row before all that were entered, with the earliest time at which a run may end that binds it.
    void add(const Batch& batch, std::span<const uint32_t> keys, PlacedRow added, int64_t end);
    // Return the earliest end by one of the rows after `now` that have the keys of row `now` and these words; FAR if
    // there is none. Rows up to `now` are forgotten.
    int64_t earliest_end(const Batch& batch, std::span<const uint32_t> keys, PlacedRow now, const int64_t* words);
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(heads_, later_, ends_, parts_, cells_); }
    // Later than any end.
    static constexpr int64_t FAR = std::numeric_limits<int64_t>::max();

private:
    // A key and its first row.
    struct Head {
        uint64_t hash = 0;
        uint32_t place = NIL;
    };
    // Return the hash of `cells_` and of the partition of a row. Rows of another key with the same hash are taken for
    // its own: then more partial matches are made than need be.
    uint64_t hash(const Batch& batch, std::span<const uint32_t> keys, size_t row) const;
    // Return the place of a hash in the table, or the free place for it.
    Head& head(uint64_t hash);
    // Return the earliest end by the first row of a key after the place `now`, and make it the first one.
    int64_t earliest_end_of(uint32_t& first, uint32_t now);

    std::vector<RegisterKey::Part> parts_;
    std::vector<Head> heads_;  // hash table (open addressing): the first row of each key
    std::vector<uint32_t> later_;  // by place: that of the next row of its key
    std::vector<int64_t> ends_;  // by place: the earliest end by its row or by a later one of its key
    std::vector<int64_t> cells_;  // of the key that is looked for or added
    size_t keys_ = 0;  // number of them
};

class KnownFuture {
public:
    // The most that is noted at once for touches that were not needed.
    static constexpr int64_t most_saved = 1 << 12;
    Taking taking = Taking::where_it_pays;  // whether it is used

    // Find which later rows each arc asks for. The tables and the classifier must outlive it; `keys`: the columns of
    // the partition key.
    KnownFuture(const Tables& tables, EventClassifier& classifier, std::span<const uint32_t> keys);
    // Return whether the future can tell anything for these tables.
    static bool serves(const Tables& tables);

    // Prepare for rows from `from` on, where that seems worth it. `stream_row`: the number of row 0 in the stream.
    // `last`: no event comes after the batch. `work`: what the engine has done so far. `sifted`: match windows before
    // the engine hold events back where the future is not known.
    void prepare(const Batch& batch, size_t from, int64_t stream_row, bool last, const Work& work, bool sifted);
    // Return whether the future of an event is known.
    bool knows(const Event& event) const { return event.batch == batch_ && event.row >= from_ && event.row < limit_; }
    // Return the least start of a run that may end within its window after the arc has bound a row; FAR if there is
    // none.
    int64_t least_start(size_t row, const Arc& arc) {
        const uint32_t place = place_of(row);
        if (place == NIL) return FAR;
        const int64_t end = ends_[place * bindings_.size() + arc.number];
        int64_t start;
        if (end == FAR) return FAR;
        return tables_.span < 0 || __builtin_sub_overflow(end, tables_.span, &start) ? NEVER : start;
    }
    static constexpr int64_t FAR = RowsAhead::FAR;
    // Return whether the partial match that an arc makes of row `from` of a list can be followed.
    bool may_be_followed(const Arc& arc, NodeList& list, uint32_t slots, uint32_t from, const Event& event,
                         int64_t start, int64_t error);
    // Note what it has saved: the evaluation of so many partial matches, or (`made`) also the making of one.
    void note_saved(size_t touches, bool made = false) {
        saved_ += std::min(static_cast<int64_t>(touches), most_saved) + (made ? FutureTrials::to_make : 0);
    }
    // Forget the rows that are known.
    void forget() { from_ = limit_ = 0; }
    // Return the bytes of its buffers.
    int64_t bytes() const;
    // Write by what it is judged whether it pays.
    void fields(Writer& out) const;
    // Read it. No rows are known after that.
    void fields(Reader& in);

private:
    // Write or read what the public functions do.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // How a register of a new partial match is set.
    struct Setting {
        enum Kind : uint8_t { copied, read } kind;
        uint32_t from;  // a slot of the state before, or a column of the event
    };
    // An arc further on.
    struct Follower {
        uint32_t arc;
        int64_t least;  // the error that it adds until a run may end
        uint32_t by_row;  // number of the rows ahead by what the event sets
        std::vector<Setting> of_row;
        uint32_t by_node;  // by what is known of a partial match
        std::vector<Setting> of_node;
    };
    // Arcs of which each run takes one before it ends.
    struct Cut {
        std::vector<Follower> followers;
        bool asks_rows = false, asks_nodes = false;  // whether rows and partial matches are asked for by it
        Trial trial;  // whether it refuses partial matches
    };
    // The conditions of an arc on later rows, once it has bound one.
    struct Binding {
        uint32_t event_class = 0;
        bool ends = false;  // a run may end with it
        std::vector<Cut> cuts;
        std::vector<uint32_t> entered;  // numbers of the rows ahead that its rows enter
        uint32_t steps = 0;  // the most that a row costs, in rows that are entered or looked for
    };
    // The states that are reached from one, and where their slots come from.
    struct Reach {
        std::vector<uint8_t> states;
        std::vector<std::vector<int32_t>> slots;
        bool ends;  // one of them ends runs
    };
    static constexpr int32_t elsewhere = -1;  // where a slot comes from that is not one of the first state

    // Find the cuts between an arc and the ends of runs: the arcs of its target, those that bind a variable which each
    // run must bind, and those that end runs. Of cuts further on, those that ask for nothing of the partial match are
    // left out.
    void add_cuts(Binding& binding, const Arc& arc);
    // Find the states that are reached from one without arcs that bind variable `without`, and where each of their
    // slots comes from: from a slot of the first state, the same on all ways to it, or `elsewhere`.
    static Reach reach_from(const Tables& tables, uint32_t state, int32_t without);
    // Return what an arc further on asks of the partial match that `arc` makes, as far as its slots are known by then.
    Follower follower_of(const Arc& arc, const Arc& next, const std::vector<int32_t>& slots, int64_t least);
    // Return whether a later row can follow a new partial match by one of the arcs of a cut.
    bool may_pass(const Cut& cut, NodeList& list, uint32_t slots, uint32_t from, const Event& event, int64_t latest,
                  int64_t error);
    // Return the number of the rows ahead for an arc and parts of its key, which are added if need be.
    uint32_t add_rows_ahead(uint32_t arc, std::vector<RegisterKey::Part> parts);
    // Find the rows of [from, end) that an arc may bind.
    void place_rows(const Batch& batch, size_t from, size_t end);
    // Enter the rows of [from, end) that an arc may bind, from the last one backwards.
    void enter_rows(const Batch& batch, size_t from, size_t end);
    // Return the place of a row of the stretch; NIL if no arc may bind it. Rows are mostly asked for in their order.
    uint32_t place_of(size_t row) {
        while (place_ < rows_.size() && rows_[place_] < row) ++place_;
        if (place_ > 0 && rows_[place_ - 1] >= row) [[unlikely]] {
            place_ = static_cast<size_t>(std::ranges::lower_bound(rows_, row) - rows_.begin());
        }
        return place_ < rows_.size() && rows_[place_] == row ? static_cast<uint32_t>(place_) : NIL;
    }
    // Return the last time in a window that begins at `start`.
    int64_t end_of(int64_t start) const {
        int64_t end;
        return tables_.span < 0 || __builtin_add_overflow(start, tables_.span, &end)
                   ? std::numeric_limits<int64_t>::max()
                   : end;
    }
    // Return the earliest end of a run after an arc has bound a row, as far as the row tells.
    int64_t earliest_end(const Batch& batch, const Binding& binding, PlacedRow placed);
    // Classify some rows, to estimate what it costs to enter rows.
    void sample_rows(const Batch& batch, size_t from);
    // Return what it costs to enter a row: as in the last stretch, or at most as for the rows that were sampled.
    double row_cost() const;
    // End the last stretch before a row of the stream, and judge whether it paid.
    void end_stretch(int64_t row, const Work& work, bool sifted);

    const Tables& tables_;
    EventClassifier& classifier_;
    std::vector<uint32_t> keys_;  // columns of the partition key
    std::vector<Binding> bindings_;  // by number of the arc
    std::vector<RowsAhead> rows_ahead_;  // by number
    std::vector<uint8_t> concerns_;  // by pattern: whether an arc may bind its events
    std::vector<uint32_t> rows_;  // that an arc may bind, by place, up to the end of the last window
    size_t place_ = 0;  // of the row that was asked for last
    std::vector<int64_t> ends_;  // by place and arc: the earliest end of a run after the arc has bound the row
    std::vector<int64_t> key_words_;  // of the key that is looked for
    const Batch* batch_ = nullptr;  // of the current push
    size_t from_ = 0, limit_ = 0;  // its rows whose future is known
    // No row is missing before this time; with `open_`, later ones may come.
    int64_t horizon_ = 0;
    bool open_ = true;
    int64_t stream_row_ = -1;  // number in the stream of row 0 of the batch
    size_t batch_size_ = 0;
    size_t stretch_ = 0;  // rows for which it was prepared the last time
    // Its costs, and its gains.
    FutureTrials trials_;
    size_t stretch_rows_ = 0, sampled_rows_ = 0;  // entered for this stretch; looked at before the first one
    int64_t steps_ = 0;  // of the rows sampled
    double row_cost_ = 0;  // what a row of the last stretch has cost
    int64_t entered_ = 0, asked_ = 0, saved_ = 0;  // rows, partial matches, and costs in this stretch
};

}  // namespace acep
