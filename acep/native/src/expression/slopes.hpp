// How values change from row to row.
#pragma once

#include <cstdint>

namespace acep {

// rising: no value that is not null is below an earlier one; of truth values, once one is true, none is false. falling:
// the reverse.
enum class Slope : uint8_t { any, level, rising, falling };

// The slope of an input whose words are read as integers, and as doubles.
struct InputSlope {
    Slope integers = Slope::any, doubles = Slope::any;
};

}  // namespace acep
