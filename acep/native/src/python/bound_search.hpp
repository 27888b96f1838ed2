// A search for preferred matches that Python holds.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "ordered/ordered_search.hpp"
#include "python/bind_arrays.hpp"

namespace acep {

// A search, with the arrays that it reads.
struct BoundSearch {
    explicit BoundSearch(OrderedPattern pattern) : search(std::move(pattern)) {}
    OrderedSearch search;
    std::vector<Words> words;
    std::vector<Bytes> bytes;
    nanobind::object texts;
    bool busy = false;  // another thread is in `take`
};

}  // namespace acep
