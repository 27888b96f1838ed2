// The node engine. The order of things within one event is that of acep/engine/reference.py: every way for the nodes there
// were before it, then new beginnings; only then are the new nodes put where later events see them.
#include "nodes.hpp"

#include <bit>
#include <numeric>

#include "numbers.hpp"

namespace acep {
namespace {

int64_t before(int64_t now, int64_t span) {
    int64_t low;
    return span < 0 || __builtin_sub_overflow(now, span, &low) ? NEVER + 1 : std::max(low, NEVER + 1);
}

// Nodes are looked for among so few by looking at all of them.
constexpr uint32_t few = 8;

// Whether row `a` of `nodes` and row `b` of `others` hold the same in their first `common` slots.
bool same(NodeList& nodes, uint32_t a, NodeList& others, uint32_t b, uint32_t slots, uint32_t common) {
    for (uint32_t s = 0; s < common; ++s) {
        const uint8_t tag = nodes.tags(s, slots)[a];
        if (tag != others.tags(s, slots)[b]) return false;
        if (tag == value && nodes.slot(s)[a] != others.slot(s)[b]) return false;
    }
    return true;
}

uint64_t hashed(NodeList& nodes, uint32_t row, uint64_t hash, uint32_t slots, uint32_t common) {
    for (uint32_t s = 0; s < common; ++s) {
        const uint8_t tag = nodes.tags(s, slots)[row];
        hash = mixed(hash + tag + (tag == value ? static_cast<uint64_t>(nodes.slot(s)[row]) * 3 : 0));
    }
    return mixed(hash);
}

}  // namespace

NodeEngine::NodeEngine(Tables tables, Front& front, Partitions& partitions)
    : Engine(std::move(tables), front, partitions), made_(tables_.states.size()) {
    nothing_.add(0, NEVER);
    nothing_.starts()[0] = nothing_.positions()[0] = 0;
    nothing_.cells()[0] = NIL;
    nothing_.errors()[0] = 0;
    rows_.resize(block_rows);
    // What is chosen among all matches must know of each run where it began.
    merges_ = tables_.unambiguous && tables_.choice == Choice::all;
    if (tables_.completes()) {
        completion_ = std::make_unique<Completion>(tables_, front_, partitions_, arena_, output_, work_,
                                                   [this](uint32_t p, int64_t low, Alive& found) { alive(p, low, found); });
    }
    // Under contiguity the last position of a node matters, and a new list of frames is like none before.
    likes_.resize(tables_.states.size());
    for (const State& s : tables_.states) {
        for (const Arc& arc : s.arcs) {
            const bool fresh = std::any_of(arc.puts.begin(), arc.puts.end(), [](const Put& p) { return p.write == Write::frames; });
            if (merges_ && !tables_.contiguous() && !fresh) likes_[arc.target].possible = true;
        }
    }
    tells_live_ = !completion_;
    for (const State& s : tables_.states) framed_.emplace_back(s.slots, uint8_t{0});
    // A copy of a list is one too: until nothing new is found.
    for (bool more = true; more;) {
        more = false;
        for (const State& s : tables_.states) {
            for (const Arc& arc : s.arcs) {
                for (const Put& p : arc.puts) {
                    const bool copied = p.write == Write::copy && p.from >= 0 && framed_[arc.source][static_cast<size_t>(p.from)] != 0;
                    uint8_t& known = framed_[arc.target][static_cast<size_t>(p.slot)];
                    if (known == 0 && (p.write == Write::frames || copied)) known = 1, more = true;
                }
            }
        }
    }
}

const std::vector<NodeEngine::Turn>& NodeEngine::turns(uint32_t pattern) {
    while (turns_.size() <= pattern) {
        auto next = static_cast<uint32_t>(turns_.size());
        std::vector<Turn> found;
        for (uint32_t s = 0; s < tables_.states.size(); ++s) {
            Turn turn{s, {}, false};
            for (const Arc& arc : tables_.states[s].arcs) {
                if (!front_.has(next, arc.event_class)) continue;
                turn.arcs.push_back(&arc);
                turn.blocks = turn.blocks || (arc.blocking && tables_.strategy == Strategy::next);
            }
            if (!turn.arcs.empty()) found.push_back(std::move(turn));
        }
        turns_.push_back(std::move(found));
    }
    return turns_[pattern];
}

int64_t NodeEngine::cost(const Arc& arc, int64_t between) const {
    if (!tables_.contiguous()) return arc.weight;
    int64_t least = tables_.budget + 1;
    for (const Gap& gap : arc.gaps) {
        int64_t excess = between > gap.letters ? between - gap.letters : 0;
        if (excess <= tables_.budget / tables_.scale) least = std::min(least, gap.weight + tables_.scale * excess);
    }
    return least;
}

uint32_t NodeEngine::bound(const Event& event) {
    if (current_ == NIL) {
        current_ = arena_.events.push({event.ts, event.position, event.id});
        if (completion_) completion_->keep(current_, event);
    }
    return current_;
}

void NodeEngine::event(uint32_t partition, const Event& event) {
    if (parts_.size() <= partition) parts_.resize(partition + 1);
    Part& part = parts_[partition];
    if (part.lists.empty()) part.lists.resize(tables_.states.size());
    part.last = event.position;
    current_ = NIL;
    if (completion_) completion_->before(partition, event);
    const int64_t low = before(key(event), tables_.span);
    for (const Turn& turn : turns(event.pattern)) {
        if (turn.state == 0) {
            begin(turn, event);
        } else {
            step(part, turn, event, low);
        }
    }
    if (tables_.contiguous()) contiguous_end(part, event);
    if (!touched_.empty()) finish(part, partition, event, low);
    if (completion_) completion_->after(partition, event);
    if (tells_live_) {
        if (live_.size() <= partition) live_.resize(parts_.size());
        live_[partition] = std::any_of(part.lists.begin(), part.lists.end(), [](const NodeList& l) { return !l.empty(); });
    }
}

void NodeEngine::begin(const Turn& turn, const Event& event) {
    for (const Arc* arc : turn.arcs) {
        ++work_.touches;
        if (arc->weight + tables_.states[arc->target].rest > tables_.budget) continue;
        rows_[0] = 0;
        contiguous_rows_ = true;
        if (passing(arc->leaving, nothing_, 0, event, 1) == 0) continue;
        if (passing(arc->binding, nothing_, 0, event, 1) == 0) continue;
        make(*arc, nothing_, 0, event, static_cast<int32_t>(arc->weight));
    }
}

void NodeEngine::step(Part& part, const Turn& turn, const Event& event, int64_t low) {
    NodeList& list = part.lists[turn.state];
    if (list.empty()) return;
    const uint32_t slots = tables_.states[turn.state].slots;
    bool alive = list.expire(low);
    if (!alive) {
        uint32_t living = 0;
        for (uint32_t i = list.head; i < list.end; ++i) living += list.starts()[i] >= low ? 1u : 0u;
        if (2 * living <= list.size()) list.keep(slots, [&](uint32_t i) { return list.starts()[i] >= low; });
        alive = living == list.size();
    }
    if (list.empty()) return;
    // Under contiguity without errors all nodes of a list bound the same event last.
    const bool adjacent = !tables_.contiguous() || event.position - list.positions()[list.head] == 1;
    const bool simple = alive && tables_.budget == 0 && adjacent;
    if (!simple) {
        all_.clear();
        for (uint32_t i = list.head; i < list.end; ++i) {
            if (list.starts()[i] >= low) all_.push_back(i);
        }
    }
    const size_t many = simple ? list.size() : all_.size();
    if (turn.blocks) taken_.assign(list.end, 0);
    bool took = false;
    for (const Arc* arc : turn.arcs) {
        const int64_t rest = tables_.states[arc->target].rest;
        const bool decides = turn.blocks && arc->blocking;
        work_.touches += static_cast<int64_t>(many);
        if (simple && cost(*arc, 0) + rest > 0 && !decides) continue;
        size_t at = 0;
        while (at < many) {
            size_t count = 0;
            if (simple) {
                count = std::min(many - at, block_rows);
                for (size_t i = 0; i < count; ++i) rows_[i] = list.head + static_cast<uint32_t>(at + i);
                at += count;
                contiguous_rows_ = true;
            } else {
                for (; at < many && count < block_rows; ++at) {
                    uint32_t row = all_[at];
                    int64_t paid = list.errors()[row] + cost(*arc, event.position - list.positions()[row] - 1);
                    if (paid + rest <= tables_.budget || (decides && taken_[row] == 0)) rows_[count++] = row;
                }
                contiguous_rows_ = false;
            }
            if (!arc->leaving.empty()) count = passing(arc->leaving, list, slots, event, count);
            if (!arc->binding.empty()) count = passing(arc->binding, list, slots, event, count);
            for (size_t i = 0; i < count; ++i) {
                uint32_t row = rows_[i];
                if (decides) {
                    taken_[row] = 1;
                    took = true;
                }
                int64_t paid = list.errors()[row] + cost(*arc, event.position - list.positions()[row] - 1);
                if (paid + rest <= tables_.budget) make(*arc, list, row, event, static_cast<int32_t>(paid));
            }
        }
    }
    if (took) list.keep(slots, [&](uint32_t i) { return taken_[i] == 0; });
}

// Under contiguity a node lives on only if it can still pay for the event that it did not bind.
void NodeEngine::contiguous_end(Part& part, const Event& event) {
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        if (list.empty()) continue;
        if (tables_.budget == 0) {
            list.clear();
            continue;
        }
        const State& state = tables_.states[s];
        list.keep(state.slots, [&](uint32_t i) {
            int64_t between = event.position - list.positions()[i];
            return std::any_of(state.arcs.begin(), state.arcs.end(), [&](const Arc& arc) {
                return list.errors()[i] + cost(arc, between) + tables_.states[arc.target].rest <= tables_.budget;
            });
        });
    }
}

