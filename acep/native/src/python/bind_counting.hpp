// Counting engines as the session in Python has them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "session/engine.hpp"

namespace acep {

// The engine called "count", "points", "bundles" or "ends", which then takes the tables; else nullptr.
std::unique_ptr<Engine> counting_engine(const std::string& name, Tables& tables, Front& front, Partitions& partitions);
// Its rows, by the names of CountRows; `large` are pairs of row and number. std::invalid_argument for another engine.
nanobind::dict take_counts(Engine& engine, bool all);
// Pairs of error (scaled) and number of matches.
nanobind::list count_totals(Engine& engine);

}  // namespace acep
