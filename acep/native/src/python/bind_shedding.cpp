// Python bindings of shedding tables and of logs of partial matches, as arrays (acep/native/_native.pyi).
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>

#include "nodes/nodes.hpp"
#include "python/bind_arrays.hpp"
#include "python/bind_session.hpp"
#include "search/budgeted_search.hpp"
#include "shedding/sampling_units.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {
namespace {

constexpr int64_t all_units = int64_t{1} << 32;

NodeEngine& nodes(Engine& engine) { return engine_as<NodeEngine>(engine, "it is not the node engine"); }

SampledEngine& units(Engine& engine) { return engine_as<SampledEngine>(engine, "it is not given units"); }

BudgetedSearchEngine& searches(Engine& engine) {
    return engine_as<BudgetedSearchEngine>(engine, "it does not search within a budget");
}

Walks& walks_of(Engine& engine) {
    auto* given = dynamic_cast<SampledEngine*>(&engine);
    return given == nullptr ? engine.walks : given->behind().walks;
}

template <class T>
std::vector<T> values(const nb::dict& table, const char* name, size_t wanted) {
    const auto held = nb::cast<Values<T>>(table[name], false);
    if (held.shape(0) != wanted) throw std::invalid_argument(std::string("orders: length of ") + name);
    return vector_of<T>(held);
}

int64_t number(const nb::dict& table, const char* name, int64_t low, int64_t high) {
    const auto found = nb::cast<int64_t>(table[name]);
    if (found < low || found > high) throw std::invalid_argument(std::string("orders: ") + name);
    return found;
}

// Read a term: (kind, slot, slot, floats, floats, bounds of its bins, utility by bin).
Term term(nb::handle given, uint32_t slots) {
    Term t;
    auto parts = nb::cast<nb::tuple>(given);
    if (parts.size() != 7) throw std::invalid_argument("orders: a term");
    const auto kind = nb::cast<int64_t>(parts[0]);
    const auto a = nb::cast<int64_t>(parts[1]), b = nb::cast<int64_t>(parts[2]);
    if (kind < Term::held || kind > Term::text) throw std::invalid_argument("orders: kind of a term");
    if (a < 0 || b < 0 || (kind != Term::partition && (a >= slots || b >= slots)))
        throw std::invalid_argument("orders: slot of a term");
    t.kind = static_cast<Term::Kind>(kind);
    t.a = static_cast<uint32_t>(a);
    t.b = static_cast<uint32_t>(b);
    t.a_floats = nb::cast<bool>(parts[3]);
    t.b_floats = nb::cast<bool>(parts[4]);
    t.bounds = vector_of<double>(nb::cast<Values<double>>(parts[5], false));
    for (size_t i = 0; i < t.bounds.size(); ++i) {
        if (!std::isfinite(t.bounds[i]) || (i > 0 && t.bounds[i] < t.bounds[i - 1])) {
            throw std::invalid_argument("orders: bounds of a term");
        }
    }
    t.utility = vector_of<float>(nb::cast<Values<float>>(parts[6], false));
    const size_t bins = t.kind >= Term::hashed ? Term::buckets : t.bounds.size() + 1;
    if (!t.utility.empty() && t.utility.size() != bins + 1) throw std::invalid_argument("orders: worth of a term");
    for (float w : t.utility) {
        if (!std::isfinite(w)) throw std::invalid_argument("orders: worth of a term");
    }
    return t;
}

// Return rows of int64 structs as one array of words, and clear them.
template <class Row>
nb::object rows(std::vector<Row>& all) {
    constexpr size_t width = sizeof(Row) / sizeof(int64_t);
    std::vector<int64_t> words(all.size() * width);
    if (!all.empty()) std::memcpy(words.data(), all.data(), all.size() * sizeof(Row));
    all.clear();
    return array(std::move(words));
}

nb::dict units_counts(Engine& engine) {
    const SampledEngine& held = units(engine);
    const SampledEngine::Sums sums = held.sums();
    nb::dict found;
    found["dropped"] = held.dropped();
    found["passed_over"] = held.skipped();
    found["withheld"] = held.withheld();
    found["let_in"] = held.admitted();
    found["points"] = held.points();
    found["certain"] = held.certain();
    found["units"] = sums.units;
    found["x"] = sums.x;
    found["e"] = sums.e;
    found["squares"] = sums.squares;
    found["xx"] = sums.xx;
    found["xe"] = sums.xe;
    found["ee"] = sums.ee;
    return found;
}

void set_shedding_table(Engine& engine, const nb::dict& table) {
    NodeEngine& held = nodes(engine);
    const Tables& tables = held.tables();
    const size_t states = tables.states.size();
    const uint32_t hidden = held.parts().shedding.hidden();
    constexpr int64_t most = 255;
    SheddingTable made;
    made.errors = number(table, "errors", 1, most);
    made.windows = number(table, "windows", 1, most);
    made.waits = number(table, "waits", 1, 8);
    made.features = number(table, "features", 1, most);
    made.level = values<uint8_t>(table, "level",
                                 states * static_cast<size_t>(made.errors * made.windows * made.waits * made.features));
    for (uint8_t& level : made.level) level = std::min<uint8_t>(level, 254);
    made.later = values<int8_t>(table, "later", states * SheddingTable::ages);
    made.decay = values<double>(table, "decay", states);
    for (double d : made.decay) {
        if (!(d >= 0)) throw std::invalid_argument("orders: decay");
    }
    made.key_texts = static_cast<uint32_t>(number(table, "key_texts", 0, 0xFFFFFFFF));
    made.error_step = number(table, "error_step", 1, int64_t{1} << 40);
    if (const auto terms = nb::cast<nb::list>(table["terms"]); terms.size() != 0) {
        if (terms.size() != states) throw std::invalid_argument("orders: terms");
        for (size_t s = 0; s < states; ++s) {
            const uint32_t slots = tables.states[s].slots;
            made.terms.emplace_back();
            for (nb::handle one : nb::cast<nb::list>(terms[s])) {
                made.terms.back().push_back(term(one, slots < hidden ? 0 : slots - hidden));
            }
            made.most_terms = std::max(made.most_terms, made.terms.back().size());
        }
    }
    made.places = number(table, "places", 1, most);
    if (const auto admit = nb::cast<Values<uint8_t>>(table["admit"], false); admit.shape(0) != 0) {
        made.admit = values<uint8_t>(table, "admit", tables.classes * static_cast<size_t>(made.places));
    }
    made.ties = static_cast<SheddingTable::Ties>(number(table, "ties", SheddingTable::newest, SheddingTable::random));
    made.noise = number(table, "noise", 0, most);
    made.clears = nb::cast<bool>(table["clears"]);
    made.sample = static_cast<uint64_t>(number(table, "sample", 0, all_units));
    made.shadow = static_cast<uint64_t>(number(table, "shadow", 0, all_units));
    made.first_threshold = nb::cast<double>(table["price"]);
    if (!(made.first_threshold >= 0 && made.first_threshold <= most)) throw std::invalid_argument("orders: price");
    held.shed();
    held.parts().set_table(std::move(made));
}

void shadow_sample(Engine& engine, int64_t share) {
    if (share < 0 || share > all_units) throw std::invalid_argument("share of units");
    nodes(engine).shed().sample_units(static_cast<uint64_t>(share));
}

void allow(const BoundSession& self, size_t engine, double rate, double carried, double credit) {
    if (!(rate == rate) || !(carried >= 0) || !(credit >= 0)) throw std::invalid_argument("allowance");
    Engine& found = self.engine(engine);
    if (auto* given = dynamic_cast<SampledEngine*>(&found)) return given->allow(rate, carried, self.session->arrived());
    if (auto* search = dynamic_cast<BudgetedSearchEngine*>(&found)) {
        return search->allow(rate, carried, self.session->arrived());
    }
    nodes(found).shed().budget.allow(rate, carried, self.session->arrived(), credit);
}

void start_shedding(const BoundSession& self, size_t engine, uint64_t seed) {
    nodes(self.engine(engine)).shed(seed);
    self.session->forget_only_when_told();
}

void start_units(const BoundSession& self, size_t engine, uint64_t seed, uint32_t key_texts) {
    units(self.engine(engine)).start(seed, key_texts);
    self.session->forget_only_when_told();
}

// `kinds`: by column of the session, how its values are told apart (BudgetedSearchEngine::ValueKind).
void start_search(const BoundSession& self, size_t engine, uint64_t seed, const std::vector<int64_t>& kinds,
                  uint32_t key_texts, double sampling, double ahead) {
    if (!(sampling >= 0 && sampling < 1)) throw std::invalid_argument("sampling");
    if (!(ahead >= 0 && ahead <= 1e9)) throw std::invalid_argument("ahead");
    std::vector<BudgetedSearchEngine::ValueKind> own;
    for (const int64_t kind : kinds) {
        if (kind < 0 || kind > 2) throw std::invalid_argument("kinds of columns");
        own.push_back(static_cast<BudgetedSearchEngine::ValueKind>(kind));
    }
    searches(self.engine(engine)).start(seed, own, key_texts, sampling, ahead);
    self.session->forget_only_when_told();
}

nb::dict search_counts(Engine& engine) {
    const BudgetedSearchEngine& search = searches(engine);
    const BudgetedSearchEngine::Sums& sums = search.sums();
    nb::dict counts;
    counts["points"] = sums.points;
    counts["short"] = search.is_short();
    counts["given_up"] = sums.given_up;
    counts["sampled"] = sums.sampled;
    counts["unknown"] = sums.unknown;
    counts["extra"] = sums.extra;
    counts["limited"] = sums.limited;
    counts["weights"] = sums.weights;
    counts["missed"] = sums.missed;
    counts["missed_variance"] = sums.missed_variance;
    counts["unknown_missed"] = sums.unknown_missed;
    return counts;
}

void allow_matches(Engine& engine, int64_t most) {
    if (most < 0) throw std::invalid_argument("matches");
    walks_of(engine).left = most;
}

int64_t walked(Engine& engine) { return walks_of(engine).walked; }

// Not behind match windows: events waiting there have no bound, and are passed on after the clock.
void bound_memory(const BoundSession& self, size_t engine, int64_t bytes) {
    nodes(*self.engines.at(engine)).bound_memory(bytes);
    self.session->bound();
}

int64_t least_memory(Engine& engine) { return nodes(engine).parts().memory.least_bound(); }

int64_t weigh(Engine& engine) { return nodes(engine).parts().memory.note_charged(); }

nb::dict take_trajectories(Engine& engine) {
    Trajectories& trajectories = nodes(engine).shed().log.trajectories;
    nb::dict found;
    found["made"] = rows(trajectories.made);
    found["ended"] = rows(trajectories.ended);
    found["found"] = rows(trajectories.found);
    trajectories.points.clear();
    found["values"] = array(std::move(trajectories.values));
    trajectories.values = {};
    return found;
}

nb::object shadow_points(Engine& engine, size_t first) {
    const std::vector<Trajectories::Point>& all = nodes(engine).shed().log.trajectories.points;
    std::vector<Trajectories::Point> points(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())),
                                            all.end());
    return rows(points);
}

