// Derive the plan of a search from the tables: the paths through the automaton, the source of each register, the
// equalities that follow from others, and the order in which events are looked for.
#include "search/search_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace acep {
namespace {

constexpr size_t most_levels = 16, most_columns = 64, most_kinds = 31, most_paths = 64, most_ranks = 64,
                 most_notes = 32;
constexpr double least_width = 1e-100, most_width = 1e100;
constexpr SearchRef unbound_ref{NIL, -1, false};

[[noreturn]] void refuse() { throw std::invalid_argument("tables: not a pattern to search for"); }

// A comparison of two values of a path.
struct Comparison {
    SearchRef a, b;
    bool doubles;
    double width;  // 0: they are equal
};

// The events of a path, and what is asked of them.
struct Sequence {
    int64_t error = 0;
    std::vector<uint32_t> kinds;
    std::vector<uint16_t> vars;
    std::vector<SearchCheck> checks;
    std::vector<Comparison> comparisons;

    uint32_t last() const { return static_cast<uint32_t>(kinds.size() - 1); }
};

uint32_t number_of(auto& all, const auto& wanted, size_t most) {
    auto place = std::ranges::find(all, wanted);
    if (place == all.end()) {
        if (all.size() == most) refuse();
        place = all.insert(place, wanted);
    }
    return static_cast<uint32_t>(place - all.begin());
}

// Follows all ways through the automaton.
class PathReader {
public:
    PathReader(const Tables& tables, const std::vector<BlockProgram>& programs, SearchPlan& plan)
        : tables_(tables), programs_(programs), plan_(plan) {}

    std::vector<Sequence> sequences() {
        const bool plain = tables_.strategy == Strategy::any && tables_.timed() && tables_.choice == Choice::all &&
                           tables_.negations.empty() && tables_.having.empty() && !tables_.dynamic &&
                           tables_.told == 0 && !tables_.firsts;
        if (!plain || tables_.states.empty()) refuse();
        follow(tables_.states[0], Sequence{}, {});
        if (found_.empty()) refuse();
        std::ranges::stable_sort(found_, {}, &Sequence::error);
        return std::move(found_);
    }

private:
    void follow(const State& state, const Sequence& before, const std::vector<SearchRef>& registers) {
        if (!state.ignoring.empty() || !state.ended.empty() || !state.ending.empty()) refuse();
        int64_t ending = tables_.budget + 1;
        for (const Accept& accept : state.accepts) {
            if (!accept.crossings.empty()) refuse();
            ending = std::min(ending, accept.cost);
        }
        if (before.error + ending <= tables_.budget && !before.kinds.empty()) {
            if (found_.size() == most_paths) refuse();
            found_.push_back(before);
            found_.back().error += ending;
        }
        for (const Arc& arc : state.arcs) {
            const bool always = arc.lifetime.first == std::numeric_limits<int64_t>::min() &&
                                arc.lifetime.last == std::numeric_limits<int64_t>::max();
            if (!always || !arc.crossings.empty() || before.kinds.size() == most_levels) refuse();
            if (before.error + arc.weight + tables_.states[arc.target].rest > tables_.budget) continue;
            Sequence sequence = before;
            sequence.error += arc.weight;
            const auto level = static_cast<uint32_t>(sequence.kinds.size());
            sequence.kinds.push_back(number_of(plan_.classes, arc.event_class, most_kinds));
            sequence.vars.push_back(arc.var);
            for (const auto* checks : {&arc.leaving, &arc.binding}) {
                for (const Check& check : *checks) add_check(check, level, registers, sequence);
            }
            follow(tables_.states[arc.target], sequence, registers_after(arc, level, registers));
        }
    }

