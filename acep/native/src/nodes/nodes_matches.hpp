// The endings of matches that one event makes, whose matches may be written in several parts (nodes_matches.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/arena.hpp"

namespace acep {

// All sequences of a chain, each followed by the event.
struct Ending {
    Cell last;
    Chain past;
    int64_t error;
    int64_t bundle;
    uint32_t state;  // for completion
};

struct Endings {
    std::vector<Ending> all;
    size_t at = 0;  // the current one
    bool walking = false;  // whether its walk has begun

    bool left() const { return at < all.size(); }
};

}  // namespace acep
