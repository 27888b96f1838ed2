// The session as a Python object, and bindings of functions of one of its engines.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/session.hpp"

namespace acep {

// A session; it keeps the texts alive whose codes its event classes use.
struct BoundSession {
    nanobind::object texts;
    std::unique_ptr<Session> session;
    std::vector<uint32_t> leaves;  // number of inputs of each program
    size_t columns;
    size_t classes;
    std::vector<Engine*> engines;

    // Return an engine; if match windows are in front of it, the engine behind them.
    Engine& engine(size_t number) const;
};

// Return an engine as one of a kind; throw std::invalid_argument with this message if it is of another kind.
template <class Kind>
Kind& engine_as(Engine& engine, const char* message) {
    auto* found = dynamic_cast<Kind*>(&engine);
    if (found == nullptr) throw std::invalid_argument(message);
    return *found;
}

// Return the binding of a function of an engine: it takes a session and the number of the engine instead.
template <class Result, class... Args>
auto of_engine(Result (*function)(Engine&, Args...)) {
    return [function](const BoundSession& self, size_t engine, Args... args) {
        return function(self.engine(engine), std::forward<Args>(args)...);
    };
}

// Make the engine "count", "points", "bundles" or "ends", which takes over the tables; nullptr for another name.
std::unique_ptr<Engine> counting_engine(const std::string& name, Tables& tables, EventClassifier& classifier,
                                        Partitions& partitions);
void bind_counting(nanobind::class_<BoundSession>& session);
// Add the methods that list partial matches.
void bind_partial_matches(nanobind::class_<BoundSession>& session);
// Add the methods for budgets and shedding.
void bind_shedding(nanobind::class_<BoundSession>& session);

}  // namespace acep
