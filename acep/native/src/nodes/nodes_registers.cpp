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
    const uint32_t* rows = block_.rows.data();
    if (source.from == From::slot && list.plain && block_.contiguous) {
        block_.leaves[leaf] = {held + rows[0], nullptr, 1};
        return;
    }
    int64_t* words = block_.words.data() + leaf * block_rows;
    uint8_t* valid = block_.valid.data() + leaf * block_rows;
    const uint8_t* tags = list.tags(a, slots);
    bool whole = list.plain;
    if (!list.plain) {
        for (size_t i = 0; i < count; ++i) {
            const uint8_t tag = tags[rows[i]];
            valid[i] = tag == value ? 1 : 0;
            if (tag == unbound) {
                block_.dropped[i] = 1;
                block_.drops = true;
            }
        }
    } else {
        std::fill(valid, valid + count, uint8_t{1});
    }
    if (source.from == From::average || source.from == From::mean) {
        whole = false;
        const int64_t* number = list.slot(static_cast<uint32_t>(source.b));
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = rows[i];
            const int64_t n = number[row];
            if (n == 0) valid[i] = 0;
            double mean = 0;
            if (valid[i] != 0 && source.from == From::mean) {
                mean = std::bit_cast<double>(held[row]) / static_cast<double>(n);
            } else if (valid[i] != 0) {
                mean = average(static_cast<int128>(wide(list.slot(a + 1)[row], held[row])), n, source.places);
            }
            words[i] = std::bit_cast<int64_t>(mean);
        }
    } else {
        for (size_t i = 0; i < count; ++i) words[i] = held[rows[i]];
    }
    if (source.from == From::total) {
        whole = false;
        for (size_t i = 0; i < count; ++i) {
            if (list.slot(a + 1)[rows[i]] != (words[i] < 0 ? -1 : 0)) valid[i] = 0;
        }
    }
    block_.leaves[leaf] = {words, whole ? nullptr : valid, 1};
}

// Load an input for one row, as a block of its own, and return its tag.
uint8_t NodeEngine::load_one(const Source& source, NodeList& list, uint32_t slots, const Event& event, uint32_t row,
                             size_t leaf) {
    const uint32_t first = std::exchange(block_.rows[0], row);
    const bool contiguous = std::exchange(block_.contiguous, false);
    block_.drops = false;
    load(source, list, slots, event, 1, leaf);
    block_.rows[0] = first;
    block_.contiguous = contiguous;
    const Leaf& loaded = block_.leaves[leaf];
    return block_.drops ? unbound : loaded.valid != nullptr && loaded.valid[0] == 0 ? null : value;
}

// Test a predicate for few rows in place, without a copy of its inputs. Return false if it needs one.
bool NodeEngine::few_passing(const Check& check, NodeList& list, const Event& event, size_t& count) {
    const BlockProgram& program = classifier_.programs()[check.program];
    if (!list.plain || check.only >= 0 || !check.loops.empty() || !program.short_way()) return false;
    block_.room_for(check.sources.size());
    Leaf* leaf = block_.leaves.data();
    for (const Source& source : check.sources) {
        if (source.from == From::slot) {
            *leaf++ = {list.slot(static_cast<uint32_t>(source.a)), nullptr, 1};
        } else if (source.from == From::event) {
            const Column& c = event.batch->columns[static_cast<size_t>(source.a)];
            *leaf++ = {c.values + event.row, c.valid == nullptr ? nullptr : c.valid + event.row, 0};
        } else {
            return false;
        }
    }
    uint32_t* rows = block_.rows.data();
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        rows[kept] = rows[i];
        kept += program.passes(block_.leaves.data(), rows[i]) ? 1 : 0;
    }
    if (kept != count) block_.contiguous = false;
    count = kept;
    return true;
}

