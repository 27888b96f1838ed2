// Python bindings of block programs and texts (acep/native/_native.pyi), for tests and for derived columns.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "common/numbers.hpp"
#include "common/texts.hpp"
#include "expression/vm.hpp"

namespace nb = nanobind;

namespace acep {

void bind_vm(nb::module_& m);

namespace {

using Words = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::object array(std::vector<T> values) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

// Inputs from Python: pairs of words and validity (or None), each one value or one per row.
class Inputs {
public:
    Inputs(const BlockProgram& program, size_t rows, const nb::sequence& leaves) {
        if (nb::len(leaves) != program.leaves()) throw std::invalid_argument("leaves: one pair for each input");
        for (nb::handle pair : leaves) {
            const auto parts = nb::cast<nb::tuple>(pair);
            if (parts.size() != 2) throw std::invalid_argument("leaves: pairs of words and validity");
            const auto words = nb::cast<Words>(parts[0], false);
            const uint32_t stride = words.shape(0) == 1 ? 0 : 1;
            if (stride == 1 && words.shape(0) != rows) throw std::invalid_argument("leaves: one value, or one a row");
            Leaf leaf{words.data(), nullptr, stride};
            if (!parts[1].is_none()) {
                const auto valid = nb::cast<Bytes>(parts[1], false);
                if (valid.shape(0) != words.shape(0)) throw std::invalid_argument("leaves: a validity a value");
                leaf.valid = valid.data();
                valid_.push_back(valid);
            }
            words_.push_back(words);
            leaves_.push_back(leaf);
        }
        at_ = leaves_;
    }

    // Return the inputs from a row on.
    const Leaf* from(size_t row) {
        for (size_t i = 0; i < leaves_.size(); ++i) {
            at_[i].values = leaves_[i].values + row * leaves_[i].stride;
            if (leaves_[i].valid != nullptr) at_[i].valid = leaves_[i].valid + row * leaves_[i].stride;
        }
        return at_.data();
    }

private:
    std::vector<Words> words_;  // both keep the arrays alive
    std::vector<Bytes> valid_;
    std::vector<Leaf> leaves_, at_;
};

size_t checked_block(size_t block) {
    if (block < 1 || block > block_rows) throw std::invalid_argument("block: 1 to 256 rows");
    return block;
}

nb::object test(const BlockProgram& program, size_t rows, const nb::sequence& leaves, const Texts& texts,
                size_t block) {
    checked_block(block);
    Inputs inputs(program, rows, leaves);
    Scratch scratch;
    std::vector<uint8_t> pass(rows);
    for (size_t row = 0; row < rows; row += block) {
        program.test(inputs.from(row), std::min(block, rows - row), texts, scratch, pass.data() + row);
    }
    return array(std::move(pass));
}

nb::object value(const BlockProgram& program, size_t rows, const nb::sequence& leaves, const Texts& texts,
                 size_t block) {
    checked_block(block);
    Inputs inputs(program, rows, leaves);
    Scratch scratch;
    std::vector<int64_t> out(rows);
    std::vector<uint8_t> valid(rows);
    for (size_t row = 0; row < rows; row += block) {
        const size_t n = std::min(block, rows - row);
        program.value(inputs.from(row), n, texts, scratch, out.data() + row, valid.data() + row);
    }
    return nb::make_tuple(array(std::move(out)), array(std::move(valid)));
}

nb::list operations() {
    nb::list all;
    for (const OpForm& form : op_forms) {
        all.append(nb::make_tuple(nb::str(form.name.data(), form.name.size()), form.reads.size()));
    }
    return all;
}

}  // namespace

void bind_vm(nb::module_& m) {
    nb::class_<Texts>(m, "Texts")
        .def(nb::init<>())
        .def("intern", &Texts::intern, nb::arg("text"))
        .def("intern_all",
             [](Texts& texts, const nb::sequence& all) {
        std::vector<int64_t> codes;
        for (nb::handle text : all) codes.push_back(texts.intern(nb::cast<std::string_view>(text)));
        return array(std::move(codes));
    }, nb::arg("texts"))
        .def("release",
             [](Texts& texts, const Words& codes) {
        for (size_t i = 0; i < codes.shape(0); ++i) texts.release(codes(i));
    }, nb::arg("codes").noconvert())
        .def("text",
             [](const Texts& texts, int64_t code) {
        if (!texts.known(code)) throw std::invalid_argument("texts: a code that is not in use");
        return std::string(texts.text(code));
    }, nb::arg("code"))
        .def("known", &Texts::known, nb::arg("code"))
        .def("order", &Texts::order, nb::arg("a"), nb::arg("b"))
        .def("keep",
             [](Texts& texts, const nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& used,
                int64_t from) { texts.keep({used.data(), used.size()}, from); },
             nb::arg("used"), nb::arg("begin"))
        .def("__len__", &Texts::size)
        .def_prop_ro("bytes", &Texts::bytes)
        .def_prop_ro("capacity", &Texts::capacity);

    nb::class_<BlockProgram>(m, "BlockProgram")
        .def("__init__",
             [](BlockProgram* self, const Words& code, int64_t slots, int64_t leaves) {
        new (self) BlockProgram({code.data(), code.shape(0)}, slots, leaves);
    }, nb::arg("code").noconvert(), nb::arg("slots"), nb::arg("leaves"))
        .def("test", &test, nb::arg("rows"), nb::arg("leaves"), nb::arg("texts"), nb::arg("block") = block_rows)
        .def("value", &value, nb::arg("rows"), nb::arg("leaves"), nb::arg("texts"), nb::arg("block") = block_rows)
        .def_prop_ro("condition", &BlockProgram::condition)
        .def_prop_ro("short_way", &BlockProgram::short_way);

    m.def("operations", &operations);
    m.def("divide", [](int64_t high, uint64_t low, int64_t denominator) {
        if (denominator == 0) throw std::invalid_argument("division by zero");
        const uint128 bits = (static_cast<uint128>(static_cast<uint64_t>(high)) << 64) | low;
        return divide(static_cast<int128>(bits), denominator);
    }, nb::arg("high"), nb::arg("low"), nb::arg("denominator"));
}

}  // namespace acep
