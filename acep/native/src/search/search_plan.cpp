// Derive the plan of a search from the tables: the source of each register, the equalities that follow from others, and
// the order of the variables.
#include "search/search_plan.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace acep {
namespace {

constexpr size_t most_levels = 16, most_columns = 64;
constexpr double least_width = 1e-100, most_width = 1e100;

[[noreturn]] void refuse() { throw std::invalid_argument("tables: not a pattern to search for"); }

// Comparisons of two values of a check.
struct Comparison {
    SearchRef a, b;
    bool doubles;
    double width;  // 0: they are equal
};

class Planner {
public:
    Planner(const Tables& tables, const std::vector<BlockProgram>& programs) : tables_(tables), programs_(programs) {}

    SearchPlan plan() {
        read_sequence();
        unite_equal();
        std::vector<uint8_t> bound(plan_.levels(), 0);
        const auto last = static_cast<uint32_t>(plan_.levels() - 1);
        bound[last] = 1;
        std::vector<uint8_t> checked(checks_.size(), 0);
        for (size_t left = last; left > 0; --left) add_step(next_level(bound), bound, checked);
        note_failures();
        note_needs();
        return std::move(plan_);
    }

private:
    // Follow the arcs from the start, and find the source of each register.
    void read_sequence() {
        const bool plain = tables_.strategy == Strategy::any && tables_.budget == 0 && tables_.timed() &&
                           !tables_.completes() && !tables_.dynamic && tables_.told == 0 && !tables_.firsts;
        if (!plain || tables_.states.empty()) refuse();
        std::vector<SearchRef> registers;
        const State* state = &tables_.states[0];
        while (!state->arcs.empty()) {
            const bool simple = state->arcs.size() == 1 && state->accepts.empty() && state->ignoring.empty() &&
                                state->ended.empty() && state->ending.empty() && plan_.levels() < most_levels;
            if (!simple) refuse();
            const Arc& arc = state->arcs[0];
            const bool always = arc.lifetime.first == std::numeric_limits<int64_t>::min() &&
                                arc.lifetime.last == std::numeric_limits<int64_t>::max();
            if (arc.weight != 0 || !always || !arc.crossings.empty() || !arc.resets.empty()) refuse();
            const auto level = static_cast<uint32_t>(plan_.levels());
            plan_.classes.push_back(arc.event_class);
            plan_.vars.push_back(arc.var);
            for (const auto* checks : {&arc.leaving, &arc.binding}) {
                for (const Check& check : *checks) add_check(check, level, registers);
            }
            registers = registers_after(arc, level, registers);
            state = &tables_.states[arc.target];
        }
        const bool ends = state->accepts.size() == 1 && state->accepts[0].cost == 0 &&
                          state->accepts[0].crossings.empty() && state->ending.empty() && plan_.levels() > 1;
        if (!ends) refuse();
    }

    std::vector<SearchRef> registers_after(const Arc& arc, uint32_t level, const std::vector<SearchRef>& before) {
        std::vector<SearchRef> after(tables_.states[arc.target].slots, {NIL, -1, false});
        for (const Put& put : arc.puts) {
            SearchRef& to = after.at(static_cast<size_t>(put.slot));
            if (put.write == Write::copy && put.from >= 0) {
                to = before.at(static_cast<size_t>(put.from));
            } else if (put.write == Write::last || (put.write == Write::nth && put.extra == 1)) {
                to = {level, place_of(put.column), false};
            } else {
                refuse();
            }
        }
        return after;
    }

    void add_check(const Check& check, uint32_t level, const std::vector<SearchRef>& registers) {
        if (check.only >= 0 || !check.loops.empty()) refuse();
        SearchCheck made{check.program, {}, programs_[check.program].simple()};
        for (const Source& source : check.sources) {
            switch (source.from) {
                case From::event: made.refs.push_back({level, place_of(source.a), false}); break;
                case From::one: made.refs.push_back({level, source.a < 0 ? -1 : place_of(source.a), true}); break;
                case From::slot: made.refs.push_back(registers.at(static_cast<size_t>(source.a))); break;
                default: refuse();
            }
            if (made.refs.back().level == NIL) refuse();
        }
        const BlockProgram& program = programs_[check.program];
        if (const auto equality = program.equality()) {
            compare(made, equality->a, equality->b, equality->doubles, 0);
        } else if (const auto band = program.band(); band && band->width > least_width && band->width < most_width) {
            compare(made, band->a, band->b, band->doubles, band->width);
        }
        const auto one = [](const SearchRef& ref) { return ref.one; };
        if (std::ranges::any_of(made.refs, one)) made.simple.reset();
        checks_.push_back(std::move(made));
    }

    void compare(const SearchCheck& check, uint32_t a, uint32_t b, bool doubles, double width) {
        const SearchRef x = check.refs[a], y = check.refs[b];
        if (x.one || y.one || x.level == y.level) return;
        comparisons_.push_back({x, y, doubles, width});
    }

