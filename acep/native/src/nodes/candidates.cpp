// The search for candidates (nodes/candidates.hpp).
#include "nodes/candidates.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "common/hash.hpp"

namespace acep {
namespace {

// Lists of up to this length are searched linearly.
constexpr uint32_t few_searched = 16;
// The cost of one row that is reached through the index, in rows that are compared one after another.
constexpr uint64_t reached_costs = 4;

}  // namespace

RegisterKey CandidateFinder::key_of(const Arc& arc) {
    RegisterKey key = register_key(arc, classifier_.programs());
    if (key.empty()) return key;
    if (keys_.size() <= arc.source) keys_.resize(arc.source + size_t{1});
    auto& keys_of_state = keys_[arc.source];
    std::vector<RegisterKey::Part> registers = key.parts;
    for (auto& part : registers) part.column = 0;
    const auto equal = std::ranges::find(keys_of_state, registers);
    key.number = static_cast<uint32_t>(equal - keys_of_state.begin());
    if (equal == keys_of_state.end()) keys_of_state.push_back(std::move(registers));
    return key;
}

Candidates CandidateFinder::find(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event,
                                 int64_t low, bool all_alive) {
    if (!key.empty()) {
        find_alike(key, list, slots, event, low, all_alive);
        return {alike_.begin(), alike_.size(), list.head};
    }
    if (all_alive) return {nullptr, list.size(), list.head};
    if (list.sorted) {
        const int64_t *first = list.starts() + list.head, *last = list.starts() + list.end;
        const auto head = static_cast<uint32_t>(std::lower_bound(first, last, low) - list.starts());
        return {nullptr, list.end - head, head};
    }
    find_alive(list, low);
    return {alive_.begin(), alive_.size(), list.head};
}

inline void CandidateFinder::find_alive(NodeList& list, int64_t low) {
    alive_.reset(list.size() + size_t{1});
    const int64_t* const starts = list.starts();
    for (uint32_t row = list.head; row < list.end; ++row) alive_.add_if(row, starts[row] >= low);
    list.unsure += list.size();
}

inline CandidateFinder::Fit CandidateFinder::fit_of(const RegisterKey& key, NodeList& list, uint32_t slots,
                                                    uint32_t row) const {
    Fit fit = Fit::yes;
    for (size_t k = 0; k < key.parts.size(); ++k) {
        const RegisterKey::Part& part = key.parts[k];
        const Wanted& wanted = wanted_[k];
        const uint8_t tag = list.plain ? uint8_t{value} : list.tags(part.slot, slots)[row];
        if (tag == unbound) {
            fit = Fit::unless_bound;
            continue;
        }
        if (tag == null || wanted.null) return Fit::no;
        const int64_t word = list.slot(part.slot)[row];
        if (part.is_band()) {
            const double x = part.number(word);
            if (!(x >= wanted.low && x <= wanted.high)) return Fit::no;
        } else if (!equal_words(word, wanted.word, part.doubles)) {
            return Fit::no;
        }
    }
    return fit;
}

inline bool CandidateFinder::set_wanted(const RegisterKey& key, const Event& event) {
    bool has_null = false;
    wanted_.resize(key.parts.size());
    for (size_t k = 0; k < key.parts.size(); ++k) {
        const RegisterKey::Part& part = key.parts[k];
        const Column& column = event.batch->columns[part.column];
        Wanted& wanted = wanted_[k];
        wanted.null = column.null(event.row);
        wanted.word = column.word(event.row);
        wanted.cells = part.cells(wanted.word);
        if (part.is_band()) std::tie(wanted.low, wanted.high) = part.range(part.number(wanted.word));
        has_null = has_null || wanted.null;
    }
    return has_null;
}

void CandidateFinder::index_rows(const RegisterKey& key, NodeList& list, uint32_t slots, RegisterIndex& index) {
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
            valued = valued && tag != null;
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

inline void CandidateFinder::find_alike(const RegisterKey& key, NodeList& list, uint32_t slots, const Event& event,
                                        int64_t low, bool all_alive) {
    alike_.reset(list.size() + size_t{1});
    const bool has_null = set_wanted(key, event);
    if (has_null && list.plain) return;
    if (list.by_registers.size() <= key.number) list.by_registers.resize(key.number + 1);
    RegisterIndex& index = list.by_registers[key.number];
    const uint32_t missing = list.end - std::max(index.indexed, list.head);
    const bool wide = std::ranges::any_of(wanted_, [](const Wanted& wanted) { return wanted.cells.is_wide(); });
    const bool pays = list.size() > few_searched && index.credit >= 2 * uint64_t{missing};
    if (is_index_forbidden_ || wide || index_use_ == Taking::never || (!pays && index_use_ != Taking::always)) {
        compare_all(key, list, slots, low, all_alive);
        index.credit += list.size() - std::min<uint64_t>(list.size(), reached_costs * alike_.size());
        return;
    }
    look_up(key, list, slots, index, low, all_alive, has_null);
}

inline void CandidateFinder::look_up(const RegisterKey& key, NodeList& list, uint32_t slots, RegisterIndex& index,
                                     int64_t low, bool all_alive, bool null) {
    index_rows(key, list, slots, index);
    const int64_t* const starts = list.starts();
    const auto add = [&](uint32_t row, Fit fit) {
        if (fit_of(key, list, slots, row) == fit) alike_.add_if(row, all_alive || starts[row] >= low);
    };
    buckets_.clear();
    if (!null) find_buckets(key, index);
    for (const size_t bucket : buckets_) {
        index.each(bucket, list.head, [&](uint32_t row) { add(row, Fit::yes); });
    }
    if (!list.plain) index.each_unbound(list.head, [&](uint32_t row) { add(row, Fit::unless_bound); });
    if (buckets_.size() > 1 || !list.plain) {
        std::sort(alike_.begin(), alike_.end());
    } else {
        std::reverse(alike_.begin(), alike_.end());
    }
    // Where most of a list is reached, it is compared as a whole for a while.
    if (reached_costs * alike_.size() > list.size()) index.credit = 0;
}

// All combinations of the cells of bands. Some of them may share a bucket.
inline void CandidateFinder::find_buckets(const RegisterKey& key, const RegisterIndex& index) {
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

void CandidateFinder::compare_all(const RegisterKey& key, NodeList& list, uint32_t slots, int64_t low, bool all_alive) {
    const int64_t* const starts = list.starts();
    if (list.plain && key.parts.size() == 1) {
        const RegisterKey::Part& part = key.parts[0];
        const Wanted& wanted = wanted_[0];
        const int64_t* const words = list.slot(part.slot);
        const auto add_fitting = [&](auto&& fits) {
            for (uint32_t row = list.head; row < list.end; ++row) {
                alike_.add_if(row, fits(words[row]) && (all_alive || starts[row] >= low));
            }
        };
        const double least = wanted.low, most = wanted.high;
        const auto is_near = [&](double x) { return x >= least && x <= most; };
        if (part.is_band() && part.doubles) {
            return add_fitting([&](int64_t word) { return is_near(std::bit_cast<double>(word)); });
        }
        if (part.is_band()) return add_fitting([&](int64_t word) { return is_near(static_cast<double>(word)); });
        if (!part.doubles) return add_fitting([&, own = wanted.word](int64_t word) { return word == own; });
    }
    for (uint32_t row = list.head; row < list.end; ++row) {
        if (fit_of(key, list, slots, row) != Fit::no) alike_.add_if(row, all_alive || starts[row] >= low);
    }
}

}  // namespace acep
