// The evaluation of predicates over the registers of partial matches and the attributes of an event: for a block of
// candidates at once. A candidate is a row of a list that an arc may extend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "expression/vm.hpp"
#include "nodes/frames.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

class CheckEvaluator {
public:
    // The frames and the event classes must outlive the evaluator.
    CheckEvaluator(const EventClassifier& classifier, const FrameStore& frames)
        : classifier_(classifier), frames_(frames) {}

    // Return the rows of the block: room for `block_rows` of them. Who sets them says whether they follow each other.
    uint32_t* rows() { return rows_.data(); }
    // Note whether the rows of the block follow each other, so that registers need no copy.
    void set_contiguous(bool contiguous) { contiguous_ = contiguous; }
    // Make rows [first, first + count) the block; `count` is at most `block_rows`.
    void select(uint32_t first, size_t count) {
        for (size_t i = 0; i < count; ++i) rows_[i] = first + static_cast<uint32_t>(i);
        contiguous_ = true;
    }

    // Move those of the first `count` rows of the block that pass all checks to its front, in their order, and return
    // their number. `slots`: of the state of the list.
    size_t keep_passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event,
                        size_t count);
    // Keep the rows [head, end) of a list that pass all checks, block by block: call visit(row) for each.
    void visit_passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event,
                       auto&& visit) {
        constexpr auto size = static_cast<uint32_t>(block_rows);
        for (uint32_t first = list.head; first < list.end; first += size) {
            const uint32_t stop = std::min(list.end, first + size);
            select(first, stop - first);
            const size_t count = keep_passing(checks, list, slots, event, stop - first);
            for (size_t k = 0; k < count; ++k) visit(rows_[k]);
        }
    }

    // Read an input of a program for one row into `word`, and return its tag. The block stays as it is.
    uint8_t read(const Source& source, NodeList& list, uint32_t slots, const Event& event, uint32_t row, int64_t& word);
    // Compute what an assignment gives for one row; return false if that is null. The block stays as it is.
    bool compute(const Assign& assign, NodeList& list, uint32_t slots, const Event& event, uint32_t row, int64_t& word);
    // Compute a program without inputs; return false if its value is null.
    bool compute_constant(const BlockProgram& program, int64_t& word);

    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(rows_); }

private:
    // Make room for the inputs of a predicate before any is loaded, as they point into these buffers.
    void make_room_for(size_t inputs) {
        if (inputs <= leaves_.size()) return;
        leaves_.resize(inputs);
        words_.resize(inputs * block_rows);
        valid_.resize(inputs * block_rows);
    }
    // Load an input of a program for the first `count` rows of the block as a leaf of it.
    void load(const Source& source, NodeList& list, uint32_t slots, const Event& event, size_t count, size_t leaf);
    // Load a register, or what is computed from two, for the first `count` rows.
    void load_registers(const Source& source, NodeList& list, uint32_t slots, size_t count, size_t leaf);
    // Load an input for one row, as a block of its own, and return its tag.
    uint8_t load_one(const Source& source, NodeList& list, uint32_t slots, const Event& event, uint32_t row,
                     size_t leaf);
    // Test a predicate for few rows in place, without a copy of its inputs. Return false if it needs one.
    bool keep_few_passing(const Check& check, NodeList& list, const Event& event, size_t& count);
    // Run a predicate on the inputs that are loaded.
    void run(uint32_t program, size_t count, uint8_t* pass);
    // Test a predicate for all combinations of the frames in its loops; return whether it holds for all.
    bool holds_for_all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event, uint32_t row);
    // Set `loops_` to the frames of one row for each loop of a predicate, and return the number of combinations; 0 if a
    // loop is unbound.
    size_t list_frames(const Check& check, NodeList& list, uint32_t slots, uint32_t row);

    const EventClassifier& classifier_;
    const FrameStore& frames_;
    std::vector<uint32_t> rows_ = std::vector<uint32_t>(block_rows);
    bool contiguous_ = false;  // the rows follow each other
    std::vector<int64_t> words_;  // inputs of a predicate that had to be gathered, `block_rows` values each
    std::vector<uint8_t> valid_;
    std::vector<Leaf> leaves_;
    alignas(64) uint8_t pass_[block_rows];
    uint8_t dropped_[block_rows];  // by place: an input is unbound, so the predicate is ignored
    bool drops_ = false;  // `dropped_` has any
    std::vector<std::vector<uint32_t>> loops_;  // by loop of a predicate: the frames of one row
    Scratch scratch_;
};

}  // namespace acep
