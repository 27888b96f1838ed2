// Python bindings of the session (acep/native/_native.pyi): tables and columns in, columns of matches out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "merged/compressed.hpp"
#include "merged/merged.hpp"
#include "nodes/nodes.hpp"
#include "plan/tables.hpp"
#include "prefilter/windows.hpp"
#include "python/bind_counting.hpp"
#include "python/bind_output.hpp"
#include "python/bind_shedding.hpp"
#include "session/session.hpp"
#include "shedding/sampling_units.hpp"

namespace nb = nanobind;

namespace acep {

void bind_session(nb::module_& m);

namespace {

using Words = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<int64_t> vector_of(const Words& words) { return {words.data(), words.data() + words.shape(0)}; }

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

// The session as a Python object; it keeps the texts alive whose codes the front uses.
struct Held {
    nb::object texts;
    std::unique_ptr<Session> session;
    std::vector<uint32_t> leaves;  // number of inputs of each program
    size_t columns;
    size_t classes;
    std::vector<Engine*> engines;
};

void make(Held* self, nb::object texts, const nb::sequence& programs, const nb::sequence& classes, size_t columns,
          const std::vector<std::pair<std::vector<uint32_t>, bool>>& keys) {
    std::vector<BlockProgram> made;
    std::vector<uint32_t> leaves;
    for (nb::handle p : programs) {
        made.push_back(nb::cast<BlockProgram>(p));
        leaves.push_back(static_cast<uint32_t>(made.back().leaves()));
    }
    std::vector<EventClass> found;
    for (nb::handle c : classes) {
        auto parts = nb::cast<nb::tuple>(c);
        if (parts.size() != 2) throw std::invalid_argument("classes: pairs of types and checks");
        EventClass one{parts[0].is_none(), {}, {}};
        if (!one.any) one.types = vector_of(nb::cast<Words>(parts[0], false));
        for (nb::handle check : nb::cast<nb::sequence>(parts[1])) {
            auto pair = nb::cast<nb::tuple>(check);
            if (pair.size() != 2) throw std::invalid_argument("classes: pairs of program and sources");
            one.checks.push_back(
                event_check(nb::cast<uint32_t>(pair[0]), nb::cast<Words>(pair[1], false), made, columns));
        }
        found.push_back(std::move(one));
    }
    size_t many = found.size();
    auto& held = nb::cast<Texts&>(texts);
    auto session = std::make_unique<Session>(held, std::move(made), std::move(found), columns, keys);
    new (self) Held{std::move(texts), std::move(session), std::move(leaves), columns, many, {}};
}

// Names of combined engines: "windows+nodes" is the node engine behind match windows, and likewise with the others;
// "units+merged" is the merged engine on the units that the budget suffices for; also "windows+units+merged".
constexpr std::string_view windows_prefix = "windows+", units_prefix = "units+";

std::unique_ptr<Engine> engine_of(const std::string& name, const Arrays& arrays, Tables tables,
                                  EventClassifier& classifier, Partitions& partitions) {
    if (name.starts_with(units_prefix)) {
        auto behind = engine_of(name.substr(units_prefix.size()), arrays, tables, classifier, partitions);
        auto* easy = dynamic_cast<BoundedEngine*>(behind.get());
        if (easy == nullptr) throw std::invalid_argument("there is no engine " + name);
        static_cast<void>(behind.release());
        return std::make_unique<SampledEngine>(std::move(tables), classifier, partitions,
                                               std::unique_ptr<BoundedEngine>(easy));
    }
    if (name == "nodes") return std::make_unique<NodeEngine>(std::move(tables), classifier, partitions);
    if (name == "dominance") {
        auto dominance = std::make_unique<Dominance>(arrays, tables);
        return std::make_unique<NodeEngine>(std::move(tables), classifier, partitions, std::move(dominance));
    }
    if (name == "merged") return std::make_unique<MergedEngine>(std::move(tables), classifier, partitions);
    if (name == "compressed") return std::make_unique<CompressedEngine>(std::move(tables), classifier, partitions);
    auto counting = counting_engine(name, tables, classifier, partitions);
    if (counting == nullptr) throw std::invalid_argument("there is no engine " + name);
    return counting;
}

size_t add(Held& self, const std::string& engine, const nb::dict& arrays) {
    Arrays tables;
    for (auto [name, words] : arrays) tables.set(nb::cast<std::string>(name), vector_of(nb::cast<Words>(words, false)));
    Tables checked = tables_from(tables, self.leaves);
    if (checked.partitions >= self.session->key_tables()) throw std::invalid_argument("tables: no such key table");
    if (checked.classes != self.classes || checked.columns != self.columns) {
        throw std::invalid_argument("tables: made for another session");
    }
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

// Use types as indices of type T into a list of codes; false if they have another type or are out of range.
template <class T>
bool places(const nb::object& object, const Words& codes, Batch& batch) {
    nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> held;
    if (!nb::try_cast(object, held, false)) return false;
    if (held.shape(0) != batch.size) throw std::invalid_argument("columns: of different lengths");
    T least = 0, greatest = 0;
    for (size_t i = 0; i < batch.size; ++i) {
        least = std::min(least, held.data()[i]);
        greatest = std::max(greatest, held.data()[i]);
    }
    if (least < 0 || static_cast<size_t>(greatest) >= codes.shape(0)) return false;
    batch.types = {held.data(), sizeof(T), codes.data(), nullptr};
    return true;
}

// Return the row to continue with; it is before the end of the batch if `enough` matches wait to be taken.
size_t push(Held& self, const Words& ts, const nb::object& types, const nb::object& types_valid, const nb::object& ids,
            const nb::sequence& columns, size_t from, size_t enough) {
    Batch batch;
    batch.size = ts.shape(0);
    batch.ts = ts.data();
    std::vector<Words> words;
    std::vector<Bytes> bytes;
    std::optional<Words> list;
    auto column = [&](nb::handle object) -> const int64_t* {
        if (object.is_none()) return nullptr;
        words.push_back(nb::cast<Words>(object, false));
        if (words.back().shape(0) != batch.size) throw std::invalid_argument("columns: of different lengths");
        return words.back().data();
    };
    auto validity = [&](nb::handle object) -> const uint8_t* {
        if (object.is_none()) return nullptr;
        bytes.push_back(nb::cast<Bytes>(object, false));
        if (bytes.back().shape(0) != batch.size) throw std::invalid_argument("columns: of different lengths");
        return bytes.back().data();
    };
    if (nb::isinstance<nb::tuple>(types)) {
        const auto pair = nb::cast<nb::tuple>(types);
        if (pair.size() != 2) throw std::invalid_argument("types: pairs of places and codes");
        list.emplace(nb::cast<Words>(pair[1]));
        nb::object held = pair[0];
        const bool fits = places<int8_t>(held, *list, batch) || places<int16_t>(held, *list, batch) ||
                          places<int32_t>(held, *list, batch) || places<int64_t>(held, *list, batch);
        if (!fits) throw std::invalid_argument("types: no places in the codes");
    } else {
        batch.types.values = column(types);
    }
    batch.types.valid = validity(types_valid);
    if (nb::isinstance<nb::int_>(ids)) {
        batch.first_id = nb::cast<int64_t>(ids);
        int64_t last;
        if (batch.first_id == Batch::NO_IDS ||
            __builtin_add_overflow(batch.first_id, static_cast<int64_t>(batch.size), &last)) {
            throw std::invalid_argument("ids: beyond 64 bits");
        }
    } else {
        batch.ids = column(ids);
    }
    for (nb::handle c : columns) {
        auto pair = nb::cast<nb::tuple>(c);
        if (pair.size() != 2) throw std::invalid_argument("columns: pairs of values and validity");
        const int64_t* values = column(pair[0]);
        if (values == nullptr) throw std::invalid_argument("columns: no values");
        batch.columns.push_back({values, validity(pair[1])});
    }
    if (batch.columns.size() != self.columns) throw std::invalid_argument("columns: too few or too many");
    // Signals are checked between parts.
    constexpr size_t part = block_rows;
    if (enough != 0 && self.engines.size() != 1) throw std::invalid_argument("enough: there are several plans");
    if (enough == 0) enough = Engine::endless;
    size_t at = from;
    while (at < batch.size) {
        const size_t to = std::min(at + part, batch.size);
        {
            nb::gil_scoped_release release;
            at = self.session->push(batch, at, to, enough);
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (enough != Engine::endless && self.engines[0]->output().size() >= enough) break;
    }
    return at;
}

// Return the engine itself, also behind match windows.
Engine& engine_at(const Held& self, size_t number) {
    Engine* found = self.engines.at(number);
    auto* windowed = dynamic_cast<WindowedEngine*>(found);
    return windowed == nullptr ? *found : windowed->engine();
}

// Return the counting engine, also behind units.
Engine& counting_at(const Held& self, size_t number) {
    Engine& found = engine_at(self, number);
    auto* units = dynamic_cast<SampledEngine*>(&found);
    return units == nullptr ? found : units->behind();
}

// Return the merged engine. Not behind match windows: they pass events on too late for waiting matches.
MergedEngine& merged(Held& self, size_t engine) {
    auto* found = dynamic_cast<MergedEngine*>(self.engines.at(engine));
    if (found == nullptr) throw std::invalid_argument("it is not the merged engine");
    return *found;
}

}  // namespace

void bind_session(nb::module_& m) {
    nb::class_<Held>(m, "Session")
        .def("__init__", &make, nb::arg("texts"), nb::arg("programs"), nb::arg("classes"), nb::arg("columns"),
             nb::arg("keys"))
        .def("add", &add, nb::arg("engine"), nb::arg("arrays"))
        .def("push", &push, nb::arg("ts").noconvert(), nb::arg("types").none(), nb::arg("types_valid").none(),
             nb::arg("ids").none(), nb::arg("columns"), nb::arg("start") = 0, nb::arg("enough") = 0)
        .def("flow",
             [](Held& self, size_t engine, size_t most) {
        Engine& found = *self.engines.at(engine);
        if (found.unfinished()) throw std::invalid_argument("matches of an event are yet to be made");
        found.flow(most == 0 ? Engine::endless : most);
    }, nb::arg("engine"), nb::arg("most"))
        .def("tally",
             [](Held& self, size_t engine, int64_t kind) {
        if (dynamic_cast<NodeEngine*>(&engine_at(self, engine)) == nullptr || kind < Tally::off ||
            kind > Tally::bundles) {
            throw std::invalid_argument("tally: not of this engine");
        }
        engine_at(self, engine).output().tally.kind = static_cast<Tally::Kind>(kind);
    }, nb::arg("engine"), nb::arg("kind"))
        .def("take_tally", [](Held& self, size_t engine) { return tallied(engine_at(self, engine).output().tally); },
             nb::arg("engine"))
        .def("advance", [](Held& self, int64_t clock) { self.session->advance(clock); }, nb::arg("clock"))
        .def("finish", [](Held& self) { self.session->finish(); })
        .def("take", [](Held& self, size_t engine) { return taken(self.engines.at(engine)->output()); },
             nb::arg("engine"))
        .def("take_counts",
             [](Held& self, size_t engine, bool last) { return take_counts(counting_at(self, engine), last); },
             nb::arg("engine"), nb::arg("last"))
        .def("count_totals", [](Held& self, size_t engine) { return count_totals(counting_at(self, engine)); },
             nb::arg("engine"))
        .def("take_compressed",
             [](Held& self, size_t engine, bool last) {
        auto* found = dynamic_cast<CompressedEngine*>(&engine_at(self, engine));
        if (found == nullptr) throw std::invalid_argument("it is not the compressed engine");
        return found->take(last);
    }, nb::arg("engine"), nb::arg("last"))
        .def("start_shedding",
             [](Held& self, size_t engine, uint64_t seed) {
        start_shedding(engine_at(self, engine), seed);
        self.session->rest_when_told();
    }, nb::arg("engine"), nb::arg("seed"))
        .def("start_units",
             [](Held& self, size_t engine, uint64_t seed, uint32_t key_texts) {
        start_units(engine_at(self, engine), seed, key_texts);
        self.session->rest_when_told();
    }, nb::arg("engine"), nb::arg("seed"), nb::arg("key_texts"))
        .def("rest", [](Held& self) { self.session->rest(); })
        .def("set_shedding_table",
             [](Held& self, size_t engine, const nb::dict& table) {
        set_shedding_table(engine_at(self, engine), table);
    }, nb::arg("engine"), nb::arg("orders"))
        .def("shadow_sample",
             [](Held& self, size_t engine, int64_t share) { shadow_sample(engine_at(self, engine), share); },
             nb::arg("engine"), nb::arg("share"))
        .def("allow",
             [](Held& self, size_t engine, double rate, double carried) {
        allow(engine_at(self, engine), rate, carried, self.session->seen());
    }, nb::arg("engine"), nb::arg("rate"), nb::arg("carried"))
        .def("allow_matches",
             [](Held& self, size_t engine, int64_t most) { allow_matches(engine_at(self, engine), most); },
             nb::arg("engine"), nb::arg("most"))
        .def("walked", [](Held& self, size_t engine) { return walked(engine_at(self, engine)); }, nb::arg("engine"))
        .def("bound_memory",
             [](Held& self, size_t engine, int64_t bytes) {
        // Not behind match windows: events waiting there have no bound, and are passed on after the clock.
        bound_memory(*self.engines.at(engine), bytes);
        self.session->bound();
    }, nb::arg("engine"), nb::arg("most"))
        .def("used_texts", [](const Held& self, size_t codes) { return array(self.session->used_texts(codes)); },
             nb::arg("codes"))
        .def("used_ids", [](const Held& self) { return array(self.session->used_ids()); })
        .def("least_memory", [](Held& self, size_t engine) { return least_memory(engine_at(self, engine)); },
             nb::arg("engine"))
        .def("take_trajectories", [](Held& self, size_t engine) { return take_trajectories(engine_at(self, engine)); },
             nb::arg("engine"))
        .def("shadow_points",
             [](Held& self, size_t engine, size_t first) { return shadow_points(engine_at(self, engine), first); },
             nb::arg("engine"), nb::arg("first") = 0)
        .def("units_counts", [](Held& self, size_t engine) { return units_counts(engine_at(self, engine)); },
             nb::arg("engine"))
        .def("shedding_counts", [](Held& self, size_t engine) { return shedding_counts(engine_at(self, engine)); },
             nb::arg("engine"))
        .def("set_lazy", [](Held& self, size_t engine, bool lazy) { merged(self, engine).set_lazy(lazy); },
             nb::arg("engine"), nb::arg("lazy"))
        .def("more",
             [](Held& self, size_t engine, size_t most) {
        MergedEngine& found = merged(self, engine);
        nb::gil_scoped_release release;
        return found.more(most);
    }, nb::arg("engine"), nb::arg("most"))
        .def("block",
             [](Held& self, size_t engine, size_t most, size_t sorted, bool whole) {
        MergedEngine& found = merged(self, engine);
        nb::gil_scoped_release release;
        return found.block(most, sorted, whole);
    }, nb::arg("engine"), nb::arg("most"), nb::arg("together"), nb::arg("whole"))
        .def("dump",
             [](const Held& self) {
        Writer out;
        self.session->dump(out);
        return nb::bytes(reinterpret_cast<const char*>(out.bytes.data()), out.bytes.size());
    })
        .def("load",
             [](Held& self, const nb::bytes& bytes) {
        Reader in({reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()});
        self.session->load(in);
    }, nb::arg("state"))
        .def("keys",
             [](const Held& self, size_t table) {
        // The keys of the partitions of a table, one after the other.
        const Partitions& partitions = self.session->partitions(table);
        std::vector<int64_t> found;
        for (uint32_t p = 0; p < partitions.size(); ++p) {
            if (partitions.used(p))
                found.insert(found.end(), partitions.key(p), partitions.key(p) + partitions.width());
        }
        return array(std::move(found));
    }, nb::arg("table"))
        .def("numbers",
             [](const Held& self, size_t table) {
        // The numbers of the partitions of a table, in the order of `keys`.
        const Partitions& partitions = self.session->partitions(table);
        std::vector<int64_t> found;
        for (uint32_t p = 0; p < partitions.size(); ++p) {
            if (partitions.used(p)) found.push_back(p);
        }
        return array(std::move(found));
    }, nb::arg("table"))
        .def("work",
             [](const Held& self, size_t engine) {
        const Work& w = self.engines.at(engine)->work();
        return nb::make_tuple(w.nodes, w.touches, w.matches);
    }, nb::arg("engine"))
        .def("partial_matches",
             [](const Held& self, size_t engine, int64_t clock) {
        return self.engines.at(engine)->partial_matches(clock);
    }, nb::arg("engine"), nb::arg("clock"))
        .def("windowed",
             [](const Held& self, size_t engine) {
        // Events received by match windows, and those passed on.
        const auto* found = dynamic_cast<const WindowedEngine*>(self.engines.at(engine));
        if (found == nullptr) throw std::invalid_argument("it has no match windows");
        return nb::make_tuple(found->came(), found->handed());
    }, nb::arg("engine"))
        .def_prop_ro("bytes", [](const Held& self) { return self.session->bytes(); });
}

}  // namespace acep