size_t NodeEngine::passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots, const Event& event,
                           size_t count) {
    uint32_t* rows = block_.rows.data();
    uint8_t* pass = block_.pass;
    for (const Check& check : checks) {
        if (count == 0) return 0;
        if (count <= few_rows && few_passing(check, list, event, count)) continue;
        const auto exempt = [&](uint32_t row) {
            const auto only = static_cast<uint32_t>(check.only);
            return check.only >= 0 && (list.tags(only, slots)[row] == value ? list.slot(only)[row] : 0) != check.turn;
        };
        if (!check.loops.empty()) {
            for (size_t i = 0; i < count; ++i) {
                pass[i] = exempt(rows[i]) || all_frames(check, list, slots, event, rows[i]) ? 1 : 0;
            }
        } else {
            block_.drops = false;
            if (!list.plain) std::fill(block_.dropped, block_.dropped + count, uint8_t{0});
            block_.room_for(check.sources.size());
            for (size_t k = 0; k < check.sources.size(); ++k) load(check.sources[k], list, slots, event, count, k);
            run(check.program, count, pass);
            for (size_t i = 0; i < count && block_.drops; ++i) pass[i] |= block_.dropped[i];
            for (size_t i = 0; i < count && check.only >= 0; ++i) pass[i] = exempt(rows[i]) ? 1 : pass[i];
        }
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i) {
            rows[kept] = rows[i];
            kept += pass[i];
        }
        if (kept != count) block_.contiguous = false;
        count = kept;
    }
    return count;
}

// Run a predicate on the inputs that are loaded.
void NodeEngine::run(uint32_t program, size_t count, uint8_t* pass) {
    classifier_.programs()[program].test(block_.leaves.data(), count, classifier_.texts, block_.scratch, pass);
}

// Test a predicate for all combinations of the frames in its loops.
bool NodeEngine::all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event, uint32_t row) {
    auto& loops = block_.loops;
    if (loops.size() < check.loops.size()) loops.resize(check.loops.size());
    size_t combinations = 1;
    for (size_t l = 0; l < check.loops.size(); ++l) {
        const auto slot = static_cast<uint32_t>(check.loops[l]);
        if (list.tags(slot, slots)[row] != value) return true;
        loops[l].clear();
        for (auto f = static_cast<uint32_t>(list.slot(slot)[row]); f != NIL; f = frames_[f].previous) {
            loops[l].push_back(f);
        }
        combinations *= loops[l].size();
    }
    const size_t leaves = check.sources.size();
    block_.room_for(leaves);
    for (size_t k = 0; k < leaves; ++k) {
        if (check.sources[k].from == From::frame) {
            block_.leaves[k] = {block_.words.data() + k * block_rows, block_.valid.data() + k * block_rows, 1};
        } else {  // the same for all combinations
            if (load_one(check.sources[k], list, slots, event, row, k) == unbound) return true;
            block_.leaves[k].stride = 0;
        }
    }
    uint8_t pass[block_rows];
    for (size_t at = 0; at < combinations; at += block_rows) {
        const size_t count = std::min(combinations - at, block_rows);
        for (size_t k = 0; k < leaves; ++k) {
            const Source& s = check.sources[k];
            if (s.from != From::frame) continue;
            size_t stride = 1;
            for (size_t l = static_cast<size_t>(s.a) + 1; l < check.loops.size(); ++l) stride *= loops[l].size();
            const auto& loop = loops[static_cast<size_t>(s.a)];
            for (size_t i = 0; i < count; ++i) {
                const Frame& f = frames_[loop[(at + i) / stride % loop.size()]];
                block_.words[k * block_rows + i] = f.values[s.b];
                block_.valid[k * block_rows + i] = ((f.nulls >> s.b) & 1u) != 0 ? 0 : 1;
            }
        }
        run(check.program, count, pass);
        if (std::find(pass, pass + count, 0) != pass + count) return false;
    }
    return true;
}

// New nodes --------------------------------------------------------------------------------------

