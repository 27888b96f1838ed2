// Python binding of the search for chosen matches by passes over rows (acep/native/_native.pyi).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "ordered/interval_follow.hpp"
#include "ordered/interval_search.hpp"
#include "python/bind_arrays.hpp"
#include "python/signal_polling.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

using TestWithBits = std::tuple<std::optional<Bytes>, std::vector<int64_t>, bool>;
using Tests = std::vector<TestWithBits>;
using ArcWithBits = std::tuple<int64_t, int64_t, int64_t, std::optional<Bytes>, Tests>;
using EndWithBits = std::tuple<int64_t, std::optional<Bytes>, Tests>;
using SkipWithBits = std::tuple<int64_t, int64_t, std::optional<Bytes>, Tests>;

uint8_t state_of(int64_t number) {
    if (number < 0 || number >= static_cast<int64_t>(IntervalInput::most_states)) {
        throw std::invalid_argument("a state");
    }
    return static_cast<uint8_t>(number);
}

const uint8_t* bits_of(const std::optional<Bytes>& bits, size_t rows) {
    if (!bits) return nullptr;
    if (bits->shape(0) != rows) throw std::invalid_argument("conditions: a byte a row");
    return bits->data();
}

std::vector<size_t> offsets_of(const Words& partitions, size_t rows) {
    std::vector<size_t> offsets;
    for (const int64_t offset : vector_of(partitions)) {
        const size_t before = offsets.empty() ? 0 : offsets.back();
        if (offset < 0 || static_cast<size_t>(offset) < before || static_cast<size_t>(offset) > rows) {
            throw std::invalid_argument("partitions: offsets of rows");
        }
        offsets.push_back(static_cast<size_t>(offset));
    }
    return offsets;
}

// The size of the rows and of the conditions, which bits and tests must have.
struct Sizes {
    size_t rows, conditions;
};

std::vector<TiedTest> tests_of(const Tests& tests, const Sizes& sizes) {
    std::vector<TiedTest> all;
    for (const auto& [bits, conditions, negated] : tests) {
        TiedTest test{bits_of(bits, sizes.rows), {}, negated};
        for (const int64_t condition : conditions) {
            if (condition < 0 || static_cast<size_t>(condition) >= sizes.conditions) {
                throw std::invalid_argument("tests: a condition");
            }
            test.conditions.push_back(static_cast<uint32_t>(condition));
        }
        all.push_back(std::move(test));
    }
    return all;
}

// Read conditions: a program each, and its inputs as words, validity, and whether they are those of the first row.
std::vector<TiedCondition> tied_of(const nb::sequence& conditions, size_t rows) {
    std::vector<TiedCondition> all;
    for (nb::handle entry : conditions) {
        const auto parts = nb::cast<nb::tuple>(entry);
        if (parts.size() != 2) throw std::invalid_argument("tied: a program and its inputs");
        TiedCondition condition{nb::cast<const BlockProgram&>(parts[0]), {}};
        for (nb::handle input : nb::cast<nb::sequence>(parts[1])) {
            const auto [words, valid, of_first] = nb::cast<std::tuple<Words, std::optional<Bytes>, bool>>(input);
            if (words.shape(0) != rows) throw std::invalid_argument("tied: a word a row");
            condition.inputs.push_back({words.data(), bits_of(valid, rows), of_first});
        }
        if (condition.program.leaves() != condition.inputs.size()) {
            throw std::invalid_argument("tied: an input for each of the program");
        }
        all.push_back(std::move(condition));
    }
    return all;
}

IntervalInput input_of(const std::vector<ArcWithBits>& arcs, const std::vector<EndWithBits>& ends,
                       const std::vector<SkipWithBits>& skips, std::vector<TiedCondition> tied, const Words& partitions,
                       size_t rows, const std::optional<Words>& places, uint64_t width) {
    IntervalInput input;
    input.tied = std::move(tied);
    const Sizes sizes{rows, input.tied.size()};
    for (const auto& [source, target, label, bits, tests] : arcs) {
        if (target <= 0 || label < 0 || label > 0xFFFF) throw std::invalid_argument("arcs: a target and a label");
        input.arcs.push_back({state_of(source), state_of(target), static_cast<uint16_t>(label), bits_of(bits, rows),
                              tests_of(tests, sizes)});
    }
    for (const auto& [state, bits, tests] : ends) {
        input.ends.push_back({state_of(state), bits_of(bits, rows), tests_of(tests, sizes)});
    }
    for (const auto& [source, target, bits, tests] : skips) {
        if (source <= 0 || target <= 0) throw std::invalid_argument("skips: a source and a target");
        input.skips.push_back({state_of(source), state_of(target), bits_of(bits, rows), tests_of(tests, sizes)});
    }
    input.partitions = offsets_of(partitions, rows);
    if (places) {
        if (places->shape(0) != rows) throw std::invalid_argument("places: one a row");
        input.places = places->data();
    }
    input.width = width;
    return input;
}

