// Predicates over blocks of candidates (nodes/check_evaluator.hpp): their inputs are loaded as columns, or taken in
// place.
#include "nodes/check_evaluator.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/numbers.hpp"

namespace acep {

void CheckEvaluator::load(const Source& source, NodeList& list, uint32_t slots, const Event& event, size_t count,
                          size_t leaf) {
    static constexpr int64_t truth[2] = {0, 1};
    if (source.from == From::event) {
        const Column& column = event.batch->columns[static_cast<size_t>(source.a)];
        leaves_[leaf] = {column.values + event.row, column.valid == nullptr ? nullptr : column.valid + event.row, 0};
        return;
    }
    if (source.from == From::one) {
        const bool null = source.a >= 0 && event.batch->columns[static_cast<size_t>(source.a)].null(event.row);
        leaves_[leaf] = {truth + (null ? 0 : 1), nullptr, 0};
        return;
    }
    if (source.from == From::slot && list.plain && contiguous_) {
        leaves_[leaf] = {list.slot(static_cast<uint32_t>(source.a)) + rows_[0], nullptr, 1};
        return;
    }
    load_registers(source, list, slots, count, leaf);
}

void CheckEvaluator::load_registers(const Source& source, NodeList& list, uint32_t slots, size_t count, size_t leaf) {
    const auto slot = static_cast<uint32_t>(source.a);
    const int64_t* registers = list.slot(slot);
    const uint32_t* rows = rows_.data();
    int64_t* words = words_.data() + leaf * block_rows;
    uint8_t* valid = valid_.data() + leaf * block_rows;
    const uint8_t* tags = list.tags(slot, slots);
    bool all_valid = list.plain;
    if (!list.plain) {
        for (size_t i = 0; i < count; ++i) {
            const uint8_t tag = tags[rows[i]];
            valid[i] = tag == value ? 1 : 0;
            if (tag == unbound) {
                dropped_[i] = 1;
                drops_ = true;
            }
        }
    } else {
        std::fill(valid, valid + count, uint8_t{1});
    }
    if (source.from == From::average || source.from == From::mean) {
        all_valid = false;
        const int64_t* numbers = list.slot(static_cast<uint32_t>(source.b));
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = rows[i];
            const int64_t n = numbers[row];
            if (n == 0) valid[i] = 0;
            double mean = 0;
            if (valid[i] != 0 && source.from == From::mean) {
                mean = std::bit_cast<double>(registers[row]) / static_cast<double>(n);
            } else if (valid[i] != 0) {
                mean = average(static_cast<int128>(wide(list.slot(slot + 1)[row], registers[row])), n, source.places);
            }
            words[i] = std::bit_cast<int64_t>(mean);
        }
    } else {
        for (size_t i = 0; i < count; ++i) words[i] = registers[rows[i]];
    }
    if (source.from == From::total) {
        all_valid = false;
        for (size_t i = 0; i < count; ++i) {
            if (list.slot(slot + 1)[rows[i]] != (words[i] < 0 ? -1 : 0)) valid[i] = 0;
        }
    }
    leaves_[leaf] = {words, all_valid ? nullptr : valid, 1};
}

uint8_t CheckEvaluator::load_one(const Source& source, NodeList& list, uint32_t slots, const Event& event, uint32_t row,
                                 size_t leaf) {
    const uint32_t first = std::exchange(rows_[0], row);
    const bool contiguous = std::exchange(contiguous_, false);
    drops_ = false;
    load(source, list, slots, event, 1, leaf);
    rows_[0] = first;
    contiguous_ = contiguous;
    const Leaf& loaded = leaves_[leaf];
    return drops_ ? unbound : loaded.valid != nullptr && loaded.valid[0] == 0 ? null : value;
}

uint8_t CheckEvaluator::read(const Source& source, NodeList& list, uint32_t slots, const Event& event, uint32_t row,
                             int64_t& word) {
    make_room_for(1);
    const uint8_t tag = load_one(source, list, slots, event, row, 0);
    word = leaves_[0].values[0];
    return tag;
}

bool CheckEvaluator::compute(const Assign& assign, NodeList& list, uint32_t slots, const Event& event, uint32_t row,
                             int64_t& word) {
    uint8_t valid = 0;
    make_room_for(assign.sources.size());
    for (size_t k = 0; k < assign.sources.size(); ++k) load_one(assign.sources[k], list, slots, event, row, k);
    classifier_.programs()[assign.program].value(leaves_.data(), 1, classifier_.texts, scratch_, &word, &valid);
    return valid != 0;
}

bool CheckEvaluator::compute_constant(const BlockProgram& program, int64_t& word) {
    uint8_t valid = 0;
    program.value(nullptr, 1, classifier_.texts, scratch_, &word, &valid);
    return valid != 0;
}

