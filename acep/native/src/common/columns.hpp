// Columns of events as Python passes them, and the named integer arrays that make up a plan's tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace acep {

// Values are always 64 bits wide: integers, ticks, booleans, codes of texts, or the bits of doubles.
struct Column {
    const int64_t* values = nullptr;
    const uint8_t* valid = nullptr;  // nullptr: nothing is null
    // Return whether the value in a row is null.
    bool null(size_t row) const { return valid != nullptr && valid[row] == 0; }
    // Return the value in a row, 0 if it is null.
    int64_t word(size_t row) const { return null(row) ? 0 : values[row]; }
};

// Texts as indices into a list of codes: signed integers of `width` bytes. An index that is not null is in the list.
struct Places {
    const void* values = nullptr;  // nullptr: a stream without types
    size_t width = sizeof(int64_t);
    const int64_t* codes = nullptr;
    const uint8_t* valid = nullptr;
};

// Events in stream order. `columns` are those of the session's tables.
struct Batch {
    size_t size = 0;
    const int64_t* ts = nullptr;
    Places types;
    const int64_t* ids = nullptr;  // nullptr: they count up from `first_id`, or are positions
    int64_t first_id = NO_IDS;
    std::vector<Column> columns;

    static constexpr int64_t NO_IDS = std::numeric_limits<int64_t>::min();
    bool positions() const { return ids == nullptr && first_id == NO_IDS; }  // ids are positions in their partitions
};

// One event of a batch, as an engine sees it.
struct Event {
    int64_t ts;
    int64_t position;  // in its partition, or in the whole stream if the plan needs that
    int64_t id;
    uint32_t pattern;  // number of its event pattern (event_classifier.hpp)
    const Batch* batch;
    size_t row;
};

// Tables of a plan: one-dimensional int64 arrays by name. Missing or out-of-range values raise std::invalid_argument.
class Arrays {
public:
    // Add an array, or replace the one of its name.
    void set(const std::string& name, std::vector<int64_t> values) { held_[name] = std::move(values); }

    // Return an array by its name.
    std::span<const int64_t> at(const std::string& name) const {
        auto found = held_.find(name);
        if (found == held_.end()) throw std::invalid_argument("tables: no array " + name);
        return found->second;
    }

    // Return an array of exactly `size` values (`any`: of any length), each in [low, high).
    std::span<const int64_t> at(const std::string& name, size_t size, int64_t low, int64_t high) const {
        auto values = at(name);
        if (size != any && values.size() != size) throw std::invalid_argument("tables: length of " + name);
        for (int64_t v : values) {
            if (v < low || v >= high) throw std::invalid_argument("tables: value in " + name);
        }
        return values;
    }

    // Return the offsets of the lists of `rows` rows in an array of `size` values: rows + 1 numbers that do not fall.
    std::span<const int64_t> offsets(const std::string& name, size_t rows, size_t size) const {
        auto values = at(name, rows + 1, 0, static_cast<int64_t>(size) + 1);
        if (values.front() != 0 || values.back() != static_cast<int64_t>(size)) {
            throw std::invalid_argument("tables: ends of " + name);
        }
        for (size_t i = 0; i < rows; ++i) {
            if (values[i] > values[i + 1]) throw std::invalid_argument("tables: order of " + name);
        }
        return values;
    }

    static constexpr size_t any = static_cast<size_t>(-1);

private:
    std::map<std::string, std::vector<int64_t>> held_;
};

}  // namespace acep
