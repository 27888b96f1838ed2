// How a search that runs without Python's lock is interrupted by signals.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "ordered/polling.hpp"

namespace acep {

// Return a polling that checks for signals each few milliseconds, while Python's lock is not held.
inline Polling signal_polling() {
    auto checked = std::chrono::steady_clock::now();
    return Polling([checked]() mutable {
        const auto now = std::chrono::steady_clock::now();
        if (now - checked < std::chrono::milliseconds(10)) return false;
        checked = now;
        const nanobind::gil_scoped_acquire lock;
        return PyErr_CheckSignals() != 0;
    });
}

}  // namespace acep