bool CheckEvaluator::keep_few_passing(const Check& check, NodeList& list, const Event& event, size_t& count) {
    const BlockProgram& program = classifier_.programs()[check.program];
    if (!list.plain || check.only >= 0 || !check.loops.empty() || !program.short_way()) return false;
    make_room_for(check.sources.size());
    Leaf* leaf = leaves_.data();
    for (const Source& source : check.sources) {
        if (source.from == From::slot) {
            *leaf++ = {list.slot(static_cast<uint32_t>(source.a)), nullptr, 1};
        } else if (source.from == From::event) {
            const Column& column = event.batch->columns[static_cast<size_t>(source.a)];
            *leaf++ = {column.values + event.row, column.valid == nullptr ? nullptr : column.valid + event.row, 0};
        } else {
            return false;
        }
    }
    uint32_t* rows = rows_.data();
    size_t passing = 0;
    for (size_t i = 0; i < count; ++i) {
        rows[passing] = rows[i];
        passing += program.passes(leaves_.data(), rows[i]) ? 1 : 0;
    }
    if (passing != count) contiguous_ = false;
    count = passing;
    return true;
}

size_t CheckEvaluator::keep_passing(const std::vector<Check>& checks, NodeList& list, uint32_t slots,
                                    const Event& event, size_t count) {
    uint32_t* rows = rows_.data();
    uint8_t* pass = pass_;
    for (const Check& check : checks) {
        if (count == 0) return 0;
        if (count <= few_rows && keep_few_passing(check, list, event, count)) continue;
        const auto is_exempt = [&](uint32_t row) {
            const auto only = static_cast<uint32_t>(check.only);
            return check.only >= 0 && (list.tags(only, slots)[row] == value ? list.slot(only)[row] : 0) != check.turn;
        };
        if (!check.loops.empty()) {
            for (size_t i = 0; i < count; ++i) {
                pass[i] = is_exempt(rows[i]) || holds_for_all_frames(check, list, slots, event, rows[i]) ? 1 : 0;
            }
        } else {
            drops_ = false;
            if (!list.plain) std::fill(dropped_, dropped_ + count, uint8_t{0});
            make_room_for(check.sources.size());
            for (size_t k = 0; k < check.sources.size(); ++k) load(check.sources[k], list, slots, event, count, k);
            run(check.program, count, pass);
            for (size_t i = 0; i < count && drops_; ++i) pass[i] |= dropped_[i];
            for (size_t i = 0; i < count && check.only >= 0; ++i) pass[i] = is_exempt(rows[i]) ? 1 : pass[i];
        }
        size_t passing = 0;
        for (size_t i = 0; i < count; ++i) {
            rows[passing] = rows[i];
            passing += pass[i];
        }
        if (passing != count) contiguous_ = false;
        count = passing;
    }
    return count;
}

void CheckEvaluator::run(uint32_t program, size_t count, uint8_t* pass) {
    classifier_.programs()[program].test(leaves_.data(), count, classifier_.texts, scratch_, pass);
}

size_t CheckEvaluator::list_frames(const Check& check, NodeList& list, uint32_t slots, uint32_t row) {
    if (loops_.size() < check.loops.size()) loops_.resize(check.loops.size());
    size_t combinations = 1;
    for (size_t l = 0; l < check.loops.size(); ++l) {
        const auto slot = static_cast<uint32_t>(check.loops[l]);
        if (list.tags(slot, slots)[row] != value) return 0;
        loops_[l].clear();
        for (auto f = static_cast<uint32_t>(list.slot(slot)[row]); f != NIL; f = frames_[f].previous) {
            loops_[l].push_back(f);
        }
        combinations *= loops_[l].size();
    }
    return combinations;
}

bool CheckEvaluator::holds_for_all_frames(const Check& check, NodeList& list, uint32_t slots, const Event& event,
                                          uint32_t row) {
    const size_t combinations = list_frames(check, list, slots, row);
    if (combinations == 0) return true;
    const size_t leaves = check.sources.size();
    make_room_for(leaves);
    for (size_t k = 0; k < leaves; ++k) {
        if (check.sources[k].from == From::frame) {
            leaves_[k] = {words_.data() + k * block_rows, valid_.data() + k * block_rows, 1};
        } else {  // the same for all combinations
            if (load_one(check.sources[k], list, slots, event, row, k) == unbound) return true;
            leaves_[k].stride = 0;
        }
    }
    uint8_t pass[block_rows];
    for (size_t first = 0; first < combinations; first += block_rows) {
        const size_t count = std::min(combinations - first, block_rows);
        for (size_t k = 0; k < leaves; ++k) {
            const Source& source = check.sources[k];
            if (source.from != From::frame) continue;
            size_t stride = 1;
            for (size_t l = static_cast<size_t>(source.a) + 1; l < check.loops.size(); ++l) stride *= loops_[l].size();
            const auto& loop = loops_[static_cast<size_t>(source.a)];
            for (size_t i = 0; i < count; ++i) {
                const Frame& frame = frames_[loop[(first + i) / stride % loop.size()]];
                words_[k * block_rows + i] = frame.values[source.b];
                valid_[k * block_rows + i] = ((frame.nulls >> source.b) & 1u) != 0 ? 0 : 1;
            }
        }
        run(check.program, count, pass);
        if (std::find(pass, pass + count, 0) != pass + count) return false;
    }
    return true;
}

}  // namespace acep
