// Candidates of an arc by its equalities: through a hash index where a list is long, else by a comparison of columns.
#include "nodes/nodes.hpp"

namespace acep {
namespace {

// Lists of up to this length are searched linearly.
constexpr uint32_t few_searched = 16;

}  // namespace

RegisterKey register_key(const Arc& arc, const std::vector<BlockProgram>& programs) {
    RegisterKey key;
    const auto take = [&](const std::vector<Check>& checks, std::vector<Check>& rest) {
        for (const Check& check : checks) {
            const auto equality = programs[check.program].equality();
            if (equality && check.only < 0 && check.loops.empty()) {
                const Source *a = &check.sources[equality->a], *b = &check.sources[equality->b];
                if (a->from != From::slot) std::swap(a, b);
                if (a->from == From::slot && b->from == From::event) {
                    key.parts.push_back({static_cast<uint32_t>(a->a), static_cast<uint32_t>(b->a), equality->doubles});
                    continue;
                }
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
    std::vector<std::pair<uint32_t, bool>> slots;
    for (const auto& part : key.parts) slots.emplace_back(part.slot, part.doubles);
    const auto place = std::ranges::find(known, slots);
    key.number = static_cast<uint32_t>(place - known.begin());
    if (place == known.end()) known.push_back(std::move(slots));
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

// Set `alike_` to the nodes that began at `low` or later and whose registers are equal to the event's attributes, in
// the order of the list. A node with an unbound register is one of them, as the comparison is dropped for it.
void NodeEngine::find_alike(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event, int64_t low,
                            bool alive) {
    alike_.begin(list.size() + 1);
    wanted_words_.clear();
    bool null = false;
    for (const auto& part : key.parts) {
        const Column& c = event.batch->columns[part.column];
        null = null || c.null(event.row);
        wanted_words_.push_back(c.word(event.row));
    }
    if (null && list.plain) return;
    // Return 2 if the registers are equal to the words, 1 if one is unbound and the others are equal, and else 0.
    const auto compared = [&](uint32_t row) {
        int result = 2;
        for (size_t k = 0; k < key.parts.size(); ++k) {
            const auto& [slot, column, doubles] = key.parts[k];
            const uint8_t tag = list.plain ? uint8_t{value} : list.tags(slot, slots)[row];
            if (tag == unbound) {
                result = 1;
                continue;
            }
            if (tag == acep::null || event.batch->columns[column].null(event.row)) return 0;
            if (!equal_words(list.slot(slot)[row], wanted_words_[k], doubles)) return 0;
        }
        return result;
    };
    const auto add = [&](uint32_t row) {
        if (alive || list.starts()[row] >= low) alike_.add(row);
    };
    if (list.by_registers.size() <= key.number) list.by_registers.resize(key.number + 1);
    RegisterIndex& index = list.by_registers[key.number];
    const uint32_t missing = list.end - std::max(index.indexed, list.head);
    const bool pays = list.size() > few_searched && index.credit >= 2 * uint64_t{missing};
    if (bounded() || index_ == Taking::never || (!pays && index_ != Taking::always)) {
        index.credit += list.size();
        if (list.plain && key.parts.size() == 1 && !key.parts[0].doubles) {
            const int64_t wanted = wanted_words_[0], *words = list.slot(key.parts[0].slot);
            for (uint32_t row = list.head; row < list.end; ++row) {
                if (words[row] == wanted) add(row);
            }
            return;
        }
        for (uint32_t row = list.head; row < list.end; ++row) {
            if (compared(row) != 0) add(row);
        }
        return;
    }
    index.reserve(list.capacity());
    for (uint32_t row = std::max(index.indexed, list.head); row < list.end; ++row) {
        uint64_t hash = 0;
        bool bound = true, valued = true;
        for (const auto& part : key.parts) {
            const uint8_t tag = list.plain ? uint8_t{value} : list.tags(part.slot, slots)[row];
            bound = bound && tag != unbound;
            valued = valued && tag != acep::null;
            hash =
                mixed(hash + static_cast<uint64_t>(canonical(list.slot(part.slot)[row], part.doubles)) + golden_step);
        }
        if (!valued) continue;
        if (bound) {
            index.add(row, hash);
        } else {
            index.add_unbound(row);
        }
    }
    index.credit -= std::min<uint64_t>(index.credit, list.end - std::max(index.indexed, list.head));
    index.indexed = list.end;
    if (!null) {
        uint64_t hash = 0;
        for (size_t k = 0; k < key.parts.size(); ++k) {
            hash = mixed(hash + static_cast<uint64_t>(canonical(wanted_words_[k], key.parts[k].doubles)) + golden_step);
        }
        index.each(hash, list.head, [&](uint32_t row) {
            if (compared(row) == 2) add(row);
        });
    }
    const size_t bound = alike_.size();
    if (!list.plain) {
        index.each_unbound(list.head, [&](uint32_t row) {
            if (compared(row) == 1) add(row);
        });
    }
    std::reverse(alike_.begin(), alike_.end());
    if (bound != 0 && bound != alike_.size()) {
        std::inplace_merge(alike_.begin(), alike_.end() - static_cast<std::ptrdiff_t>(bound), alike_.end());
    }
}

}  // namespace acep
