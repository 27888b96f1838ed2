// The classification of events, done once for all plans. A *class* is a set of types and the conditions on a single
// event that an arc requires. The classes of an event are a bit vector. Each distinct vector that occurs gets a
// number, its *pattern*, by which engines look up the effect of the event (docs/internals/native.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "common/arena.hpp"
#include "common/columns.hpp"
#include "common/hash.hpp"
#include "expression/vm.hpp"
#include "plan/tables.hpp"

namespace acep {

// The conditions of an arc on an event alone: its types, and the conditions on its columns.
struct EventClass {
    bool any;                    // any type, or no type
    std::vector<int64_t> types;  // codes
    std::vector<Check> checks;   // they read columns of the event only
};

// The rows of a block by their types, each as a list from the last row to the first.
class RowsOfTypes {
public:
    // Forget all rows.
    void clear() {
        for (const size_t type : types_) heads_[type] = none;
        types_.clear();
    }
    // Add a row of the block, after those before it. `type`: any small number.
    void add(size_t type, uint16_t row) {
        if (type >= heads_.size()) heads_.resize(type + 1, none);
        if (heads_[type] == none) types_.push_back(type);
        earlier_[row] = heads_[type];
        heads_[type] = row;
    }
    // Call fn(row) for the rows of a type.
    template <class Fn>
    void each(size_t type, Fn&& fn) const {
        if (type >= heads_.size()) return;
        for (uint16_t row = heads_[type]; row != none; row = earlier_[row]) fn(row);
    }

private:
    static constexpr uint16_t none = 0xffff;
    std::vector<uint16_t> heads_;  // by type: its last row
    std::vector<size_t> types_;    // that have rows
    uint16_t earlier_[block_rows];  // by row: the one before it of its type
};

// Numbers the event patterns of a stream, the sets of classes that events have, and finds the pattern of each
// event.
class EventClassifier {
public:
    EventClassifier(Texts& texts_of_stream, std::vector<BlockProgram> programs, std::vector<EventClass> classes)
        : texts(texts_of_stream) {
        renew(std::move(programs), std::move(classes));
    }

    // Classify by other classes from now on. The numbers of patterns known before mean nothing any more.
    void renew(std::vector<BlockProgram> programs, std::vector<EventClass> classes) {
        programs_ = std::move(programs);
        classes_ = std::move(classes);
        words_ = std::max<size_t>(1, (classes_.size() + 63) / 64);
        of_type_.clear();
        by_word_.clear();
        by_words_.clear();
        for (auto* known : {&masks_, &bits_}) known->clear();
        few_.clear();
        forget_ahead();
        std::vector<uint64_t> none(words_, 0);
        of_any_.assign(words_, 0);
        for (size_t c = 0; c < classes_.size(); ++c) {
            if (classes_[c].any) of_any_[c / 64] |= uint64_t{1} << (c % 64);
        }
        for (size_t c = 0; c < classes_.size(); ++c) {
            for (int64_t type : classes_[c].types) {
                auto& mask = of_type_.try_emplace(type, of_any_).first->second;
                mask[c / 64] |= uint64_t{1} << (c % 64);
            }
        }
        intern(none.data());  // pattern 0: no class
    }

    Texts& texts;
    // Return the programs of the session's predicates.
    const std::vector<BlockProgram>& programs() const { return programs_; }
    // Return the number of patterns so far: their numbers are below it.
    size_t patterns() const { return bits_.size() / words_; }

    // Return whether events of a pattern have an event class.
    bool has(uint32_t pattern, uint32_t event_class) const {
        return ((bits_[pattern * words_ + event_class / 64] >> (event_class % 64)) & 1) != 0;
    }

    // Return the classes of a pattern as bits, or the pattern of bits; std::invalid_argument if they are invalid.
    std::span<const uint64_t> bits(uint32_t pattern) const { return {bits_.data() + pattern * words_, words_}; }
    uint32_t pattern_of(std::span<const uint64_t> bits) {
        const bool beyond = classes_.size() % 64 != 0 && !bits.empty() && (bits.back() >> (classes_.size() % 64)) != 0;
        if (bits.size() != words_ || beyond || (classes_.empty() && bits[0] != 0)) {
            throw std::invalid_argument("these are no classes of events");
        }
        return intern(bits.data());
    }

