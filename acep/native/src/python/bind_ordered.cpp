// Python bindings of the search for preferred matches in sorted rows (acep/native/_native.pyi).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/texts.hpp"
#include "expression/vm.hpp"
#include "ordered/open_walk.hpp"
#include "ordered/ordered_search.hpp"
#include "python/bind_arrays.hpp"
#include "python/bound_search.hpp"
#include "python/signal_polling.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

using Triple = std::tuple<int64_t, int64_t, int64_t>;
using Sextuple = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
using Lists = std::vector<std::vector<int64_t>>;

// Return a number in [0, most].
size_t in_range(int64_t number, size_t most, const char* what) {
    if (number < 0 || static_cast<uint64_t>(number) > most) throw std::invalid_argument(what);
    return static_cast<size_t>(number);
}

// Return the index of one of `size` things.
size_t index_of(int64_t number, size_t size, const char* what) {
    if (number < 0 || static_cast<uint64_t>(number) >= size) throw std::invalid_argument(what);
    return static_cast<size_t>(number);
}

std::vector<PatternState> states_of(const std::vector<Triple>& numbers) {
    constexpr size_t most_number = 0xFFFFFFFF;
    std::vector<PatternState> states;
    for (const auto& [op, a, b] : numbers) {
        const auto kind = static_cast<PatternState::Op>(in_range(op, PatternState::accept, "states: an operation"));
        const bool leads = kind != PatternState::accept, second = kind <= PatternState::split;
        states.push_back({kind, static_cast<uint32_t>(leads ? in_range(a, most_number, "states: a state") : 0),
                          static_cast<uint32_t>(second ? in_range(b, most_number, "states: a state or label") : 0)});
    }
    return states;
}

Reference reference_of(const Sextuple& numbers, size_t sets) {
    constexpr int64_t farthest = int64_t{1} << 40;  // more rows than there are
    constexpr size_t most_rows = size_t{1} << 40;
    const auto& [kind, set, offset, shift, column, type] = numbers;
    Reference reference{};
    reference.kind = static_cast<Reference::Kind>(in_range(kind, Reference::average, "references: a kind"));
    reference.shift = std::clamp(shift, -farthest, farthest);
    reference.offset = std::min(in_range(offset, size_t{int64_max}, "references: an offset"), most_rows);
    const bool has_places = reference.offset <= static_cast<size_t>(most_places);
    if (reference.kind == Reference::average && !has_places) throw std::invalid_argument("references: decimal places");
    if (reference.reads_set()) reference.set = index_of(set, sets, "references: a set");
    if (reference.reads_column()) reference.column = in_range(column, size_t{int64_max}, "references: a column");
    reference.type = static_cast<int64_t>(in_range(type, 2, "references: a type"));
    return reference;
}

std::vector<uint32_t> indices(const std::vector<int64_t>& numbers, size_t size, const char* what) {
    std::vector<uint32_t> places;
    for (const int64_t number : numbers) places.push_back(static_cast<uint32_t>(index_of(number, size, what)));
    return places;
}

std::vector<RowCondition> conditions_of(const nb::sequence& all, size_t labels, size_t references) {
    std::vector<RowCondition> conditions;
    for (nb::handle entry : all) {
        const auto parts = nb::cast<nb::tuple>(entry);
        if (parts.size() != 3) throw std::invalid_argument("conditions: label, program and references");
        RowCondition condition{
            index_of(nb::cast<int64_t>(parts[0]), labels, "conditions: a label"),
            nb::cast<const BlockProgram&>(parts[1]),
            indices(nb::cast<std::vector<int64_t>>(parts[2]), references, "conditions: a reference")};
        if (condition.program.leaves() != condition.references.size()) {
            throw std::invalid_argument("conditions: a reference for each input of the program");
        }
        conditions.push_back(std::move(condition));
    }
    return conditions;
}

