// The node engine under a bound on bytes. Before each event there must be room for the nodes that it makes, or the
// nodes of least utility in all partitions are given up. Nodes that the event makes beyond that room are not kept.
//
// Two numbers of bytes are tracked. *Charged* bytes are a function of the content, with each container at the most that
// it may reserve, so that decisions do not depend on how the stream is split into batches. *Reserved* bytes are the
// actual capacity; if they pass the bound, as emptied containers keep their room, the engine shrinks all to their
// content.
//
// At first the bound is *distant*: the engine runs as without one, and its nodes take less, as none is watched. It weighs
// its content whenever the nodes made since may have taken a 64th of the pool. Once 15 of 16 parts of the pool are
// taken, the bound holds as above. It is distant again when less than half of the pool is charged after many events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "session/partitions.hpp"

namespace acep {

// Bytes of stored partial matches: the most that their content may take, and the capacity of their containers.
struct StoredBytes {
    int64_t charged = 0, reserved = 0;

    StoredBytes& operator+=(const StoredBytes& more) {
        return *this = {charged + more.charged, reserved + more.reserved};
    }
    StoredBytes operator-(const StoredBytes& less) const { return {charged - less.charged, reserved - less.reserved}; }
};

class MemoryGuard {
public:
    // All must outlive it. There is no bound at first. `points_only`: only match points are asked for.
    MemoryGuard(const Tables& tables, NodeStore& store, const Arena& arena, const FrameStore& frames,
                const Partitions& partitions, const NodeShedding& shedding, const NodeMerging& merging,
                bool points_only)
        : tables_(tables),
          store_(store),
          arena_(arena),
          frames_(frames),
          partitions_(partitions),
          shedding_(shedding),
          merging_(merging),
          points_only_(points_only) {}

    // Return whether there is a bound. Then decisions depend on the bytes that the content may take, not on the
    // capacity that happens to be reserved.
    bool is_bounded() const { return bound_ >= 0; }
    // Return whether there is a bound, distant or not.
    bool is_set() const { return is_bounded() || distant_bound_ >= 0; }
    // Return whether so many reserved bytes are more than three quarters of the distant bound, and more than the content
    // is charged with, as emptied containers keep their room.
    bool is_loose(int64_t reserved) const {
        return reserved > distant_bound_ - distant_bound_ / 4 && reserved > charged() + least_bound();
    }
    // Bound the bytes from `clock` on, including the partitions, and give up nodes for it. Nodes are shed already.
    void set_bound(int64_t bytes, int64_t clock);
    // Set a bound that is distant. There is none that holds yet.
    void set_distant_bound(int64_t bytes);
    // Return the bound that is distant; -1: there is none.
    int64_t distant_bound() const { return distant_bound_; }
    // Return the most bytes of nodes of which so many are made and so many of these stored.
    int64_t most_bytes(int64_t stored, int64_t made) const { return stored * node_charge_ + made * new_charge_; }
    // Return whether event number `number` may come near the bound, or it is time to weigh what is held; `nodes` have
    // been made before it, and its own take at most `bytes_of_event`.
    bool may_be_near(int64_t number, int64_t nodes, int64_t bytes_of_event) const {
        if (number >= next_weighing_) return true;
        // In doubles, as the numbers of a state may be any; a negative sum makes no sense.
        const auto partitions = static_cast<int64_t>(store_.partitions().size()) - weighed_partitions_;
        const auto charge = static_cast<double>(node_charge_), room = static_cast<double>(weighed_room_);
        const double more = static_cast<double>(nodes - weighed_nodes_) * charge +
                            static_cast<double>(partitions) * static_cast<double>(partition_charge_);
        const auto of_event = static_cast<double>(bytes_of_event);
        return more < 0 || more > room || more + of_event > room + static_cast<double>(pool_ / 16);
    }
    // Before event number `number` at `clock`, free what has expired and weigh what is left. Return whether the event
    // may come near the bound; `nodes` have been made before it, and its own take at most `bytes_of_event`.
    bool is_near(int64_t clock, int64_t number, int64_t nodes, int64_t bytes_of_event);
    // Return whether some bytes exceed the bound, and so all must be shrunk.
    bool exceeds(int64_t bytes) const { return bytes > bound_; }
    // Note that so many bytes are held, to know the most.
    void note_bytes(int64_t bytes) { peak_ = std::max(peak_, bytes); }
    // Note what is held now as it would be charged if the bound were near. Return how many lists were looked at.
    int64_t note_charged() {
        recount();
        note_bytes(charged() + least_bound());
        return lists();
    }
    // Return the most bytes that were held.
    int64_t peak() const { return peak_; }
    // Return the least bound that leaves room for the containers of one partition.
    int64_t least_bound() const;

