// Python bindings of the output order and of the hashes of matches (acep/native/_native.pyi).
#include <stdexcept>

#include "common/order.hpp"
#include "python/bind_arrays.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

using Codes = Values<uint16_t>;

nb::object order(const Words& end, const Words& offsets, const Words& ids, const Codes& vars, const Codes& ranks) {
    if (offsets.shape(0) != end.shape(0) + 1) throw std::invalid_argument("offsets: one more than matches");
    if (vars.shape(0) != ids.shape(0)) throw std::invalid_argument("vars: as many as ids");
    const Trails trails{end.shape(0),   ids.shape(0), ranks.shape(0), end.data(),
                        offsets.data(), ids.data(),   vars.data(),    ranks.data()};
    auto places = unlocked([&] {
        check(trails);
        return in_order(trails) ? std::vector<int64_t>() : output_order(trails);
    });
    if (places.empty()) return nb::none();
    return array(std::move(places));
}

nb::object hashes(const Words& end, const Words& offsets, const Words& ids, const Codes& vars,
                  const nb::sequence& columns) {
    if (offsets.shape(0) != end.shape(0) + 1) throw std::invalid_argument("offsets: one more than matches");
    if (vars.shape(0) != ids.shape(0)) throw std::invalid_argument("vars: as many as ids");
    std::vector<Words> held;
    std::vector<const int64_t*> words;
    for (nb::handle column : columns) {
        held.push_back(nb::cast<Words>(column, false));
        if (held.back().shape(0) != end.shape(0)) throw std::invalid_argument("columns: as long as the matches");
        words.push_back(held.back().data());
    }
    const Trails trails{end.shape(0), ids.shape(0), 0, end.data(), offsets.data(), ids.data(), vars.data(), nullptr};
    return array(unlocked([&] {
        check(trails);
        return contents(trails, words);
    }));
}

}  // namespace

void bind_order(nb::module_& m) {
    m.def("output_order", &order, "end"_a.noconvert(), "offsets"_a.noconvert(), "ids"_a.noconvert(),
          "vars"_a.noconvert(), "ranks"_a.noconvert());
    m.def("contents", &hashes, "end"_a.noconvert(), "offsets"_a.noconvert(), "ids"_a.noconvert(), "vars"_a.noconvert(),
          "columns"_a);
}

}  // namespace acep