void make_search(BoundSearch* self, const std::vector<Triple>& states, int64_t labels, const Lists& label_sets,
                 const std::vector<Sextuple>& references, const nb::sequence& conditions, const Lists& live,
                 int64_t skip, int64_t skip_set, int64_t memory) {
    const size_t all_labels = in_range(labels, PatternGraph::most_labels, "labels: at most 65,535");
    OrderedPattern pattern{PatternGraph(states_of(states), all_labels), {}, {}, {}, {}, Skip::past_last, 0, 0};
    for (const auto& set : label_sets) pattern.sets.emplace_back(set, all_labels);
    for (const Sextuple& numbers : references) {
        pattern.references.push_back(reference_of(numbers, label_sets.size()));
    }
    pattern.conditions = conditions_of(conditions, all_labels, references.size());
    for (const auto& list : live) pattern.live.push_back(indices(list, references.size(), "live: a reference"));
    pattern.skip = static_cast<Skip>(in_range(skip, static_cast<size_t>(Skip::to_last), "skip: a kind"));
    const bool to_set = pattern.skip == Skip::to_first || pattern.skip == Skip::to_last;
    if (to_set) pattern.skip_set = index_of(skip_set, label_sets.size(), "skip: a set");
    pattern.memory = in_range(memory, size_t{int64_max}, "memory: a number of bytes");
    new (self) BoundSearch(std::move(pattern));
}

void check_idle(const BoundSearch& self) {
    if (self.busy) throw std::runtime_error("the search is in use by another thread");
}

// Read where the search of each partition starts, from which position on no match does, and the matches before.
void read_starts(const std::vector<Triple>& starts, std::optional<int64_t> open_label, OrderedInput& input) {
    for (const auto& [first, stop, number] : starts) {
        input.starts.push_back(in_range(first, size_t{int64_max}, "starts: a position"));
        input.stops.push_back(in_range(stop, size_t{int64_max}, "starts: a stop"));
        input.numbers.push_back(number);
    }
    if (open_label) input.open_label = in_range(*open_label, PatternGraph::most_labels, "open label: a label");
}

void start(BoundSearch& self, const nb::sequence& columns, const nb::sequence& local, const Words& partitions,
           nb::object texts, const std::optional<Words>& times, uint64_t width, const std::vector<Triple>& starts,
           std::optional<int64_t> open_label) {
    check_idle(self);
    std::vector<Words> words;
    std::vector<Bytes> bytes;
    OrderedInput input;
    for (size_t p = 0; p < partitions.shape(0); ++p) {
        input.offsets.push_back(in_range(partitions.data()[p], size_t{int64_max}, "partitions: an offset"));
    }
    const size_t rows = input.offsets.empty() ? 0 : input.offsets.back();
    for (nb::handle pair : columns) {
        const auto parts = nb::cast<nb::tuple>(pair);
        if (parts.size() != 2) throw std::invalid_argument("columns: pairs of words and validity");
        words.push_back(nb::cast<Words>(parts[0], false));
        Column column{words.back().data(), nullptr};
        if (!parts[1].is_none()) {
            bytes.push_back(nb::cast<Bytes>(parts[1], false));
            if (bytes.back().shape(0) != words.back().shape(0))
                throw std::invalid_argument("columns: a validity a row");
            column.valid = bytes.back().data();
        }
        input.view.columns.push_back(column);
        input.view.lengths.push_back(words.back().shape(0));
    }
    for (nb::handle bits : local) {
        input.local.push_back(nullptr);
        if (bits.is_none()) continue;
        bytes.push_back(nb::cast<Bytes>(bits, false));
        if (bytes.back().shape(0) != rows) throw std::invalid_argument("local: a byte a row");
        input.local.back() = bytes.back().data();
    }
    if (times) {
        words.push_back(*times);
        if (times->shape(0) != rows) throw std::invalid_argument("times: one a row");
        input.times = times->data();
    }
    input.width = width;
    read_starts(starts, open_label, input);
    input.view.rows = rows;
    input.view.texts = nb::cast<const Texts*>(texts);
    if (input.view.texts == nullptr) throw std::invalid_argument("texts: none");
    self.search.start(std::move(input));
    self.words = std::move(words);
    self.bytes = std::move(bytes);
    self.texts = std::move(texts);
}

// Raise ValueError(kind, partition, first row of the match).
[[noreturn]] void raise_skip(const SkipError& error) {
    const nb::tuple content = nb::make_tuple(error.what(), error.partition, error.row);
    PyErr_SetObject(PyExc_ValueError, content.ptr());
    throw nb::python_error();
}

