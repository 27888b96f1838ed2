// Lists of frames (nodes/frames.hpp): where they are held, their compaction, and the check of those that were read.
#include "nodes/frames.hpp"

#include <algorithm>

#include "common/state.hpp"

namespace acep {

// Copies hold lists of frames too; so repeat until no new slot is found.
void FrameStore::find_slots() {
    for (size_t s = is_list_.size(); s < tables_.states.size(); ++s) {
        is_list_.emplace_back(tables_.states[s].slots, uint8_t{0});
    }
    for (bool more = true; more;) {
        more = false;
        for (const State& state : tables_.states) {
            for (const Arc& arc : state.arcs) {
                for (const Put& put : arc.puts) {
                    const bool copied = put.write == Write::copy && put.from >= 0 &&
                                        is_list_[arc.source][static_cast<size_t>(put.from)] != 0;
                    uint8_t& is_list = is_list_[arc.target][static_cast<size_t>(put.slot)];
                    if (is_list == 0 && (put.write == Write::frames || copied)) is_list = 1, more = true;
                }
            }
        }
    }
}

void FrameStore::mark(uint32_t newest, std::vector<uint32_t>& moved) const {
    const uint32_t tail = frames_.tail();
    for (uint32_t f = newest; f != NIL && moved[f - tail] == NIL; f = frames_[f].previous) moved[f - tail] = f;
}

void FrameStore::move_marked(std::vector<uint32_t>& moved) {
    const uint32_t tail = frames_.tail();
    uint32_t to = tail;
    for (uint32_t i = 0; i < moved.size(); ++i) {
        const uint32_t from = tail + i;
        if (from == NIL || moved[i] == NIL) continue;
        if (to == NIL) ++to;
        Frame frame = frames_[from];
        if (frame.previous != NIL) frame.previous = moved[frame.previous - tail];
        frames_[to] = frame;
        moved[i] = to++;
    }
    frames_.truncate(to);
    compacted_size_ = frames_.size();
}

void FrameStore::check_links() {
    frames_.each_number([&](uint32_t i) {
        Frame& frame = frames_[i];
        if (frame.previous == NIL) return;
        const uint32_t age = i - frame.previous;
        if (age == 0 || age > (uint32_t{1} << 31)) bad_state("frame");
        if (age > i - frames_.tail()) frame.previous = NIL;
    });
}

std::vector<int64_t> FrameStore::oldest_times() const {
    const uint32_t tail = frames_.tail();
    std::vector<int64_t> oldest(frames_.size(), NEVER);
    frames_.each_number([&](uint32_t i) {
        const Frame& frame = frames_[i];
        oldest[i - tail] = frame.previous == NIL ? frame.when : std::min(frame.when, oldest[frame.previous - tail]);
    });
    return oldest;
}

void FrameStore::check_ages_in(NodeList& list, uint32_t state, int64_t expired,
                               const std::vector<int64_t>& oldest) const {
    const uint32_t slots = tables_.states[state].slots;
    for (uint32_t slot = 0; slot < slots; ++slot) {
        if (!is_list(state, slot)) continue;
        for (uint32_t i = list.head; i < list.end; ++i) {
            if (list.tags(slot, slots)[i] != value || list.starts()[i] < expired) continue;
            const auto frame = static_cast<uint32_t>(list.slot(slot)[i]);
            if (oldest[frame - frames_.tail()] < list.starts()[i]) bad_state("frame");
        }
    }
}

void FrameStore::used_texts(UsedTexts& used) const {
    for (uint32_t i = frames_.tail(); i != frames_.head(); ++i) used.add(frames_[i].values);
}

}  // namespace acep
