// Candidates of an arc by its equalities and bands: through a hash index where a list is long, else by a comparison of
// columns.
#include <algorithm>
#include <tuple>

#include "nodes/nodes.hpp"

namespace acep {
namespace {

// Lists of up to this length are searched linearly.
constexpr uint32_t few_searched = 16;
// Widths of bands that are worth a cell.
constexpr double least_width = 1e-100, most_width = 1e100;
// What one row that is reached through the index costs, in rows that are compared one after another.
constexpr uint64_t reached_costs = 4;

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

// Return the key of an arc, with the number of its index among those of the state.
RegisterKey NodeEngine::key_of(const Arc& arc) {
    RegisterKey key = register_key(arc, classifier_.programs());
    if (key.empty()) return key;
    if (keys_.size() < tables_.states.size()) keys_.resize(tables_.states.size());
    auto& known = keys_[arc.source];
    std::vector<RegisterKey::Part> registers = key.parts;
    for (auto& part : registers) part.column = 0;
    const auto place = std::ranges::find(known, registers);
    key.number = static_cast<uint32_t>(place - known.begin());
    if (place == known.end()) known.push_back(std::move(registers));
    return key;
}

std::vector<NodeEngine::ArcKey> NodeEngine::arc_keys() const {
    std::vector<ArcKey> found;
    for (size_t s = 1; s < tables_.states.size(); ++s) {
        for (const Arc& arc : tables_.states[s].arcs) {
            ArcKey key{arc.source, arc.target, {}};
            for (const auto& part : register_key(arc, classifier_.programs()).parts) key.slots.push_back(part.slot);
            if (!key.slots.empty()) found.push_back(std::move(key));
        }
    }
    return found;
}

// How the registers of a row answer to what an event wants of them.
enum class NodeEngine::Answer : uint8_t { no, unless_bound, yes };

// Return whether the registers of a row are as the event wants them; `unless_bound`: the others are, and one is unbound.
NodeEngine::Answer NodeEngine::answer(const RegisterKey& key, NodeList& list, uint32_t slots, uint32_t row) const {
    Answer result = Answer::yes;
    for (size_t k = 0; k < key.parts.size(); ++k) {
        const RegisterKey::Part& part = key.parts[k];
        const Wanted& wanted = wanted_[k];
        const uint8_t tag = list.plain ? uint8_t{value} : list.tags(part.slot, slots)[row];
        if (tag == unbound) {
            result = Answer::unless_bound;
            continue;
        }
        if (tag == acep::null || wanted.null) return Answer::no;
        const int64_t word = list.slot(part.slot)[row];
        if (part.near()) {
            const double x = part.number(word);
            if (!(x >= wanted.low && x <= wanted.high)) return Answer::no;
        } else if (!equal_words(word, wanted.word, part.doubles)) {
            return Answer::no;
        }
    }
    return result;
}

// Set `wanted_` to what an event wants of registers; return whether one of its attributes is null.
bool NodeEngine::want(const RegisterKey& key, const Event& event) {
    bool null = false;
    wanted_.resize(key.parts.size());
    for (size_t k = 0; k < key.parts.size(); ++k) {
        const RegisterKey::Part& part = key.parts[k];
        const Column& c = event.batch->columns[part.column];
        Wanted& wanted = wanted_[k];
        wanted.null = c.null(event.row);
        wanted.word = c.word(event.row);
        wanted.cells = part.cells(wanted.word);
        if (part.near()) std::tie(wanted.low, wanted.high) = part.range(part.number(wanted.word));
        null = null || wanted.null;
    }
    return null;
}

// Bring the index over a list up to date.
void NodeEngine::index_rows(const RegisterKey& key, NodeList& list, uint32_t slots, RegisterIndex& index) {
    index.reserve(list.capacity());
    if (index.slots.empty()) {
        for (const auto& part : key.parts) index.slots.push_back(part.slot);
    }
    const uint32_t first = std::max(index.indexed, list.head);
    for (uint32_t row = first; row < list.end; ++row) {
        uint64_t hash = 0;
        bool bound = true, valued = true;
        for (const auto& part : key.parts) {
            const uint8_t tag = list.plain ? uint8_t{value} : list.tags(part.slot, slots)[row];
            bound = bound && tag != unbound;
            valued = valued && tag != acep::null;
            hash = mixed(hash + static_cast<uint64_t>(part.cell(list.slot(part.slot)[row])) + golden_step);
        }
        if (!valued) continue;
        if (bound) {
            index.add(row, hash);
        } else {
            index.add_unbound(row);
        }
    }
    index.credit -= std::min<uint64_t>(index.credit, list.end - first);
    index.indexed = list.end;
}

// Set `alike_` to the nodes that began at `low` or later and whose registers are as the event wants them, in the order of
// the list. A node with an unbound register is one of them, as the comparison is dropped for it.
void NodeEngine::find_alike(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event, int64_t low,
                            bool alive) {
    alike_.begin(list.size() + size_t{1});
    const bool null = want(key, event);
    if (null && list.plain) return;
    if (list.by_registers.size() <= key.number) list.by_registers.resize(key.number + 1);
    RegisterIndex& index = list.by_registers[key.number];
    const uint32_t missing = list.end - std::max(index.indexed, list.head);
    const bool wide = std::ranges::any_of(wanted_, [](const Wanted& wanted) { return wanted.cells.wide(); });
    const bool pays = list.size() > few_searched && index.credit >= 2 * uint64_t{missing};
    if (bounded() || wide || index_ == Taking::never || (!pays && index_ != Taking::always)) {
        compare_all(key, list, slots, low, alive);
        index.credit += list.size() - std::min<uint64_t>(list.size(), reached_costs * alike_.size());
        return;
    }
    index_rows(key, list, slots, index);
    const int64_t* const starts = list.starts();
    const auto add = [&](uint32_t row, Answer wanted) {
        if (answer(key, list, slots, row) == wanted) alike_.add_if(row, alive || starts[row] >= low);
    };
    buckets_.clear();
    if (!null) {
        // All combinations of the cells of bands. Some of them may share a bucket.
        const auto combine = [&](auto&& self, size_t k, uint64_t hash) -> void {
            if (k == key.parts.size()) return buckets_.push_back(index.bucket(hash));
            const auto [first, last] = wanted_[k].cells;
            for (int64_t i = 0; i <= last - first; ++i) {
                self(self, k + 1, mixed(hash + static_cast<uint64_t>(first + i) + golden_step));
            }
        };
        combine(combine, 0, 0);
        if (buckets_.size() > 1) {
            std::sort(buckets_.begin(), buckets_.end());
            buckets_.erase(std::unique(buckets_.begin(), buckets_.end()), buckets_.end());
        }
    }
    for (const size_t bucket : buckets_) {
        index.each(bucket, list.head, [&](uint32_t row) { add(row, Answer::yes); });
    }
    if (!list.plain) index.each_unbound(list.head, [&](uint32_t row) { add(row, Answer::unless_bound); });
    if (buckets_.size() > 1 || !list.plain) {
        std::sort(alike_.begin(), alike_.end());
    } else {
        std::reverse(alike_.begin(), alike_.end());
    }
    // Where most of a list is reached, it is compared as a whole for a while.
    if (reached_costs * alike_.size() > list.size()) index.credit = 0;
}

// Do the same without the index.
void NodeEngine::compare_all(const RegisterKey& key, NodeList& list, uint32_t slots, int64_t low, bool alive) {
    const int64_t* const starts = list.starts();
    if (list.plain && key.parts.size() == 1) {
        const RegisterKey::Part& part = key.parts[0];
        const Wanted& wanted = wanted_[0];
        const int64_t* const words = list.slot(part.slot);
        const auto each = [&](auto&& fits) {
            for (uint32_t row = list.head; row < list.end; ++row) {
                alike_.add_if(row, fits(words[row]) && (alive || starts[row] >= low));
            }
        };
        const double least = wanted.low, most = wanted.high;
        const auto near = [&](double x) { return x >= least && x <= most; };
        if (part.near() && part.doubles) return each([&](int64_t word) { return near(std::bit_cast<double>(word)); });
        if (part.near()) return each([&](int64_t word) { return near(static_cast<double>(word)); });
        if (!part.doubles) return each([&, own = wanted.word](int64_t word) { return word == own; });
    }
    for (uint32_t row = list.head; row < list.end; ++row) {
        if (answer(key, list, slots, row) != Answer::no) alike_.add_if(row, alive || starts[row] >= low);
    }
}

}  // namespace acep
