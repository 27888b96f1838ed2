// Ask the processor to load memory into its cache before it is read.
#pragma once

#include <cstddef>

namespace acep {

constexpr size_t cache_line = 64;

// Load bytes into the processor's cache, without waiting for them; they need not exist.
inline void prefetch(const void* from, size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    for (size_t i = 0; i < bytes; i += cache_line) __builtin_prefetch(at + i);
}

}  // namespace acep