// Predicates -------------------------------------------------------------------------------------

void NodeEngine::load(const Source& source, NodeList& list, uint32_t slots, const Event& event, size_t count, size_t leaf) {
    static constexpr int64_t truth[2] = {0, 1};
    if (source.from == From::event) {
        const Column& c = event.batch->columns[static_cast<size_t>(source.a)];
        leaves_[leaf] = {c.values + event.row, c.valid == nullptr ? nullptr : c.valid + event.row, 0};
        return;
    }
    if (source.from == From::one) {
        bool null = source.a >= 0 && event.batch->columns[static_cast<size_t>(source.a)].null(event.row);
        leaves_[leaf] = {truth + (null ? 0 : 1), nullptr, 0};
        return;
    }
    const auto a = static_cast<uint32_t>(source.a);
    const int64_t* held = list.slot(a);
    if (source.from == From::slot && list.plain && contiguous_rows_) {
        leaves_[leaf] = {held + rows_[0], nullptr, 1};
        return;
    }
    int64_t* words = words_.data() + leaf * block_rows;
    uint8_t* valid = valid_.data() + leaf * block_rows;
    const uint8_t* tags = list.tags(a, slots);
    bool whole = list.plain;
    if (!list.plain) {
        for (size_t i = 0; i < count; ++i) {
            uint8_t tag = tags[rows_[i]];
            valid[i] = tag == value ? 1 : 0;
            if (tag == unbound) {
                dropped_[i] = 1;
                drops_ = true;
            }
        }
    } else {
        std::fill(valid, valid + count, uint8_t{1});
    }
    switch (source.from) {
        case From::total:
            for (size_t i = 0; i < count; ++i) {
                words[i] = held[rows_[i]];
                if (list.slot(a + 1)[rows_[i]] != (words[i] < 0 ? -1 : 0)) valid[i] = 0;
            }
            whole = false;
            break;
        case From::average:
        case From::mean: {
            const int64_t* number = list.slot(static_cast<uint32_t>(source.b));
            for (size_t i = 0; i < count; ++i) {
                int64_t n = number[rows_[i]];
                if (valid[i] == 0 || n == 0) {
                    valid[i] = 0;
                    words[i] = 0;
                    continue;
                }
                double mean = source.from == From::mean
                                  ? std::bit_cast<double>(held[rows_[i]]) / static_cast<double>(n)
                                  : divide(static_cast<int128>(static_cast<uint128>(static_cast<uint64_t>(list.slot(a + 1)[rows_[i]])) << 64 |
                                                               static_cast<uint64_t>(held[rows_[i]])),
                                           n);
                words[i] = std::bit_cast<int64_t>(mean);
            }
            whole = false;
            break;
        }
        default:
            for (size_t i = 0; i < count; ++i) words[i] = held[rows_[i]];
    }
    leaves_[leaf] = {words, whole ? nullptr : valid, 1};
}

