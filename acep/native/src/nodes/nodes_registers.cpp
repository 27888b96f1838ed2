// Registers of the node engine: predicates over blocks of candidates, and the registers of new nodes.
#include "nodes/nodes.hpp"

#include <bit>

#include "common/numbers.hpp"

namespace acep {

void NodeEngine::load(const Source& source, NodeList& list, uint32_t slots, const Event& event, size_t count,
                      size_t leaf) {
    static constexpr int64_t truth[2] = {0, 1};
    if (source.from == From::event) {
        const Column& c = event.batch->columns[static_cast<size_t>(source.a)];
        block_.leaves[leaf] = {c.values + event.row, c.valid == nullptr ? nullptr : c.valid + event.row, 0};
        return;
    }
    if (source.from == From::one) {
        bool null = source.a >= 0 && event.batch->columns[static_cast<size_t>(source.a)].null(event.row);
        block_.leaves[leaf] = {truth + (null ? 0 : 1), nullptr, 0};
        return;
    }
    const auto a = static_cast<uint32_t>(source.a);
    const int64_t* held = list.slot(a);
    if (source.from == From::slot && list.plain && block_.contiguous) {
        block_.leaves[leaf] = {held + block_.rows[0], nullptr, 1};
        return;
    }
    int64_t* words = block_.words.data() + leaf * block_rows;
    uint8_t* valid = block_.valid.data() + leaf * block_rows;
    const uint8_t* tags = list.tags(a, slots);
    bool whole = list.plain;
    if (!list.plain) {
        for (size_t i = 0; i < count; ++i) {
            uint8_t tag = tags[block_.rows[i]];
            valid[i] = tag == value ? 1 : 0;
            if (tag == unbound) {
                block_.dropped[i] = 1;
                block_.drops = true;
            }
        }
    } else {
        std::fill(valid, valid + count, uint8_t{1});
    }
    switch (source.from) {
        case From::total:
            for (size_t i = 0; i < count; ++i) {
                words[i] = held[block_.rows[i]];
                if (list.slot(a + 1)[block_.rows[i]] != (words[i] < 0 ? -1 : 0)) valid[i] = 0;
            }
            whole = false;
            break;
        case From::average:
        case From::mean: {
            const int64_t* number = list.slot(static_cast<uint32_t>(source.b));
            for (size_t i = 0; i < count; ++i) {
                int64_t n = number[block_.rows[i]];
                if (valid[i] == 0 || n == 0) {
                    valid[i] = 0;
                    words[i] = 0;
                    continue;
                }
                double mean =
                    source.from == From::mean
                        ? std::bit_cast<double>(held[block_.rows[i]]) / static_cast<double>(n)
                        : average(
                              static_cast<int128>(
                                  static_cast<uint128>(static_cast<uint64_t>(list.slot(a + 1)[block_.rows[i]])) << 64 |
                                  static_cast<uint64_t>(held[block_.rows[i]])),
                              n, source.places);
                words[i] = std::bit_cast<int64_t>(mean);
            }
            whole = false;
            break;
        }
        default:
            for (size_t i = 0; i < count; ++i) words[i] = held[block_.rows[i]];
    }
    block_.leaves[leaf] = {words, whole ? nullptr : valid, 1};
}

size_t NodeEngine::passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event,
                           size_t count) {
    for (const Check& check : checks) {
        if (count == 0) return 0;
        if (!check.loops.empty()) {
            for (size_t i = 0; i < count; ++i) {
                block_.pass[i] = 1;
                if (check.only >= 0) {
                    auto c = static_cast<uint32_t>(check.only);
                    int64_t n = list.tags(c, slots)[block_.rows[i]] == value ? list.slot(c)[block_.rows[i]] : 0;
                    if (n != check.turn) continue;
                }
                block_.pass[i] = all_frames(check, list, slots, event, block_.rows[i]) ? 1 : 0;
            }
        } else {
            block_.drops = false;
            if (!list.plain) std::fill(block_.dropped, block_.dropped + count, uint8_t{0});
            block_.room_for(check.sources.size());
            for (size_t k = 0; k < check.sources.size(); ++k) load(check.sources[k], list, slots, event, count, k);
            classifier_.programs()[check.program].test(block_.leaves.data(), count, classifier_.texts, block_.scratch,
                                                       block_.pass);
            if (block_.drops) {
                for (size_t i = 0; i < count; ++i) block_.pass[i] |= block_.dropped[i];
            }
            if (check.only >= 0) {
                auto c = static_cast<uint32_t>(check.only);
                for (size_t i = 0; i < count; ++i) {
                    int64_t n = list.tags(c, slots)[block_.rows[i]] == value ? list.slot(c)[block_.rows[i]] : 0;
                    if (n != check.turn) block_.pass[i] = 1;
                }
            }
        }
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i) {
            block_.rows[kept] = block_.rows[i];
            kept += block_.pass[i];
        }
        if (kept != count) block_.contiguous = false;
        count = kept;
    }
    return count;
}

