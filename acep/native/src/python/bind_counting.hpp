// Python bindings of the counting engines, used by the session's bindings.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "session/engine.hpp"

namespace acep {

// Make the engine "count", "points", "bundles" or "ends", which takes over the tables; nullptr for another name.
std::unique_ptr<Engine> counting_engine(const std::string& name, Tables& tables, EventClassifier& classifier,
                                        Partitions& partitions);
// Take its rows, named as in CountRows; `large` has pairs of row and number. std::invalid_argument for another engine.
nanobind::dict take_counts(Engine& engine, bool all);
// Return pairs of error (scaled) and number of matches.
nanobind::list count_totals(Engine& engine);

}  // namespace acep