    int32_t place_of(int32_t column) {
        const auto wanted = static_cast<uint32_t>(column);
        auto place = std::ranges::find(plan_.columns, wanted);
        if (place == plan_.columns.end()) {
            if (plan_.columns.size() == most_columns) refuse();
            place = plan_.columns.insert(place, wanted);
        }
        return static_cast<int32_t>(place - plan_.columns.begin());
    }

    // Find the attributes that are equal in every match: those of one class of `equal_to_`.
    void unite_equal() {
        equal_to_.resize(plan_.levels() * plan_.columns.size() * 2);
        std::iota(equal_to_.begin(), equal_to_.end(), size_t{0});
        for (const Comparison& c : comparisons_) {
            if (c.width == 0) equal_to_[root_of(number_of(c.a, c.doubles))] = root_of(number_of(c.b, c.doubles));
        }
    }
    size_t number_of(const SearchRef& ref, bool doubles) const {
        return (size_t{ref.level} * plan_.columns.size() + static_cast<size_t>(ref.place)) * 2 + (doubles ? 1 : 0);
    }
    size_t root_of(size_t number) const {
        while (equal_to_[number] != number) number = equal_to_[number];
        return number;
    }

    // Return the equalities of a variable with those bound.
    std::vector<SearchLink> equalities(uint32_t level, const std::vector<uint8_t>& bound) const {
        std::vector<SearchLink> links;
        for (uint32_t place = 0; place < plan_.columns.size(); ++place) {
            for (const bool doubles : {false, true}) {
                const size_t root = root_of(number_of({level, static_cast<int32_t>(place), false}, doubles));
                const auto other = equal_bound(root, bound, doubles);
                if (other) links.push_back({{place, place, doubles, 0}, *other});
            }
        }
        return links;
    }
    std::optional<SearchRef> equal_bound(size_t root, const std::vector<uint8_t>& bound, bool doubles) const {
        for (auto level = static_cast<uint32_t>(plan_.levels()); level-- > 0;) {
            for (int32_t place = 0; bound[level] != 0 && place < static_cast<int32_t>(plan_.columns.size()); ++place) {
                const SearchRef ref{level, place, false};
                if (root_of(number_of(ref, doubles)) == root) return ref;
            }
        }
        return std::nullopt;
    }
    std::vector<SearchLink> bands(uint32_t level, const std::vector<uint8_t>& bound) const {
        std::vector<SearchLink> links;
        for (const Comparison& c : comparisons_) {
            if (c.width == 0 || links.size() == RegisterKey::most_near) continue;
            for (const auto& [own, other] : {std::pair{c.a, c.b}, std::pair{c.b, c.a}}) {
                if (own.level != level || bound[other.level] == 0) continue;
                const auto place = static_cast<uint32_t>(own.place);
                links.push_back({{place, place, c.doubles, c.width}, other});
            }
        }
        return links;
    }

    static bool is_ready(const SearchCheck& check, uint32_t level, const std::vector<uint8_t>& bound) {
        return std::ranges::all_of(check.refs, [&](const SearchRef& ref) {
            return ref.level == level || bound[ref.level] != 0;
        });
    }

    // Choose the variable with the most equalities; among those with as many one that a predicate ties to bound ones, and
    // of these the latest.
    uint32_t next_level(const std::vector<uint8_t>& bound) const {
        std::tuple<size_t, bool, uint32_t> best{0, false, 0};
        bool any = false;
        for (uint32_t level = 0; level < plan_.levels(); ++level) {
            if (bound[level] != 0) continue;
            const bool tied = std::ranges::any_of(checks_, [&](const SearchCheck& check) {
                const auto own = [&](const SearchRef& ref) { return ref.level == level; };
                return std::ranges::any_of(check.refs, own) && is_ready(check, level, bound);
            });
            const std::tuple<size_t, bool, uint32_t> own{equalities(level, bound).size(), tied, level};
            if (!any || own > best) best = own;
            any = true;
        }
        return std::get<2>(best);
    }

    void add_step(uint32_t level, std::vector<uint8_t>& bound, std::vector<uint8_t>& checked) {
        SearchStep step{level, level + 1, static_cast<int32_t>(level) - 1, 0, false, false, -1, {}, {}, {}, {}};
        while (bound[step.above] == 0) ++step.above;
        while (step.below >= 0 && bound[static_cast<size_t>(step.below)] == 0) --step.below;
        step.links = step.equal = equalities(level, bound);
        if (step.links.empty()) step.links = bands(level, bound);
        for (size_t i = 0; i < checks_.size(); ++i) {
            if (checked[i] != 0 || !is_ready(checks_[i], level, bound)) continue;
            checked[i] = 1;
            if (!is_in_key(checks_[i], step)) step.checks.push_back(checks_[i]);
        }
        SearchIndex index{level, plan_.classes[level], {}};
        for (const SearchLink& link : step.links) index.parts.push_back(link.part);
        const auto same = std::ranges::find_if(plan_.indexes, [&](const SearchIndex& other) {
            return other.event_class == index.event_class && other.parts == index.parts;
        });
        step.index = static_cast<uint32_t>(same - plan_.indexes.begin());
        const bool last = step.above + 1 == plan_.levels();
        step.follows = index.parts.empty() && !last && plan_.classes[step.above] == index.event_class;
        if (same == plan_.indexes.end()) plan_.indexes.push_back(std::move(index));
        plan_.steps.push_back(std::move(step));
        bound[level] = 1;
    }

