// Python bindings of compressed output: matches that are counted, sampled and enumerated later.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <stdexcept>

#include "merged/compressed.hpp"
#include "python/bind_big_integer.hpp"
#include "python/bind_output.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

BigInteger big_integer(const nb::int_& number) {
    if (number < nb::int_(0)) throw std::invalid_argument("a number of a match is not negative");
    const size_t words = (nb::cast<size_t>(number.attr("bit_length")()) + 63) / 64;
    const auto bytes = nb::cast<nb::bytes>(number.attr("to_bytes")(words * sizeof(uint64_t), "little"));
    BigInteger found(words);
    if (words != 0) std::memcpy(found.data(), bytes.c_str(), words * sizeof(uint64_t));
    return found;
}

nb::object count(Compressed& self) {
    return python_int(unlocked([&] { return self.count(); }));
}

nb::dict sample(Compressed& self, size_t n, uint64_t seed) {
    Output found = unlocked([&] { return self.sample(n, seed); });
    return taken(found);
}

std::unique_ptr<Walk> cursor(std::shared_ptr<Compressed> self, const nb::int_& start) {
    const BigInteger first = big_integer(start);
    return unlocked([&] { return std::make_unique<Walk>(std::move(self), first); });
}

nb::dict next(Walk& self, size_t limit) {
    Output found = unlocked([&] { return self.next(limit); });
    return taken(found);
}

}  // namespace

void bind_merged(nb::module_& m) {
    nb::class_<Compressed> compressed(m, "Compressed");
    compressed.def("count", &count);
    compressed.def("sample", &sample, "n"_a, "seed"_a);
    compressed.def("cursor", &cursor, "start"_a = 0);
    compressed.def_prop_ro("ends", &Compressed::ends);
    compressed.def_prop_ro("cells", &Compressed::cells);
    compressed.def_prop_ro("bytes", &Compressed::bytes);
    nb::class_<Walk>(m, "Cursor").def("next", &next, "limit"_a);
}

}  // namespace acep