// Leaves point into these: they are laid out before any is loaded.
void NodeEngine::room_for(size_t leaves) {
    if (leaves <= leaves_.size()) return;
    leaves_.resize(leaves);
    words_.resize(leaves * block_rows);
    valid_.resize(leaves * block_rows);
}

size_t NodeEngine::passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event, size_t count) {
    for (const Check& check : checks) {
        if (count == 0) return 0;
        if (!check.loops.empty()) {
            for (size_t i = 0; i < count; ++i) {
                pass_[i] = 1;
                if (check.only >= 0) {
                    auto c = static_cast<uint32_t>(check.only);
                    int64_t n = list.tags(c, slots)[rows_[i]] == value ? list.slot(c)[rows_[i]] : 0;
                    if (n != check.turn) continue;
                }
                pass_[i] = all_frames(check, list, slots, event, rows_[i]) ? 1 : 0;
            }
        } else {
            drops_ = false;
            if (!list.plain) std::fill(dropped_, dropped_ + count, uint8_t{0});
            room_for(check.sources.size());
            for (size_t k = 0; k < check.sources.size(); ++k) load(check.sources[k], list, slots, event, count, k);
            front_.programs()[check.program].test(leaves_.data(), count, front_.texts, scratch_, pass_);
            if (drops_) {
                for (size_t i = 0; i < count; ++i) pass_[i] |= dropped_[i];
            }
            if (check.only >= 0) {
                auto c = static_cast<uint32_t>(check.only);
                for (size_t i = 0; i < count; ++i) {
                    int64_t n = list.tags(c, slots)[rows_[i]] == value ? list.slot(c)[rows_[i]] : 0;
                    if (n != check.turn) pass_[i] = 1;
                }
            }
        }
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i) {
            rows_[kept] = rows_[i];
            kept += pass_[i];
        }
        if (kept != count) contiguous_rows_ = false;
        count = kept;
    }
    return count;
}

