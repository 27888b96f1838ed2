#include "ordered/open_walk.hpp"

namespace acep {

int64_t OpenWalk::walk(OpenPlace from, std::span<const uint8_t* const> local, size_t begin, size_t rows, size_t memory,
                       Polling& polling) {
    reachable_.start(local, begin, rows, memory, polling);
    auto [position, state] = from;
    if (!reachable_.at(position, state)) return decided;
    uint32_t entered = state;  // the state at which the way came to this position
    while (true) {
        const PatternState& it = graph_[state];
        switch (it.op) {
            case PatternState::accept: return decided;
            case PatternState::row:
                if (it.b == label_) return entered;
                ++position;
                state = entered = it.a;
                polling.work(1);
                break;
            case PatternState::split: state = reachable_.at(position, it.a) ? it.a : it.b; break;
            default: state = it.a; break;
        }
    }
}

}  // namespace acep
