// Python binding of the output order (acep/native/_native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>

#include "common/order.hpp"

namespace nb = nanobind;

namespace acep {

void bind_order(nb::module_& m);

namespace {

using Words = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object order(const Words& end, const Words& offsets, const Words& ids, const Codes& vars, const Codes& ranks) {
    if (offsets.shape(0) != end.shape(0) + 1) throw std::invalid_argument("offsets: one more than matches");
    if (vars.shape(0) != ids.shape(0)) throw std::invalid_argument("vars: as many as ids");
    const Trails trails{end.shape(0),   ids.shape(0), ranks.shape(0), end.data(),
                        offsets.data(), ids.data(),   vars.data(),    ranks.data()};
    std::vector<int64_t> places;
    {
        nb::gil_scoped_release release;
        check(trails);
        if (!in_order(trails)) places = output_order(trails);
    }
    if (places.empty()) return nb::none();
    auto* held = new std::vector<int64_t>(std::move(places));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

}  // namespace

void bind_order(nb::module_& m) {
    m.def("output_order", &order, nb::arg("end").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("ids").noconvert(), nb::arg("vars").noconvert(), nb::arg("ranks").noconvert());
}

}  // namespace acep
