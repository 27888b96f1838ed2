// Python bindings of the list of partial matches that are live.
#include <nanobind/stl/vector.h>

#include "python/bind_output.hpp"
#include "python/bind_session.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {
namespace {

nb::dict list_partial_matches(const BoundSession& self, size_t engine, size_t most, bool apart,
                              std::vector<uint32_t> states, int64_t clock) {
    const ListingRequest request{most, apart, std::move(states), clock, self.session->positions()};
    const Engine& listing = *self.engines.at(engine);
    ListedColumns listed = unlocked([&] { return listing.list_partial_matches(request); });
    nb::dict columns = taken(listed.matches);
    columns["states"] = array(std::move(listed.states));
    columns["sequences"] = array(std::move(listed.sequences));
    columns["utility"] = array(std::move(listed.utility));
    columns["total"] = listed.total;
    return columns;
}

}  // namespace

void bind_partial_matches(nb::class_<BoundSession>& session) {
    session.def("list_partial_matches", &list_partial_matches, "engine"_a, "most"_a, "apart"_a, "states"_a, "clock"_a);
}

}  // namespace acep
