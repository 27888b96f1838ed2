// Python bindings of what revisions of a stream need: events in stream order, and changes of matches
// (acep/native/_native.pyi).
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "common/order.hpp"
#include "python/bind_arrays.hpp"
#include "revision/gathering.hpp"
#include "revision/ordered_rows.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

nb::list listed(auto&& columns) {
    nb::list found;
    for (auto& column : columns) found.append(array(std::move(column)));
    return found;
}

nb::tuple listed(RowColumns&& rows) { return nb::make_tuple(listed(rows.words), listed(rows.flags)); }

const uint8_t* checked(const std::optional<Bytes>& flags) {
    if (!flags) return nullptr;
    if (flags->shape(0) != OrderedRows::bucket_count) throw std::invalid_argument("buckets: one flag for each");
    return flags->data();
}

// The lock is kept in all of these: they are short, and another thread may call the same rows.
void insert(OrderedRows& rows, const nb::sequence& words, const nb::sequence& flags) {
    std::vector<Words> held;
    std::vector<const int64_t*> own;
    for (nb::handle column : words) {
        held.push_back(nb::cast<Words>(column, false));
        if (held.back().shape(0) != held.front().shape(0)) throw std::invalid_argument("words: of one length");
        own.push_back(held.back().data());
    }
    std::vector<Bytes> valid;
    std::vector<const uint8_t*> known;
    for (nb::handle column : flags) {
        known.push_back(nullptr);
        if (column.is_none()) continue;
        valid.push_back(nb::cast<Bytes>(column, false));
        if (held.empty() || valid.back().shape(0) != held.front().shape(0)) {
            throw std::invalid_argument("flags: as many as words");
        }
        known.back() = valid.back().data();
    }
    if (own.size() != rows.columns() || known.size() != rows.flags()) throw std::invalid_argument("rows: all columns");
    rows.insert(held.front().shape(0), own, known);
}

nb::tuple chosen(const OrderedRows& rows, size_t from, size_t to, const std::optional<Bytes>& flags) {
    size_t many = 0;
    RowColumns found = rows.chosen(from, to, checked(flags), many);
    return nb::make_tuple(many, listed(found.words), listed(found.flags));
}

nb::object copied(auto values) { return array(std::vector(values.begin(), values.end())); }

nb::tuple changes_of(const Words& start, const Words& hash, const Values<uint16_t>& bucket, int64_t cut,
                     const std::optional<Bytes>& flags, const Words& now) {
    if (start.shape(0) != hash.shape(0) || start.shape(0) != bucket.shape(0)) {
        throw std::invalid_argument("start, hash, bucket: of one length");
    }
    const uint8_t* among = checked(flags);
    Changes found = unlocked([&] {
        std::vector<int64_t> places;
        for (size_t i = 0; i < start.shape(0); ++i) {
            if (start.data()[i] < cut || (among != nullptr && among[bucket.data()[i]] == 0)) continue;
            places.push_back(static_cast<int64_t>(i));
        }
        return changes(std::move(places), hash.data(), {now.data(), now.shape(0)});
    });
    return nb::make_tuple(array(std::move(found.come)), array(std::move(found.gone)));
}

// The arrays of one part: start, end, bundle, error, offsets, ids, vars and rows.
struct PartArrays {
    explicit PartArrays(nb::handle from) {
        const auto columns = nb::cast<nb::tuple>(from);
        if (columns.size() != 8) throw std::invalid_argument("parts: of eight columns");
        for (const size_t at : {0, 1, 2, 3, 4, 5, 7}) words.push_back(nb::cast<Words>(columns[at], false));
        vars = nb::cast<Values<uint16_t>>(columns[6], false);
        for (const size_t at : {0, 2, 3}) {
            if (words[at].shape(0) != words[1].shape(0)) throw std::invalid_argument("parts: of one length");
        }
        if (words[4].shape(0) != words[1].shape(0) + 1) throw std::invalid_argument("offsets: one more than matches");
        if (vars.shape(0) != words[5].shape(0)) throw std::invalid_argument("vars: as many as ids");
    }

    MatchPart part(const Values<uint16_t>& ranks) const {
        const Trails trails{words[1].shape(0), words[5].shape(0), ranks.shape(0), words[1].data(),
                            words[4].data(),   words[5].data(),   vars.data(),    ranks.data()};
        return {
            trails, {words[0].data(), words[2].data(), words[3].data()}, {words.back().data(), words.back().shape(0)}};
    }

    std::vector<Words> words;
    Values<uint16_t> vars;
};

nb::tuple gathered_of(const nb::sequence& given, size_t back, const Values<uint16_t>& ranks) {
    std::vector<PartArrays> held;
    std::vector<MatchPart> parts;
    for (nb::handle one : given) parts.push_back(held.emplace_back(one).part(ranks));
    if (back > parts.size()) throw std::invalid_argument("back: more than parts");
    Gathered found = unlocked([&] {
        for (const MatchPart& part : parts) check(part.trails);
        return gathered(parts, back);
    });
    auto& [start, bundle, error] = found.numbers;
    return nb::make_tuple(array(std::move(start)), array(std::move(found.end)), array(std::move(bundle)),
                          array(std::move(error)), array(std::move(found.offsets)), array(std::move(found.ids)),
                          array(std::move(found.vars)), array(std::move(found.source)));
}

}  // namespace

void bind_revision(nb::module_& m) {
    nb::class_<OrderedRows>(m, "OrderedRows")
        .def(nb::init<size_t, bool>(), "words"_a, "tied"_a)
        .def("__len__", &OrderedRows::size)
        .def("add_flags", &OrderedRows::add_flags)
        .def("insert", &insert, "words"_a, "flags"_a)
        .def("lower", &OrderedRows::lower, "ts"_a)
        .def("chosen", &chosen, "begin"_a, "end"_a, "buckets"_a.none())
        .def("at", [](const OrderedRows& rows,
                      const Words& places) { return listed(rows.at({places.data(), places.shape(0)})); })
        .def("column", [](const OrderedRows& rows, size_t which) { return copied(rows.column(which)); })
        .def("flags", [](const OrderedRows& rows, size_t which) { return copied(rows.flags_of(which)); })
        .def("drop", &OrderedRows::drop, "rows"_a)
        .def("keep", [](OrderedRows& rows, const Bytes& stay) {
        rows.keep({stay.data(), stay.shape(0)});
    }).def_prop_ro("bytes", &OrderedRows::bytes);
    m.def("changes", &changes_of, "start"_a.noconvert(), "hash"_a.noconvert(), "bucket"_a.noconvert(), "cut"_a,
          "buckets"_a.none(), "now"_a.noconvert());
    m.def("gathered", &gathered_of, "parts"_a, "back"_a, "ranks"_a.noconvert());
}

}  // namespace acep
