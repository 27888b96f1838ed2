// Enumeration of matches in output order. This order compares first events first, but a cursor reaches them last.
//
// The links of a root's chains are reversed. The cells of a chain in the window are a *list*. As a chain only grows,
// the events bound after one of its cells are the last part of all events bound after the chain. So the bindings that
// may follow an event are the end of one array, and the matches are written row by row, without sorting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/cursor.hpp"
#include "common/arena.hpp"

namespace acep {

// A walk over the matches of one root at a time in output order, by end and ids, which need not be sorted then.
class OrderedWalk {
public:
    // `counted`: starts are positions, and times of first events are looked up. `width`: number of key columns.
    OrderedWalk(bool counted, size_t width) : counted_(counted), key_(width) {}

    // Start the matches of a root. Return false if its chains have another form (united chains, ids that do not rise
    // with the stream, an event with two variables): there is nothing to walk then. The arena is not needed afterwards.
    bool open(const Arena& arena, const Root& root, const int64_t* key);
    // Return whether no match of the root is left.
    bool done() const { return frames_.empty(); }
    // Skip the remaining matches of the root.
    void stop() { frames_.clear(); }

    // Write at most `most` matches, and return their number.
    size_t next(MatchWriter& writer, size_t most);

private:
    static constexpr uint32_t ROOT = 0;  // number of the root's node

    // A bound event, copied from a cell.
    struct Node {
        int64_t id;
        int64_t start;     // of a first event: when the match starts
        uint32_t past;     // the chain before it
        uint32_t list;
        uint32_t follows;  // its followers are those of its list from this place on
        uint16_t var;
    };
    // Nodes from the newest to the oldest, and their followers (nodes bound after them) in stream order.
    struct List {
        uint32_t begin, end;  // of nodes
        uint32_t stop;        // end of its followers
        bool last;            // only the root follows
        bool rows;            // all followers are in `last` lists and of one variable: matches are written in one go
    };
    // A node that follows another one in some match.
    struct Follower {
        uint32_t node;
        uint32_t after;  // the newest node that it can follow
    };
    // The followers of a node that are still to be walked.
    struct Frame {
        uint32_t at, stop;
        bool rows;
    };

    // Handle a root with one match: no chain has a second cell in the window. False: there may be several matches.
    bool single(const Arena& arena);
    // Record that a node follows the chain that begins with a cell.
    bool reach(const Arena& arena, uint32_t node, uint32_t cell);
    // Copy the chain that begins with a cell to a list of nodes. Return false if it has another form (see `open`).
    bool add_list(const Arena& arena, uint32_t cell);
    // Append followers in stream order. False if two have one id, or an older one can follow newer nodes of the
    // list.
    bool follow(std::vector<Follower>& followers);
    // Walk the followers [at, stop).
    void push(uint32_t at, uint32_t stop, bool rows) { frames_.push_back({at, stop, rows}); }

    // Offsets and variables of successive matches with the same variables are written together, by `close`.
    void shape(MatchWriter& writer, size_t size, uint16_t var);
    // Write the offsets and variables of the matches since the last call.
    void close(MatchWriter& writer);

    bool counted_;
    Root root_{};
    std::vector<int64_t> key_;
    std::vector<Node> nodes_;
    std::vector<List> lists_;
    std::vector<std::vector<Follower>> followers_;  // by list, newest first
    std::vector<Follower> firsts_;
    std::vector<uint32_t> follower_;  // nodes, list by list, in stream order
    std::vector<int64_t> ids_;        // their ids
    std::vector<uint64_t> places_;    // by cell: number of the walk, and its node
    uint32_t walk_ = 0;
    bool resumed_ = false;

    std::vector<Frame> frames_;
    std::vector<int64_t> path_;  // ids and variables of the events bound so far
    std::vector<uint16_t> vars_;
    int64_t start_ = 0;
    std::vector<uint16_t> shape_;
    size_t from_ = 0, from_item_ = 0;  // start of the matches of this shape
};

}  // namespace acep