    // Write the patterns of the rows [from, from + n), n <= block_rows.
    void classify(const Batch& batch, size_t from, size_t n, uint32_t* pattern) {
        if (has_ahead(from, n)) {
            std::copy_n(ahead_.data() + from, n, pattern);
            return;
        }
        classify_now(batch, from, n, pattern);
    }
    // Return the patterns by row of a batch, in which those of the rows [from, to) are right. They stay so until
    // `forget_ahead` is called. However many engines look ahead, each row is classified once.
    const uint32_t* classify_ahead(const Batch& batch, size_t from, size_t to) {
        if (ahead_.size() < batch.size) ahead_.resize(batch.size);
        ahead_blocks_.resize(std::max(ahead_blocks_.size(), batch.size / block_rows + 1), 0);
        for (size_t block = from / block_rows; block * block_rows < to; ++block) {
            if (ahead_blocks_[block] != 0) continue;
            const size_t first = block * block_rows;
            classify_now(batch, first, std::min(block_rows, batch.size - first), ahead_.data() + first);
            ahead_blocks_[block] = 1;
        }
        return ahead_.data();
    }
    // Forget the patterns of rows ahead: another batch comes.
    void forget_ahead() { ahead_blocks_.clear(); }
    // Return the bytes of the patterns of rows ahead.
    int64_t ahead_bytes() const { return heap_bytes(ahead_, ahead_blocks_); }

private:
    // With so few classes 16 bits suffice, and every vector has its entry in a table.
    static constexpr size_t few_classes = 12;
    static constexpr size_t part_of_few = 4;  // of a block: a class of fewer rows is tested for these alone
    static constexpr size_t most_types = size_t{1} << 27;
    using Few = uint16_t;

    // Return whether the rows [from, from + n) were classified ahead.
    bool has_ahead(size_t from, size_t n) const {
        if (ahead_blocks_.empty() || n == 0) return false;
        const size_t last = (from + n - 1) / block_rows;
        if (last >= ahead_blocks_.size()) return false;
        for (size_t block = from / block_rows; block <= last; ++block) {
            if (ahead_blocks_[block] == 0) return false;
        }
        return true;
    }
    // Do what `classify` does, by the values of the rows.
    void classify_now(const Batch& batch, size_t from, size_t n, uint32_t* pattern) {
        if (classes_.size() <= few_classes) return classify_few(batch, from, n, pattern);
        bits_of_.assign(n * words_, 0);
        seen_.assign(words_, 0);
        rows_of_type_.clear();
        with_codes(batch, from, [&](auto code) {
            for (size_t i = 0; i < n; ++i) {
                const size_t place = mask_place(code(i));
                if (place >= masks_.size() / words_) [[unlikely]]
                    grow_masks(place);
                rows_of_type_.add(place, static_cast<uint16_t>(i));
                const uint64_t* mask = masks_.data() + place * words_;
                for (size_t w = 0; w < words_; ++w) {
                    bits_of_[i * words_ + w] = mask[w];
                    seen_[w] |= mask[w];
                }
            }
        });
        for (size_t c = 0; c < classes_.size(); ++c) {
            uint64_t bit = uint64_t{1} << (c % 64);
            if ((seen_[c / 64] & bit) == 0 || classes_[c].checks.empty()) continue;
            uint64_t* bits = bits_of_.data() + c / 64;
            unsigned shift = c % 64;
            const bool has_few = find_rows(classes_[c], n);
            for (const Check& check : classes_[c].checks) {
                if (has_few) {
                    test_rows(check, batch, from);
                    for (size_t k = 0; k < rows_.size(); ++k) {
                        bits[rows_[k] * words_] &= ~(static_cast<uint64_t>(pass_[k] ^ 1u) << shift);
                    }
                    continue;
                }
                test(check, batch, from, n);
                for (size_t i = 0; i < n; ++i) {
                    bits[i * words_] &= ~(static_cast<uint64_t>(pass_[i] ^ 1u) << shift);
                }
            }
        }
        uint32_t last = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t* bits = bits_of_.data() + i * words_;
            if (!std::equal(bits, bits + words_, bits_.data() + last * words_)) last = intern(bits);
            pattern[i] = last;
        }
    }

