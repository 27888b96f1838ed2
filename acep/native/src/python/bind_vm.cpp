// Python bindings of block programs and texts (acep/native/_native.pyi), for tests and for derived columns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "common/numbers.hpp"
#include "common/texts.hpp"
#include "expression/vm.hpp"
#include "python/bind_arrays.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace acep {

namespace {

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

// Call run(inputs, first row, number of rows) for each block of rows.
void each_block(const BlockProgram& program, size_t rows, const nb::sequence& leaves, size_t block, auto&& run) {
    if (block < 1 || block > block_rows) throw std::invalid_argument("block: 1 to 256 rows");
    Inputs inputs(program, rows, leaves);
    for (size_t row = 0; row < rows; row += block) run(inputs.from(row), row, std::min(block, rows - row));
}

nb::object test(const BlockProgram& program, size_t rows, const nb::sequence& leaves, const Texts& texts,
                size_t block) {
    Scratch scratch;
    std::vector<uint8_t> pass(rows);
    each_block(program, rows, leaves, block, [&](const Leaf* inputs, size_t row, size_t n) {
        program.test(inputs, n, texts, scratch, pass.data() + row);
    });
    return array(std::move(pass));
}

nb::object value_of(const BlockProgram& program, size_t rows, const nb::sequence& leaves, const Texts& texts,
                    size_t block) {
    Scratch scratch;
    std::vector<int64_t> out(rows);
    std::vector<uint8_t> valid(rows);
    each_block(program, rows, leaves, block, [&](const Leaf* inputs, size_t row, size_t n) {
        program.value(inputs, n, texts, scratch, out.data() + row, valid.data() + row);
    });
    return nb::make_tuple(array(std::move(out)), array(std::move(valid)));
}

nb::list operations() {
    nb::list all;
    for (const OpForm& form : op_forms) {
        all.append(nb::make_tuple(nb::str(form.name.data(), form.name.size()), form.reads.size()));
    }
    return all;
}

nb::object intern_all(Texts& texts, const nb::sequence& all) {
    std::vector<int64_t> codes;
    for (nb::handle text : all) codes.push_back(texts.intern(nb::cast<std::string_view>(text)));
    return array(std::move(codes));
}

// Return the texts of codes; empty ones for codes not in use.
nb::list texts_of(const Texts& texts, const Words& codes) {
    nb::list all;
    for (size_t i = 0; i < codes.shape(0); ++i) {
        const std::string_view text = texts.text(codes(i));
        all.append(nb::str(text.data(), text.size()));
    }
    return all;
}

void release(Texts& texts, const Words& codes) {
    for (size_t i = 0; i < codes.shape(0); ++i) texts.release(codes(i));
}

std::string text(const Texts& texts, int64_t code) {
    if (!texts.known(code)) throw std::invalid_argument("texts: a code that is not in use");
    return std::string(texts.text(code));
}

void keep(Texts& texts, const Bytes& used) { texts.keep({used.data(), used.size()}); }

void make_program(BlockProgram* self, const Words& code, int64_t slots, int64_t leaves) {
    new (self) BlockProgram({code.data(), code.shape(0)}, slots, leaves);
}

double divided(int64_t high, uint64_t low, int64_t denominator) {
    if (denominator == 0) throw std::invalid_argument("division by zero");
    return divide(static_cast<int128>(wide(high, static_cast<int64_t>(low))), denominator);
}

}  // namespace

void bind_vm(nb::module_& m) {
    nb::class_<Texts> texts(m, "Texts");
    texts.def(nb::init<>());
    texts.def("intern", &Texts::intern, "text"_a);
    texts.def("intern_all", &intern_all, "texts"_a);
    texts.def("texts_of", &texts_of, "codes"_a.noconvert());
    texts.def("release", &release, "codes"_a.noconvert());
    texts.def("text", &text, "code"_a);
    texts.def("known", &Texts::known, "code"_a);
    texts.def("order", &Texts::order, "a"_a, "b"_a);
    texts.def("keep", &keep, "used"_a);
    texts.def("__len__", &Texts::size);
    texts.def_prop_ro("bytes", &Texts::bytes);
    texts.def_prop_ro("capacity", &Texts::capacity);

    nb::class_<BlockProgram> program(m, "BlockProgram");
    program.def("__init__", &make_program, "code"_a.noconvert(), "slots"_a, "leaves"_a);
    program.def("test", &test, "rows"_a, "leaves"_a, "texts"_a, "block"_a = block_rows);
    program.def("value", &value_of, "rows"_a, "leaves"_a, "texts"_a, "block"_a = block_rows);
    program.def_prop_ro("condition", &BlockProgram::condition);
    program.def_prop_ro("short_way", &BlockProgram::short_way);

    m.def("operations", &operations);
    m.def("divide", &divided, "high"_a, "low"_a, "denominator"_a);
}

}  // namespace acep
