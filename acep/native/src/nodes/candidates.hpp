// The candidates of an arc: the partial matches of a list whose registers are equal, or near, to the attributes of an
// event that the arc compares with them. They are found through a hash index where a list is long, else by a comparison
// of columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "nodes/register_keys.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/engine.hpp"

namespace acep {

// Nodes of a list that an arc may extend, in the order of the list: some rows, or those from `head` on.
struct Candidates {
    const uint32_t* rows;  // nullptr: all from `head` on; else valid until the next search
    size_t size;
    uint32_t head;

    // Return the row of the i-th candidate.
    uint32_t row(size_t i) const { return rows == nullptr ? head + static_cast<uint32_t>(i) : rows[i]; }
};

class CandidateFinder {
public:
    // The classifier must outlive the finder.
    explicit CandidateFinder(const EventClassifier& classifier) : classifier_(classifier) {}

    // Set when the index is used.
    void set_index_use(Taking use) { index_use_ = use; }
    // Use no index from now on, whatever was set: there is a bound on memory.
    void forbid_index(bool is_forbidden) { is_index_forbidden_ = is_forbidden; }

    // Return what an arc compares with an event, with the number of its index among those of the state.
    RegisterKey key_of(const Arc& arc);

    // Find the nodes of a list that began at `low` or later and whose registers are as the key wants them for the
    // event.
    // `all_alive`: all nodes of the list began then. The cost of finding them is added to `list.unsure`.
    Candidates find(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event, int64_t low,
                    bool all_alive);

    // Free the buffers.
    void release() {
        alive_.release();
        alike_.release();
    }
    // Return the bytes of its buffers.
    int64_t bytes() const { return alive_.bytes() + alike_.bytes(); }

private:
    // The value that an event asks of a register: equal to a word, or (of a band) from `low` to `high`, in one of some
    // cells.
    struct Wanted {
        int64_t word;
        bool null;
        RegisterKey::Cells cells;
        double low, high;
    };
    // How the registers of a row fit what an event wants of them; `unless_bound`: the others do, and one is unbound.
    enum class Fit : uint8_t { no, unless_bound, yes };

    // Set `alike_` to the nodes that fit. A node with an unbound register is one of them, as the comparison is dropped.
    void find_alike(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event, int64_t low,
                    bool all_alive);
    // Find them through the index, which is brought up to date. `null`: an attribute is null, so only nodes with an
    // unbound register fit.
    void look_up(const RegisterKey& key, NodeList& list, uint32_t slots, RegisterIndex& index, int64_t low,
                 bool all_alive, bool null);
    // Set `buckets_` to the buckets in which the wanted values may be, each once.
    void find_buckets(const RegisterKey& key, const RegisterIndex& index);
    // Add the rows that are missing in the index of a list.
    void index_rows(const RegisterKey& key, NodeList& list, uint32_t slots, RegisterIndex& index);
    // Find them by a comparison of all nodes of the list.
    void compare_all(const RegisterKey& key, NodeList& list, uint32_t slots, int64_t low, bool all_alive);
    // Set `alive_` to the nodes of a list that began at `low` or later.
    void find_alive(NodeList& list, int64_t low);
    // Set `wanted_` to what an event wants of registers; return whether one of its attributes is null.
    bool set_wanted(const RegisterKey& key, const Event& event);
    // Return how the registers of a row fit `wanted_`.
    Fit fit_of(const RegisterKey& key, NodeList& list, uint32_t slots, uint32_t row) const;

    const EventClassifier& classifier_;
    Taking index_use_ = Taking::where_it_pays;
    bool is_index_forbidden_ = false;
    RowBuffer alive_;  // rows of a list that began at some time or later
    RowBuffer alike_;  // those of them whose registers fit the event
    std::vector<size_t> buckets_;
    std::vector<Wanted> wanted_;  // by part of a key
    std::vector<std::vector<std::vector<RegisterKey::Part>>> keys_;  // by state and number: a key without columns
};

}  // namespace acep
