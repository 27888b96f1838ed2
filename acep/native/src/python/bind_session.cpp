// Python bindings of the session (acep/native/_native.pyi): tables and columns in, columns of matches out.
#include "python/bind_session.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "merged/compressed.hpp"
#include "nodes/nodes.hpp"
#include "prefilter/windows.hpp"
#include "python/bind_output.hpp"
#include "python/given_batch.hpp"
#include "search/budgeted_search.hpp"
#include "shedding/sampling_units.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

Engine& BoundSession::engine(size_t number) const {
    Engine* found = engines.at(number);
    auto* windowed = dynamic_cast<WindowedEngine*>(found);
    return windowed == nullptr ? *found : windowed->engine();
}

namespace {

// Read a condition on a single event: (program, flat sources).
Check event_check(uint32_t program, const Words& words, const std::vector<BlockProgram>& programs, size_t columns) {
    if (program >= programs.size()) throw std::invalid_argument("classes: no such program");
    if (words.shape(0) != 3 * programs[program].leaves()) throw std::invalid_argument("classes: number of sources");
    Check check{program, -1, 0, {}, {}};
    for (size_t i = 0; i < words.shape(0); i += 3) {
        const int64_t a = words(i + 1);
        if (words(i) < 0 || words(i) > 1 || a < -words(i) || a >= static_cast<int64_t>(columns)) {
            throw std::invalid_argument("classes: a source");
        }
        check.sources.push_back({static_cast<From>(words(i)), static_cast<int32_t>(a), 0});
    }
    return check;
}

struct Given {
    std::vector<BlockProgram> programs;
    std::vector<uint32_t> leaves;
    std::vector<EventClass> classes;
};

Given given_of(const nb::sequence& programs, const nb::sequence& classes, size_t columns) {
    Given found;
    for (nb::handle p : programs) {
        found.programs.push_back(nb::cast<BlockProgram>(p));
        found.leaves.push_back(static_cast<uint32_t>(found.programs.back().leaves()));
    }
    for (nb::handle c : classes) {
        auto parts = nb::cast<nb::tuple>(c);
        if (parts.size() != 2) throw std::invalid_argument("classes: pairs of types and checks");
        EventClass one{parts[0].is_none(), {}, {}};
        if (!one.any) one.types = vector_of(nb::cast<Words>(parts[0], false));
        for (nb::handle check : nb::cast<nb::sequence>(parts[1])) {
            auto pair = nb::cast<nb::tuple>(check);
            if (pair.size() != 2) throw std::invalid_argument("classes: pairs of program and sources");
            one.checks.push_back(
                event_check(nb::cast<uint32_t>(pair[0]), nb::cast<Words>(pair[1], false), found.programs, columns));
        }
        found.classes.push_back(std::move(one));
    }
    return found;
}

void make(BoundSession* self, nb::object texts, const nb::sequence& programs, const nb::sequence& classes,
          size_t columns, const std::vector<std::pair<std::vector<uint32_t>, bool>>& keys) {
    Given given = given_of(programs, classes, columns);
    const size_t many = given.classes.size();
    auto& held = nb::cast<Texts&>(texts);
    auto session = std::make_unique<Session>(held, std::move(given.programs), std::move(given.classes), columns, keys);
    new (self) BoundSession{std::move(texts), std::move(session), std::move(given.leaves), columns, many, {}};
}

Tables tables_of(const BoundSession& self, const Arrays& arrays) {
    Tables checked = tables_from(arrays, self.leaves);
    if (checked.partitions >= self.session->key_tables()) throw std::invalid_argument("tables: no such key table");
    if (checked.classes != self.classes || checked.columns != self.columns) {
        throw std::invalid_argument("tables: made for another session");
    }
    return checked;
}

Arrays arrays_of(const nb::dict& arrays) {
    Arrays found;
    for (auto [name, words] : arrays) found.set(nb::cast<std::string>(name), vector_of(nb::cast<Words>(words, false)));
    return found;
}

// Change a plan: see Session::change, or Session::extend. The lists of programs, classes and columns only grow.
void change(BoundSession& self, size_t engine, const nb::sequence& programs, const nb::sequence& classes,
            size_t columns, const nb::dict& arrays, bool more) {
    Given given = given_of(programs, classes, columns);
    if (given.leaves.size() < self.leaves.size() || given.classes.size() < self.classes || columns < self.columns ||
        !std::equal(self.leaves.begin(), self.leaves.end(), given.leaves.begin())) {
        throw std::invalid_argument("change: fewer parts than before");
    }
    BoundSession after{self.texts, nullptr, given.leaves, columns, given.classes.size(), {}};
    after.session.swap(self.session);
    try {
        Tables tables = tables_of(after, arrays_of(arrays));
        const auto with = more ? &Session::extend : &Session::change;
        ((*after.session).*with)(self.engine(engine), std::move(tables), std::move(given.programs),
                                 std::move(given.classes));
    } catch (...) {
        self.session.swap(after.session);
        throw;
    }
    self.session.swap(after.session);
    self.leaves = std::move(given.leaves);
    self.columns = columns;
    self.classes = after.classes;
}

// Set the times of arcs, of which each has four words: its number, that of an arc that it is like, and the first and
// the last time of an event that may take it. Return the number of partial matches whose window is not over at `clock`.
int64_t renew(BoundSession& self, size_t engine, const std::vector<int64_t>& words, int64_t clock) {
    if (words.size() % 4 != 0) throw std::invalid_argument("arcs: four words each");
    std::vector<ArcTimes> times;
    for (size_t i = 0; i < words.size(); i += 4) {
        if (words[i] < 0 || words[i + 1] < 0) throw std::invalid_argument("arcs: no such number");
        const Lifetime lifetime{words[i + 2], words[i + 3]};
        times.push_back({static_cast<size_t>(words[i]), static_cast<size_t>(words[i + 1]), lifetime});
    }
    self.engine(engine).renew(times);
    return self.engine(engine).partial_matches(clock);
}

// Names of combined engines: "windows+nodes" is the node engine behind match windows, and likewise with the others;
// "units+merged" is the merged engine on the units that the budget suffices for; also "windows+units+merged". The units
// of "units+search" are single searches.
constexpr std::string_view windows_prefix = "windows+", units_prefix = "units+";

std::unique_ptr<Engine> engine_of(const std::string& name, const Arrays& arrays, Tables tables,
                                  EventClassifier& classifier, Partitions& partitions) {
    if (name == "units+search") {
        const Dominance dominance(arrays, tables);
        return std::make_unique<BudgetedSearchEngine>(std::move(tables), dominance, classifier, partitions);
    }
    if (name.starts_with(units_prefix)) {
        auto behind = engine_of(name.substr(units_prefix.size()), arrays, tables, classifier, partitions);
        auto& bounded = engine_as<BoundedEngine>(*behind, ("there is no engine " + name).c_str());
        static_cast<void>(behind.release());
        return std::make_unique<SampledEngine>(std::move(tables), classifier, partitions,
                                               std::unique_ptr<BoundedEngine>(&bounded));
    }
    if (name == "nodes") return std::make_unique<NodeEngine>(std::move(tables), classifier, partitions);
    if (name == "dominance") {
        auto dominance = std::make_unique<Dominance>(arrays, tables);
        return std::make_unique<NodeEngine>(std::move(tables), classifier, partitions, std::move(dominance));
    }
    if (name == "search") {
        const Dominance dominance(arrays, tables);
        return std::make_unique<SwitchingEngine>(std::move(tables), dominance, classifier, partitions);
    }
    if (name == "merged") return std::make_unique<MergedEngine>(std::move(tables), classifier, partitions);
    if (name == "compressed") return std::make_unique<CompressedEngine>(std::move(tables), classifier, partitions);
    auto counting = counting_engine(name, tables, classifier, partitions);
    if (counting == nullptr) throw std::invalid_argument("there is no engine " + name);
    return counting;
}

size_t add(BoundSession& self, const std::string& engine, const nb::dict& arrays) {
    const Arrays tables = arrays_of(arrays);
    Tables checked = tables_of(self, tables);
    Partitions& partitions = self.session->partitions(checked.partitions);
    EventClassifier& classifier = self.session->front();
    const bool windowed = engine.starts_with(windows_prefix);
    std::unique_ptr<Engine> made;
    if (windowed) {
        Needs needs = needs_from(tables, checked);
        auto behind = engine_of(engine.substr(windows_prefix.size()), tables, checked, classifier, partitions);
        made = std::make_unique<WindowedEngine>(std::move(checked), std::move(needs), classifier, partitions,
                                                std::move(behind));
    } else {
        made = engine_of(engine, tables, std::move(checked), classifier, partitions);
    }
    self.engines.push_back(&self.session->add(std::move(made)));
    return self.engines.size() - 1;
}

// Push the rows from `from` to before `to` (0: all); the others only tell what comes. Return the row to continue with;
// it is before `to` if `enough` matches wait to be taken, or if (`alert`) a plan under a budget has begun to watch its
// partial matches.
size_t push(BoundSession& self, const Words& ts, const nb::object& types, const nb::object& types_valid,
            const nb::object& ids, const nb::sequence& columns, size_t from, size_t enough, bool hold, size_t again,
            bool last, size_t to, bool alert) {
    const GivenBatch given(self.columns, ts, types, types_valid, ids, columns);
    const Batch& batch = given.batch;
    if (enough != 0 && self.engines.size() != 1) throw std::invalid_argument("enough: there are several plans");
    if (enough == 0) enough = Engine::endless;
    size_t at = from;
    to = to == 0 ? batch.size : std::min(to, batch.size);
    while (at < to) {
        // Where batches begin and end makes no difference to when policies follow.
        const size_t into_block = alert ? static_cast<size_t>(self.session->positions()) % block_rows : 0;
        const size_t stop = std::min(at + block_rows - into_block, to);
        at = unlocked([&] { return self.session->push(batch, at, stop, enough, hold, again, last); });
        // Signals are checked between parts.
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (enough != Engine::endless && self.engines[0]->output().size() >= enough) break;
        if (alert && self.session->at_block_end() &&
            std::ranges::any_of(self.engines, [](const Engine* engine) { return engine->woke(); })) {
            break;
        }
    }
    return at;
}

void reset(BoundSession& self, const Words& ts, const nb::object& types, const nb::object& types_valid,
           const nb::object& ids, const nb::sequence& columns, size_t rows) {
    const GivenBatch given(self.columns, ts, types, types_valid, ids, columns);
    unlocked([&] { self.session->reset(given.batch, std::min(rows, given.batch.size)); });
}

// Return the merged engine. Not behind match windows: they pass events on too late for waiting matches.
MergedEngine& merged(BoundSession& self, size_t engine) {
    return engine_as<MergedEngine>(*self.engines.at(engine), "it is not the merged engine");
}

size_t make_matches(BoundSession& self, size_t engine, size_t most) {
    MergedEngine& found = merged(self, engine);
    return unlocked([&] { return found.more(most); });
}

size_t make_ordered_block(BoundSession& self, size_t engine, size_t most, size_t sorted, bool whole) {
    MergedEngine& found = merged(self, engine);
    return unlocked([&] { return found.block(most, sorted, whole); });
}

void limit_waiting_matches(BoundSession& self, size_t engine, size_t most) {
    Engine& found = *self.engines.at(engine);
    if (found.unfinished()) throw std::invalid_argument("matches of an event are yet to be made");
    found.flow(most == 0 ? Engine::endless : most);
}

void tally(Engine& engine, int64_t kind) {
    constexpr auto message = "tally: not of this engine";
    if (kind < Tally::off || kind > Tally::bundles) throw std::invalid_argument(message);
    engine_as<NodeEngine>(engine, message).output().tally.kind = static_cast<Tally::Kind>(kind);
}

nb::dict take_tally(Engine& engine) { return taken(engine.output().tally); }

std::shared_ptr<Compressed> take_compressed(Engine& engine, bool last) {
    return engine_as<CompressedEngine>(engine, "it is not the compressed engine").take(last);
}

nb::bytes dump(const BoundSession& self) {
    Writer out;
    self.session->dump(out);
    return nb::bytes(reinterpret_cast<const char*>(out.bytes.data()), out.bytes.size());
}

// Load a state; `clock`: the latest time that its session has seen.
void load(BoundSession& self, const nb::bytes& bytes, int64_t clock) {
    Reader in({reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()});
    self.session->load(in, clock);
}

// Return the keys of the partitions of a table, one after the other.
nb::object keys(const BoundSession& self, size_t table) {
    const Partitions& partitions = self.session->partitions(table);
    std::vector<int64_t> found;
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        if (partitions.used(p)) found.insert(found.end(), partitions.key(p), partitions.key(p) + partitions.width());
    }
    return array(std::move(found));
}

