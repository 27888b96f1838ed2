// The registers of new partial matches: what an arc writes into them, from those of the partial match before it and
// from the event.
#pragma once

#include <cstdint>
#include <span>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/frames.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

class RegisterWriter {
public:
    // All must outlive the writer. Frames of new nodes are added to `frames`.
    RegisterWriter(const Tables& tables, const EventClassifier& classifier, CheckEvaluator& evaluator,
                   FrameStore& frames)
        : tables_(tables), classifier_(classifier), evaluator_(evaluator), frames_(frames) {}

    // Replace an assignment that needs no run of its program. The programs must be complete.
    void simplify(Put& put);

    // Write the registers that an arc gives the rows of `to` from `first` on: one for each of some rows of `from`. The
    // last `hidden` slots, which are those of shedding, are not written.
    void write(const Arc& arc, NodeList& from, std::span<const uint32_t> rows, const Event& event, NodeList& to,
               uint32_t first, uint32_t hidden);

private:
    // A row of a list, and the slots of its state.
    struct Place {
        NodeList& list;
        uint32_t row, slots;
    };
    // Write one register of one new node.
    void write_one(const Put& put, Place from, Place to, const Event& event);
    // Write the sum of a register and an attribute into two slots.
    void write_sum(const Put& put, Place from, Place to, int64_t summand, bool null_summand);
    // Add a frame of the event to a list of frames; return false if an attribute of it is unbound.
    bool add_frame(const Put& put, Place from, const Event& event, uint32_t previous, uint32_t& number);

    const Tables& tables_;
    const EventClassifier& classifier_;
    CheckEvaluator& evaluator_;
    FrameStore& frames_;
};

}  // namespace acep