nb::object take(BoundSearch& self, size_t rows) {
    check_idle(self);
    struct Busy {
        explicit Busy(bool& of) : flag(of) { flag = true; }
        ~Busy() { flag = false; }
        bool& flag;
    };
    const Busy busy(self.busy);
    Polling polling = signal_polling();
    try {
        auto matches = unlocked([&] { return self.search.take(rows, polling); });
        if (!matches) return nb::none();
        return nb::make_tuple(array(std::move(matches->partition)), array(std::move(matches->number)),
                              array(std::move(matches->first)), array(std::move(matches->offsets)),
                              array(std::move(matches->labels)));
    } catch (const SkipError& error) {
        raise_skip(error);
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

// Return where the search ended in each partition: positions, and the matches before them.
nb::tuple ends(const BoundSearch& self) {
    check_idle(self);
    PartitionEnds ends = self.search.ends();
    return nb::make_tuple(array(std::move(ends.positions)), array(std::move(ends.numbers)));
}

// Return the labels of the open matches of the partitions that are done: offsets, and labels.
nb::tuple open_labels(const BoundSearch& self) {
    check_idle(self);
    PartitionEnds ends = self.search.ends();
    return nb::make_tuple(array(std::move(ends.offsets)), array(std::move(ends.labels)));
}

nb::dict counts(const BoundSearch& self) {
    check_idle(self);
    const OrderedSearch::Counts all = self.search.counts();
    nb::dict numbers;
    numbers["steps"] = all.steps;
    numbers["conditions"] = all.conditions;
    numbers["failures"] = all.failures;
    numbers["bytes"] = all.bytes;
    return numbers;
}

// Return for each partition the state at which its open match waits for rows, or -1 if it is decided. `places`: where
// each stood, as (position, state); a negative state: it is not walked.
nb::object walk_open(const std::vector<Triple>& states, const nb::sequence& local, const Words& partitions,
                     const std::vector<std::pair<int64_t, int64_t>>& places, int64_t memory) {
    std::vector<Bytes> bytes;
    std::vector<const uint8_t*> bits;
    for (nb::handle of_label : local) {
        bytes.push_back(nb::cast<Bytes>(of_label, false));
        bits.push_back(bytes.back().data());
    }
    if (bytes.empty()) throw std::invalid_argument("local: one for each label");
    const PatternGraph graph(states_of(states), bytes.size());
    const size_t count = places.size();
    if (partitions.shape(0) != count + 1) throw std::invalid_argument("places: one for each partition");
    size_t end = 0;
    std::vector<size_t> offsets;
    for (size_t p = 0; p <= count; ++p) {
        offsets.push_back(in_range(partitions.data()[p], size_t{int64_max}, "partitions: an offset"));
        if (offsets.back() < end) throw std::invalid_argument("partitions: offsets that rise");
        end = offsets.back();
    }
    for (const Bytes& of_label : bytes) {
        if (of_label.shape(0) != end) throw std::invalid_argument("local: a byte a row");
    }
    std::vector<std::optional<OpenPlace>> stood;
    for (size_t p = 0; p < count; ++p) {
        if (places[p].second < 0) {
            stood.push_back(std::nullopt);
            continue;
        }
        stood.push_back(OpenPlace{in_range(places[p].first, offsets[p + 1] - offsets[p], "places: a position"),
                                  static_cast<uint32_t>(index_of(places[p].second, graph.size(), "places: a state"))});
    }
    const size_t bytes_allowed = in_range(memory, size_t{int64_max}, "memory: a number of bytes");
    Polling polling = signal_polling();
    std::vector<int64_t> waiting;
    try {
        unlocked([&] {
            OpenWalk walk(graph, static_cast<uint16_t>(bits.size() - 1));
            for (size_t p = 0; p < count; ++p) {
                if (!stood[p]) {
                    waiting.push_back(OpenWalk::decided);
                    continue;
                }
                const size_t rows = offsets[p + 1] - offsets[p];
                waiting.push_back(walk.walk(*stood[p], bits, offsets[p], rows, bytes_allowed, polling));
            }
        });
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
    return array(std::move(waiting));
}

}  // namespace

void bind_ordered(nb::module_& m) {
    nb::class_<BoundSearch>(m, "OrderedSearch")
        .def("__init__", &make_search, "states"_a, "labels"_a, "label_sets"_a, "references"_a, "conditions"_a, "live"_a,
             "skip"_a, "skip_set"_a, "memory"_a)
        .def("start", &start, "columns"_a, "local"_a, "partitions"_a.noconvert(), "texts"_a, "times"_a.none(),
             "width"_a, "starts"_a = nb::list(), "open_label"_a.none() = nb::none())
        .def("ends", &ends)
        .def("open_labels", &open_labels)
        .def("take", &take, "rows"_a)
        .def("counts", &counts);
    m.def("walk_open", &walk_open, "states"_a, "local"_a, "partitions"_a.noconvert(), "places"_a, "memory"_a);
}

}  // namespace acep
