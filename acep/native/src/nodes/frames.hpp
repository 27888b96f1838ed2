// Lists of frames: what a partial match keeps of each event of a Kleene variable, for predicates over all of them. A
// register holds the number of the newest frame of its list, and each frame that of the one before it.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/arena.hpp"
#include "common/texts.hpp"
#include "plan/tables.hpp"

namespace acep {

// The values that are kept of one event.
struct Frame {
    int64_t when;  // time or position of its event
    uint32_t previous;
    uint32_t nulls;  // a bit for each value
    int64_t values[most_of_frame];
};

class FrameStore {
public:
    // Bytes of a frame at most, with its share of compaction.
    static constexpr int64_t bytes_each = 2 * sizeof(Frame) + sizeof(uint32_t);

    // Find the slots that hold lists of frames. The tables must outlive the store.
    explicit FrameStore(const Tables& tables) : tables_(tables) { find_slots(); }

    // Find the slots again, after states or arcs were added to the tables.
    void find_slots();
    // Take over the number of slots that a state has now; slots that are new hold no frames.
    void resize_slots(uint32_t state) { is_list_[state].resize(tables_.states[state].slots, 0); }
    // Return whether a slot of a state holds a list of frames.
    bool is_list(uint32_t state, uint32_t slot) const { return is_list_[state][slot] != 0; }

    // Return the frame of a number, which must be stored.
    const Frame& operator[](uint32_t number) const { return frames_[number]; }
    // Add a frame, and return its number.
    uint32_t push(const Frame& frame) { return frames_.push(frame); }
    // Return the number of frames.
    uint32_t size() const { return frames_.size(); }
    // Return whether a word is the number of a frame that is stored.
    bool holds(int64_t number) const {
        return number >= 0 && number < NIL && static_cast<uint32_t>(number) - frames_.tail() < frames_.size();
    }
    // Free the oldest frames, up to the first one from `low` on.
    void drop_before(int64_t low) {
        while (!frames_.empty() && frames_[frames_.tail()].when < low) frames_.drop();
    }
    // Return whether a compaction may free much, as frames have doubled since the last one.
    bool has_doubled() const { return frames_.size() / 2 > compacted_size_ + 2048; }

    // Keep the frames that lists reach, and give these registers their new numbers. for_each_list(visit) must call
    // visit(list, state) for all lists, each time that it is called.
    void compact(auto&& for_each_list) {
        std::vector<uint32_t> moved(frames_.size(), NIL);
        const auto for_each_register = [&](auto&& visit) {
            for_each_list([&](NodeList& list, uint32_t state) { visit_registers(list, state, visit); });
        };
        for_each_register([&](int64_t& newest) { mark(static_cast<uint32_t>(newest), moved); });
        const uint32_t tail = frames_.tail();
        move_marked(moved);
        for_each_register([&](int64_t& newest) { newest = moved[static_cast<uint32_t>(newest) - tail]; });
    }

    // Check frames that were read: links must lead to older ones, so every walk ends; links to freed ones are cut.
    void check_links();
    // Check that no frame of a list is older than the start of a node that holds it, unless the node began before
    // `expired`: frames are freed by their age too. for_each_list: as for `compact`.
    void check_ages(auto&& for_each_list, int64_t expired) const {
        const std::vector<int64_t> oldest = oldest_times();
        for_each_list([&](NodeList& list, uint32_t state) { check_ages_in(list, state, expired, oldest); });
    }
    // Write or read the frames, which must be checked after they were read.
    static void fields(auto& self, auto& archive) { Ring<Frame>::fields(self.frames_, archive); }
    // Note the times of all frames as times that had come.
    void note_times(auto& archive) const {
        frames_.each([&](const Frame& frame) { archive.saw(frame.when); });
    }
    // Return the number of frames after the last compaction, to be written or read.
    uint32_t& compacted_size() { return compacted_size_; }
    const uint32_t& compacted_size() const { return compacted_size_; }

    // Shrink the buffer to its content.
    void shrink() { frames_.shrink(); }
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(frames_); }
    // Mark the words of all frames as text codes that may be in use.
    void used_texts(UsedTexts& used) const;

private:
    // Call visit(word) for each register of a list that is bound to a list of frames.
    void visit_registers(NodeList& list, uint32_t state, auto&& visit) {
        const uint32_t slots = tables_.states[state].slots;
        for (uint32_t slot = 0; slot < slots; ++slot) {
            if (!is_list(state, slot)) continue;
            list.moved();
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (list.tags(slot, slots)[i] == value) visit(list.slot(slot)[i]);
            }
        }
    }
    // Mark the frames of a list, from its newest one on, by their own numbers in `moved`.
    void mark(uint32_t newest, std::vector<uint32_t>& moved) const;
    // Move the marked frames to the front, and set their new numbers in `moved`.
    void move_marked(std::vector<uint32_t>& moved);
    // Return by frame the earliest time in the list that it heads.
    std::vector<int64_t> oldest_times() const;
    // Throw std::invalid_argument if a node of a list holds a frame that is older than its start.
    void check_ages_in(NodeList& list, uint32_t state, int64_t expired, const std::vector<int64_t>& oldest) const;

    const Tables& tables_;
    Ring<Frame> frames_;
    std::vector<std::vector<uint8_t>> is_list_;  // by state and slot
    uint32_t compacted_size_ = 0;  // after the last compaction
};

}  // namespace acep
