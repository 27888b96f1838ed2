// How a long search is interrupted.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace acep {

// Thrown by a search that was asked to stop.
struct Interrupted {};

// Asks now and then whether to stop.
class Polling {
public:
    explicit Polling(std::function<bool()> stop = {}) : stop_(std::move(stop)) {}

    // Count some work, of a few nanoseconds a unit; throw Interrupted if the search is to stop.
    void work(size_t units) {
        units_ += units;
        if (units_ < between) return;
        units_ = 0;
        if (stop_ && stop_()) throw Interrupted();
    }

private:
    static constexpr size_t between = 65'536;
    std::function<bool()> stop_;
    size_t units_ = 0;
};

}  // namespace acep
