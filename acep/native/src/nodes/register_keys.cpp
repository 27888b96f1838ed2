// The keys of arcs (nodes/register_keys.hpp), as their checks give them.
#include "nodes/register_keys.hpp"

#include <optional>

namespace acep {
namespace {

// Widths of bands that are worth a cell.
constexpr double least_width = 1e-100, most_width = 1e100;

}  // namespace

RegisterKey register_key(const Arc& arc, const std::vector<BlockProgram>& programs) {
    RegisterKey key;
    size_t near = 0;
    // Add a comparison of two leaves of a check, if one is a register and the other an attribute of the event.
    const auto add = [&](const Check& check, uint32_t first, uint32_t second, bool doubles, double width) {
        const Source *a = &check.sources[first], *b = &check.sources[second];
        if (a->from != From::slot) std::swap(a, b);
        if (a->from != From::slot || b->from != From::event) return false;
        key.parts.push_back({static_cast<uint32_t>(a->a), static_cast<uint32_t>(b->a), doubles, width});
        return true;
    };
    const auto take = [&](const std::vector<Check>& checks, std::vector<Check>& rest) {
        for (const Check& check : checks) {
            if (check.only < 0 && check.loops.empty()) {
                const auto equality = programs[check.program].equality();
                if (equality && add(check, equality->a, equality->b, equality->doubles, 0)) continue;
                const auto band = near < RegisterKey::most_near ? programs[check.program].band() : std::nullopt;
                const bool fits = band && band->width > least_width && band->width < most_width;
                if (fits && add(check, band->a, band->b, band->doubles, band->width)) ++near;
            }
            rest.push_back(check);
        }
    };
    take(arc.leaving, key.leaving);
    take(arc.binding, key.binding);
    return key;
}

std::vector<ArcKey> arc_keys(const Tables& tables, const std::vector<BlockProgram>& programs) {
    std::vector<ArcKey> keys;
    for (size_t s = 1; s < tables.states.size(); ++s) {
        for (const Arc& arc : tables.states[s].arcs) {
            ArcKey key{arc.source, arc.target, {}};
            for (const auto& part : register_key(arc, programs).parts) key.slots.push_back(part.slot);
            if (!key.slots.empty()) keys.push_back(std::move(key));
        }
    }
    return keys;
}

}  // namespace acep