    std::vector<SearchRef> registers_after(const Arc& arc, uint32_t level, const std::vector<SearchRef>& before) {
        std::vector<SearchRef> after(tables_.states[arc.target].slots, unbound_ref);
        for (const Put& put : arc.puts) {
            SearchRef& to = after.at(static_cast<size_t>(put.slot));
            if (put.write == Write::copy) {
                to = put.from < 0 ? unbound_ref : before.at(static_cast<size_t>(put.from));
            } else if (put.write == Write::last || (put.write == Write::nth && put.extra == 1 && put.from < 0)) {
                to = {level, place_of(put.column), false};
            } else {
                refuse();
            }
        }
        return after;
    }

    void add_check(const Check& check, uint32_t level, const std::vector<SearchRef>& registers, Sequence& sequence) {
        if (check.only >= 0 || !check.loops.empty()) refuse();
        SearchCheck made{check.program, {}, programs_[check.program].simple()};
        for (const Source& source : check.sources) {
            switch (source.from) {
                case From::event: made.refs.push_back({level, place_of(source.a), false}); break;
                case From::one: made.refs.push_back({level, source.a < 0 ? -1 : place_of(source.a), true}); break;
                case From::slot: made.refs.push_back(registers.at(static_cast<size_t>(source.a))); break;
                default: refuse();
            }
            if (made.refs.back().level == NIL) return;  // an event of it is missing: the predicate is dropped
            if (made.refs.back().one) made.simple.reset();
        }
        const BlockProgram& program = programs_[check.program];
        const auto compare = [&](uint32_t a, uint32_t b, bool doubles, double width) {
            const SearchRef x = made.refs[a], y = made.refs[b];
            if (!x.one && !y.one && x.level != y.level) sequence.comparisons.push_back({x, y, doubles, width});
        };
        if (const auto equality = program.equality()) {
            compare(equality->a, equality->b, equality->doubles, 0);
        } else if (const auto band = program.band(); band && band->width > least_width && band->width < most_width) {
            compare(band->a, band->b, band->doubles, band->width);
        }
        sequence.checks.push_back(std::move(made));
    }

    int32_t place_of(int32_t column) {
        return static_cast<int32_t>(number_of(plan_.columns, static_cast<uint32_t>(column), most_columns));
    }

    const Tables& tables_;
    const std::vector<BlockProgram>& programs_;
    SearchPlan& plan_;
    std::vector<Sequence> found_;
};

// Orders the events of one path.
class Orderer {
public:
    Orderer(const Sequence& sequence, const std::vector<BlockProgram>& programs, SearchPlan& plan)
        : sequence_(sequence), programs_(programs), plan_(plan) {}

    SearchPath path() {
        path_.error = sequence_.error;
        path_.levels = sequence_.last() + 1;
        path_.last_kind = sequence_.kinds.back();
        path_.vars = sequence_.vars;
        unite_equal();
        bound_.assign(path_.levels, 0);
        bound_[sequence_.last()] = 1;
        checked_.assign(sequence_.checks.size(), 0);
        for (size_t left = sequence_.last(); left > 0; --left) add_step(next_level());
        note_failures();
        note_needs();
        return std::move(path_);
    }

private:
    // Find the attributes that are equal in every match: those of one class of `equal_to_`.
    void unite_equal() {
        equal_to_.resize(path_.levels * plan_.columns.size() * 2);
        std::iota(equal_to_.begin(), equal_to_.end(), size_t{0});
        for (const Comparison& c : sequence_.comparisons) {
            if (c.width == 0) unite(equal_to_, attribute(c.a, c.doubles), attribute(c.b, c.doubles));
        }
        verified_.resize(equal_to_.size());
        std::iota(verified_.begin(), verified_.end(), size_t{0});
    }
    static size_t root_in(const std::vector<size_t>& all, size_t number) {
        while (all[number] != number) number = all[number];
        return number;
    }
    static void unite(std::vector<size_t>& all, size_t a, size_t b) { all[root_in(all, a)] = root_in(all, b); }
    size_t attribute(const SearchRef& ref, bool doubles) const {
        return (size_t{ref.level} * plan_.columns.size() + static_cast<size_t>(ref.place)) * 2 + (doubles ? 1 : 0);
    }
    size_t root_of(size_t number) const { return root_in(equal_to_, number); }