    // Return the bytes of the nodes of a partition.
    StoredBytes bytes_of(const PartitionNodes& part) const;
    // Return those of all partitions, as last counted.
    StoredBytes stored_bytes() const { return stored_; }
    // Count the bytes of all nodes anew.
    void recount();
    // Note that the bytes of nodes have changed: `before` is what those of `part` were.
    void update(const PartitionNodes& part, const StoredBytes& before) { stored_ += bytes_of(part) - before; }
    // Note that only the charged bytes have changed, as emptied lists keep their room.
    void update_charged(const PartitionNodes& part, const StoredBytes& before) {
        stored_.charged += bytes_of(part).charged - before.charged;
    }
    // Note that the nodes of a partition are gone.
    void remove(const PartitionNodes& part) { stored_ = stored_ - bytes_of(part); }

    // Return whether event number `number` is the first one of so many that it is seen whether the bound is far away
    // again. Call it before `begin_stretch`.
    bool begins_epoch(int64_t number) const { return number / often != stretch_ * stretch_events / often; }
    // Return whether the bound that holds is far from what is charged.
    bool is_far() const { return charged() < pool_ / 2; }
    // Take the bound that holds as a distant one.
    void keep_bound_distant() {
        weigh_at_once();
        set_distant_bound(std::exchange(bound_, -1));
    }
    // Before an event, free what has expired, and give up nodes if little room is left.
    void free_for_event(int64_t clock);
    // Return whether there is room for one more node of the current event, both while it is made and in its list; if
    // so, it is charged.
    bool has_room_for(const Arc& arc);
    // Return whether there is room for one more partition, after `free_for_event`.
    bool has_room_for_partition() const;
    // End an event: what it made is stored. Return whether it made so many nodes that their buffers must be freed.
    bool end_event();

    // Return whether the bytes of matches are bounded.
    bool bounds_matches() const { return is_set(); }
    // Begin event number `number`, whose matches belong to a stretch of events.
    void begin_stretch(int64_t number);
    // Begin the matches of an event, before which so many matches were written.
    void begin_matches(size_t written) { matches_before_ = written; }
    // Return whether one more match of `length` events may be written, where so many are: in each stretch of events as
    // many as fit, and one per match point. If so, it is charged.
    bool may_write(size_t length, size_t written);
    // Return the most bytes of matches in a stretch of events.
    int64_t matches_peak() const { return matches_peak_; }

    // Give up all nodes of a partition.
    void give_up_partition(uint32_t partition, int64_t clock);
    // Return whether, since the last call, nodes were given up, or the bound came near: then partitions that are done with
    // should be forgotten.
    bool take_gave_up() { return std::exchange(gave_up_, false); }

    // Write or read what was written in the current stretch, and when nodes are given up next.
    // Return whether the bound was distant when that was written; if so, what was weighed is read for this bound.
    static bool fields(auto& self, auto& archive) {
        int64_t next = self.distant_bound_ >= 0 ? distant : self.give_up_above_;
        archive.within(0, most_positions, next, self.peak_, self.matches_bytes_, self.stretch_);
        if (next == distant) {
            int64_t pool = self.pool_;
            archive.at_most(most_positions / 4, pool, self.weighed_room_);
            archive.within(0, most_positions, self.next_weighing_, self.weighed_nodes_, self.weighed_partitions_,
                           self.node_charge_);
            if constexpr (std::remove_cvref_t<decltype(archive)>::reads) {
                if (self.next_weighing_ == 0) self.gave_up_ = true;
                self.change_pool(pool, self.pool_);
            }
        }
        if constexpr (std::remove_cvref_t<decltype(archive)>::reads) self.read_give_up_above_ = next;
        return next == distant;
    }
    // Take over when nodes are given up next from the state that was read.
    void finish_reading() {
        if (read_give_up_above_ <= pool_) give_up_above_ = read_give_up_above_;
    }
    // Free the buffers.
    void release() {
        std::vector<float>().swap(scores_);
        std::vector<float>().swap(best_);
        std::vector<uint8_t>().swap(is_dropped_);
    }
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(scores_, best_, is_dropped_); }

private:
    static constexpr int64_t stretch_events = 1024;  // for which the bytes of matches are bounded
    static constexpr int64_t often = 32768;  // events after which it is seen how far away the bound is
    static constexpr int64_t distant = most_positions - 1;  // in a state, in place of bytes: the bound is distant