// Test a predicate for all combinations of the frames in its loops.
bool NodeEngine::all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event, uint32_t row) {
    if (block_.loops.size() < check.loops.size()) block_.loops.resize(check.loops.size());
    size_t combinations = 1;
    for (size_t l = 0; l < check.loops.size(); ++l) {
        auto slot = static_cast<uint32_t>(check.loops[l]);
        if (list.tags(slot, slots)[row] != value) return true;
        block_.loops[l].clear();
        for (auto f = static_cast<uint32_t>(list.slot(slot)[row]); f != NIL; f = frames_[f].previous)
            block_.loops[l].push_back(f);
        combinations *= block_.loops[l].size();
    }
    const size_t leaves = check.sources.size();
    block_.room_for(leaves);
    // Sources other than frames are the same for all combinations: they are loaded as a block of one row.
    const uint32_t first = block_.rows[0];
    const bool contiguous = block_.contiguous;
    block_.rows[0] = row;
    block_.contiguous = false;
    block_.drops = false;
    block_.dropped[0] = 0;
    for (size_t k = 0; k < leaves; ++k) {
        if (check.sources[k].from == From::frame) {
            block_.leaves[k] = {block_.words.data() + k * block_rows, block_.valid.data() + k * block_rows, 1};
        } else {
            load(check.sources[k], list, slots, event, 1, k);
            block_.leaves[k].stride = 0;
        }
    }
    block_.rows[0] = first;
    block_.contiguous = contiguous;
    if (block_.drops) return true;
    uint8_t pass[block_rows];
    for (size_t at = 0; at < combinations; at += block_rows) {
        size_t count = std::min(combinations - at, block_rows);
        for (size_t k = 0; k < leaves; ++k) {
            const Source& s = check.sources[k];
            if (s.from != From::frame) continue;
            size_t stride = 1;
            for (size_t l = static_cast<size_t>(s.a) + 1; l < check.loops.size(); ++l) stride *= block_.loops[l].size();
            const auto& loop = block_.loops[static_cast<size_t>(s.a)];
            for (size_t i = 0; i < count; ++i) {
                const Frame& f = frames_[loop[(at + i) / stride % loop.size()]];
                block_.words[k * block_rows + i] = f.values[s.b];
                block_.valid[k * block_rows + i] = ((f.nulls >> s.b) & 1u) != 0 ? 0 : 1;
            }
        }
        classifier_.programs()[check.program].test(block_.leaves.data(), count, classifier_.texts, block_.scratch,
                                                   pass);
        for (size_t i = 0; i < count; ++i) {
            if (pass[i] == 0) return false;
        }
    }
    return true;
}

// New nodes --------------------------------------------------------------------------------------

void NodeEngine::make(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error, bool early) {
    if (bounded() && !has_room(arc)) {
        ++shed_->refused;
        return;
    }
    Made& made = made_[arc.target];
    if (made.arcs.empty()) touched_.push_back(arc.target);
    const uint32_t slots = tables_.states[arc.target].slots, old = tables_.states[arc.source].slots;
    const uint32_t i = made.nodes.add(slots, NEVER);
    made.nodes.starts()[i] = arc.source == 0 ? key(event) : list.starts()[row];
    made.nodes.positions()[i] = event.position;
    made.nodes.cells()[i] = list.cells()[row];
    made.nodes.errors()[i] = error;
    const size_t width = made.nodes.capacity(), old_width = list.capacity();
    int64_t* words = made.nodes.slot(0);
    uint8_t* tags = made.nodes.tags(0, slots);
    const int64_t* held = list.slot(0);
    const uint8_t* known = list.tags(0, old);
    for (const Put& p : arc.puts) {
        const size_t to = static_cast<size_t>(p.slot) * width + i;
        if (p.write == Write::copy && p.from >= 0) {
            const size_t from = static_cast<size_t>(p.from) * old_width + row;
            words[to] = held[from];
            tags[to] = known[from];
        } else if (p.write == Write::last && p.column >= 0) {
            const Column& c = event.batch->columns[static_cast<size_t>(p.column)];
            const bool empty = c.null(event.row);
            words[to] = empty ? 0 : c.values[event.row];
            tags[to] = empty ? null : value;
        } else {
            put(p, list, row, old, made.nodes, i, slots, event);
        }
    }
    if (shed_) {
        const size_t made_at = (slots - 2) * width + i, mark_at = made_at + width;
        words[made_at] = key(event);
        tags[made_at] = tags[mark_at] = value;
        words[mark_at] = (early ? admission_.own_mark : inherited(arc, list, row)).word();
    }
    for (uint32_t s = 0; s < slots && made.nodes.plain; ++s) made.nodes.plain = tags[s * width + i] == value;
    made.arcs.push_back(&arc);
    ++work_.nodes;
}

void NodeEngine::put(const Put& p, NodeList& from, uint32_t row, uint32_t old, NodeList& to, uint32_t made,
                     uint32_t slots, const Event& event) {
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
        case Write::copy: keep(); return;
        case Write::last: read(); return;
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
                auto total =
                    static_cast<uint128>(static_cast<uint64_t>(before_high)) << 64 | static_cast<uint64_t>(held);
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
            if (!empty && p.extra == 2) order = classifier_.texts.order(seen, held);
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
                // Loads one row as a block; the current rows are restored afterwards.
                const Source& s = sources[k];
                uint8_t has = unbound;
                int64_t word = 0;
                const uint32_t first = block_.rows[0];
                const bool contiguous = block_.contiguous, drops = block_.drops;
                block_.rows[0] = row;
                block_.contiguous = false;
                block_.drops = false;
                const uint8_t dropped = block_.dropped[0];
                block_.room_for(1);
                load(s, from, old, event, 1, 0);
                const Leaf& leaf = block_.leaves[0];
                word = leaf.values[0];
                has = block_.drops ? unbound : leaf.valid != nullptr && leaf.valid[0] == 0 ? null : value;
                block_.rows[0] = first;
                block_.contiguous = contiguous;
                block_.drops = drops;
                block_.dropped[0] = dropped;
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

}  // namespace acep
