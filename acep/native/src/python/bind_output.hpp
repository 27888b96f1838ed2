// Conversion of the output of an engine to columns in Python.
#pragma once

#include "common/output.hpp"
#include "python/bind_arrays.hpp"

namespace acep {

// Take rows of counts, as columns.
inline nanobind::dict taken(CountRows&& rows) {
    nanobind::dict found;
    found["keys"] = array(std::move(rows.keys));
    found["first"] = array(std::move(rows.first));
    found["last"] = array(std::move(rows.last));
    found["bundle"] = array(std::move(rows.bundle));
    found["error"] = array(std::move(rows.error));
    found["count"] = array(std::move(rows.count));
    found["at"] = array(std::move(rows.at));
    return found;
}

// Take the counts since the last call, and reset them: the number of matches, and the rows.
inline nanobind::dict taken(Tally& t) {
    nanobind::dict found = taken(std::move(t.rows));
    found["total"] = t.total;
    t = {t.kind, 0, {}, {}};
    return found;
}

// Take the matches written since the last call, as columns.
inline nanobind::dict taken(Output& o) {
    nanobind::dict found;
    found["start"] = array(std::move(o.start));
    found["end"] = array(std::move(o.end));
    found["error"] = array(std::move(o.error));
    found["bundle"] = array(std::move(o.bundle));
    found["keys"] = array(std::move(o.keys));
    found["offsets"] = array(std::move(o.offsets));
    found["ids"] = array(std::move(o.ids));
    found["vars"] = array(std::move(o.vars));
    found["values"] = array(std::move(o.values));
    found["valid"] = array(std::move(o.valid));
    found["at"] = array(std::move(o.at));
    found["ordered"] = o.ordered;
    found["shape"] = o.uniform ? array(std::move(o.shape)) : nanobind::none();
    o.ordered = o.uniform = false;
    o.shape.clear();
    o.offsets = {0};
    return found;
}

}  // namespace acep