nb::tuple search_intervals(const std::vector<ArcWithBits>& arcs, const std::vector<EndWithBits>& ends,
                           const std::vector<SkipWithBits>& skips, const nb::sequence& tied, nb::object texts,
                           const Words& partitions, const Words& times, const std::optional<Words>& places,
                           uint64_t width, int64_t order, int64_t skip_to, int64_t skip_label, bool more) {
    const size_t rows = times.shape(0);
    IntervalInput input = input_of(arcs, ends, skips, tied_of(tied, rows), partitions, rows, places, width);
    input.times = times.data();
    input.texts = texts.is_none() ? nullptr : nb::cast<const Texts*>(texts);
    if (!input.tied.empty() && (input.texts == nullptr || order == 0)) {
        throw std::invalid_argument("tied: texts, and an order by starts");
    }
    if (order < 0 || order > 2 || skip_to < 0 || skip_to > 3 || skip_label < 0 || skip_label > 0xFFFF) {
        throw std::invalid_argument("an order, a place to skip to, and its label");
    }
    input.order = static_cast<IntervalOrder>(order);
    input.skip_to = static_cast<IntervalSkipTo>(skip_to);
    input.skip_label = static_cast<uint16_t>(skip_label);
    IntervalSearch search(std::move(input));
    Polling polling = signal_polling();
    try {
        Intervals found = unlocked([&] { return search.run(more, polling); });
        return nb::make_tuple(array(std::move(found.offsets)), array(std::move(found.rows)),
                              array(std::move(found.labels)), array(std::move(found.open)), search.rows_met());
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

// The words of the starts of all partitions and states, four each, and a byte a partition: whether a match ends.
nb::tuple follow(const std::vector<ArcWithBits>& arcs, const std::vector<EndWithBits>& ends,
                 const std::vector<SkipWithBits>& skips, const Words& partitions, const Words& numbers,
                 const std::optional<Words>& places, uint64_t width, const Words& starts) {
    const IntervalInput input = input_of(arcs, ends, skips, {}, partitions, numbers.shape(0), places, width);
    const size_t n_partitions = input.partitions.empty() ? 0 : input.partitions.size() - 1;
    size_t n_states = 1;
    for (const IntervalArc& arc : input.arcs) {
        n_states = std::max<size_t>({n_states, arc.source + size_t{1}, arc.target + size_t{1}});
    }
    for (const IntervalEnd& end : input.ends) n_states = std::max<size_t>(n_states, end.state + size_t{1});
    if (starts.shape(0) != 4 * n_partitions * n_states) throw std::invalid_argument("starts: four a state");
    std::vector<OpenStarts> open(n_partitions * n_states);
    for (size_t i = 0; i < open.size(); ++i) {
        const int64_t* words = starts.data() + 4 * i;
        open[i] = {words[0], words[1], words[2], words[3]};
    }
    std::vector<uint8_t> ended(n_partitions);
    Polling polling = signal_polling();
    try {
        const size_t met =
            unlocked([&] { return follow_intervals(input, numbers.data(), n_states, open, ended, polling); });
        std::vector<int64_t> after;
        after.reserve(4 * open.size());
        for (const OpenStarts& it : open) after.insert(after.end(), {it.first, it.first_place, it.last, it.last_place});
        return nb::make_tuple(array(std::move(after)), array(std::move(ended)), met);
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

}  // namespace

void bind_intervals(nb::module_& m) {
    m.def("search_intervals", &search_intervals, "arcs"_a, "ends"_a, "skips"_a, "tied"_a, "texts"_a.none(),
          "partitions"_a.noconvert(), "times"_a.noconvert(), "places"_a.none(), "width"_a, "order"_a, "skip_to"_a,
          "skip_label"_a, "more"_a);
    m.def("follow_intervals", &follow, "arcs"_a, "ends"_a, "skips"_a, "partitions"_a.noconvert(),
          "numbers"_a.noconvert(), "places"_a.none(), "width"_a, "starts"_a.noconvert());
}

}  // namespace acep
