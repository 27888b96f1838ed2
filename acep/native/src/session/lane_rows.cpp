// The rows of a lane (lane_rows.hpp).
#include "session/lane_rows.hpp"

#include <algorithm>

namespace acep {
namespace {

// Return the codes of types at some rows; -1 where there is no type.
template <class Place>
Numbers<int64_t> codes_at(const Places& types, const Numbers<uint32_t>& places) {
    const auto* all = static_cast<const Place*>(types.values);
    Numbers<int64_t> codes(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
        const uint32_t row = places[i];
        const bool null = types.valid != nullptr && types.valid[row] == 0;
        codes[i] = null ? -1 : types.codes == nullptr ? static_cast<int64_t>(all[row]) : types.codes[all[row]];
    }
    return codes;
}

}  // namespace

size_t TakenRows::first_from(size_t at) const {
    if (places == nullptr) return at;
    const uint32_t* end = places + batch.size;
    return static_cast<size_t>(std::lower_bound(places, end, at) - places);
}

LaneRows::LaneRows(const Batch& all, Numbers<uint32_t> places) : all_(all), places_(std::move(places)) {
    const auto keep = [&](Numbers<int64_t> values) {
        words_.push_back(std::move(values));
        return words_.back().data();  // moving a vector does not move its values
    };
    batch_.size = places_.size();
    batch_.ts = keep(words(all.ts));
    if (all.types.values != nullptr) {
        const size_t width = all.types.codes == nullptr ? sizeof(int64_t) : all.types.width;
        batch_.types.values = keep(width == 1   ? codes_at<int8_t>(all.types, places_)
                                   : width == 2 ? codes_at<int16_t>(all.types, places_)
                                   : width == 4 ? codes_at<int32_t>(all.types, places_)
                                                : codes_at<int64_t>(all.types, places_));
    }
    if (all.ids != nullptr) {
        batch_.ids = keep(words(all.ids));
    } else if (!all.positions()) {
        Numbers<int64_t> ids(places_.size());
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = all.first_id + static_cast<int64_t>(places_[i]);
        batch_.ids = keep(std::move(ids));
    }
    for (const Column& column : all.columns) {
        const uint8_t* valid = nullptr;
        if (column.valid != nullptr) {
            Numbers<uint8_t>& flags = valid_.emplace_back(places_.size());
            for (size_t i = 0; i < flags.size(); ++i) flags[i] = column.valid[places_[i]];
            valid = flags.data();
        }
        batch_.columns.push_back({keep(words(column.values)), valid});
    }
}

Numbers<int64_t> LaneRows::words(const int64_t* values) const {
    Numbers<int64_t> taken(places_.size());
    for (size_t i = 0; i < taken.size(); ++i) taken[i] = values[places_[i]];
    return taken;
}

}  // namespace acep
