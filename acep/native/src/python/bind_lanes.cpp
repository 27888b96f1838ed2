// Python bindings of lanes: sessions with the same plans that share a batch, on several threads.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "python/bind_output.hpp"
#include "python/bind_session.hpp"
#include "python/given_batch.hpp"
#include "session/lane_matches.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {
namespace {

std::vector<BoundSession*> sessions_of(const nb::sequence& lanes) {
    std::vector<BoundSession*> sessions;
    for (nb::handle lane : lanes) sessions.push_back(nb::cast<BoundSession*>(lane));
    if (sessions.empty()) throw std::invalid_argument("lanes: there is none");
    for (const BoundSession* session : sessions) {
        if (session->columns != sessions[0]->columns) throw std::invalid_argument("lanes: of different plans");
    }
    return sessions;
}

// Checks for signals while threads work without Python's lock. Only Python's main thread gets them.
class Signals {
public:
    explicit Signals(std::atomic<bool>& stop) : stop_(stop) {}

    // Check now and then, if this is the thread of the call. Once a signal's handler has raised, set `stop`.
    void check() {
        if (std::this_thread::get_id() != caller_ || raised_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - checked_ < std::chrono::milliseconds(10)) return;
        checked_ = now;
        const nb::gil_scoped_acquire lock;
        raised_ = PyErr_CheckSignals() != 0;
        if (raised_) stop_ = true;
    }
    // Throw what a handler has raised. Python's lock is held.
    void rethrow() const {
        if (raised_) throw nb::python_error();
    }

private:
    std::atomic<bool>& stop_;
    const std::thread::id caller_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point checked_ = std::chrono::steady_clock::now();
    bool raised_ = false;
};

// Call task(lane, stop, signals) for each lane, without Python's lock.
void in_lanes(size_t lanes, size_t threads, auto&& task) {
    std::atomic<bool> stop{false};
    Signals signals(stop);
    unlocked([&] {
        run_tasks(lanes, threads, stop, [&](size_t lane) { task(lane, stop, signals); }, [&] { signals.check(); });
    });
    signals.rethrow();
}

void push_lanes(const nb::sequence& lanes, size_t threads, const Words& ts, const nb::object& types,
                const nb::object& types_valid, const nb::object& ids, const nb::sequence& columns, bool last) {
    const auto sessions = sessions_of(lanes);
    const GivenBatch given(sessions[0]->columns, ts, types, types_valid, ids, columns);
    const Batch& batch = given.batch;
    in_lanes(sessions.size(), threads, [&](size_t lane, const std::atomic<bool>& stop, Signals& signals) {
        Session& session = *sessions[lane]->session;
        const LaneRows rows = session.rows_of_lane(batch);
        for (size_t at = 0; at < batch.size && !stop; at += block_rows) {
            session.push_lane(rows, at, std::min(at + block_rows, batch.size), last);
            signals.check();
        }
    });
}

// Push a range of the rows of one batch to each session.
void push_ranges(const nb::sequence& slices, size_t threads, const std::vector<std::pair<size_t, size_t>>& ranges,
                 const Words& ts, const nb::object& types, const nb::object& types_valid, const nb::object& ids,
                 const nb::sequence& columns, bool last) {
    const auto sessions = sessions_of(slices);
    if (ranges.size() != sessions.size()) throw std::invalid_argument("ranges: one for each session");
    const GivenBatch given(sessions[0]->columns, ts, types, types_valid, ids, columns);
    const Batch& batch = given.batch;
    for (const auto& [begin, end] : ranges) {
        if (begin > end || end > batch.size) throw std::invalid_argument("ranges: no such rows");
    }
    in_lanes(sessions.size(), threads, [&](size_t number, const std::atomic<bool>& stop, Signals& signals) {
        const auto [begin, end] = ranges[number];
        for (size_t at = begin; at < end && !stop; at += block_rows) {
            sessions[number]->session->push(batch, at, std::min(at + block_rows, end), Engine::endless, false, 0, last);
            signals.check();
        }
    });
}

void finish_lanes(const nb::sequence& lanes, size_t threads) {
    const auto sessions = sessions_of(lanes);
    in_lanes(sessions.size(), threads,
             [&](size_t lane, const std::atomic<bool>&, Signals&) { sessions[lane]->session->finish(); });
}

// Take the matches of an engine in all lanes since the last call, in output order. `ranks`: of each variable, by name.
nb::dict take_in_order(const nb::sequence& lanes, size_t threads, size_t engine, const Values<uint16_t>& ranks) {
    constexpr size_t few = 4096;  // matches that one thread puts together sooner than others are begun
    std::vector<Output*> outputs;
    size_t matches = 0;
    for (BoundSession* session : sessions_of(lanes)) {
        outputs.push_back(&session->engines.at(engine)->output());
        matches += outputs.back()->size();
    }
    const auto filled = [](const Output* output) { return output->size() != 0; };
    const auto first = std::ranges::find_if(outputs, filled);
    if (first == outputs.end()) return taken(*outputs[0]);
    if (std::none_of(first + 1, outputs.end(), filled)) return taken(**first);
    const size_t used = matches < few ? 1 : threads;
    LaneMatches all(outputs, {ranks.data(), ranks.shape(0)});
    Output result = all.together(used, [&](size_t count, const std::function<void(size_t)>& task) {
        in_lanes(count, used, [&](size_t number, const std::atomic<bool>&, Signals&) { task(number); });
    });
    for (Output* output : outputs) taken(*output);
    return taken(result);
}

}  // namespace

void bind_lanes(nb::module_& m) {
    m.def("push_lanes", &push_lanes, "lanes"_a, "threads"_a, "ts"_a.noconvert(), "types"_a.none(),
          "types_valid"_a.none(), "ids"_a.none(), "columns"_a, "last"_a = false);
    m.def("push_ranges", &push_ranges, "slices"_a, "threads"_a, "ranges"_a, "ts"_a.noconvert(), "types"_a.none(),
          "types_valid"_a.none(), "ids"_a.none(), "columns"_a, "last"_a = false);
    m.def("take_in_order", &take_in_order, "lanes"_a, "threads"_a, "engine"_a, "ranks"_a.noconvert());
    m.def("finish_lanes", &finish_lanes, "lanes"_a, "threads"_a);
}

}  // namespace acep
