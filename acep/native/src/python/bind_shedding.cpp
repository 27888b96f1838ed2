// Python bindings of shedding tables and of logs of partial matches, as arrays (acep/native/_native.pyi).
#include "python/bind_shedding.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "nodes/nodes.hpp"
#include "python/bind_output.hpp"
#include "shedding/sampling_units.hpp"

namespace nb = nanobind;

namespace acep {
namespace {

constexpr int64_t all_units = int64_t{1} << 32;

template <class T>
using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

NodeEngine& nodes(Engine& engine) {
    auto* found = dynamic_cast<NodeEngine*>(&engine);
    if (found == nullptr) throw std::invalid_argument("it is not the node engine");
    return *found;
}

SampledEngine& units(Engine& engine) {
    auto* found = dynamic_cast<SampledEngine*>(&engine);
    if (found == nullptr) throw std::invalid_argument("it is not given units");
    return *found;
}

Walks& walks_of(Engine& engine) {
    auto* given = dynamic_cast<SampledEngine*>(&engine);
    return given == nullptr ? engine.walks : given->behind().walks;
}

template <class T>
std::vector<T> values(const nb::dict& table, const char* name, size_t wanted) {
    const auto held = nb::cast<Values<T>>(table[name], false);
    if (held.shape(0) != wanted) throw std::invalid_argument(std::string("orders: length of ") + name);
    return {held.data(), held.data() + wanted};
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
    const auto bounds = nb::cast<Values<double>>(parts[5], false);
    t.bounds.assign(bounds.data(), bounds.data() + bounds.shape(0));
    for (size_t i = 0; i < t.bounds.size(); ++i) {
        if (!std::isfinite(t.bounds[i]) || (i > 0 && t.bounds[i] < t.bounds[i - 1])) {
            throw std::invalid_argument("orders: bounds of a term");
        }
    }
    const auto worth = nb::cast<Values<float>>(parts[6], false);
    t.worth.assign(worth.data(), worth.data() + worth.shape(0));
    const size_t bins = t.kind >= Term::hashed ? Term::buckets : t.bounds.size() + 1;
    if (!t.worth.empty() && t.worth.size() != bins + 1) throw std::invalid_argument("orders: worth of a term");
    for (float w : t.worth) {
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

}  // namespace

void start_units(Engine& engine, uint64_t seed, uint32_t key_texts) { units(engine).start(seed, key_texts); }

nb::dict units_counts(Engine& engine) {
    const SampledEngine& held = units(engine);
    const SampledEngine::Sums sums = held.sums();
    nb::dict found;
    found["spent"] = held.work().touches;
    found["dropped"] = held.dropped();
    found["passed_over"] = held.passed_over();
    found["withheld"] = held.withheld();
    found["let_in"] = held.let_in();
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

void start_shedding(Engine& engine, uint64_t seed) { nodes(engine).shed(seed); }

void set_shedding_table(Engine& engine, const nb::dict& table) {
    NodeEngine& held = nodes(engine);
    const Tables& tables = held.tables();
    const size_t states = tables.states.size();
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
                made.terms.back().push_back(term(one, slots < held.hidden() ? 0 : slots - held.hidden()));
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
    made.first_price = nb::cast<double>(table["price"]);
    if (!(made.first_price >= 0 && made.first_price <= most)) throw std::invalid_argument("orders: price");
    held.order(std::move(made));
}

void shadow_sample(Engine& engine, int64_t share) {
    if (share < 0 || share > all_units) throw std::invalid_argument("share of units");
    nodes(engine).shed().shadow_sample(static_cast<uint64_t>(share));
}

void allow(Engine& engine, double rate, double carried, int64_t arrived) {
    if (!(rate == rate) || !(carried >= 0)) throw std::invalid_argument("allowance");
    if (auto* given = dynamic_cast<SampledEngine*>(&engine)) return given->allow(rate, carried, arrived);
    nodes(engine).shed().allow(rate, carried, arrived);
}

void allow_matches(Engine& engine, int64_t most) {
    if (most < 0) throw std::invalid_argument("matches");
    walks_of(engine).left = most;
}

int64_t walked(Engine& engine) { return walks_of(engine).walked; }

void bound_memory(Engine& engine, int64_t bytes) { nodes(engine).bound_memory(bytes); }

int64_t least_memory(Engine& engine) {
    nodes(engine).rouse();
    return nodes(engine).least_memory();
}

nb::dict take_trajectories(Engine& engine) {
    Trajectories& trajectories = nodes(engine).shed().trajectories;
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
    const std::vector<Trajectories::Point>& all = nodes(engine).shed().trajectories.points;
    std::vector<Trajectories::Point> points(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())),
                                            all.end());
    return rows(points);
}

nb::dict shedding_counts(Engine& engine) {
    const Shedding& shed = nodes(engine).shed();
    nb::dict found;
    found["spent"] = shed.spent();
    found["decided"] = shed.decided;
    found["deciding"] = shed.deciding();
    found["refused"] = shed.refused;
    found["dropped"] = shed.dropped;
    found["passed_over"] = shed.passed_over;
    found["turned_away"] = shed.turned_away;
    found["points"] = shed.points;
    found["withheld"] = shed.withheld;
    found["price"] = shed.price;
    found["peak"] = nodes(engine).peak();
    found["watching"] = shed.shadow_sampling;
    found["weighed"] = shed.weighed;
    found["clock"] = nodes(engine).clock();
    found["calm"] = nodes(engine).rests();
    found["tokens"] = shed.limited() ? shed.tokens() : 0.0;
    return found;
}

}  // namespace acep
