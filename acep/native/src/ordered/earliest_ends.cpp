#include "ordered/earliest_ends.hpp"

#include <algorithm>

namespace acep {

namespace {

constexpr size_t no_end = static_cast<size_t>(-1);

}  // namespace

void EarliestEnds::start(const PatternGraph& graph, std::span<const uint8_t* const> local, size_t begin, size_t rows,
                         size_t memory, Polling& polling) {
    ends_.clear();
    if (rows + 2 * graph.size() > memory / sizeof(size_t)) return;
    ends_.resize(rows);
    now_.assign(graph.size(), no_end);
    next_.assign(graph.size(), no_end);
    step(graph, local, begin, rows, rows);
    for (size_t position = rows; position-- > 0;) {
        now_.swap(next_);
        step(graph, local, begin, position, rows);
        ends_[position] = now_[0];
        polling.work(graph.size());
    }
}

void EarliestEnds::step(const PatternGraph& graph, std::span<const uint8_t* const> local, size_t begin, size_t position,
                        size_t rows) {
    for (const uint32_t state : graph.order()) {
        const PatternState& it = graph[state];
        size_t end = no_end;
        switch (it.op) {
            case PatternState::row:
                if (position == rows || (local[it.b] != nullptr && local[it.b][begin + position] == 0)) break;
                end = next_[it.a];
                break;
            case PatternState::split: end = std::min(now_[it.a], now_[it.b]); break;
            case PatternState::jump: end = now_[it.a]; break;
            case PatternState::first: end = position == 0 ? now_[it.a] : no_end; break;
            case PatternState::last: end = position == rows ? now_[it.a] : no_end; break;
            case PatternState::accept: end = position; break;
        }
        now_[state] = end;
    }
}

}  // namespace acep
