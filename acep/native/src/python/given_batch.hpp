// A batch of events as Python passes it: checked, and held for as long as the core reads it.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "common/columns.hpp"
#include "python/bind_arrays.hpp"

namespace acep {

// Use types as indices of type T into a list of codes; false if they have another type or are out of range.
template <class T>
bool places(const nanobind::object& object, const Words& codes, Batch& batch) {
    Values<T> held;
    if (!nanobind::try_cast(object, held, false)) return false;
    if (held.shape(0) != batch.size) throw std::invalid_argument("columns: of different lengths");
    T least = 0, greatest = 0;
    for (size_t i = 0; i < batch.size; ++i) {
        least = std::min(least, held.data()[i]);
        greatest = std::max(greatest, held.data()[i]);
    }
    if (least < 0 || static_cast<size_t>(greatest) >= codes.shape(0)) return false;
    batch.types = {held.data(), sizeof(T), codes.data(), nullptr};
    return true;
}

// A batch, and the arrays of Python that it refers to.
struct GivenBatch {
    Batch batch;
    std::vector<Words> words;
    std::vector<Bytes> bytes;
    std::optional<Words> list;

    GivenBatch(size_t columns_of_session, const Words& ts, const nanobind::object& types,
               const nanobind::object& types_valid, const nanobind::object& ids, const nanobind::sequence& columns) {
        batch.size = ts.shape(0);
        batch.ts = ts.data();
        if (nanobind::isinstance<nanobind::tuple>(types)) {
            const auto pair = nanobind::cast<nanobind::tuple>(types);
            if (pair.size() != 2) throw std::invalid_argument("types: pairs of places and codes");
            list.emplace(nanobind::cast<Words>(pair[1]));
            nanobind::object at = pair[0];
            const bool fits = places<int8_t>(at, *list, batch) || places<int16_t>(at, *list, batch) ||
                              places<int32_t>(at, *list, batch) || places<int64_t>(at, *list, batch);
            if (!fits) throw std::invalid_argument("types: no places in the codes");
        } else {
            batch.types.values = held(words, types);
        }
        batch.types.valid = held(bytes, types_valid);
        if (nanobind::isinstance<nanobind::int_>(ids)) {
            batch.first_id = nanobind::cast<int64_t>(ids);
            int64_t last;
            if (batch.first_id == Batch::NO_IDS ||
                __builtin_add_overflow(batch.first_id, static_cast<int64_t>(batch.size), &last)) {
                throw std::invalid_argument("ids: beyond 64 bits");
            }
        } else {
            batch.ids = held(words, ids);
        }
        for (nanobind::handle c : columns) {
            auto pair = nanobind::cast<nanobind::tuple>(c);
            if (pair.size() != 2) throw std::invalid_argument("columns: pairs of values and validity");
            const int64_t* values = held(words, pair[0]);
            if (values == nullptr) throw std::invalid_argument("columns: no values");
            batch.columns.push_back({values, held(bytes, pair[1])});
        }
        if (batch.columns.size() != columns_of_session) throw std::invalid_argument("columns: too few or too many");
    }

private:
    // Return the values of an array of Python, which is held, or nullptr for None; throw if its length is another
    // one.
    template <class T>
    const T* held(std::vector<Values<T>>& all, nanobind::handle object) {
        if (object.is_none()) return nullptr;
        all.push_back(nanobind::cast<Values<T>>(object, false));
        if (all.back().shape(0) != batch.size) throw std::invalid_argument("columns: of different lengths");
        return all.back().data();
    }
};

}  // namespace acep
