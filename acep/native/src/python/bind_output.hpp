// Conversion of output columns to NumPy arrays that own their memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "common/output.hpp"

namespace acep {

template <class T, class Allocator>
nanobind::object array(std::vector<T, Allocator>&& values) {
    using Values = std::vector<T, Allocator>;
    auto* held = new Values(std::move(values));
    values = {};
    nanobind::capsule owner(held, [](void* p) noexcept { delete static_cast<Values*>(p); });
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(held->data(), {held->size()}, owner));
}

// Take the counts since the last call, and reset them: the number of matches, and the columns of the rows.
inline nanobind::dict tallied(Tally& t) {
    nanobind::dict found;
    found["total"] = t.total;
    found["keys"] = array(std::move(t.keys));
    found["first"] = array(std::move(t.first));
    found["last"] = array(std::move(t.last));
    found["bundle"] = array(std::move(t.bundle));
    found["error"] = array(std::move(t.error));
    found["count"] = array(std::move(t.many));
    const Tally::Kind kind = t.kind;
    t = {};
    t.kind = kind;
    return found;
}

// Take the matches written since the last call, as columns.
inline nanobind::dict taken(Output& o) {
    nanobind::dict found;
    found["start"] = array(std::move(o.start));
    found["end"] = array(std::move(o.end));
    found["error"] = array(std::move(o.error));
    found["bundle"] = array(std::move(o.bundle));
    found["keys"] = array(std::move(o.keys));
    found["offsets"] = array(std::move(o.offsets));
    found["ids"] = array(std::move(o.ids));
    found["vars"] = array(std::move(o.vars));
    found["values"] = array(std::move(o.values));
    found["valid"] = array(std::move(o.valid));
    found["ordered"] = o.ordered;
    found["shape"] = o.uniform ? nanobind::cast<nanobind::object>(array(std::move(o.shape))) : nanobind::none();
    o.ordered = o.uniform = false;
    o.shape.clear();
    o.offsets = {0};
    return found;
}

}  // namespace acep
