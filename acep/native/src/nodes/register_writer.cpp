// Registers of new partial matches (nodes/register_writer.hpp).
#include "nodes/register_writer.hpp"

#include <bit>

#include "common/numbers.hpp"

namespace acep {

void RegisterWriter::simplify(Put& put) {
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
        if (evaluator_.compute_constant(program, word)) put = {Write::constant, put.slot, -1, -1, -1, word};
    }
}

void RegisterWriter::write(const Arc& arc, NodeList& from, std::span<const uint32_t> rows, const Event& event,
                           NodeList& to, uint32_t first, uint32_t hidden) {
    const uint32_t slots = tables_.states[arc.target].slots, old_slots = tables_.states[arc.source].slots;
    const size_t n = rows.size(), width = to.capacity(), old_width = from.capacity();
    int64_t* words = to.slot(0) + first;
    uint8_t* tags = to.tags(0, slots) + first;
    const int64_t* old_words = from.slot(0);
    const uint8_t* old_tags = from.tags(0, old_slots);
    bool plain = to.plain;
    size_t written = hidden;
    for (const Put& p : arc.puts) {
        written += p.write == Write::sum ? 2 : 1;
        int64_t* word = words + static_cast<size_t>(p.slot) * width;
        uint8_t* tag = tags + static_cast<size_t>(p.slot) * width;
        const size_t column = static_cast<size_t>(p.from) * old_width;
        const auto set = [&](int64_t content, Tag as) {
            for (size_t k = 0; k < n; ++k) word[k] = content, tag[k] = as;
            plain = plain && as == value;
        };
        if (p.write == Write::copy && p.from >= 0) {
            for (size_t k = 0; k < n; ++k) {
                word[k] = old_words[column + rows[k]];
                tag[k] = old_tags[column + rows[k]];
                plain = plain && tag[k] == value;
            }
        } else if (p.write == Write::plus) {
            for (size_t k = 0; k < n; ++k) {
                const bool over = __builtin_add_overflow(old_words[column + rows[k]], p.extra, &word[k]);
                tag[k] = over || old_tags[column + rows[k]] != value ? null : value;
                plain = plain && tag[k] == value;
            }
        } else if (p.write == Write::constant) {
            set(p.extra, value);
        } else if (p.write == Write::last && p.column >= 0) {
            const Column& c = event.batch->columns[static_cast<size_t>(p.column)];
            set(c.word(event.row), c.null(event.row) ? null : value);
        } else {
            for (size_t k = 0; k < n; ++k) {
                write_one(p, {from, rows[k], old_slots}, {to, first + static_cast<uint32_t>(k), slots}, event);
                plain = plain && tag[k] == value;
            }
        }
    }
    to.plain = plain && written == slots;
}

void RegisterWriter::write_one(const Put& p, Place from, Place to, const Event& event) {
    const auto slot = static_cast<uint32_t>(p.slot);
    int64_t& word = to.list.slot(slot)[to.row];
    uint8_t& tag = to.list.tags(slot, to.slots)[to.row];
    uint8_t old_tag = unbound;
    int64_t old_word = 0;
    if (p.from >= 0) {
        old_tag = from.list.tags(static_cast<uint32_t>(p.from), from.slots)[from.row];
        old_word = from.list.slot(static_cast<uint32_t>(p.from))[from.row];
    }
    bool null_attribute = true;
    int64_t attribute = 0;
    if (p.column >= 0) {
        const Column& c = event.batch->columns[static_cast<size_t>(p.column)];
        null_attribute = c.null(event.row);
        attribute = c.word(event.row);
    }
    const auto set = [&](int64_t content, uint8_t as) {
        word = content;
        tag = as;
    };
    const auto read = [&] { set(attribute, null_attribute ? null : value); };
    const auto keep = [&] { set(old_word, old_tag); };
    const auto number = old_tag == value ? static_cast<uint64_t>(old_word) : 0;
    switch (p.write) {
        case Write::copy: return keep();
        case Write::last: return read();
        case Write::position: return set(p.from >= 0 ? old_word : event.position, value);
        case Write::count: return set(static_cast<int64_t>(number + 1), value);
        case Write::nonnull: return set(static_cast<int64_t>(number + (null_attribute ? 0u : 1u)), value);
        case Write::nth: {
            if (old_tag != unbound) return keep();
            int64_t count = 0;
            if (p.counter >= 0 && from.list.tags(static_cast<uint32_t>(p.counter), from.slots)[from.row] == value) {
                count = from.list.slot(static_cast<uint32_t>(p.counter))[from.row];
            }
            return p.extra == 1 || count == p.extra - 1 ? read() : set(0, unbound);
        }
        case Write::sum: return write_sum(p, from, to, attribute, null_attribute);
        case Write::add:
            if (old_tag != value) return read();
            if (null_attribute) return keep();
            return set(std::bit_cast<int64_t>(std::bit_cast<double>(old_word) + std::bit_cast<double>(attribute)),
                       value);
        case Write::least:
        case Write::greatest: {
            if (old_tag != value) return read();
            const int order = null_attribute ? 0 : order_of(p.extra, attribute, old_word, classifier_.texts);
            return (p.write == Write::least ? order < 0 : order > 0) ? read() : keep();
        }
        case Write::assign: {
            int64_t content = 0;
            const Assign& assign = tables_.assigns[static_cast<size_t>(p.extra)];
            const bool valid = evaluator_.compute(assign, from.list, from.slots, event, from.row, content);
            return set(content, valid ? value : null);
        }
        case Write::plus:
        case Write::constant: return;  // `write` does both
        case Write::frames: {
            uint32_t frame = NIL;
            const uint32_t previous = old_tag == value ? static_cast<uint32_t>(old_word) : NIL;
            return add_frame(p, from, event, previous, frame) ? set(frame, value) : keep();
        }
    }
}

void RegisterWriter::write_sum(const Put& p, Place from, Place to, int64_t summand, bool null_summand) {
    const auto slot = static_cast<uint32_t>(p.slot), old_slot = static_cast<uint32_t>(p.from);
    int64_t &low = to.list.slot(slot)[to.row], &high = to.list.slot(slot + 1)[to.row];
    const bool adds = p.from >= 0 && from.list.tags(old_slot, from.slots)[from.row] == value;
    uint8_t tag = value;
    if (adds) {
        const uint128 sum = wide(from.list.slot(old_slot + 1)[from.row], from.list.slot(old_slot)[from.row]) +
                            static_cast<uint128>(int128{summand});
        low = static_cast<int64_t>(sum);
        high = static_cast<int64_t>(sum >> 64);
    } else {
        low = summand;
        high = low < 0 ? -1 : 0;
        tag = null_summand ? null : value;
    }
    to.list.tags(slot, to.slots)[to.row] = to.list.tags(slot + 1, to.slots)[to.row] = tag;
}

bool RegisterWriter::add_frame(const Put& p, Place from, const Event& event, uint32_t previous, uint32_t& number) {
    Frame frame{tables_.key(event), previous, 0, {}};
    const auto& sources = tables_.frames[static_cast<size_t>(p.extra)];
    for (size_t k = 0; k < sources.size(); ++k) {
        const uint8_t tag = evaluator_.read(sources[k], from.list, from.slots, event, from.row, frame.values[k]);
        if (tag == unbound) return false;
        if (tag == null) frame.nulls |= 1u << k;
    }
    number = frames_.push(frame);
    return true;
}

}  // namespace acep