// Return the numbers of the partitions of a table, in the order of `keys`.
nb::object numbers(const BoundSession& self, size_t table) {
    const Partitions& partitions = self.session->partitions(table);
    std::vector<int64_t> found;
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        if (partitions.used(p)) found.push_back(p);
    }
    return array(std::move(found));
}

nb::tuple work(const BoundSession& self, size_t engine) {
    const Work& w = self.engines.at(engine)->work();
    return nb::make_tuple(w.nodes, w.touches, w.matches);
}

// Return the number of events received by match windows, and of those passed on.
nb::tuple windowed(const BoundSession& self, size_t engine) {
    const auto& found = engine_as<WindowedEngine>(*self.engines.at(engine), "it has no match windows");
    return nb::make_tuple(found.received(), found.passed_on());
}

// Return the paths of a search: the error of each, its last variable, and by step the variable that is looked for, with
// the columns that its key compares for equality and those of its bands.
nb::list search_paths(const BoundSession& self, size_t engine) {
    const auto* budgeted = dynamic_cast<const BudgetedSearchEngine*>(&self.engine(engine));
    const SearchPlan& plan = budgeted != nullptr
                                 ? budgeted->plan()
                                 : engine_as<SwitchingEngine>(self.engine(engine), "search_paths: no search").plan();
    nb::list paths;
    for (const SearchPath& path : plan.paths) {
        nb::list steps;
        for (const SearchStep& step : path.steps) {
            nb::list equal, near;
            for (const SearchLink& link : step.links) {
                (link.part.is_band() ? near : equal).append(plan.columns[link.part.slot]);
            }
            steps.append(nb::make_tuple(path.vars[step.level], equal, near));
        }
        paths.append(nb::make_tuple(path.error, path.vars.back(), steps));
    }
    return paths;
}

}  // namespace

