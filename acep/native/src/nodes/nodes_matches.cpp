// Complete runs of the node engine: the sequences of their chains become matches, or are passed to completion.hpp.
#include "nodes/nodes.hpp"

#include <numeric>

namespace acep {
namespace {

// A run that is complete, by the position of its first event.
struct CompleteRun {
    int64_t first, error;
    uint32_t row;
};

}  // namespace

// Complete matches -------------------------------------------------------------------------------

void NodeEngine::complete(PartitionNodes& part, uint32_t partition, uint32_t state, NewNodes& made, const Event& event,
                          int64_t low) {
    // Without merging, the first node of a group has the least error; with it, all pasts are in one node.
    const auto wanted = [&](uint32_t i, int64_t error) {
        return (merging_.unites() || made.is_gone[i] == 0) && error <= tables_.budget;
    };
    const auto complete_row = [&](uint32_t i, int64_t error) {
        if (shedding_.active()) {
            shedding_.active()->found(shedding_.active()->mark(made.nodes, i, state), partition, key(event), event.ts,
                                      error);
            if (shedding_.active()->shadow) return;
            shedding_.note_point();
        }
        const Arc& arc = *made.arcs[i];
        const Chain past = arena_.chain(made.nodes.cells()[i]);
        const uint32_t own = completion_ ? binder_.bind(event) : NIL;
        if (completion_) error -= tables_.states[state].ends;
        Ending root{{event.id, key(event), NEVER, past.cell, NIL, own, arc.var, arc.number}, past, error, 0, state};
        if (!completion_) root.bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
        if (tables_.told != 0) tell(made.nodes, i, state);
        if (flows()) {
            endings_.all.push_back(root);
        } else if (give(partition, root, event, low)) {
            made.is_gone[i] = 1;
            made.has_gone = true;
        }
    };
    // A node that is united with others may have sequences that began before its own.
    if (!tables_.rises || !tables_.firsts || merging_.unites()) return endings(state, event, wanted, complete_row);
    std::vector<CompleteRun> runs;  // the longest first: where HAVING fails for it, it fails for all
    endings(state, event, wanted, [&](uint32_t i, int64_t error) {
        runs.push_back({store_.first_position(made.nodes, state, i), error, i});
        if (runs.back().first < runs.front().first) std::swap(runs.back(), runs.front());
    });
    for (const CompleteRun& run : runs) {
        if (!completion_->surely_fails(run.first)) complete_row(run.row, run.error);
    }
}

// Take the values of the matches that a node completes: its state, and its registers.
void NodeEngine::tell(NodeList& nodes, uint32_t row, uint32_t state) {
    const uint32_t slots = tables_.states[state].slots;
    told_.assign(1, state);
    told_valid_.assign(1, 1);
    for (uint32_t k = 0; k + 1 < tables_.told; ++k) {
        const bool known = nodes.tags(k, slots)[row] == value;
        told_.push_back(known ? nodes.slot(k)[row] : 0);
        told_valid_.push_back(known ? 1 : 0);
    }
}

// Whether one more sequence may be walked out.
bool NodeEngine::may_walk() {
    if (walks.may()) return true;
    if (walks.lacks_first()) ++shed().withheld;
    return false;
}

// Give the matches of a node that completes runs. Return whether it need not go on, as no longer match can be given.
bool NodeEngine::give(uint32_t partition, const Ending& root, const Event& event, int64_t low) {
    bool over = false;  // a node whose matches are chosen among has one sequence of events
    const auto emit = [&](const Cell* const* path, size_t length) {
        if (!may_walk()) return false;
        if (!completion_) return give_match(partition, root, event, path, length);
        over = completion_->trail(partition, event, path, length, root.state, root.error);
        return true;
    };
    if (root.past.cell == NIL) {
        const Cell* alone = &root.last;
        emit(&alone, 1);
    } else {
        arena_.walk(root.past, low, &root.last, emit);
    }
    return over;
}

// Write the remaining matches of the current event while there is room; after the last one the event is done.
void NodeEngine::go_on(uint32_t partition, const Event& event) {
    const int64_t low = oldest_start(event);
    const size_t given = output_.given();
    for (; endings_.at < endings_.all.size() && output_.size() < full_; ++endings_.at) {
        const Ending& root = endings_.all[endings_.at];
        const auto emit = [&](const Cell* const* path, size_t length) {
            if (completion_) {
                completion_->trail(partition, event, path, length, root.state, root.error);
                return output_.size() < full_;
            }
            return give_match(partition, root, event, path, length) && output_.size() < full_;
        };
        if (root.past.cell == NIL) {
            const Cell* alone = &root.last;
            emit(&alone, 1);
            continue;
        }
        if (!endings_.walking) arena_.begin_walk(root.past, low, &root.last);
        arena_.go_on(low, emit);
        endings_.walking = !arena_.walked();
        if (endings_.walking) break;
    }
    if (!completion_) work_.matches += static_cast<int64_t>(output_.given() - given);
    if (unfinished()) return;
    endings_.all.clear();
    endings_.at = 0;
    if (completion_) completion_->after(partition, event);
}

// Write one match, given from its newest event on; return whether another one may follow.
bool NodeEngine::give_match(uint32_t partition, const Ending& root, const Event& event, const Cell* const* path,
                            size_t length) {
    const int64_t* keys = partitions_.key(partition);
    const size_t width = partitions_.width();
    if (output_.tally.kind != Tally::off && tables_.unambiguous) {
        output_.tally.add(partition, keys, width, event.ts, root.bundle, root.error, arrived);
        return true;
    }
    if (bounded() && !memory_.may_write(length, output_.given())) {
        if (walks.lacks_first()) ++shedding_.active()->withheld;
        return false;
    }
    const Cell& first = *path[length - 1];
    const int64_t start = length == 1 ? event.ts : tables_.counted ? arena_.events[first.event].ts : first.latest;
    output_.add(start, event.ts, root.error, root.bundle, keys, width);
    output_.values.insert(output_.values.end(), told_.begin(), told_.end());
    output_.valid.insert(output_.valid.end(), told_valid_.begin(), told_valid_.end());
    const size_t at = output_.ids.size();
    output_.resize_events(at + length);
    for (size_t i = 0; i < length; ++i) {
        output_.ids[at + i] = path[length - 1 - i]->id;
        output_.vars[at + i] = path[length - 1 - i]->var;
    }
    output_.offsets.push_back(static_cast<int64_t>(at + length));
    return true;
}

// If only numbers are asked for, count the written matches of one event, which are distinct now, and clear them.
void NodeEngine::count_written(uint32_t partition) {
    Output& o = output_;
    for (size_t i = 0; i < o.size(); ++i) {
        o.tally.add(partition, partitions_.key(partition), partitions_.width(), o.end[i], o.bundle[i], o.error[i],
                    arrived);
    }
    o.clear_matches();
}

// Unite matches with equal bindings among those from number `first` on, all of one event; the least error is kept.
void NodeEngine::distinct(size_t first) {
    const size_t n = output_.size();
    Output& o = output_;
    std::vector<size_t> order(n - first);
    std::iota(order.begin(), order.end(), first);
    auto trail = [&](size_t i, auto& column) {
        return std::span(column.data() + o.offsets[i], static_cast<size_t>(o.offsets[i + 1] - o.offsets[i]));
    };
    auto compare = [&](size_t i, size_t j) {
        auto a = trail(i, o.ids), b = trail(j, o.ids);
        auto x = trail(i, o.vars), y = trail(j, o.vars);
        if (auto c = std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end()); c != 0)
            return c < 0 ? -1 : 1;
        auto c = std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
        return c < 0 ? -1 : c > 0 ? 1 : 0;
    };
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
        int c = compare(i, j);
        return c != 0 ? c < 0 : o.error[i] < o.error[j];
    });
    std::vector<uint8_t> keep(n - first, 0);
    bool all = true;
    for (size_t k = 0; k < order.size(); ++k) {
        bool fresh = k == 0 || compare(order[k - 1], order[k]) != 0;
        keep[order[k] - first] = fresh ? 1 : 0;
        all = all && fresh;
    }
    if (all) return;
    const size_t width = partitions_.width();
    size_t to = first;
    for (size_t i = first; i < n; ++i) {
        if (keep[i - first] == 0) continue;
        auto from = static_cast<size_t>(o.offsets[i]);
        auto length = static_cast<size_t>(o.offsets[i + 1]) - from;
        auto start = static_cast<size_t>(o.offsets[to]);
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

// Pass complete runs through more steps from now on.
void NodeEngine::complete_in_steps() {
    completion_ = std::make_unique<Completion>(tables_, classifier_, partitions_, arena_, output_, work_,
                                               [this](uint32_t p, int64_t low, int64_t clock, Alive& found) {
        store_.find_prospects(p, low, clock, found);
    }, [this](uint32_t p, int64_t upto) { store_.drop_begun(p, upto); });
    tells_live_ = false;
}

void NodeEngine::end() {
    store_.clear_all();
    if (bounded()) memory_.recount();
    if (completion_) completion_->end();
}

}  // namespace acep