    // Do what `classify` does, for at most `few_classes` classes.
    void classify_few(const Batch& batch, size_t from, size_t n, uint32_t* pattern) {
        Few bits[block_rows];
        Few seen = 0;
        with_codes(batch, from, [&](auto code) {
            std::span<const uint64_t> masks = masks_;  // of one word each
            for (size_t i = 0; i < n; ++i) {
                const size_t place = mask_place(code(i));
                if (place >= masks.size()) [[unlikely]] {
                    grow_masks(place);
                    masks = masks_;
                }
                seen |= bits[i] = static_cast<Few>(masks[place]);
            }
        });
        for (size_t c = 0; c < classes_.size(); ++c) {
            if (((seen >> c) & 1u) == 0) continue;
            for (const Check& check : classes_[c].checks) {
                test(check, batch, from, n);
                for (size_t i = 0; i < n; ++i) bits[i] &= static_cast<Few>(~((pass_[i] ^ 1u) << c));
            }
        }
        if (few_.empty()) few_.assign(size_t{1} << classes_.size(), NIL);
        for (size_t i = 0; i < n; ++i) {
            uint32_t& known = few_[bits[i]];
            if (known == NIL) [[unlikely]] {
                const uint64_t word = bits[i];
                known = intern(&word);
            }
            pattern[i] = known;
        }
    }