// Replace an assignment that needs no run of its program.
void NodeEngine::simplify(Put& put) {
    if (put.write != Write::assign) return;
    const Assign& assign = tables_.assigns[static_cast<size_t>(put.extra)];
    const BlockProgram& program = classifier_.programs()[assign.program];
    if (const BlockProgram::Sum* sum = program.sum()) {
        const Source& source = assign.sources[sum->input];
        if (source.from == From::slot) put = {Write::plus, put.slot, source.a, -1, -1, sum->added};
    } else if (program.copies() && assign.sources[0].from == From::event) {
        put = {Write::last, put.slot, -1, assign.sources[0].a, -1, 0};
    } else if (program.leaves() == 0) {
        int64_t word = 0;
        uint8_t known = 0;
        program.value(nullptr, 1, classifier_.texts, block_.scratch, &word, &known);
        if (known != 0) put = {Write::constant, put.slot, -1, -1, -1, word};
    }
}

void NodeEngine::make(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, int64_t price,
                      bool early) {
    if (bounded() && !has_room(arc)) {
        ++shed_->admission.refused;
        return;
    }
    Made& made = made_[arc.target];
    if (made.arcs.empty()) touched_.push_back(arc.target);
    const uint32_t slots = tables_.states[arc.target].slots;
    const uint32_t i = made.nodes.extend(slots, rows.size());
    const size_t n = rows.size(), width = made.nodes.capacity();
    // Set rows [i, i + n) of a column.
    const auto each = [&](auto* column, auto&& content) {
        for (size_t k = 0; k < n; ++k) column[i + k] = content(rows[k]);
    };
    const int64_t now = key(event);
    {
        int64_t *starts = made.nodes.starts() + i, *positions = made.nodes.positions() + i;
        uint32_t* cells = made.nodes.cells() + i;
        int32_t* errors = made.nodes.errors() + i;
        const int64_t* begun = list.starts();
        const uint32_t* pasts = list.cells();
        const int32_t* paid = list.errors();
        for (size_t k = 0; k < n; ++k) {
            const uint32_t row = rows[k];
            starts[k] = arc.source == 0 ? now : begun[row];
            positions[k] = event.position;
            cells[k] = pasts[row];
            errors[k] = paid[row] + static_cast<int32_t>(price);
        }
    }
    fill(arc, list, rows, event, made.nodes, i);
    if (shed_) {
        const size_t made_at = (slots - 2) * width, mark_at = made_at + width;
        int64_t* words = made.nodes.slot(0);
        uint8_t* tags = made.nodes.tags(0, slots);
        each(words + made_at, [&](uint32_t) { return now; });
        each(words + mark_at,
             [&](uint32_t row) { return (early ? admission_.own_mark : inherited(arc, list, row)).word(); });
        for (const size_t at : {made_at, mark_at}) each(tags + at, [](uint32_t) { return value; });
    }
    made.arcs.insert(made.arcs.end(), n, &arc);
    work_.nodes += static_cast<int64_t>(n);
}