    // Return the equalities of an event with those bound.
    std::vector<SearchLink> equalities(uint32_t level) const {
        std::vector<SearchLink> links;
        for (uint32_t place = 0; place < plan_.columns.size(); ++place) {
            for (const bool doubles : {false, true}) {
                const size_t root = root_of(attribute({level, static_cast<int32_t>(place), false}, doubles));
                const auto other = equal_bound(root, doubles);
                if (other) links.push_back({{place, place, doubles, 0}, *other});
            }
        }
        return links;
    }
    std::optional<SearchRef> equal_bound(size_t root, bool doubles) const {
        for (uint32_t level = path_.levels; level-- > 0;) {
            for (int32_t place = 0; bound_[level] != 0 && place < static_cast<int32_t>(plan_.columns.size()); ++place) {
                const SearchRef ref{level, place, false};
                if (root_of(attribute(ref, doubles)) == root) return ref;
            }
        }
        return std::nullopt;
    }
    std::vector<SearchLink> bands(uint32_t level) const {
        std::vector<SearchLink> links;
        for (const Comparison& c : sequence_.comparisons) {
            for (const auto& [own, other] : {std::pair{c.a, c.b}, std::pair{c.b, c.a}}) {
                if (c.width == 0 || links.size() == RegisterKey::most_near) continue;
                if (own.level != level || bound_[other.level] == 0) continue;
                const auto place = static_cast<uint32_t>(own.place);
                links.push_back({{place, place, c.doubles, c.width}, other});
            }
        }
        return links;
    }

    // Return whether all other events of a check are bound.
    bool is_ready(const SearchCheck& check, uint32_t level) const {
        return std::ranges::all_of(check.refs,
                                   [&](const SearchRef& ref) { return ref.level == level || bound_[ref.level] != 0; });
    }

    // Choose the event with the most equalities to bound ones. Among those with as many choose the latest, but if no
    // predicate ties it to bound ones, one that a band does.
    uint32_t next_level() const {
        std::pair<size_t, uint32_t> best{0, 0};
        bool any = false;
        for (uint32_t level = 0; level < path_.levels; ++level) {
            if (bound_[level] != 0) continue;
            const std::pair<size_t, uint32_t> own{equalities(level).size(), level};
            if (!any || own > best) best = own;
            any = true;
        }
        if (best.first > 0 || is_tied(best.second)) return best.second;
        for (uint32_t level = best.second; level-- > 0;) {
            if (bound_[level] == 0 && !bands(level).empty()) return level;
        }
        return best.second;
    }
    bool is_tied(uint32_t level) const {
        return std::ranges::any_of(sequence_.checks, [&](const SearchCheck& check) {
            const auto own = [&](const SearchRef& ref) { return ref.level == level; };
            return std::ranges::any_of(check.refs, own) && is_ready(check, level);
        });
    }

    void add_step(uint32_t level) {
        SearchStep step{};
        step.level = level;
        step.kind = sequence_.kinds[level];
        step.above = level + 1;
        step.below = static_cast<int32_t>(level) - 1;
        step.failures = -1;
        while (bound_[step.above] == 0) ++step.above;
        while (step.below >= 0 && bound_[static_cast<size_t>(step.below)] == 0) --step.below;
        step.links = step.equal = equalities(level);
        if (step.links.empty()) step.links = bands(level);
        for (const SearchLink& link : step.equal) {
            const SearchRef own{level, static_cast<int32_t>(link.part.slot), false};
            unite(verified_, attribute(own, link.part.doubles), attribute(link.other, link.part.doubles));
        }
        for (size_t i = 0; i < sequence_.checks.size(); ++i) {
            const SearchCheck& check = sequence_.checks[i];
            if (checked_[i] != 0 || !is_ready(check, level)) continue;
            checked_[i] = 1;
            if (!is_verified(check)) step.checks.push_back(check);
        }
        SearchIndex index{step.kind, {}};
        for (const SearchLink& link : step.links) index.parts.push_back(link.part);
        step.index = index_number(index);
        step.near = !step.links.empty() && step.links.front().part.is_band();
        step.follows = index.parts.empty() && step.above != sequence_.last();
        if (index.parts.empty()) step.order = take_order(step.checks, level, step.index);
        path_.steps.push_back(std::move(step));
        bound_[level] = 1;
    }