    // Return the bytes of a node in its list.
    int64_t node_bytes(uint32_t state) const { return 24 + 9 * int64_t{tables_.states[state].slots}; }
    // Return them with the slots that it has where nodes are shed.
    int64_t watched_node_bytes(uint32_t state) const {
        return node_bytes(state) + 9 * int64_t{Shedding::hidden - shedding_.hidden()};
    }
    // Return those of a node before it is in its list, with its arc and its share of the table of equal nodes.
    int64_t new_node_bytes(uint32_t state) const { return 2 * (node_bytes(state) + 13) + 16; }
    // Return the charged bytes of a list.
    int64_t list_bytes(const NodeList& list, uint32_t state) const;
    // Return all charged bytes.
    int64_t charged() const;
    // Free nodes that have expired at `clock`, and what only they reach.
    void free_expired(int64_t clock);
    // Give up nodes until three quarters of the pool are taken.
    void give_up(int64_t clock);
    // Return which part of their bytes nodes and what they reach may keep, so that `target` is charged in all; negative
    // if there are no nodes.
    double share_to_keep(int64_t target);
    // Keep a share of all nodes, those of highest utility. Shadow-sampled partitions may take a quarter of it as a
    // whole.
    void keep_best(double share, int64_t clock);
    // Give up shadow-sampled partitions beyond a number of nodes.
    void limit_shadow(size_t room, int64_t clock);
    // Keep the `wanted` nodes of highest score, in the order of `scores_`.
    void keep_highest(size_t wanted, int64_t clock);

    const Tables& tables_;
    NodeStore& store_;
    const Arena& arena_;
    const FrameStore& frames_;
    const Partitions& partitions_;
    const NodeShedding& shedding_;
    const NodeMerging& merging_;
    const bool points_only_;

    // Take over what was weighed under one pool as the room that was left under another one. If there is none, it is
    // weighed before the next event.
    void change_pool(int64_t before, int64_t after) {
        weighed_room_ += resting_pool(after) - resting_pool(before);
        if (weighed_room_ < 0) weigh_at_once();
    }
    // Weigh before the next event, after partitions that are done with have been forgotten.
    void weigh_at_once() {
        weighed_room_ = next_weighing_ = 0;
        gave_up_ = true;
    }
    // Return how much of the pool may be taken while nodes are not watched.
    static int64_t resting_pool(int64_t pool) { return pool - pool / 16; }
    // Return how many lists there are, empty ones among them.
    int64_t lists() const {
        return static_cast<int64_t>(store_.partitions().size()) * static_cast<int64_t>(tables_.states.size());
    }
    // Return the part of a bound that is for stored partial matches.
    int64_t pool_of(int64_t bytes) const;
    // Return the most bytes that a node may take besides the first ones of its list.
    int64_t most_node_bytes() const;
    // Return the most bytes that a node takes before it is in its list.
    int64_t most_new_node_bytes() const;
    // Return the most bytes of the first nodes of a list, beyond what these take as others.
    int64_t first_nodes_bytes() const;

    int64_t bound_ = -1;  // bytes; -1: none
    int64_t distant_bound_ = -1;  // bytes; -1: none
    int64_t next_weighing_ = 0;  // the number of an event
    int64_t node_charge_ = 0, partition_charge_ = 0;  // the most bytes of a node and of a partition until then
    int64_t new_charge_ = 0;  // those of a node that is not in its list yet
    int64_t weighed_room_ = 0;  // the most bytes that may come before it is weighed again
    int64_t weighed_nodes_ = 0, weighed_partitions_ = 0;  // that had been made by then
    int64_t read_give_up_above_ = most_positions;
    int64_t pool_ = 0;  // part of it for stored partial matches
    int64_t most_new_ = 0;  // part of it for the partial matches of one event before they are stored
    int64_t give_up_above_ = 0;  // charged bytes above which partial matches are given up
    StoredBytes stored_;  // of all partitions
    int64_t coming_ = 0, coming_new_ = 0;  // bytes that the current event takes once stored, and before
    int64_t most_matches_ = 0;  // bytes of matches in a stretch of events; beyond it a match point gives one match
    int64_t matches_bytes_ = 0, stretch_ = 0;  // bytes in the current stretch, and its number
    int64_t matches_peak_ = 0;
    size_t matches_before_ = 0;  // matches before those of the current event
    int64_t peak_ = 0;
    bool gave_up_ = false;  // or would, if partitions that are done with are not forgotten
    std::vector<float> scores_, best_;  // of all partial matches, to choose among them
    std::vector<uint8_t> is_dropped_;  // by row of a list
};

}  // namespace acep
