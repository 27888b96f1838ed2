// Conversion of integers of any size to Python integers.
#pragma once

#include <nanobind/nanobind.h>

#include "common/big_integer.hpp"

namespace acep {

// Return a number as an integer of Python.
inline nanobind::object python_int(const BigInteger& number) {
    const nanobind::bytes words(reinterpret_cast<const char*>(number.data()), number.size() * sizeof(uint64_t));
    return nanobind::handle(reinterpret_cast<PyObject*>(&PyLong_Type)).attr("from_bytes")(words, "little");
}

}  // namespace acep
