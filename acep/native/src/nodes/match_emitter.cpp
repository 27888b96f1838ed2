// Complete runs of the node engine (nodes/match_emitter.hpp).
#include "nodes/match_emitter.hpp"

#include <algorithm>
#include <compare>
#include <numeric>
#include <span>
#include <utility>

namespace acep {
namespace {

// A run that is complete, by the position of its first event.
struct CompleteRun {
    int64_t first, error;
    uint32_t row;
};

}  // namespace

void MatchEmitter::complete(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& new_nodes,
                            const Event& event, int64_t low) {
    // Without merging, the first node of a group has the least error; with it, all pasts are in one node.
    const auto is_wanted = [&](uint32_t i, int64_t error) {
        return (merging_.unites() || new_nodes.is_gone[i] == 0) && error <= tables_.budget;
    };
    const auto complete_one = [&](uint32_t i, int64_t error) {
        complete_row(part, partition, state, new_nodes, i, error, event, low);
    };
    const State& s = tables_.states[state];
    // A node that is united with others may have sequences that began before its own.
    if (!tables_.rises || !tables_.firsts || merging_.unites()) {
        return visit_endings(evaluator_, s, new_nodes.nodes, event, is_wanted, complete_one);
    }
    std::vector<CompleteRun> runs;  // the longest first: where HAVING fails for it, it fails for all
    visit_endings(evaluator_, s, new_nodes.nodes, event, is_wanted, [&](uint32_t i, int64_t error) {
        runs.push_back({store_.first_position(new_nodes.nodes, state, i), error, i});
        if (runs.back().first < runs.front().first) std::swap(runs.back(), runs.front());
    });
    for (const CompleteRun& run : runs) {
        if (!completion_->surely_fails(run.first)) complete_one(run.row, run.error);
    }
}

inline void MatchEmitter::complete_row(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& new_nodes,
                                       uint32_t row, int64_t error, const Event& event, int64_t low) {
    const int64_t now = tables_.key(event);
    if (Shedding* const shed = shedding_.active()) {
        shed->log_match(shed->slots.mark(new_nodes.nodes, row, state), partition, now, event.ts, error);
        if (shed->budget.in_sample()) return;
        shedding_.note_point();
    }
    const Arc& arc = *new_nodes.arcs[row];
    const Chain past = arena_.chain(new_nodes.nodes.cells()[row]);
    const uint32_t number = completion_ ? binder_.bind(event) : NIL;
    if (completion_) error -= tables_.states[state].ends;
    Ending ending{{event.id, now, NEVER, past.cell, NIL, number, arc.var, arc.number}, past, error, 0, state};
    if (!completion_) ending.bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
    if (tables_.told != 0) take_values(new_nodes.nodes, row, state);
    if (may_be_resumed()) {
        endings_.push_back(ending);
    } else if (give(partition, ending, event, low)) {
        new_nodes.is_gone[row] = 1;
        new_nodes.has_gone = true;
    }
}

void MatchEmitter::end_event(uint32_t partition) {
    if (completion_) return;
    if (!tables_.unambiguous && output_.size() > written_before_) {
        if (output_.size() > written_before_ + 1 && tables_.told == 0) unite_matches(written_before_);
        if (output_.tally.kind != Tally::off) count_written(partition);
    }
    work_.matches += static_cast<int64_t>(output_.given() - given_before_);
}

void MatchEmitter::take_values(NodeList& nodes, uint32_t row, uint32_t state) {
    const uint32_t slots = tables_.states[state].slots;
    values_.assign(1, state);
    valid_.assign(1, 1);
    for (uint32_t k = 0; k + 1 < tables_.told; ++k) {
        const bool is_valid = nodes.tags(k, slots)[row] == value;
        values_.push_back(is_valid ? nodes.slot(k)[row] : 0);
        valid_.push_back(is_valid ? 1 : 0);
    }
}

void MatchEmitter::walk(const Ending& ending, int64_t low, auto&& emit) {
    if (ending.past.cell == NIL) {
        const Cell* alone = &ending.last;
        emit(&alone, size_t{1});
    } else {
        arena_.walk(ending.past, low, &ending.last, emit);
    }
}

inline bool MatchEmitter::may_walk() {
    if (walks_.may()) return true;
    if (walks_.lacks_first() && shedding_.any() != nullptr) ++shedding_.any()->log.withheld;
    return false;
}

inline bool MatchEmitter::give(uint32_t partition, const Ending& ending, const Event& event, int64_t low) {
    bool is_over = false;  // a node whose matches are chosen among has one sequence of events
    walk(ending, low, [&](const Cell* const* path, size_t length) {
        if (!may_walk()) return false;
        if (!completion_) return write_match(partition, ending, event, path, length);
        is_over = completion_->trail(partition, event, path, length, ending.state, ending.error);
        return true;
    });
    return is_over;
}

void MatchEmitter::resume(uint32_t partition, const Event& event, int64_t low) {
    const size_t given_before = output_.given();
    for (; next_ending_ < endings_.size() && output_.size() < full_; ++next_ending_) {
        const Ending& ending = endings_[next_ending_];
        const auto emit = [&](const Cell* const* path, size_t length) {
            if (completion_) {
                completion_->trail(partition, event, path, length, ending.state, ending.error);
                return output_.size() < full_;
            }
            return write_match(partition, ending, event, path, length) && output_.size() < full_;
        };
        if (ending.past.cell == NIL) {
            const Cell* alone = &ending.last;
            emit(&alone, 1);
            continue;
        }
        if (!is_walking_) arena_.begin_walk(ending.past, low, &ending.last);
        arena_.go_on(low, emit);
        is_walking_ = !arena_.walked();
        if (is_walking_) break;
    }
    if (!completion_) work_.matches += static_cast<int64_t>(output_.given() - given_before);
    if (is_unfinished()) return;
    endings_.clear();
    next_ending_ = 0;
    if (completion_) completion_->after(partition, event);
}

inline bool MatchEmitter::write_match(uint32_t partition, const Ending& ending, const Event& event,
                                      const Cell* const* path, size_t length) {
    Output& output = output_;
    const int64_t* keys = partitions_.key(partition);
    const size_t width = partitions_.width();
    if (output.tally.kind != Tally::off && tables_.unambiguous) {
        output.tally.add(partition, keys, width, event.ts, ending.bundle, ending.error, arrived_);
        return true;
    }
    if (memory_.bounds_matches() && !memory_.may_write(length, output.given())) {
        if (walks_.lacks_first()) ++shedding_.any()->log.withheld;
        return false;
    }
    const Cell& first = *path[length - 1];
    const int64_t start = length == 1 ? event.ts : tables_.counted ? arena_.events[first.event].ts : first.latest;
    output.add(start, event.ts, ending.error, ending.bundle, keys, width);
    output.values.insert(output.values.end(), values_.begin(), values_.end());
    output.valid.insert(output.valid.end(), valid_.begin(), valid_.end());
    const size_t n_ids = output.ids.size();
    output.resize_events(n_ids + length);
    for (size_t i = 0; i < length; ++i) {
        output.ids[n_ids + i] = path[length - 1 - i]->id;
        output.vars[n_ids + i] = path[length - 1 - i]->var;
    }
    output.offsets.push_back(static_cast<int64_t>(n_ids + length));
    return true;
}

void MatchEmitter::count_written(uint32_t partition) {
    Output& o = output_;
    for (size_t i = 0; i < o.size(); ++i) {
        o.tally.add(partition, partitions_.key(partition), partitions_.width(), o.end[i], o.bundle[i], o.error[i],
                    arrived_);
    }
    o.clear_matches();
}

int MatchEmitter::compare_bindings(size_t a, size_t b) const {
    const Output& o = output_;
    const auto bound = [&](size_t i, const auto& column) {
        return std::span(column.data() + o.offsets[i], static_cast<size_t>(o.offsets[i + 1] - o.offsets[i]));
    };
    const auto compare = [](auto x, auto y) {
        const auto c = std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
        return c < 0 ? -1 : c > 0 ? 1 : 0;
    };
    const int by_ids = compare(bound(a, o.ids), bound(b, o.ids));
    return by_ids != 0 ? by_ids : compare(bound(a, o.vars), bound(b, o.vars));
}

void MatchEmitter::unite_matches(size_t first) {
    const size_t n = output_.size();
    std::vector<size_t> order(n - first);
    std::iota(order.begin(), order.end(), first);
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
        const int c = compare_bindings(i, j);
        return c != 0 ? c < 0 : output_.error[i] < output_.error[j];
    });
    std::vector<uint8_t> keep(n - first, 0);
    bool all = true;
    for (size_t k = 0; k < order.size(); ++k) {
        const bool is_new = k == 0 || compare_bindings(order[k - 1], order[k]) != 0;
        keep[order[k] - first] = is_new ? 1 : 0;
        all = all && is_new;
    }
    if (!all) keep_matches(first, keep);
}

void MatchEmitter::keep_matches(size_t first, const std::vector<uint8_t>& keep) {
    Output& o = output_;
    const size_t n = o.size(), width = partitions_.width();
    size_t to = first;
    for (size_t i = first; i < n; ++i) {
        if (keep[i - first] == 0) continue;
        const auto from = static_cast<size_t>(o.offsets[i]);
        const auto length = static_cast<size_t>(o.offsets[i + 1]) - from;
        const auto start = static_cast<size_t>(o.offsets[to]);
        o.start[to] = o.start[i];
        o.end[to] = o.end[i];
        o.error[to] = o.error[i];
        o.bundle[to] = o.bundle[i];
        for (size_t k = 0; k < width; ++k) o.keys[to * width + k] = o.keys[i * width + k];
        for (size_t k = 0; k < length; ++k) {
            o.ids[start + k] = o.ids[from + k];
            o.vars[start + k] = o.vars[from + k];
        }
        o.offsets[to + 1] = static_cast<int64_t>(start + length);
        ++to;
    }
    o.resize(to, width);
    o.resize_events(static_cast<size_t>(o.offsets[to]));
}

}  // namespace acep
