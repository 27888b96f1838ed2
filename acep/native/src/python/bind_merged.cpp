// Python bindings of compressed output: matches that are counted, sampled and enumerated later.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <stdexcept>

#include "merged/compressed.hpp"
#include "python/bind_big_integer.hpp"
#include "python/bind_output.hpp"

namespace nb = nanobind;

namespace acep {

void bind_merged(nb::module_& m);

namespace {

BigInteger big_integer(const nb::int_& number) {
    if (number < nb::int_(0)) throw std::invalid_argument("a number of a match is not negative");
    const size_t words = (nb::cast<size_t>(number.attr("bit_length")()) + 63) / 64;
    const auto bytes = nb::cast<nb::bytes>(number.attr("to_bytes")(words * sizeof(uint64_t), "little"));
    BigInteger found(words);
    if (words != 0) std::memcpy(found.data(), bytes.c_str(), words * sizeof(uint64_t));
    return found;
}

}  // namespace

void bind_merged(nb::module_& m) {
    nb::class_<Compressed>(m, "Compressed")
        .def("count",
             [](Compressed& self) {
        BigInteger found;
        {
            nb::gil_scoped_release release;
            found = self.count();
        }
        return python_int(found);
    })
        .def("sample",
             [](Compressed& self, size_t n, uint64_t seed) {
        Output found;
        {
            nb::gil_scoped_release release;
            found = self.sample(n, seed);
        }
        return taken(found);
    }, nb::arg("n"), nb::arg("seed"))
        .def("cursor",
             [](std::shared_ptr<Compressed> self, const nb::int_& start) {
        const BigInteger first = big_integer(start);
        nb::gil_scoped_release release;
        return std::make_unique<Walk>(std::move(self), first);
    }, nb::arg("start") = 0)
        .def_prop_ro("ends", &Compressed::ends)
        .def_prop_ro("cells", &Compressed::cells)
        .def_prop_ro("bytes", &Compressed::bytes);
    nb::class_<Walk>(m, "Cursor").def("next", [](Walk& self, size_t limit) {
        Output found;
        {
            nb::gil_scoped_release release;
            found = self.next(limit);
        }
        return taken(found);
    }, nb::arg("limit"));
}

}  // namespace acep
