#include "ordered/bound_walk.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace acep {

namespace {

constexpr size_t moves_a_row = 16;  // a walk that takes more of them is left to a search, which remembers what failed
constexpr size_t least_moves = 4096;

}  // namespace

BoundWalks::BoundWalks(WalkedPattern pattern)
    : pattern_(std::move(pattern)),
      reachable_(pattern_.graph),
      conditions_(pattern_.conditions, pattern_.graph.labels()) {
    for (const Reference& reference : pattern_.references) {
        if (reference.reads_label()) throw std::invalid_argument("references: a label is read");
        if (reference.reads_column()) columns_ = std::max(columns_, reference.column + 1);
    }
}

void BoundWalks::append(Match& match, const WalkedRows& rows, size_t from, size_t to) const {
    match.view.columns.clear();
    for (size_t c = 0; c < columns_; ++c) {
        const Column& column = rows.columns[c];
        auto& values = match.values[c];
        auto& valid = match.valid[c];
        values.insert(values.end(), column.values + rows.begin + from, column.values + rows.begin + to);
        if (column.valid == nullptr) {
            valid.insert(valid.end(), to - from, 1);
        } else {
            valid.insert(valid.end(), column.valid + rows.begin + from, column.valid + rows.begin + to);
        }
        match.view.columns.push_back({values.data(), valid.data()});
    }
    match.view.rows += to - from;
    match.view.texts = rows.texts;
}

bool BoundWalks::begin(int64_t code, const WalkedRows& rows, size_t first, size_t behind,
                       std::span<const uint16_t> labels, int64_t match_number) {
    drop(code);
    if (labels.empty() || first + labels.size() != rows.rows) return false;
    auto match = std::make_unique<Match>(pattern_, columns_);
    if (!find_state(labels, first == 0, match->state)) return false;
    const size_t from = first - std::min(first, behind);
    append(*match, rows, from, rows.rows - 1);
    match->bound.begin(match->view, 0, match->view.rows, first - from, match_number);
    for (const uint16_t label : labels.first(labels.size() - 1)) match->bound.bind(label);
    matches_.emplace(code, std::move(match));
    return true;
}

// The first way with these labels is the one of the match, as conditions depend on the labels of rows alone.
bool BoundWalks::find_state(std::span<const uint16_t> labels, bool is_first, uint32_t& state) const {
    std::vector<Choice> choices;
    size_t position = 0;
    uint32_t entered = state = 0;
    for (size_t moves = 0; moves < least_moves + moves_a_row * labels.size(); ++moves) {
        const PatternState& it = pattern_.graph[state];
        bool goes_on = true;
        if (it.op == PatternState::row) {
            goes_on = it.b == labels[position];
            if (goes_on && position + 1 == labels.size()) {
                state = entered;
                return true;
            }
            position += goes_on ? 1 : 0;
            state = it.a;
            if (goes_on) entered = state;
        } else if (it.op == PatternState::split) {
            choices.push_back({position, it.b, entered});
            state = it.a;
        } else {
            goes_on = it.op == PatternState::jump || (it.op == PatternState::first && is_first && position == 0);
            state = it.a;
        }
        if (goes_on) continue;
        if (choices.empty()) return false;
        position = choices.back().rows;
        state = choices.back().state;
        entered = choices.back().entered;
        choices.pop_back();
    }
    return false;
}

bool BoundWalks::walk(int64_t code, const WalkedRows& rows, size_t fresh, size_t memory, Polling& polling) {
    const auto entry = matches_.find(code);
    if (entry == matches_.end()) return false;
    Match& match = *entry->second;
    append(match, rows, fresh, rows.rows - 1);
    match.bound.extend(match.view.rows);
    reachable_.start(rows.local, rows.begin, rows.rows, memory, polling);
    const bool is_open = walk_on(match, rows, fresh, polling);
    if (!is_open) drop(code);
    return is_open;
}

bool BoundWalks::walk_on(Match& match, const WalkedRows& rows, size_t fresh, Polling& polling) {
    choices_.clear();
    BoundRows& bound = match.bound;
    const size_t rows_before = bound.labels().size(), most_moves = least_moves + moves_a_row * rows.rows;
    const size_t open_label = labels() - 1;
    uint32_t state = match.state, entered = state;
    if (!reachable_.at(fresh, state)) return false;
    for (size_t moves = 0; moves < most_moves; ++moves) {
        polling.work(8);
        const size_t position = fresh + bound.labels().size() - rows_before;
        const PatternState& it = pattern_.graph[state];
        if (it.op == PatternState::accept) return false;
        if (it.op == PatternState::row) {
            if (it.b == open_label) {
                match.state = entered;
                return true;
            }
            bound.bind(static_cast<uint16_t>(it.b));
            if (conditions_.hold(it.b, bound, *rows.texts)) {
                state = entered = it.a;
                continue;
            }
            if (choices_.empty()) return false;
            bound.unbind(choices_.back().rows);
            state = choices_.back().state;
            entered = choices_.back().entered;
            choices_.pop_back();
        } else if (it.op == PatternState::split) {
            const bool is_preferred = reachable_.at(position, it.a);
            if (is_preferred && reachable_.at(position, it.b)) {
                choices_.push_back({bound.labels().size(), it.b, entered});
            }
            state = is_preferred ? it.a : it.b;
        } else {
            state = it.a;
        }
    }
    return false;
}

}  // namespace acep