// Return what the state of a session lacks of a plan under a budget: whether it has just woken, and by what it is
// judged whether the known future pays.
nb::bytes watching_state(Engine& engine) {
    Writer out;
    out.words(engine.woke());
    if (const auto& future = nodes(engine).parts().future) future->fields(out);
    return nb::bytes(reinterpret_cast<const char*>(out.bytes.data()), out.bytes.size());
}

void load_watching_state(Engine& engine, const nb::bytes& bytes) {
    Reader in({reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()});
    bool woke = false;
    in.words(woke);
    nodes(engine).parts().shedding.set_woke(woke);
    if (const auto& future = nodes(engine).parts().future) future->fields(in);
    in.end();
}

bool is_shedding_idle(Engine& engine) { return nodes(engine).parts().shedding.resting() != nullptr; }

// Return what sheds, with the work of the last event, which is not charged at once while it rests.
Shedding& charged(Engine& engine) {
    NodeEngine& own = nodes(engine);
    if (own.parts().shedding.resting() != nullptr) own.shed().budget.touched(own.work().touches);
    return own.shed();
}

int64_t spent(Engine& engine) {
    return dynamic_cast<NodeEngine*>(&engine) != nullptr ? charged(engine).budget.spent() : engine.work().touches;
}

bool take_woke(Engine& engine) { return nodes(engine).parts().shedding.set_woke(false); }