    uint32_t index_number(const SearchIndex& index) {
        const auto same = std::ranges::find(plan_.indexes, index);
        if (same == plan_.indexes.end()) {
            plan_.indexes.push_back(index);
            return static_cast<uint32_t>(plan_.indexes.size() - 1);
        }
        return static_cast<uint32_t>(same - plan_.indexes.begin());
    }

    // Return whether a check is an equality that follows from those that are compared in any case. If not, it is
    // compared from now on.
    bool is_verified(const SearchCheck& check) {
        const auto equality = programs_[check.program].equality();
        if (!equality) return false;
        const SearchRef a = check.refs[equality->a], b = check.refs[equality->b];
        if (a.one || b.one) return false;
        const size_t x = attribute(a, equality->doubles), y = attribute(b, equality->doubles);
        if (root_in(verified_, x) == root_in(verified_, y)) return true;
        unite(verified_, x, y);
        return false;
    }

    // Whether all that follows a step depends only on its own row and on the last event: then a row from which the
    // search has failed once fails again.
    void note_failures() {
        std::vector<uint8_t> before(path_.levels, 0);
        for (size_t k = 0; k < path_.steps.size(); ++k) {
            SearchStep& step = path_.steps[k];
            const auto matters = [&](uint32_t level) {
                return before[level] == 0 || level == step.level || level == sequence_.last();
            };
            const auto linked = [&](const SearchLink& link) { return matters(link.other.level); };
            const auto all_matter = [&](const SearchCheck& check) {
                return std::ranges::all_of(check.refs, [&](const SearchRef& ref) { return matters(ref.level); });
            };
            bool alone = k + 1 < path_.steps.size();
            for (size_t later = k + 1; later < path_.steps.size(); ++later) {
                const SearchStep& next = path_.steps[later];
                alone = alone && matters(next.above) && (next.below < 0 || matters(static_cast<uint32_t>(next.below)));
                alone = alone && std::ranges::all_of(next.links, linked) && std::ranges::all_of(next.equal, linked) &&
                        std::ranges::all_of(next.checks, all_matter) && (!next.order || all_matter(next.order->check));
            }
            if (alone && has_room()) step.failures = static_cast<int32_t>(plan_.failures++);
            step.greedy = alone && is_only_a_limit(step.level, k + 1);
            before[step.level] = 1;
        }
    }

    // Return whether a row has room for one more note. Notes only spare work, and rows are many.
    bool has_room() const { return plan_.failures + plan_.needs < most_notes; }

    // Return whether the steps from `first` on depend on the row of an event only as one that comes after theirs.
    bool is_only_a_limit(uint32_t level, size_t first) const {
        const auto is = [&](const SearchRef& ref) { return ref.level == level; };
        const auto linked = [&](const SearchLink& link) { return is(link.other); };
        const auto asked = [&](const SearchCheck& check) { return std::ranges::any_of(check.refs, is); };
        return std::ranges::none_of(path_.steps.begin() + static_cast<std::ptrdiff_t>(first), path_.steps.end(),
                                    [&](const SearchStep& next) {
            return next.below == static_cast<int32_t>(level) || std::ranges::any_of(next.links, linked) ||
                   std::ranges::any_of(next.equal, linked) || std::ranges::any_of(next.checks, asked) ||
                   (next.order && asked(next.order->check));
        });
    }

