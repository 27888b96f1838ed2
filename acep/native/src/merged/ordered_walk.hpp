// Enumeration in the order of the output. A cursor meets the last events first; the order asks for the first ones first.
//
// The beginnings of a root are turned round: of each chain that is reached, the cells in the window are a *list*, and what
// is bound after one of its cells is a run of the events that were ever bound after the chain, as a chain only grows. So the
// bindings that may follow an event are the end of one array, and the matches are written row by row, without sorting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/cursor.hpp"
#include "common/arena.hpp"

namespace acep {

class OrderedWalk {
public:
    // `counted`: starts are positions, and the times of first events are to be looked up. `width`: number of key columns.
    OrderedWalk(bool counted, size_t width) : counted_(counted), key_(width) {}

    // Goes to the matches of a root. False: its beginnings have another form (united chains, ids that do not rise with
    // the stream, an event with two variables); then there is nothing to walk. The arena is not needed any more.
    bool open(const Arena& arena, const Root& root, const int64_t* key);
    bool done() const { return frames_.empty(); }
    // What is left of the root is not asked for.
    void stop() { frames_.clear(); }

    // Writes at most so many matches, and says how many.
    size_t next(MatchWriter& writer, size_t most);

private:
    static constexpr uint32_t ROOT = 0;  // its node

    struct Node {
        int64_t id;
        int64_t start;     // of a first event: when the match starts
        uint32_t past;     // the chain before it
        uint32_t list;
        uint32_t follows;  // its followers are those of its list from here on
        uint16_t var;
    };
    // Nodes from the newest to the oldest, and what is bound after them in the order of the stream.
    struct List {
        uint32_t begin, end;  // of nodes
        uint32_t stop;        // where its followers end
        bool last;            // only the root follows
        bool rows;            // followers are of lists that are last, and of one variable: matches are written at a go
    };
    struct Follower {
        uint32_t node;
        uint32_t after;  // the newest node that it can follow
    };
    // The followers of a node that are still to be walked.
    struct Frame {
        uint32_t at, stop;
        bool rows;
    };

    bool single(const Arena& arena);
    bool reach(const Arena& arena, uint32_t node, uint32_t cell);
    bool add_list(const Arena& arena, uint32_t cell);
    bool link(std::vector<Follower>& followers);
    bool follow(std::vector<Follower>& followers);
    void push(uint32_t at, uint32_t stop, bool rows) { frames_.push_back({at, stop, rows}); }

    // The matches at hand bind the same variables: what is the same in all of them is written when others come.
    void shape(MatchWriter& writer, size_t size, uint16_t var);
    void close(MatchWriter& writer);

    bool counted_;
    Root root_{};
    std::vector<int64_t> key_;
    std::vector<Node> nodes_;
    std::vector<List> lists_;
    std::vector<std::vector<Follower>> followers_;  // by list, from the newest on
    std::vector<Follower> firsts_;
    std::vector<uint32_t> follower_;  // nodes, list after list, in the order of the stream
    std::vector<int64_t> ids_;        // theirs
    std::vector<uint64_t> places_;    // by cell: for which walk, and its node
    uint32_t walk_ = 0;
    bool resumed_ = false;

    std::vector<Frame> frames_;
    std::vector<int64_t> path_;  // ids and variables of what was bound so far
    std::vector<uint16_t> vars_;
    int64_t start_ = 0;
    std::vector<uint16_t> shape_;
    size_t from_ = 0, from_item_ = 0;  // where the matches of this shape begin
};

}  // namespace acep