// Set the registers of new nodes from `first` on, one for each of some rows; those of shedding are not set.
void NodeEngine::fill(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, NodeList& to,
                      uint32_t first) {
    const uint32_t slots = tables_.states[arc.target].slots, old = tables_.states[arc.source].slots;
    const size_t n = rows.size(), width = to.capacity(), old_width = list.capacity();
    int64_t* words = to.slot(0) + first;
    uint8_t* tags = to.tags(0, slots) + first;
    const int64_t* held = list.slot(0);
    const uint8_t* known = list.tags(0, old);
    bool plain = to.plain;
    size_t written = admission_.hidden;
    for (const Put& p : arc.puts) {
        written += p.write == Write::sum ? 2 : 1;
        int64_t* word = words + static_cast<size_t>(p.slot) * width;
        uint8_t* tag = tags + static_cast<size_t>(p.slot) * width;
        const size_t from = static_cast<size_t>(p.from) * old_width;
        const auto set = [&](int64_t content, Tag as) {
            for (size_t k = 0; k < n; ++k) word[k] = content, tag[k] = as;
            plain = plain && as == value;
        };
        if (p.write == Write::copy && p.from >= 0) {
            for (size_t k = 0; k < n; ++k) {
                word[k] = held[from + rows[k]];
                tag[k] = known[from + rows[k]];
                plain = plain && tag[k] == value;
            }
        } else if (p.write == Write::plus) {
            for (size_t k = 0; k < n; ++k) {
                const bool over = __builtin_add_overflow(held[from + rows[k]], p.extra, &word[k]);
                tag[k] = over || known[from + rows[k]] != value ? null : value;
                plain = plain && tag[k] == value;
            }
        } else if (p.write == Write::constant) {
            set(p.extra, value);
        } else if (p.write == Write::last && p.column >= 0) {
            const Column& c = event.batch->columns[static_cast<size_t>(p.column)];
            set(c.word(event.row), c.null(event.row) ? null : value);
        } else {
            for (size_t k = 0; k < n; ++k) {
                put(p, list, rows[k], old, to, first + static_cast<uint32_t>(k), slots, event);
                plain = plain && tag[k] == value;
            }
        }
    }
    to.plain = plain && written == slots;
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
        seen = c.word(event.row);
    }
    const auto set = [&](int64_t word, uint8_t as) {
        out = word;
        tag = as;
    };
    const auto read = [&] { set(seen, empty ? null : value); };
    const auto keep = [&] { set(held, known); };
    const auto past = known == value ? static_cast<uint64_t>(held) : 0;
    switch (p.write) {
        case Write::copy: return keep();
        case Write::last: return read();
        case Write::position: return set(p.from >= 0 ? held : event.position, value);
        case Write::count: return set(static_cast<int64_t>(past + 1), value);
        case Write::nonnull: return set(static_cast<int64_t>(past + (empty ? 0u : 1u)), value);
        case Write::nth: {
            if (known != unbound) return keep();
            int64_t count = 0;
            if (p.counter >= 0 && from.tags(static_cast<uint32_t>(p.counter), old)[row] == value) {
                count = from.slot(static_cast<uint32_t>(p.counter))[row];
            }
            return p.extra == 1 || count == p.extra - 1 ? read() : set(0, unbound);
        }
        case Write::sum: {
            int64_t& high = to.slot(slot + 1)[made];
            if (known != value) {
                read();
                high = out < 0 ? -1 : 0;
            } else {
                const int64_t old_high = from.slot(static_cast<uint32_t>(p.from) + 1)[row];
                const uint128 total = wide(old_high, held) + static_cast<uint128>(int128{seen});
                set(static_cast<int64_t>(total), value);
                high = static_cast<int64_t>(total >> 64);
            }
            to.tags(slot + 1, slots)[made] = tag;
            return;
        }
        case Write::add:
            if (known != value) return read();
            if (empty) return keep();
            return set(std::bit_cast<int64_t>(std::bit_cast<double>(held) + std::bit_cast<double>(seen)), value);
        case Write::least:
        case Write::greatest: {
            if (known != value) return read();
            const int order = empty ? 0 : order_of(p.extra, seen, held, classifier_.texts);
            return (p.write == Write::least ? order < 0 : order > 0) ? read() : keep();
        }
        case Write::assign: {
            const Assign& assign = tables_.assigns[static_cast<size_t>(p.extra)];
            int64_t word = 0;
            uint8_t valid = 0;
            const BlockProgram& program = classifier_.programs()[assign.program];
            block_.room_for(assign.sources.size());
            for (size_t k = 0; k < assign.sources.size(); ++k) load_one(assign.sources[k], from, old, event, row, k);
            program.value(block_.leaves.data(), 1, classifier_.texts, block_.scratch, &word, &valid);
            return set(word, valid != 0 ? value : null);
        }
        case Write::plus:
        case Write::constant: return;  // `make` does both
        case Write::frames: {
            Frame frame{key(event), known == value ? static_cast<uint32_t>(held) : NIL, 0, {}};
            const auto& sources = tables_.frames[static_cast<size_t>(p.extra)];
            for (size_t k = 0; k < sources.size(); ++k) {
                block_.room_for(1);
                const uint8_t has = load_one(sources[k], from, old, event, row, 0);
                if (has == unbound) return keep();
                frame.values[k] = block_.leaves[0].values[0];
                if (has == null) frame.nulls |= 1u << k;
            }
            return set(frames_.push(frame), value);
        }
    }
}

}  // namespace acep
