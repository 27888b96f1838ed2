// Conversion of NumPy arrays that come in, and of vectors that go out as arrays that own their memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace acep {

template <class T>
using Values = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Words = Values<int64_t>;
using Bytes = Values<uint8_t>;

// Return a copy of an array's values.
template <class T>
std::vector<T> vector_of(const Values<T>& values) {
    return {values.data(), values.data() + values.shape(0)};
}

// Return an array that takes over the values of a vector.
template <class T, class Allocator>
nanobind::object array(std::vector<T, Allocator>&& values) {
    using Vector = std::vector<T, Allocator>;
    auto* held = new Vector(std::move(values));
    values = {};
    nanobind::capsule owner(held, [](void* p) noexcept { delete static_cast<Vector*>(p); });
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(held->data(), {held->size()}, owner));
}

// Call a function without Python's lock, and return its result.
auto unlocked(auto&& function) {
    nanobind::gil_scoped_release release;
    return function();
}

}  // namespace acep
