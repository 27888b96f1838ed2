#include "ordered/pattern_graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace acep {

PatternGraph::PatternGraph(std::vector<PatternState> states, size_t labels)
    : states_(std::move(states)), labels_(labels), ways_(states_.size(), 0) {
    check();
    ways_[0] = 1;
    for (size_t s = 0; s < size(); ++s) {
        each_next(s, true, [&](uint32_t next) { ++ways_[next]; });
    }
    find_order();
}

template <class Fn>
void PatternGraph::each_next(size_t state, bool rows, Fn fn) const {
    const PatternState& it = states_[state];
    if (it.op == PatternState::accept || (it.op == PatternState::row && !rows)) return;
    fn(it.a);
    if (it.op == PatternState::split) fn(it.b);
}

void PatternGraph::check() const {
    if (states_.empty() || size() > most_states) throw std::invalid_argument("states: 1 to 200,000");
    if (labels_ > most_labels) throw std::invalid_argument("labels: at most 65,535");
    for (const PatternState& it : states_) {
        if (it.op > PatternState::accept) throw std::invalid_argument("states: an operation that is not there");
        if (it.op != PatternState::accept && it.a >= size()) throw std::invalid_argument("states: a state beyond all");
        if (it.op == PatternState::split && it.b >= size()) throw std::invalid_argument("states: a state beyond all");
        if (it.op == PatternState::row && it.b >= labels_) throw std::invalid_argument("states: a label beyond all");
    }
}

void PatternGraph::find_order() {
    std::vector<uint32_t> ways(size(), 0);
    for (size_t s = 0; s < size(); ++s) {
        each_next(s, false, [&](uint32_t next) { ++ways[next]; });
    }
    for (size_t s = 0; s < size(); ++s) {
        if (ways[s] == 0) order_.push_back(static_cast<uint32_t>(s));
    }
    for (size_t i = 0; i < order_.size(); ++i) {
        each_next(order_[i], false, [&](uint32_t next) {
            if (--ways[next] == 0) order_.push_back(next);
        });
    }
    if (order_.size() != size()) throw std::invalid_argument("states: a circle that consumes no row");
    std::ranges::reverse(order_);
}

std::vector<uint8_t> PatternGraph::leading_to(std::span<const uint8_t> labels) const {
    std::vector<uint8_t> flags(size(), 0);
    for (size_t s = 0; s < size(); ++s) flags[s] = states_[s].op == PatternState::row && labels[states_[s].b] != 0;
    spread(flags, std::vector<uint8_t>(labels_, 0));
    return flags;
}

std::vector<uint8_t> PatternGraph::avoiding(std::span<const uint8_t> labels) const {
    std::vector<uint8_t> flags(size(), 0);
    for (size_t s = 0; s < size(); ++s) flags[s] = states_[s].op == PatternState::accept;
    spread(flags, labels);
    return flags;
}

void PatternGraph::spread(std::vector<uint8_t>& flags, std::span<const uint8_t> closed) const {
    std::vector<size_t> offsets(size() + 1, 0);
    for (size_t s = 0; s < size(); ++s) {
        each_next(s, true, [&](uint32_t next) { ++offsets[next + size_t{1}]; });
    }
    for (size_t s = 0; s < size(); ++s) offsets[s + 1] += offsets[s];
    std::vector<uint32_t> before(offsets.back()), waiting;
    std::vector<size_t> places(offsets.begin(), offsets.end() - 1);
    for (size_t s = 0; s < size(); ++s) {
        each_next(s, true, [&](uint32_t next) { before[places[next]++] = static_cast<uint32_t>(s); });
        if (flags[s] != 0) waiting.push_back(static_cast<uint32_t>(s));
    }
    while (!waiting.empty()) {
        const uint32_t state = waiting.back();
        waiting.pop_back();
        for (size_t i = offsets[state]; i < offsets[state + size_t{1}]; ++i) {
            const PatternState& it = states_[before[i]];
            if (flags[before[i]] != 0 || (it.op == PatternState::row && closed[it.b] != 0)) continue;
            flags[before[i]] = 1;
            waiting.push_back(before[i]);
        }
    }
}

}  // namespace acep