// The predicate for all combinations of the frames that its loops run over.
bool NodeEngine::all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event, uint32_t row) {
    if (loops_.size() < check.loops.size()) loops_.resize(check.loops.size());
    size_t combinations = 1;
    for (size_t l = 0; l < check.loops.size(); ++l) {
        auto slot = static_cast<uint32_t>(check.loops[l]);
        if (list.tags(slot, slots)[row] != value) return true;
        loops_[l].clear();
        for (auto f = static_cast<uint32_t>(list.slot(slot)[row]); f != NIL; f = frames_[f].previous) loops_[l].push_back(f);
        combinations *= loops_[l].size();
    }
    const size_t leaves = check.sources.size();
    room_for(leaves);
    // Sources that are not frames are the same for all: loaded as a block of one row.
    const uint32_t first = rows_[0];
    const bool contiguous = contiguous_rows_;
    rows_[0] = row;
    contiguous_rows_ = false;
    drops_ = false;
    dropped_[0] = 0;
    for (size_t k = 0; k < leaves; ++k) {
        if (check.sources[k].from == From::frame) {
            leaves_[k] = {words_.data() + k * block_rows, valid_.data() + k * block_rows, 1};
        } else {
            load(check.sources[k], list, slots, event, 1, k);
            leaves_[k].stride = 0;
        }
    }
    rows_[0] = first;
    contiguous_rows_ = contiguous;
    if (drops_) return true;
    uint8_t pass[block_rows];
    for (size_t at = 0; at < combinations; at += block_rows) {
        size_t count = std::min(combinations - at, block_rows);
        for (size_t k = 0; k < leaves; ++k) {
            const Source& s = check.sources[k];
            if (s.from != From::frame) continue;
            size_t stride = 1;
            for (size_t l = static_cast<size_t>(s.a) + 1; l < check.loops.size(); ++l) stride *= loops_[l].size();
            const auto& loop = loops_[static_cast<size_t>(s.a)];
            for (size_t i = 0; i < count; ++i) {
                const Frame& f = frames_[loop[(at + i) / stride % loop.size()]];
                words_[k * block_rows + i] = f.values[s.b];
                valid_[k * block_rows + i] = ((f.nulls >> s.b) & 1u) != 0 ? 0 : 1;
            }
        }
        front_.programs()[check.program].test(leaves_.data(), count, front_.texts, scratch_, pass);
        for (size_t i = 0; i < count; ++i) {
            if (pass[i] == 0) return false;
        }
    }
    return true;
}

// New nodes --------------------------------------------------------------------------------------

void NodeEngine::make(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error) {
    Made& made = made_[arc.target];
    if (made.arcs.empty()) touched_.push_back(arc.target);
    const uint32_t slots = tables_.states[arc.target].slots, old = tables_.states[arc.source].slots;
    const uint32_t i = made.nodes.add(slots, NEVER);
    made.nodes.starts()[i] = arc.source == 0 ? key(event) : list.starts()[row];
    made.nodes.positions()[i] = event.position;
    made.nodes.cells()[i] = list.cells()[row];
    made.nodes.errors()[i] = error;
    for (const Put& p : arc.puts) put(p, list, row, old, made.nodes, i, slots, event);
    for (uint32_t s = 0; s < slots && made.nodes.plain; ++s) made.nodes.plain = made.nodes.tags(s, slots)[i] == value;
    made.arcs.push_back(&arc);
    ++work_.nodes;
}