nb::dict shedding_counts(Engine& engine) {
    const Shedding& shed = charged(engine);
    const NodeParts& parts = nodes(engine).parts();
    nb::dict found;
    found["spent"] = shed.budget.spent();
    found["decided"] = shed.budget.decisions();
    found["deciding"] = shed.budget.decision_touches();
    found["refused"] = shed.admission.refused;
    found["dropped"] = shed.eviction.dropped;
    found["passed_over"] = shed.admission.skipped;
    found["turned_away"] = shed.admission.keyless;
    found["points"] = shed.log.n_match_points;
    found["withheld"] = shed.log.withheld;
    found["price"] = shed.budget.threshold();
    found["peak"] = parts.memory.peak();
    found["given_peak"] = parts.memory.matches_peak();
    found["watching"] = shed.budget.sample_touches();
    found["weighed"] = shed.utilities.n_computed();
    found["clock"] = parts.store.clock();
    found["calm"] = is_shedding_idle(engine);
    found["logged"] = !shed.log.trajectories.made.empty() || !shed.log.trajectories.points.empty();
    found["tokens"] = shed.budget.limited() ? shed.budget.tokens() : 0.0;
    return found;
}

}  // namespace

void bind_shedding(nb::class_<BoundSession>& session) {
    session.def("start_shedding", &start_shedding, "engine"_a, "seed"_a);
    session.def("start_units", &start_units, "engine"_a, "seed"_a, "key_texts"_a);
    session.def("start_search", &start_search, "engine"_a, "seed"_a, "kinds"_a, "key_texts"_a, "sampling"_a, "ahead"_a);
    session.def("search_counts", of_engine(&search_counts), "engine"_a);
    session.def("set_shedding_table", of_engine(&set_shedding_table), "engine"_a, "orders"_a);
    session.def("shadow_sample", of_engine(&shadow_sample), "engine"_a, "share"_a);
    session.def("allow", &allow, "engine"_a, "rate"_a, "carried"_a, "credit"_a = 0.0);
    session.def("allow_matches", of_engine(&allow_matches), "engine"_a, "most"_a);
    session.def("walked", of_engine(&walked), "engine"_a);
    session.def("bound_memory", &bound_memory, "engine"_a, "most"_a);
    session.def("least_memory", of_engine(&least_memory), "engine"_a);
    session.def("weigh", of_engine(&weigh), "engine"_a);
    session.def("take_trajectories", of_engine(&take_trajectories), "engine"_a);
    session.def("shadow_points", of_engine(&shadow_points), "engine"_a, "first"_a = 0);
    session.def("units_counts", of_engine(&units_counts), "engine"_a);
    session.def("watching_state", of_engine(&watching_state), "engine"_a);
    session.def("load_watching_state", of_engine(&load_watching_state), "engine"_a, "state"_a);
    session.def("is_shedding_idle", of_engine(&is_shedding_idle), "engine"_a);
    session.def("spent", of_engine(&spent), "engine"_a);
    session.def("woke", of_engine(&take_woke), "engine"_a);
    session.def("shedding_counts", of_engine(&shedding_counts), "engine"_a);
}

}  // namespace acep