    // Return whether a check is one of the equalities that are compared in any case.
    bool is_in_key(const SearchCheck& check, const SearchStep& step) const {
        const auto equality = programs_[check.program].equality();
        if (!equality) return false;
        const SearchRef a = check.refs[equality->a], b = check.refs[equality->b];
        if (a.one || b.one || a.level == b.level) return false;
        return std::ranges::any_of(step.equal, [&](const SearchLink& link) {
            const auto is = [&](const SearchRef& own) {
                return own.level == step.level && own.place == static_cast<int32_t>(link.part.slot);
            };
            return link.part.doubles == equality->doubles && (is(a) || is(b));
        });
    }

    // Whether all that follows a step depends only on its own row and on the last event: then a row from which the search
    // has failed once fails again.
    void note_failures() {
        const auto last = static_cast<uint32_t>(plan_.levels() - 1);
        std::vector<uint8_t> before(plan_.levels(), 0);
        for (size_t k = 0; k < plan_.steps.size(); ++k) {
            SearchStep& step = plan_.steps[k];
            const auto matters = [&](uint32_t level) {
                return before[level] == 0 || level == step.level || level == last;
            };
            bool alone = k + 1 < plan_.steps.size();
            for (size_t later = k + 1; later < plan_.steps.size(); ++later) {
                const SearchStep& next = plan_.steps[later];
                alone = alone && matters(next.above) && (next.below < 0 || matters(static_cast<uint32_t>(next.below)));
                for (const SearchLink& link : next.links) alone = alone && matters(link.other.level);
                for (const SearchLink& link : next.equal) alone = alone && matters(link.other.level);
                for (const SearchCheck& check : next.checks) {
                    for (const SearchRef& ref : check.refs) alone = alone && matters(ref.level);
                }
            }
            if (alone) step.failures = static_cast<int32_t>(plan_.failures++);
            step.greedy = alone && is_only_a_limit(step.level, k + 1);
            before[step.level] = 1;
        }
    }

    // Return whether the steps from `first` on depend on the row of a variable only as one that comes after theirs.
    bool is_only_a_limit(uint32_t level, size_t first) const {
        const auto is = [&](const SearchRef& ref) { return ref.level == level; };
        const auto linked = [&](const SearchLink& link) { return is(link.other); };
        return std::all_of(plan_.steps.begin() + static_cast<std::ptrdiff_t>(first), plan_.steps.end(),
                           [&](const SearchStep& next) {
                               const bool limits = next.below == static_cast<int32_t>(level);
                               return !limits && std::ranges::none_of(next.links, linked) &&
                                      std::ranges::none_of(next.equal, linked) &&
                                      std::ranges::none_of(next.checks, [&](const SearchCheck& check) {
                                          return std::ranges::any_of(check.refs, is);
                                      });
                           });
    }

    // Find the rows that those of a step need before them, where only a walk over all rows would find them.
    void note_needs() {
        for (size_t k = 0; k < plan_.steps.size(); ++k) {
            SearchStep& step = plan_.steps[k];
            for (size_t later = k + 1; later < plan_.steps.size(); ++later) {
                const SearchStep& next = plan_.steps[later];
                if (next.level > step.level || !next.links.empty()) continue;
                SearchNeed need{next.level, next.index, plan_.needs, {}};
                for (const SearchCheck& check : next.checks) {
                    const bool own = std::ranges::all_of(check.refs, [&](const SearchRef& ref) {
                        return ref.level == step.level || ref.level == next.level;
                    });
                    if (own) need.checks.push_back(check);
                }
                if (need.checks.empty()) continue;
                ++plan_.needs;
                step.needs.push_back(std::move(need));
            }
        }
    }

    const Tables& tables_;
    const std::vector<BlockProgram>& programs_;
    SearchPlan plan_;
    std::vector<SearchCheck> checks_;
    std::vector<Comparison> comparisons_;
    std::vector<size_t> equal_to_;
};

}  // namespace

SearchPlan search_plan(const Tables& tables, const std::vector<BlockProgram>& programs) {
    return Planner(tables, programs).plan();
}

}  // namespace acep
