// Python bindings of the walks of open matches whose conditions read what was bound (acep/native/_native.pyi).
#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/texts.hpp"
#include "ordered/bound_walk.hpp"
#include "python/bind_arrays.hpp"
#include "python/bound_search.hpp"
#include "python/signal_polling.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

// Rows of all partitions, with the arrays that they are in.
struct ArraysOfRows {
    std::vector<Words> words;
    std::vector<Bytes> bytes;
    std::vector<Column> columns;
    std::vector<const uint8_t*> local;
    std::vector<size_t> offsets;
    const Texts* texts;

    WalkedRows rows_of(size_t partition) const {
        return {columns, local, offsets[partition], offsets[partition + 1] - offsets[partition], texts};
    }
};

void check(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

ArraysOfRows read_rows(const BoundWalks& walks, const nb::sequence& columns, const Words& partitions,
                       nb::handle texts) {
    ArraysOfRows arrays;
    for (size_t p = 0; p < partitions.shape(0); ++p) {
        const int64_t offset = partitions.data()[p];
        const bool rises = p == 0 ? offset == 0 : offset > partitions.data()[p - 1];
        check(rises, "partitions: offsets that rise from 0");
        arrays.offsets.push_back(static_cast<size_t>(offset));
    }
    check(!arrays.offsets.empty(), "partitions: offsets");
    const size_t rows = arrays.offsets.back();
    for (nb::handle pair : columns) {
        const auto parts = nb::cast<nb::tuple>(pair);
        check(parts.size() == 2, "columns: pairs of words and validity");
        arrays.words.push_back(nb::cast<Words>(parts[0], false));
        check(arrays.words.back().shape(0) == rows, "columns: a value a row");
        Column column{arrays.words.back().data(), nullptr};
        if (!parts[1].is_none()) {
            arrays.bytes.push_back(nb::cast<Bytes>(parts[1], false));
            check(arrays.bytes.back().shape(0) == rows, "columns: a validity a row");
            column.valid = arrays.bytes.back().data();
        }
        arrays.columns.push_back(column);
    }
    check(arrays.columns.size() >= walks.columns(), "columns: fewer than are read");
    arrays.texts = nb::cast<const Texts*>(texts);
    check(arrays.texts != nullptr, "texts: none");
    return arrays;
}

void make_walks(BoundWalks* self, const BoundSearch& search) {
    const OrderedPattern& of = search.search.pattern();
    check(of.graph.labels() > 0, "a pattern with the label of open rows");
    new (self) BoundWalks(WalkedPattern{of.graph, of.sets, of.references, of.conditions});
}

nb::object begin(BoundWalks& self, const nb::sequence& columns, const Words& partitions, nb::handle texts,
                 const Words& codes, const Words& firsts, int64_t behind, const Words& numbers,
                 const Words& label_offsets, const Values<uint16_t>& labels) {
    const ArraysOfRows arrays = read_rows(self, columns, partitions, texts);
    const size_t count = arrays.offsets.size() - 1;
    check(codes.shape(0) == count && firsts.shape(0) == count && numbers.shape(0) == count, "one for each partition");
    check(label_offsets.shape(0) == count + 1 && behind >= 0, "labels: offsets of each partition");
    int64_t end = 0;
    for (size_t p = 0; p <= count; ++p) {
        check(label_offsets.data()[p] >= end, "labels: offsets that rise");
        end = label_offsets.data()[p];
    }
    check(static_cast<size_t>(end) <= labels.shape(0), "labels: offsets beyond all");
    for (size_t i = 0; i < labels.shape(0); ++i) check(labels.data()[i] < self.labels(), "labels: one beyond all");
    std::vector<uint8_t> waits;
    for (size_t p = 0; p < count; ++p) {
        self.drop(codes.data()[p]);
        const int64_t first = firsts.data()[p], from = label_offsets.data()[p];
        const std::span<const uint16_t> of_match(labels.data() + from,
                                                 static_cast<size_t>(label_offsets.data()[p + 1] - from));
        const bool begun = first >= 0 && self.begin(codes.data()[p], arrays.rows_of(p), static_cast<size_t>(first),
                                                    static_cast<size_t>(behind), of_match, numbers.data()[p]);
        waits.push_back(begun ? 1 : 0);
    }
    return array(std::move(waits));
}

nb::object walk(BoundWalks& self, const nb::sequence& columns, const nb::sequence& local, const Words& partitions,
                nb::handle texts, const Words& codes, const Words& fresh, int64_t memory) {
    ArraysOfRows arrays = read_rows(self, columns, partitions, texts);
    for (nb::handle bits : local) {
        arrays.bytes.push_back(nb::cast<Bytes>(bits, false));
        check(arrays.bytes.back().shape(0) == arrays.offsets.back(), "local: a byte a row");
        arrays.local.push_back(arrays.bytes.back().data());
    }
    const size_t count = arrays.offsets.size() - 1;
    check(codes.shape(0) == count && fresh.shape(0) == count && memory >= 0, "one for each partition");
    check(arrays.local.size() == self.labels(), "local: one for each label");
    Polling polling = signal_polling();
    std::vector<uint8_t> waits;
    try {
        for (size_t p = 0; p < count; ++p) {
            const WalkedRows rows = arrays.rows_of(p);
            const int64_t position = fresh.data()[p];
            check(position >= 0 && static_cast<size_t>(position) < rows.rows, "fresh: a position");
            const bool is_open =
                self.walk(codes.data()[p], rows, static_cast<size_t>(position), static_cast<size_t>(memory), polling);
            waits.push_back(is_open ? 1 : 0);
        }
    } catch (const Interrupted&) {
        self.clear();
        throw nb::python_error();
    }
    return array(std::move(waits));
}

}  // namespace

void bind_walks(nb::module_& m) {
    nb::class_<BoundWalks>(m, "BoundWalks")
        .def("__init__", &make_walks, "search"_a)
        .def("__len__", &BoundWalks::size)
        .def("clear", &BoundWalks::clear)
        .def("begin", &begin, "columns"_a, "partitions"_a.noconvert(), "texts"_a, "codes"_a.noconvert(),
             "firsts"_a.noconvert(), "behind"_a, "numbers"_a.noconvert(), "label_offsets"_a.noconvert(),
             "labels"_a.noconvert())
        .def("walk", &walk, "columns"_a, "local"_a, "partitions"_a.noconvert(), "texts"_a, "codes"_a.noconvert(),
             "fresh"_a.noconvert(), "memory"_a);
}

}  // namespace acep
