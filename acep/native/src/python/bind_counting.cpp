// Python bindings of counts: columns of 64 bits, and Python integers for larger numbers.
#include "python/bind_counting.hpp"

#include <stdexcept>
#include <utility>

#include "counting/counting.hpp"
#include "python/bind_big_integer.hpp"
#include "python/bind_output.hpp"

namespace nb = nanobind;

namespace acep {
namespace {

CountingEngine& counting(Engine& engine) {
    auto* found = dynamic_cast<CountingEngine*>(&engine);
    if (found == nullptr) throw std::invalid_argument("it is no counting engine");
    return *found;
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

nb::dict take_counts(Engine& engine, bool all) {
    CountRows rows = counting(engine).take(all);
    nb::list large;
    for (const auto& [row, number] : rows.large) large.append(nb::make_tuple(row, python_int(number)));
    nb::dict found;
    found["keys"] = array(std::move(rows.keys));
    found["first"] = array(std::move(rows.first));
    found["last"] = array(std::move(rows.last));
    found["bundle"] = array(std::move(rows.bundle));
    found["error"] = array(std::move(rows.error));
    found["count"] = array(std::move(rows.count));
    found["large"] = large;
    return found;
}

nb::list count_totals(Engine& engine) {
    nb::list found;
    for (const auto& [error, number] : counting(engine).totals())
        found.append(nb::make_tuple(error, python_int(number)));
    return found;
}

}  // namespace acep