void NodeEngine::put(const Put& p, NodeList& from, uint32_t row, uint32_t old, NodeList& to, uint32_t made, uint32_t slots,
                     const Event& event) {
    const auto slot = static_cast<uint32_t>(p.slot);
    int64_t& out = to.slot(slot)[made];
    uint8_t& tag = to.tags(slot, slots)[made];
    uint8_t known = unbound;
    int64_t held = 0;
    if (p.from >= 0) {
        known = from.tags(static_cast<uint32_t>(p.from), old)[row];
        held = from.slot(static_cast<uint32_t>(p.from))[row];
    }
    bool empty = true;
    int64_t seen = 0;
    if (p.column >= 0) {
        const Column& c = event.batch->columns[static_cast<size_t>(p.column)];
        empty = c.null(event.row);
        seen = empty ? 0 : c.values[event.row];
    }
    auto read = [&] {
        out = seen;
        tag = empty ? null : value;
    };
    auto keep = [&] {
        out = held;
        tag = known;
    };
    switch (p.write) {
        case Write::copy:
            keep();
            return;
        case Write::last:
            read();
            return;
        case Write::nth: {
            if (known != unbound) {
                keep();
                return;
            }
            int64_t count = 0;
            if (p.counter >= 0 && from.tags(static_cast<uint32_t>(p.counter), old)[row] == value) {
                count = from.slot(static_cast<uint32_t>(p.counter))[row];
            }
            if (p.extra == 1 || count == p.extra - 1) {
                read();
            } else {
                out = 0;
                tag = unbound;
            }
            return;
        }
        case Write::position:
            out = p.from >= 0 ? held : event.position;
            tag = value;
            return;
        case Write::count:
            out = known == value ? static_cast<int64_t>(static_cast<uint64_t>(held) + 1) : 1;
            tag = value;
            return;
        case Write::nonnull:
            out = static_cast<int64_t>((known == value ? static_cast<uint64_t>(held) : 0) + (empty ? 0u : 1u));
            tag = value;
            return;
        case Write::sum: {
            int64_t& high = to.slot(slot + 1)[made];
            if (known != value) {
                read();
                high = out < 0 ? -1 : 0;
            } else {
                int64_t before_high = from.slot(static_cast<uint32_t>(p.from) + 1)[row];
                auto total = static_cast<uint128>(static_cast<uint64_t>(before_high)) << 64 | static_cast<uint64_t>(held);
                total += static_cast<uint128>(static_cast<int128>(seen));
                out = static_cast<int64_t>(static_cast<uint64_t>(total));
                high = static_cast<int64_t>(static_cast<uint64_t>(total >> 64));
                tag = value;
            }
            to.tags(slot + 1, slots)[made] = tag;
            return;
        }
        case Write::add:
            if (known != value) {
                read();
            } else if (empty) {
                keep();
            } else {
                out = std::bit_cast<int64_t>(std::bit_cast<double>(held) + std::bit_cast<double>(seen));
                tag = value;
            }
            return;
        case Write::least:
        case Write::greatest: {
            if (known != value) {
                read();
                return;
            }
            int order = 0;
            if (!empty && p.extra == 0) order = seen < held ? -1 : seen > held ? 1 : 0;
            if (!empty && p.extra == 1) {
                double x = std::bit_cast<double>(seen), y = std::bit_cast<double>(held);
                order = x < y ? -1 : x > y ? 1 : 0;
            }
            if (!empty && p.extra == 2) order = front_.texts.order(seen, held);
            if (p.write == Write::least ? order < 0 : order > 0) {
                read();
            } else {
                keep();
            }
            return;
        }
        case Write::frames: {
            Frame frame{key(event), known == value ? static_cast<uint32_t>(held) : NIL, 0, {}};
            const auto& sources = tables_.frames[static_cast<size_t>(p.extra)];
            for (size_t k = 0; k < sources.size(); ++k) {
                // One row is loaded as a block is; the rows under way are left as they are.
                const Source& s = sources[k];
                uint8_t has = unbound;
                int64_t word = 0;
                const uint32_t first = rows_[0];
                const bool contiguous = contiguous_rows_, drops = drops_;
                rows_[0] = row;
                contiguous_rows_ = false;
                drops_ = false;
                const uint8_t dropped = dropped_[0];
                room_for(1);
                load(s, from, old, event, 1, 0);
                const Leaf& leaf = leaves_[0];
                word = leaf.values[0];
                has = drops_ ? unbound : leaf.valid != nullptr && leaf.valid[0] == 0 ? null : value;
                rows_[0] = first;
                contiguous_rows_ = contiguous;
                drops_ = drops;
                dropped_[0] = dropped;
                if (has == unbound) {
                    keep();
                    return;
                }
                frame.values[k] = word;
                if (has == null) frame.nulls |= 1u << k;
            }
            out = frames_.push(frame);
            tag = value;
            return;
        }
    }
}

// Nodes that are alike become one. Where a trail determines its run they keep all their pasts; elsewhere one trail may have
// come here in several ways, and only the least error counts.
void NodeEngine::unite(Made& made, const State& state) {
    const uint32_t slots = state.slots, common = this->common(state);
    const uint32_t n = made.nodes.end;
    made.also.assign(n, NIL);
    made.gone.assign(n, 0);
    if (n == 1) return;
    NodeList& nodes = made.nodes;
    const bool merges = merges_;
    auto alike = [&](uint32_t i, uint32_t j) {
        bool first = merges ? nodes.errors()[i] == nodes.errors()[j]
                            : nodes.cells()[i] == nodes.cells()[j] && made.arcs[i]->history == made.arcs[j]->history;
        return first && same(nodes, i, nodes, j, slots, common);
    };
    auto join = [&](uint32_t leader, uint32_t i) {
        made.gone[i] = 1;
        if (merges) {
            if (common != slots) nodes.slot(common)[leader] = std::min(nodes.slot(common)[leader], nodes.slot(common)[i]);
            made.also[i] = made.also[leader];
            made.also[leader] = i;
            nodes.starts()[leader] = std::max(nodes.starts()[leader], nodes.starts()[i]);
        } else {
            nodes.errors()[leader] = std::min(nodes.errors()[leader], nodes.errors()[i]);
        }
    };
    if (n <= 8) {
        for (uint32_t i = 1; i < n; ++i) {
            for (uint32_t j = 0; j < i; ++j) {
                if (made.gone[j] == 0 && alike(j, i)) {
                    join(j, i);
                    break;
                }
            }
        }
        return;
    }
    const size_t size = std::bit_ceil(size_t{n} * 2);
    all_.assign(size, NIL);
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t own = merges ? static_cast<uint32_t>(nodes.errors()[i]) : nodes.cells()[i];
        const uint64_t hash = hashed(nodes, i, own, slots, common);
        for (size_t k = hash & (size - 1);; k = (k + 1) & (size - 1)) {
            if (all_[k] == NIL) {
                all_[k] = i;
                break;
            }
            if (alike(all_[k], i)) {
                join(all_[k], i);
                break;
            }
        }
    }
}