void bind_session(nb::module_& m) {
    using Self = BoundSession;
    nb::class_<Self> session(m, "Session");
    session.def("__init__", &make, "texts"_a, "programs"_a, "classes"_a, "columns"_a, "keys"_a);
    session.def("add", &add, "engine"_a, "arrays"_a);
    session.def("change", &change, "engine"_a, "programs"_a, "classes"_a, "columns"_a, "arrays"_a, "more"_a = false);
    session.def("renew", &renew, "engine"_a, "words"_a, "clock"_a);
    session.def("push", &push, "ts"_a.noconvert(), "types"_a.none(), "types_valid"_a.none(), "ids"_a.none(),
                "columns"_a, "start"_a = 0, "enough"_a = 0, "hold"_a = false, "again"_a = 0, "last"_a = false,
                "stop"_a = 0, "alert"_a = false);
    session.def("begin_at", [](Self& self, int64_t events) { self.session->begin_at(events); }, "events"_a);
    session.def("set_lane", [](Self& self, uint32_t number, uint32_t lanes) {
        self.session->set_lane({number, lanes});
    }, "number"_a, "lanes"_a);
    session.def("choose_search_ways", [](Self& self, int64_t index, int64_t future) {
        const auto taking = [](int64_t number) {
            if (number < 0 || number > 2) throw std::invalid_argument("choose_search_ways: a number from 0 to 2");
            return static_cast<Taking>(number);
        };
        for (Engine* engine : self.engines) engine->take_ways(taking(index), taking(future));
    }, "index"_a, "future"_a);
    session.def("begin_again", [](Self& self, int64_t fresh) { self.session->begin_again(fresh); }, "fresh"_a);
    session.def("repeated", [](Self& self, int64_t events) { self.session->repeated(events); }, "events"_a);
    session.def("reset", &reset, "ts"_a.noconvert(), "types"_a.none(), "types_valid"_a.none(), "ids"_a.none(),
                "columns"_a, "rows"_a);
    session.def("limit_waiting_matches", &limit_waiting_matches, "engine"_a, "most"_a);
    session.def("tally", of_engine(&tally), "engine"_a, "kind"_a);
    session.def("take_tally", of_engine(&take_tally), "engine"_a);
    session.def("advance", [](Self& self, int64_t clock) { self.session->advance(clock); }, "clock"_a);
    session.def("finish", [](Self& self) { self.session->finish(); });
    session.def("forget_idle_partitions", [](Self& self) { self.session->forget_idle_partitions(); });
    session.def("take", [](Self& self, size_t e) { return taken(self.engines.at(e)->output()); }, "engine"_a);
    session.def("take_compressed", of_engine(&take_compressed), "engine"_a, "last"_a);
    session.def("set_lazy", [](Self& self, size_t e, bool lazy) { merged(self, e).set_lazy(lazy); }, "engine"_a,
                "lazy"_a);
    session.def("make_matches", &make_matches, "engine"_a, "most"_a);
    session.def("make_ordered_block", &make_ordered_block, "engine"_a, "most"_a, "together"_a, "whole"_a);
    session.def("used_texts", [](const Self& self, size_t n) { return array(self.session->used_texts(n)); }, "codes"_a);
    session.def("used_ids", [](const Self& self) { return array(self.session->used_ids()); });
    session.def("kept", [](const Self& self) { return self.session->kept(); });
    session.def("set_kept", [](Self& self, const std::vector<size_t>& partitions) { self.session->kept(partitions); },
                "partitions"_a);
    session.def("dump", &dump);
    session.def("load", &load, "state"_a, "clock"_a = std::numeric_limits<int64_t>::max());
    session.def("keys", &keys, "table"_a);
    session.def("numbers", &numbers, "table"_a);
    session.def("work", &work, "engine"_a);
    session.def("partial_matches", [](const Self& self, size_t e, int64_t clock) {
        return self.engines.at(e)->partial_matches(clock);
    }, "engine"_a, "clock"_a);
    session.def("partial_matches_in", [](const Self& self, size_t e, std::vector<uint32_t> states, int64_t clock) {
        return engine_as<NodeEngine>(self.engine(e), "partial_matches_in: no nodes").partial_matches_in(states, clock);
    }, "engine"_a, "states"_a, "clock"_a);
    session.def("arc_keys", [](const Self& self, size_t e) {
        nb::list keys;
        const auto& nodes = engine_as<NodeEngine>(self.engine(e), "arc_keys: no nodes");
        for (const auto& key : arc_keys(nodes.tables(), self.session->front().programs())) {
            keys.append(nb::make_tuple(key.source, key.target, key.slots));
        }
        return keys;
    }, "engine"_a);
    session.def("foresees", [](const Self& self, size_t e) {
        return engine_as<NodeEngine>(self.engine(e), "foresees: no nodes").parts().may_know_future();
    }, "engine"_a);
    session.def("search_paths", &search_paths, "engine"_a);
    session.def("windowed", &windowed, "engine"_a);
    session.def_prop_ro("bytes", [](const Self& self) { return self.session->bytes(); });
    bind_counting(session);
    bind_partial_matches(session);
    bind_shedding(session);
}

}  // namespace acep
