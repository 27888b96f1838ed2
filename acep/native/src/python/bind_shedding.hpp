// Python bindings of best effort: shedding tables in, logs of partial matches and counts out.
#pragma once

#include <nanobind/nanobind.h>

#include "session/engine.hpp"

namespace acep {

// For the engine that samples units (sampling_units.hpp); std::invalid_argument for another one.
void start_units(Engine& engine, uint64_t seed, uint32_t key_texts);
nanobind::dict units_counts(Engine& engine);
// For both that engine and the node engine.
void allow(Engine& engine, double rate, double carried, int64_t arrived);
void allow_matches(Engine& engine, int64_t most);
int64_t walked(Engine& engine);

// For the node engine, also behind match windows; std::invalid_argument for another one.
void start_shedding(Engine& engine, uint64_t seed);
void set_shedding_table(Engine& engine, const nanobind::dict& table);
void shadow_sample(Engine& engine, int64_t share);
void bound_memory(Engine& engine, int64_t bytes);
int64_t least_memory(Engine& engine);
nanobind::dict take_trajectories(Engine& engine);
nanobind::object shadow_points(Engine& engine, size_t first);
nanobind::dict shedding_counts(Engine& engine);

}  // namespace acep