uint32_t NodeEngine::like(NodeList& list, NodeList& made, uint32_t i, const State& s, size_t wanted) const {
    const uint32_t slots = s.slots, common = this->common(s);
    const int32_t error = made.errors()[i];
    // What has not moved is found through the index. It is made once the rows looked at without it would have paid for it.
    const uint32_t size = list.size(), missing = list.end - std::max(list.indexed, list.head);
    if (size <= few || (missing > few * wanted && list.scanned <= uint64_t{few} * size)) {
        list.scanned += size;
        for (uint32_t k = list.head; k < list.end; ++k) {
            if (list.errors()[k] == error && same(list, k, made, i, slots, common)) return k;
        }
        return NIL;
    }
    const auto hash = [&](NodeList& nodes, uint32_t row) {
        return hashed(nodes, row, static_cast<uint32_t>(nodes.errors()[row]), slots, common);
    };
    const size_t places = std::bit_ceil(size_t{list.capacity()} * 2);
    if (list.index.size() != places || list.indexed == 0) {
        list.index.assign(places, NIL);
        list.indexed = 0;
    }
    for (uint32_t k = std::max(list.indexed, list.head); k < list.end; ++k) {
        size_t at = hash(list, k) & (places - 1);
        for (; list.index[at] != NIL; at = (at + 1) & (places - 1)) {
            const uint32_t other = list.index[at];
            if (list.errors()[other] == list.errors()[k] && same(list, other, list, k, slots, common)) break;
        }
        list.index[at] = k;  // of several alike the newest
    }
    list.indexed = list.end;
    for (size_t at = hash(made, i) & (places - 1); list.index[at] != NIL; at = (at + 1) & (places - 1)) {
        const uint32_t k = list.index[at];
        if (list.errors()[k] == error && same(list, k, made, i, slots, common)) return k >= list.head ? k : NIL;
    }
    return NIL;
}

uint32_t NodeEngine::earlier(NodeList& list, Made& made, uint32_t i, uint32_t state) {
    Likes& likes = likes_[state];
    if (!likes.possible || list.empty()) return NIL;
    const State& s = tables_.states[state];
    if (common(s) == 0) return like(list, made.nodes, i, s, 1);
    if (likes.rest != 0) {
        --likes.rest;
        return NIL;
    }
    const uint32_t found = like(list, made.nodes, i, s, made.nodes.end);
    // A list that expires from its head stays so, if not nearly all nodes meet one like them.
    const bool kept = found == NIL || likes.often || !list.sorted || list.size() <= few || found + 1 == list.end ||
                      list.starts()[found + 1] >= made.nodes.starts()[i];
    if (found != NIL) ++likes.met;
    if (found != NIL && kept) ++likes.joined;
    if (++likes.seen == trial) {
        likes.often = likes.met >= trial - trial / 16;
        if (likes.joined < trial / 8 && !likes.often) likes.rest = 16 * trial;
        likes.seen = likes.met = likes.joined = 0;
    }
    return kept ? found : NIL;
}

