// Python bindings of counts: columns of 64 bits, and Python integers for larger numbers.
#include "counting/counting.hpp"

#include "python/bind_big_integer.hpp"
#include "python/bind_output.hpp"
#include "python/bind_session.hpp"
#include "shedding/sampling_units.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {
namespace {

// Return the counting engine, also behind units.
CountingEngine& counting(Engine& engine) {
    auto* units = dynamic_cast<SampledEngine*>(&engine);
    return engine_as<CountingEngine>(units == nullptr ? engine : units->behind(), "it is no counting engine");
}

nb::dict take_counts(Engine& engine, bool last) {
    CountingEngine::Rows rows = counting(engine).take(last);
    nb::list large;
    for (const auto& [row, number] : rows.large) large.append(nb::make_tuple(row, python_int(number)));
    nb::dict found = taken(std::move(rows));
    found["large"] = large;
    return found;
}

// Return pairs of error (scaled) and number of matches.
nb::list count_totals(Engine& engine) {
    nb::list found;
    for (const auto& [error, number] : counting(engine).totals()) {
        found.append(nb::make_tuple(error, python_int(number)));
    }
    return found;
}

}  // namespace

std::unique_ptr<Engine> counting_engine(const std::string& name, Tables& tables, EventClassifier& classifier,
                                        Partitions& partitions) {
    constexpr std::pair<const char*, Asked> names[] = {
        {"count", Asked::count}, {"points", Asked::points}, {"bundles", Asked::bundles}, {"ends", Asked::ends}};
    for (const auto& [known, asked] : names) {
        if (name == known) return std::make_unique<CountingEngine>(std::move(tables), classifier, partitions, asked);
    }
    return nullptr;
}

void bind_counting(nb::class_<BoundSession>& session) {
    session.def("take_counts", of_engine(&take_counts), "engine"_a, "last"_a);
    session.def("count_totals", of_engine(&count_totals), "engine"_a);
}

}  // namespace acep
