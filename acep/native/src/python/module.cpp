// The Python module acep.native._native: bindings of the native core (acep/native/_native.pyi).

#include "digest.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace acep {
void bind_order(nb::module_& m);
void bind_intervals(nb::module_& m);
void bind_ordered(nb::module_& m);
void bind_walks(nb::module_& m);
void bind_lanes(nb::module_& m);
void bind_merged(nb::module_& m);
void bind_revision(nb::module_& m);
void bind_session(nb::module_& m);
void bind_vm(nb::module_& m);
}  // namespace acep

NB_MODULE(_native, m) {
    m.doc() = "The native core of acep: the engines over flat tables and columns.";
    // The version of acep that it was built from; acep.native.compiled compares it with that of the package.
    m.attr("version") = ACEP_VERSION;
    m.attr("sources") = ACEP_SOURCES;
    m.attr("sanitizers") = ACEP_SANITIZE;
    acep::bind_vm(m);
    acep::bind_order(m);
    acep::bind_intervals(m);
    acep::bind_ordered(m);
    acep::bind_walks(m);
    acep::bind_merged(m);
    acep::bind_revision(m);
    acep::bind_session(m);
    acep::bind_lanes(m);
}