void NodeEngine::finish(Part& part, uint32_t partition, const Event& event, int64_t low) {
    const size_t given = output_.size();
    for (uint32_t state : touched_) {
        Made& made = made_[state];
        const State& s = tables_.states[state];
        unite(made, s);
        if (!s.accepts.empty()) complete(part, partition, state, made, event, low);
    }
    if (!completion_) {
        if (!tables_.unambiguous && output_.size() > given + 1) distinct(given);
        work_.matches += static_cast<int64_t>(output_.size() - given);
    }
    // One cell for each trail and variable, also where it stands in several states.
    struct Known {
        uint32_t past, cell, history;
        uint16_t var;
    };
    static thread_local std::vector<Known> known;
    known.clear();
    for (uint32_t state : touched_) {
        Made& made = made_[state];
        const State& s = tables_.states[state];
        if (!s.arcs.empty()) {
            NodeList& list = part.lists[state];
            for (uint32_t i = 0; i < made.nodes.end; ++i) {
                if (made.gone[i] != 0) continue;
                const Arc& arc = *made.arcs[i];
                const int64_t own = key(event);
                // A node like one of an earlier event becomes one with it, or takes its row where that has expired.
                uint32_t into = NIL;
                bool living = false;
                Chain chain;
                if (merges_) {
                    into = earlier(list, made, i, state);
                    living = into != NIL && list.starts()[into] >= low;
                    if (living) chain = arena_.chain(list.cells()[into]);
                    chain = bind_all(made, i, event, chain);
                } else {
                    uint32_t past = made.nodes.cells()[i];
                    auto found = std::find_if(known.begin(), known.end(), [&](const Known& k) {
                        return k.past == past && k.var == arc.var && k.history == arc.history;
                    });
                    if (found == known.end()) {
                        chain = arena_.bind(bound(event), event.id, arc.var, arc.number, arena_.chain(past), own, {});
                        known.push_back({past, chain.cell, arc.history, arc.var});
                    } else {
                        chain = arena_.chain(found->cell);
                    }
                }
                if (into != NIL) {
                    list.cells()[into] = chain.cell;
                    list.starts()[into] = chain.latest;
                    if (into + 1 != list.end && list.starts()[into + 1] < chain.latest) list.sorted = false;
                    if (const uint32_t first = common(s); first != s.slots) {
                        const int64_t own_first = made.nodes.slot(first)[i];
                        list.slot(first)[into] = living ? std::min(list.slot(first)[into], own_first) : own_first;
                    }
                    continue;
                }
                const uint32_t to = list.add(s.slots, low);
                if (to > list.head && list.starts()[to - 1] > chain.latest) list.sorted = false;
                list.starts()[to] = chain.latest;
                list.positions()[to] = event.position;
                list.cells()[to] = chain.cell;
                list.errors()[to] = made.nodes.errors()[i];
                for (uint32_t k = 0; k < s.slots; ++k) {
                    list.slot(k)[to] = made.nodes.slot(k)[i];
                    list.tags(k, s.slots)[to] = made.nodes.tags(k, s.slots)[i];
                }
                list.plain = list.plain && made.nodes.plain;
            }
        }
    }
    for (uint32_t state : touched_) {
        made_[state].nodes.clear();
        made_[state].arcs.clear();
    }
    touched_.clear();
}

// The cells of a group of nodes that are one, before `chain`: one for all that walked past the same negations.
Chain NodeEngine::bind_all(Made& made, uint32_t leader, const Event& event, Chain chain) {
    const Arc& arc = *made.arcs[leader];
    for (uint32_t at = leader; at != NIL; at = made.also[at]) {
        if (made.arcs[at] == nullptr) continue;  // bound already
        const Arc& same = *made.arcs[at];
        Chain past;
        bool begins = false;
        for (uint32_t k = at; k != NIL; k = made.also[k]) {
            if (made.arcs[k] == nullptr || made.arcs[k]->history != same.history) continue;
            made.arcs[k] = nullptr;
            uint32_t cell = made.nodes.cells()[k];
            if (cell == NIL) {
                begins = true;
            } else {
                past = arena_.unite(past, arena_.chain(cell), bound(event));
            }
        }
        if (past.cell != NIL) chain = arena_.bind(bound(event), event.id, arc.var, same.number, past, key(event), chain);
        if (begins) chain = arena_.bind(bound(event), event.id, arc.var, same.number, {}, key(event), chain);
        if (tables_.negations.empty()) break;
    }
    return chain;
}

// Complete matches -------------------------------------------------------------------------------

void NodeEngine::complete(Part& part, uint32_t partition, uint32_t state, Made& made, const Event& event, int64_t low) {
    const State& s = tables_.states[state];
    int64_t least = tables_.budget + 1;
    for (const Accept& a : s.accepts) least = std::min(least, a.cost);
    const uint32_t n = made.nodes.end;
    for (uint32_t at = 0; at < n; at += static_cast<uint32_t>(block_rows)) {
        size_t count = 0;
        for (uint32_t i = at; i < n && count < block_rows; ++i) rows_[count++] = i;
        contiguous_rows_ = true;
        count = passing(s.ending, made.nodes, s.slots, event, count);
        for (size_t k = 0; k < count; ++k) {
            const uint32_t i = rows_[k];
            // Of runs with one trail the least error stands with their first; nodes that are one all have their pasts.
            if (!merges_ && made.gone[i] != 0) continue;
            const int64_t error = made.nodes.errors()[i] + least;
            if (error > tables_.budget) continue;
            const Arc& arc = *made.arcs[i];
            const Chain past = arena_.chain(made.nodes.cells()[i]);
            if (!completion_) {
                give(part, partition, arc, past, error, event, low);
                continue;
            }
            const Cell root{event.id, key(event), NEVER, past.cell, NIL, bound(event), arc.var, arc.number};
            const auto emit = [&](const Cell* const* path, size_t length) {
                completion_->trail(partition, event, path, length, state, error - least);
                return true;
            };
            const Cell* const alone = &root;
            if (past.cell == NIL) {
                emit(&alone, 1);
            } else {
                arena_.walk(past, low, &root, emit);
            }
        }
    }
}