    // Call fn(code), where code(i) is the type code of row from + i, or -1 if it has no type.
    template <class Fn>
    static void with_codes(const Batch& batch, size_t from, Fn fn) {
        const Places& types = batch.types;
        auto read = [&]<class Place>(Place) {
            const Place* at = static_cast<const Place*>(types.values) + from;
            if (types.valid != nullptr) {
                const uint8_t* valid = types.valid + from;
                fn([&types, at, valid](size_t i) { return valid[i] == 0 ? -1 : types.codes[at[i]]; });
            } else {
                fn([&types, at](size_t i) { return types.codes[at[i]]; });
            }
        };
        if (types.values == nullptr) {
            fn([](size_t) { return int64_t{-1}; });
        } else if (types.codes == nullptr) {
            const auto* at = static_cast<const int64_t*>(types.values) + from;
            const uint8_t* valid = types.valid == nullptr ? nullptr : types.valid + from;
            fn([at, valid](size_t i) { return valid != nullptr && valid[i] == 0 ? -1 : at[i]; });
        } else if (types.width == 1) {
            read(int8_t{});
        } else if (types.width == 2) {
            read(int16_t{});
        } else if (types.width == 4) {
            read(int32_t{});
        } else {
            read(int64_t{});
        }
    }
    // Return the place of a type among the masks. That of no type is the first.
    static size_t mask_place(int64_t code) { return static_cast<size_t>(std::max<int64_t>(code, -1)) + 1; }
    // Make room for the mask at a place, and compute all masks.
    void grow_masks(size_t place) {
        // There are few types, and codes are dense.
        if (place > most_types) throw std::length_error("too many types of events");
        const size_t size = std::max<size_t>(16, (place + 1) * 2);
        masks_.resize(size * words_);
        for (size_t at = 0; at < size; ++at) {
            const auto type = at == 0 ? of_type_.end() : of_type_.find(static_cast<int64_t>(at) - 1);
            const auto& mask = type == of_type_.end() ? of_any_ : type->second;
            std::copy(mask.begin(), mask.end(), masks_.begin() + static_cast<std::ptrdiff_t>(at * words_));
        }
    }
    // Find the rows of the block that have a type of a class. Return false if they may be many: `rows_` is not set then.
    bool find_rows(const EventClass& event_class, size_t n) {
        if (event_class.any) return false;
        rows_.clear();
        for (const int64_t type : event_class.types) {
            rows_of_type_.each(mask_place(type), [&](uint16_t row) { rows_.push_back(row); });
            if (rows_.size() > n / part_of_few) return false;
        }
        return true;
    }
    // Set `pass_` for the rows of `rows_`, which count from row `from`: whether a check of a class holds.
    void test_rows(const Check& check, const Batch& batch, size_t from) {
        leaves_.clear();
        values_.resize(check.sources.size() * rows_.size());
        valid_.resize(check.sources.size() * rows_.size());
        for (const Source& s : check.sources) {
            const size_t first = leaves_.size() * rows_.size();
            const bool reads = s.from == From::event;
            const Column* column = s.a < 0 ? nullptr : &batch.columns[static_cast<size_t>(s.a)];
            for (size_t k = 0; k < rows_.size(); ++k) {
                const size_t row = from + rows_[k];
                const bool null = column != nullptr && column->null(row);
                values_[first + k] = reads ? column->values[row] : null ? 0 : 1;
                valid_[first + k] = reads && null ? 0 : 1;
            }
            const bool has_nulls = reads && column->valid != nullptr;
            leaves_.push_back({values_.data() + first, has_nulls ? valid_.data() + first : nullptr, 1});
        }
        if (!rows_.empty()) programs_[check.program].test(leaves_.data(), rows_.size(), texts, scratch_, pass_);
    }
    // Set `pass_` for n rows from row `from` on: whether a check of a class holds.
    void test(const Check& check, const Batch& batch, size_t from, size_t n) {
        leaves_.clear();
        for (const Source& s : check.sources) {
            static constexpr int64_t truth[2] = {0, 1};
            if (s.from == From::event) {
                const Column& c = batch.columns[static_cast<size_t>(s.a)];
                leaves_.push_back({c.values + from, c.valid == nullptr ? nullptr : c.valid + from, 1});
            } else if (s.a < 0 || batch.columns[static_cast<size_t>(s.a)].valid == nullptr) {
                leaves_.push_back({truth + 1, nullptr, 0});
            } else {
                ones_.resize(block_rows * check.sources.size());
                int64_t* ones = ones_.data() + block_rows * leaves_.size();
                const uint8_t* valid = batch.columns[static_cast<size_t>(s.a)].valid + from;
                for (size_t i = 0; i < n; ++i) ones[i] = valid[i] != 0 ? 1 : 0;
                leaves_.push_back({ones, nullptr, 1});
            }
        }
        programs_[check.program].test(leaves_.data(), n, texts, scratch_, pass_);
    }
    // Return the pattern of bits, a new one if there is none yet.
    uint32_t intern(const uint64_t* bits) {
        if (words_ == 1) {
            auto [found, fresh] = by_word_.try_emplace(bits[0], static_cast<uint32_t>(patterns()));
            if (fresh) bits_.push_back(bits[0]);
            return found->second;
        }
        std::vector<uint64_t> key(bits, bits + words_);
        auto [found, fresh] = by_words_.try_emplace(key, static_cast<uint32_t>(patterns()));
        if (fresh) bits_.insert(bits_.end(), key.begin(), key.end());
        return found->second;
    }

    std::vector<BlockProgram> programs_;
    std::vector<EventClass> classes_;
    size_t words_ = 1;
    std::vector<uint64_t> of_any_;
    std::unordered_map<int64_t, std::vector<uint64_t>> of_type_;
    std::vector<uint64_t> masks_;  // by `mask_place`
    std::vector<uint64_t> bits_;   // by pattern
    std::unordered_map<uint64_t, uint32_t> by_word_;
    std::unordered_map<std::vector<uint64_t>, uint32_t, WordsHash> by_words_;
    std::vector<uint64_t> bits_of_, seen_;
    std::vector<uint32_t> few_;    // patterns by bits, NIL: not computed yet
    std::vector<uint32_t> ahead_;  // patterns by row of the batch
    std::vector<uint8_t> ahead_blocks_;  // by block of rows: whether they are there
    std::vector<Leaf> leaves_;
    std::vector<int64_t> ones_;
    RowsOfTypes rows_of_type_;     // of the block, by the places of types among the masks
    std::vector<uint16_t> rows_;   // of the block, for a class of few rows
    std::vector<int64_t> values_;  // of these rows, by input of a check
    std::vector<uint8_t> valid_;
    uint8_t pass_[block_rows];
    Scratch scratch_;
};

}  // namespace acep
