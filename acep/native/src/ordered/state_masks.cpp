#include "ordered/state_masks.hpp"

#include <algorithm>
#include <bit>

namespace acep {

namespace {

// Return what a state leads to without a row, from what those after it lead to.
uint64_t closed(const PatternState& it, Place place, const std::vector<uint64_t>& closures, uint64_t accept) {
    switch (it.op) {
        case PatternState::split: return closures[it.a] | closures[it.b];
        case PatternState::jump: return closures[it.a];
        case PatternState::first: return place == Place::first ? closures[it.a] : 0;
        case PatternState::last: return place == Place::last ? closures[it.a] : 0;
        default: return accept;
    }
}

}  // namespace

bool StateMasks::fit(const PatternGraph& graph) {
    size_t rows = 0;
    for (size_t s = 0; s < graph.size(); ++s) rows += graph[s].op == PatternState::row ? 1 : 0;
    return rows <= most_rows;
}

StateMasks::StateMasks(const PatternGraph& graph) {
    std::vector<uint64_t> bits(graph.size(), 0);
    for (size_t s = 0; s < graph.size(); ++s) {
        const PatternState& it = graph[s];
        if (it.op != PatternState::row) continue;
        bits[s] = uint64_t{1} << rows_.size();
        states_.push_back(static_cast<uint32_t>(s));
        rows_.push_back(it.a);
        auto entry = std::ranges::find(labels_, it.b, &Label::label);
        if (entry == labels_.end()) entry = labels_.insert(labels_.end(), {it.b, 0});
        entry->states |= bits[s];
    }
    for (const Place place : {Place::first, Place::middle, Place::last}) {
        auto& closures = closures_[static_cast<size_t>(place)];
        closures.assign(graph.size(), 0);
        for (const uint32_t s : graph.order()) {
            closures[s] = bits[s] != 0 ? bits[s] : closed(graph[s], place, closures, accept());
        }
    }
    fill_tables();
}

void StateMasks::fill_tables() {
    const auto& closures = closures_[static_cast<size_t>(Place::middle)];
    std::vector<uint64_t> before(rows_.size() + 1, 0);
    for (size_t x = 0; x < rows_.size(); ++x) {
        for (size_t y = 0; y < before.size(); ++y) {
            before[y] |= (closures[rows_[x]] >> y & 1) << x;
        }
    }
    const size_t bytes = rows_.size() / 8 + 1;
    before_.assign(bytes, {});
    after_.assign(bytes, {});
    for (size_t byte = 0; byte < bytes; ++byte) {
        for (size_t set = 1; set < 256; ++set) {
            const size_t lowest = static_cast<size_t>(std::countr_zero(set)), bit = 8 * byte + lowest;
            before_[byte][set] = before_[byte][set & (set - 1)] | (bit < before.size() ? before[bit] : 0);
            after_[byte][set] = after_[byte][set & (set - 1)] | (bit < rows_.size() ? closures[rows_[bit]] : 0);
        }
    }
}

uint64_t StateMasks::before_last(uint64_t live) const {
    uint64_t states = 0;
    for (size_t x = 0; x < rows_.size(); ++x) {
        if ((closure(Place::last, rows_[x]) & live) != 0) states |= uint64_t{1} << x;
    }
    return states;
}

uint64_t StateMasks::after_last(uint64_t states) const {
    uint64_t all = 0;
    for (size_t x = 0; x < rows_.size(); ++x) {
        if ((states >> x & 1) != 0) all |= closure(Place::last, rows_[x]);
    }
    return all;
}

void StateMasks::allowed(std::span<const uint8_t* const> local, size_t begin, size_t n, uint64_t* out) const {
    uint64_t always = 0;
    for (const Label& it : labels_) {
        if (local[it.label] == nullptr) always |= it.states;
    }
    std::fill_n(out, n, always);
    for (const Label& it : labels_) {
        if (local[it.label] == nullptr) continue;
        const uint8_t* const bits = local[it.label] + begin;
        for (size_t i = 0; i < n; ++i) out[i] |= bits[i] != 0 ? it.states : 0;
    }
}

uint64_t StateMasks::of_state(size_t state) const {
    return uint64_t{1} << (std::ranges::find(states_, state) - states_.begin());
}

uint64_t StateMasks::of_label(size_t label) const {
    const auto entry = std::ranges::find(labels_, label, &Label::label);
    return entry == labels_.end() ? 0 : entry->states;
}

uint64_t StateMasks::without(const std::vector<uint8_t>& flags) const {
    uint64_t states = 0;
    for (size_t x = 0; x < states_.size(); ++x) {
        if (flags[states_[x]] == 0) states |= uint64_t{1} << x;
    }
    return states;
}

}  // namespace acep