void NodeEngine::give(Part& part, uint32_t partition, const Arc& arc, Chain past, int64_t error, const Event& event,
                      int64_t low) {
    const int64_t bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
    const Cell root{event.id, key(event), NEVER, past.cell, NIL, NIL, arc.var, arc.number};
    const size_t width = partitions_.width();
    const int64_t* keys = partitions_.key(partition);
    auto emit = [&](const Cell* const* path, size_t length) {
        const Cell& first = *path[length - 1];
        int64_t start = length == 1 ? event.ts : tables_.counted ? arena_.events[first.event].ts : first.latest;
        output_.start.push_back(start);
        output_.end.push_back(event.ts);
        output_.error.push_back(error);
        output_.bundle.push_back(bundle);
        output_.keys.insert(output_.keys.end(), keys, keys + width);
        const size_t at = output_.ids.size();
        output_.ids.resize(at + length);
        output_.vars.resize(at + length);
        for (size_t i = 0; i < length; ++i) {
            output_.ids[at + i] = path[length - 1 - i]->id;
            output_.vars[at + i] = path[length - 1 - i]->var;
        }
        output_.offsets.push_back(static_cast<int64_t>(at + length));
        return true;
    };
    if (past.cell == NIL) {
        const Cell* alone = &root;
        emit(&alone, 1);
    } else {
        arena_.walk(past, low, &root, emit);
    }
}

// Of the matches from number `first` on, all of one event, those with one binding become one, with the least error.
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
        if (auto c = std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end()); c != 0) return c < 0 ? -1 : 1;
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
    o.start.resize(to);
    o.end.resize(to);
    o.error.resize(to);
    o.bundle.resize(to);
    o.keys.resize(to * width);
    o.offsets.resize(to + 1);
    o.ids.resize(static_cast<size_t>(o.offsets[to]));
    o.vars.resize(static_cast<size_t>(o.offsets[to]));
}

// Time -------------------------------------------------------------------------------------------

void NodeEngine::alive(uint32_t partition, int64_t low, Alive& found) {
    if (partition >= parts_.size()) return;
    Part& part = parts_[partition];
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        for (uint32_t i = list.head; i < list.end; ++i) {
            if (list.starts()[i] < low) continue;
            found.firsts.push_back(list.slot(tables_.states[s].slots - 1)[i]);
            found.start = std::min(found.start, list.starts()[i]);
        }
    }
}

void NodeEngine::end() {
    for (Part& part : parts_) {
        for (NodeList& list : part.lists) list.clear();
    }
    if (completion_) completion_->end();
}

void NodeEngine::advance(int64_t clock) {
    clock_ = clock;
    if (completion_) completion_->settle(clock);
    if (tables_.span < 0 || tables_.counted) {
        if (arena_.cells.size() / 2 > kept_ + 2048) compact();
        if (frames_.size() / 2 > kept_frames_ + 2048) compact_frames();
        return;
    }
    const int64_t low = before(clock, tables_.span);
    while (!arena_.cells.empty() && arena_.events[arena_.cells[arena_.cells.tail()].event].ts < low) arena_.cells.drop();
    while (!arena_.events.empty() && arena_.events[arena_.events.tail()].ts < low) arena_.events.drop();
    while (!frames_.empty() && frames_[frames_.tail()].when < low) frames_.drop();
}

bool NodeEngine::idle(uint32_t partition, int64_t clock) {
    if (partition >= parts_.size()) return true;
    if (tables_.span < 0 || tables_.counted) return false;
    Part& part = parts_[partition];
    const int64_t low = before(clock, tables_.span);
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        if (!list.expire(low)) list.keep(tables_.states[s].slots, [&](uint32_t i) { return list.starts()[i] >= low; });
        if (!list.empty()) return false;
    }
    if (completion_ && !completion_->idle(partition, low)) return false;
    return !part.bundle.any || part.bundle.last_ts < low;
}

void NodeEngine::forget(uint32_t partition) {
    if (partition < parts_.size()) parts_[partition] = Part{};
    if (completion_) completion_->forget(partition);
}

int64_t NodeEngine::bytes() const {
    size_t total = arena_.cells.capacity() * sizeof(Cell) + arena_.events.capacity() * sizeof(BoundEvent) +
                   frames_.capacity() * sizeof(Frame) + arena_.kept.bytes() + parts_.capacity() * sizeof(Part);
    for (const Part& part : parts_) {
        total += part.lists.capacity() * sizeof(NodeList);
        for (const NodeList& list : part.lists) total += list.bytes();
    }
    return static_cast<int64_t>(total) + (completion_ ? completion_->bytes() : 0);
}

}  // namespace acep