    static bool is_of(const SearchCheck& check, uint32_t level, uint32_t other) {
        return std::ranges::all_of(check.refs,
                                   [&](const SearchRef& ref) { return ref.level == level || ref.level == other; });
    }

    // Take a check out of some by whose value a walk can leave out rows of an index.
    std::optional<SearchOrder> take_order(std::vector<SearchCheck>& checks, uint32_t level, uint32_t index) {
        for (size_t i = 0; i < checks.size(); ++i) {
            const auto ranks = ranks_of(checks[i], level, index);
            if (!ranks || plan_.ranks.size() == most_ranks) continue;
            SearchOrder order{checks[i], number_of(plan_.ranks, *ranks, most_ranks + 1)};
            checks.erase(checks.begin() + static_cast<std::ptrdiff_t>(i));
            return order;
        }
        return std::nullopt;
    }
    static std::optional<SearchRanks> ranks_of(const SearchCheck& check, uint32_t level, uint32_t index) {
        if (!check.simple) return std::nullopt;
        const SimplePredicate& simple = *check.simple;
        const bool compares =
            simple.comparison == SimplePredicate::less || simple.comparison == SimplePredicate::at_most;
        const SearchRef &a = check.refs[simple.a], &b = check.refs[simple.b];
        if (!compares || simple.shape == SimplePredicate::distance || (a.level == level) == (b.level == level)) {
            return std::nullopt;
        }
        const bool lower = a.level == level;
        const auto multiplied = lower ? SimplePredicate::product_left : SimplePredicate::product_right;
        // A sum or product of integers that is too large is null, and null fails at the other end too.
        if (simple.shape != SimplePredicate::plain) {
            const double constant = std::bit_cast<double>(simple.constant);
            if (!simple.doubles || !std::isfinite(constant) || (simple.shape == multiplied && !(constant > 0))) {
                return std::nullopt;
            }
        }
        return SearchRanks{index, static_cast<uint32_t>(lower ? a.place : b.place), simple.doubles, lower};
    }

    // Find the rows that those of a step need before them, where a walk over many rows would find that there are none:
    // those of earlier events that no equality ties to bound ones.
    void note_needs() {
        for (size_t k = 0; k < path_.steps.size(); ++k) {
            SearchStep& step = path_.steps[k];
            for (size_t later = k + 1; later < path_.steps.size(); ++later) {
                const SearchStep& next = path_.steps[later];
                if (next.level > step.level || !next.equal.empty()) continue;
                SearchNeed need{next.level, 0, plan_.needs, static_cast<uint32_t>(later), {}, {}};
                for (const SearchCheck& check : next.checks) {
                    if (is_of(check, step.level, next.level)) need.checks.push_back(check);
                }
                if (next.order && is_of(next.order->check, step.level, next.level))
                    need.checks.push_back(next.order->check);
                if (need.checks.empty() || !has_room()) continue;
                need.index = index_number({next.kind, {}});
                need.order = take_order(need.checks, next.level, need.index);
                ++plan_.needs;
                step.needs.push_back(std::move(need));
            }
        }
    }

    const Sequence& sequence_;
    const std::vector<BlockProgram>& programs_;
    SearchPlan& plan_;
    SearchPath path_;
    std::vector<uint8_t> bound_, checked_;
    std::vector<size_t> equal_to_,
        verified_;  // union-find; verified: of attributes that are compared before a step ends
};

}  // namespace

SearchPlan search_plan(const Tables& tables, const std::vector<BlockProgram>& programs) {
    SearchPlan plan;
    const std::vector<Sequence> sequences = PathReader(tables, programs, plan).sequences();
    for (const Sequence& sequence : sequences) {
        plan.paths.push_back(Orderer(sequence, programs, plan).path());
        plan.ending |= 1u << sequence.kinds.back();
        plan.first |= 1u << sequence.kinds.front();
        for (size_t level = 0; level + 1 < sequence.kinds.size(); ++level) plan.kept |= 1u << sequence.kinds[level];
    }
    return plan;
}

}  // namespace acep
