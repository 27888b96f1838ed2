// Reading and validation of a plan's tables.
#include "plan/tables.hpp"

#include <limits>

#include "common/numbers.hpp"

namespace acep {
namespace {

constexpr int64_t MOST = int64_t{1} << 31;
constexpr int64_t FAR = int64_t{1} << 40;  // limit of weights and budgets, so that their sums cannot overflow

constexpr int64_t NO_END = std::numeric_limits<int64_t>::max();

[[noreturn]] void bad(const char* what) { throw std::invalid_argument(std::string("tables: ") + what); }

struct Lists {
    std::span<const int64_t> at, items;
    std::span<const int64_t> operator[](size_t i) const {
        return items.subspan(static_cast<size_t>(at[i]), static_cast<size_t>(at[i + 1] - at[i]));
    }
};

Lists lists(const Arrays& arrays, const std::string& name, size_t rows, int64_t low, int64_t high) {
    auto items = arrays.at(name, Arrays::any, low, high);
    return {arrays.offsets(name + "_at", rows, items.size()), items};
}

// Return checked words as numbers of another type.
template <class T>
std::vector<T> as(std::span<const int64_t> words) {
    return {words.begin(), words.end()};
}

struct Builder {
    const Arrays& arrays;
    const std::vector<uint32_t>& programs;
    Tables t{};
    std::vector<Check> checks;
    std::vector<Crossing> crossings;

    // `slots`: number of slots of the state that the source reads; `loops`: number of loops around it.
    void check_source(const Source& s, uint32_t slots, size_t loops) const {
        if (s.from == From::event || s.from == From::one) {
            const int32_t least = s.from == From::event ? 0 : -1;
            if (s.a < least || s.a >= static_cast<int64_t>(t.columns)) bad("column of a source");
        } else if (s.from == From::frame) {
            if (s.a < 0 || static_cast<size_t>(s.a) >= loops || s.b < 0 || s.b >= most_of_frame) {
                bad("frame of a source");
            }
        } else {
            const bool wide = s.from == From::total || s.from == From::average;
            const bool divides = s.from == From::average || s.from == From::mean;
            for (const int64_t i : {int64_t{s.a}, int64_t{s.a} + (wide ? 1 : 0), int64_t{divides ? s.b : s.a}}) {
                if (i < 0 || i >= static_cast<int64_t>(slots)) bad("slot of a source");
            }
        }
    }

    static std::vector<Source> sources(std::span<const int64_t> words) {
        if (words.size() % 3 != 0) bad("length of sources");
        std::vector<Source> found;
        for (size_t i = 0; i < words.size(); i += 3) {
            if (words[i] < 0 || words[i] > 6) bad("kind of a source");
            Source made{static_cast<From>(words[i]), static_cast<int32_t>(words[i + 1]),
                        static_cast<int32_t>(words[i + 2])};
            if (made.from == From::average && made.b >= 0) {
                made.places = made.b >> 20;
                made.b &= (1 << 20) - 1;
                if (made.places > most_places) bad("decimal places of a source");
            }
            found.push_back(made);
        }
        return found;
    }

    void read_assigns(size_t many) {
        auto program = arrays.at("assign_program", many, 0, static_cast<int64_t>(programs.size()));
        auto from = lists(arrays, "assign_sources", many, -1, MOST);
        for (size_t i = 0; i < many; ++i) {
            const auto number = static_cast<uint32_t>(program[i]);
            t.assigns.push_back({number, sources(from[i])});
            if (t.assigns.back().sources.size() != programs[number]) bad("number of sources");
        }
    }

    void read_checks() {
        size_t n = arrays.at("check_program").size();
        auto program = arrays.at("check_program", n, 0, static_cast<int64_t>(programs.size()));
        auto only = arrays.at("check_only", n, -1, MOST);
        auto turn = arrays.at("check_turn", n, 0, MOST);
        auto from = lists(arrays, "check_sources", n, -1, MOST);
        auto loops = lists(arrays, "check_loops", n, 0, MOST);
        for (size_t i = 0; i < n; ++i) {
            const auto number = static_cast<uint32_t>(program[i]);
            checks.push_back({number, static_cast<int32_t>(only[i]), turn[i], sources(from[i]), as<int32_t>(loops[i])});
            if (checks.back().sources.size() != programs[number]) bad("number of sources");
        }
    }

    std::vector<Check> checks_of(std::span<const int64_t> numbers, uint32_t slots) const {
        std::vector<Check> found;
        for (int64_t i : numbers) {
            const Check& c = checks[static_cast<size_t>(i)];
            for (const Source& s : c.sources) check_source(s, slots, c.loops.size());
            for (int32_t l : c.loops) {
                if (l >= static_cast<int64_t>(slots)) bad("slot of a loop");
            }
            if (c.only >= static_cast<int64_t>(slots)) bad("slot of a counter");
            found.push_back(c);
        }
        return found;
    }

    void read_crossings() {
        size_t n = arrays.at("crossing_negation").size();
        auto negation = arrays.at("crossing_negation", n, 0, static_cast<int64_t>(t.negations.size()));
        auto entered = lists(arrays, "crossing_entered", n, 0, static_cast<int64_t>(t.groups.size()));
        for (size_t i = 0; i < n; ++i) {
            crossings.push_back({static_cast<uint32_t>(negation[i]), as<uint32_t>(entered[i])});
        }
    }

    std::vector<Crossing> crossings_of(std::span<const int64_t> numbers) const {
        std::vector<Crossing> found;
        for (int64_t i : numbers) found.push_back(crossings[static_cast<size_t>(i)]);
        return found;
    }

    std::vector<Put> puts_of(std::span<const int64_t> words, uint32_t before, uint32_t after) const {
        if (words.size() % 6 != 0) bad("length of puts");
        std::vector<Put> found;
        std::vector<uint8_t> written(after, 0);
        for (size_t i = 0; i < words.size(); i += 6) {
            if (words[i] < 0 || words[i] > 11) bad("kind of a put");
            Put p{static_cast<Write>(words[i]),       static_cast<int32_t>(words[i + 1]),
                  static_cast<int32_t>(words[i + 2]), static_cast<int32_t>(words[i + 3]),
                  static_cast<int32_t>(words[i + 4]), words[i + 5]};
            int32_t wide = p.write == Write::sum ? 1 : 0;
            if (p.slot < 0 || p.slot + wide >= static_cast<int64_t>(after)) bad("slot of a put");
            if (p.from < -1 || (p.from >= 0 && p.from + wide >= static_cast<int64_t>(before))) bad("origin of a put");
            bool first = p.write == Write::position;
            if (first != (t.firsts && p.slot == static_cast<int64_t>(after) - 1)) bad("slot of a first position");
            if (first && p.from != static_cast<int64_t>(before) - 1) bad("origin of a first position");
            const bool assigned = p.write == Write::assign;
            bool reads =
                p.write != Write::copy && p.write != Write::count && p.write != Write::frames && !first && !assigned;
            if (p.column < (reads ? 0 : -1) || p.column >= static_cast<int64_t>(t.columns)) bad("column of a put");
            if (p.counter < -1 || p.counter >= static_cast<int64_t>(before)) bad("counter of a put");
            if (p.write == Write::frames) {
                if (p.extra < 0 || p.extra >= static_cast<int64_t>(t.frames.size())) bad("frame of a put");
                for (const Source& s : t.frames[static_cast<size_t>(p.extra)]) check_source(s, before, 0);
            }
            if (assigned) {
                if (p.extra < 0 || p.extra >= static_cast<int64_t>(t.assigns.size())) bad("assignment of a put");
                for (const Source& s : t.assigns[static_cast<size_t>(p.extra)].sources) check_source(s, before, 0);
            }
            if ((p.write == Write::least || p.write == Write::greatest) && (p.extra < 0 || p.extra > 2)) bad("order");
            for (int32_t k = 0; k <= wide; ++k) {
                if (written[static_cast<size_t>(p.slot + k)]++ != 0) bad("slot written twice");
            }
            found.push_back(p);
        }
        if (std::find(written.begin(), written.end(), 0) != written.end()) bad("slot not written");
        return found;
    }

    Tables build() {
        auto meta = arrays.at("meta", 15, -1, FAR);
        if (meta[0] < 0 || meta[0] > 3) bad("strategy");
        if (meta[1] < 0 || meta[1] >= (int64_t{1} << 30) || meta[2] < -1 || meta[2] == 0) bad("budget");
        t.strategy = static_cast<Strategy>(meta[0]);
        t.budget = meta[1];
        t.surplus = meta[2];
        t.counted = meta[3] != 0;
        t.strict = meta[4] != 0;
        t.unambiguous = meta[5] != 0;
        t.partitions = static_cast<uint32_t>(meta[7]);
        t.classes = static_cast<uint32_t>(meta[8]);
        t.columns = static_cast<uint32_t>(meta[9]);
        t.variables = static_cast<uint32_t>(meta[10]);
        for (size_t i = 7; i < 15; ++i) {
            if (meta[i] < 0 || meta[i] > 0xFFFE) bad("meta");
        }
        t.span = arrays.at("span", 1, -1, std::numeric_limits<int64_t>::max())[0];
        size_t frames = static_cast<size_t>(meta[11]);
        auto frame_sources = lists(arrays, "frame_sources", frames, -1, MOST);
        for (size_t i = 0; i < frames; ++i) {
            t.frames.push_back(sources(frame_sources[i]));
            if (t.frames.back().size() > most_of_frame) bad("size of a frame");
        }
        t.told = static_cast<uint32_t>(meta[13]);
        t.dynamic = meta[14] != 0;
        read_assigns(static_cast<size_t>(meta[12]));
        read_checks();
        read_completion();
        read_crossings();
        read_states();
        return std::move(t);
    }

    std::span<const int64_t> times(const std::string& name, size_t many) const {
        auto found = arrays.at(name);
        if (found.size() != many) bad("length of lifetimes");
        return found;
    }

    void read_states() {
        size_t n = arrays.at("state_rest").size();
        if (n == 0 || n > 0xFFFF) bad("number of states");
        auto rest = arrays.at("state_rest", n, 0, FAR);
        auto slots = arrays.at("state_slots", n, 0, 4096);
        auto many = static_cast<int64_t>(checks.size()), crossed = static_cast<int64_t>(crossings.size());
        auto ending = lists(arrays, "state_ending", n, 0, many);
        size_t accepts = arrays.at("accept_cost").size();
        auto accept_at = arrays.offsets("accept_at", n, accepts);
        auto accept_cost = arrays.at("accept_cost", accepts, 0, FAR);
        auto accept_crossings = lists(arrays, "accept_crossings", accepts, 0, crossed);
        size_t arcs = arrays.at("arc_target").size();
        if (arcs > most_arcs) bad("number of arcs");
        auto arc_at = arrays.offsets("arc_at", n, arcs);
        auto number = arrays.at("arc_number", arcs, 0, 0xFFFE);
        std::vector<uint8_t> numbered(0xFFFE, 0);
        auto target = arrays.at("arc_target", arcs, 1, static_cast<int64_t>(n));
        auto var = arrays.at("arc_var", arcs, 0, static_cast<int64_t>(t.variables));
        auto event_class = arrays.at("arc_class", arcs, 0, static_cast<int64_t>(t.classes));
        auto blocking = arrays.at("arc_blocking", arcs, 0, 2);
        auto gaps = lists(arrays, "arc_gaps", arcs, 0, FAR);
        auto leaving = lists(arrays, "arc_leaving", arcs, 0, many);
        auto binding = lists(arrays, "arc_binding", arcs, 0, many);
        auto puts = lists(arrays, "arc_puts", arcs, std::numeric_limits<int64_t>::min(), FAR);
        auto crossing = lists(arrays, "arc_crossings", arcs, 0, crossed);
        auto resets = lists(arrays, "arc_resets", arcs, 0, static_cast<int64_t>(t.groups.size()));
        auto history = arrays.at("arc_history", arcs, 0, MOST);
        const size_t ignored = arrays.at("ignore_class").size();
        auto ignore_at = arrays.offsets("ignore_at", n, ignored);
        auto ignore_class = arrays.at("ignore_class", ignored, 0, static_cast<int64_t>(t.classes));
        auto ignore_first = times("ignore_first", ignored), ignore_last = times("ignore_last", ignored);
        auto first = times("arc_first", arcs), last = times("arc_last", arcs);
        auto ignore_binding = lists(arrays, "ignore_binding", ignored, 0, many);
        const size_t ended = arrays.at("end_class").size();
        auto end_at = arrays.offsets("end_at", n, ended);
        auto end_class = arrays.at("end_class", ended, 0, static_cast<int64_t>(t.classes));
        auto end_checks = lists(arrays, "end_checks", ended, 0, many);
        for (size_t s = 0; s < n; ++s) {
            const auto own_slots = static_cast<uint32_t>(slots[s]);
            State state{rest[s], own_slots, t.budget + 1, {}, {}, checks_of(ending[s], own_slots), {}, {}};
            for (auto i = static_cast<size_t>(end_at[s]); i < static_cast<size_t>(end_at[s + 1]); ++i) {
                state.ended.push_back({static_cast<uint32_t>(end_class[i]), checks_of(end_checks[i], own_slots)});
            }
            for (auto i = static_cast<size_t>(ignore_at[s]); i < static_cast<size_t>(ignore_at[s + 1]); ++i) {
                const auto of = static_cast<uint32_t>(ignore_class[i]);
                state.ignoring.push_back(
                    {of, checks_of(ignore_binding[i], own_slots), {ignore_first[i], ignore_last[i]}});
            }
            for (auto i = static_cast<size_t>(accept_at[s]); i < static_cast<size_t>(accept_at[s + 1]); ++i) {
                state.accepts.push_back({accept_cost[i], crossings_of(accept_crossings[i])});
                state.ends = std::min(state.ends, accept_cost[i]);
            }
            for (auto i = static_cast<size_t>(arc_at[s]); i < static_cast<size_t>(arc_at[s + 1]); ++i) {
                auto to = static_cast<size_t>(target[i]);
                Arc arc{};
                arc.source = static_cast<uint32_t>(s);
                arc.target = static_cast<uint32_t>(to);
                arc.var = static_cast<uint16_t>(var[i]);
                arc.number = static_cast<uint16_t>(number[i]);
                if (numbered[arc.number]++ != 0) bad("number of an arc");
                arc.history = static_cast<uint32_t>(history[i]);
                arc.event_class = static_cast<uint32_t>(event_class[i]);
                arc.blocking = blocking[i] != 0;
                if (gaps[i].empty() || gaps[i].size() % 2 != 0) bad("gaps of an arc");
                for (size_t g = 0; g < gaps[i].size(); g += 2) arc.gaps.push_back({gaps[i][g], gaps[i][g + 1]});
                arc.weight = arc.gaps.front().weight;
                arc.leaving = checks_of(leaving[i], state.slots);
                arc.binding = checks_of(binding[i], state.slots);
                arc.puts = puts_of(puts[i], state.slots, static_cast<uint32_t>(slots[to]));
                arc.crossings = crossings_of(crossing[i]);
                arc.resets = as<uint32_t>(resets[i]);
                arc.lifetime = {first[i], last[i]};
                state.arcs.push_back(std::move(arc));
            }
            t.states.push_back(std::move(state));
        }
        if (t.states[0].slots != 0) bad("registers at the start");
        for (const State& s : t.states) {
            if (t.told != 0 && !s.accepts.empty() && s.slots + 1 != t.told) bad("registers at the end");
            if (!s.ignoring.empty() && (!t.contiguous() || t.budget != 0)) bad("an ignorable arc");
        }
        if (t.told != 0 && (t.unambiguous || t.completes())) bad("values of the last node");
        const bool looked_up = t.choice == Choice::all && (t.dynamic || t.negations.empty() || t.span >= 0);
        if (!t.firsts && !looked_up) bad("first positions");
        if (t.trailing() && t.span < 0) bad("a trailing negation without a window");
    }

    // Read references of seven words each. `own`: number of columns kept with an event that may break a negation.
    std::vector<Ref> refs_of(std::span<const int64_t> words, uint32_t program, size_t own, bool candidate,
                             const std::vector<Conjunct::Loop>& loops) const {
        if (words.size() != 7 * static_cast<size_t>(programs[program])) bad("number of references");
        std::vector<Ref> found;
        for (size_t i = 0; i < words.size(); i += 7) {
            if (words[i] < (candidate ? -1 : 0) || words[i] >= static_cast<int64_t>(t.variables))
                bad("variable of a reference");
            if (words[i + 1] < 0 || words[i + 1] > 13) bad("kind of a reference");
            if (words[i + 4] < -1 || words[i + 4] >= static_cast<int64_t>(loops.size())) bad("loop of a reference");
            const Ref r{static_cast<int32_t>(words[i]),
                        static_cast<How>(words[i + 1]),
                        static_cast<int32_t>(words[i + 2]),
                        words[i + 3],
                        static_cast<int32_t>(words[i + 4]),
                        words[i + 5] != 0,
                        words[i + 6]};
            const size_t width = r.var < 0 ? own : t.kept.size();
            const int64_t least = r.how == How::length ? -1 : 0;
            if (words[i + 2] < least || words[i + 2] >= static_cast<int64_t>(width)) bad("column of a reference");
            if (r.how == How::average && (r.n < 0 || r.n > most_places)) bad("decimal places of a reference");
            if (r.how == How::nth && r.n < 1) bad("index of a reference");
            if ((r.how == How::least || r.how == How::greatest) && (r.n < 0 || r.n > 2)) bad("order of a reference");
            if (r.how == How::spread && (r.n < 0 || r.n > 3)) bad("standard deviation of a reference");
            const bool at = r.how == How::each || r.how == How::previous;
            if (at && r.loop < 0) bad("loop of a reference");
            if (r.loop >= 0) {
                const auto& loop = loops[static_cast<size_t>(r.loop)];
                if (r.var != static_cast<int64_t>(loop.var)) bad("loop of a reference");
                if (r.how == How::previous && loop.low < 1) bad("start of a loop");
            }
            found.push_back(r);
        }
        return found;
    }

    void read_completion() {
        auto choice = arrays.at("choice", 1, 0, 5), firsts = arrays.at("firsts", 1, 0, 2);
        t.rises = arrays.at("rises", 1, 0, 2)[0] != 0;
        t.choice = static_cast<Choice>(choice[0]);
        const auto skip = arrays.at("skip", 2, 0, std::max<int64_t>(t.variables, 4));
        if (skip[0] > 3 || skip[1] >= static_cast<int64_t>(t.variables)) bad("skip");
        t.skip = {static_cast<SkipPlace>(skip[0]), static_cast<uint16_t>(skip[1])};
        t.firsts = firsts[0] != 0;
        t.kept = as<uint32_t>(arrays.at("kept", Arrays::any, 0, t.columns));
        for (int64_t k : arrays.at("order_by", Arrays::any, 0, static_cast<int64_t>(t.kept.size()))) t.order_by = k;
        t.ranks = as<uint32_t>(arrays.at("variable_rank", t.variables, 0, t.variables));
        const size_t groups = arrays.at("group_variables_at").size();
        if (groups == 0) bad("groups");
        auto variables = lists(arrays, "group_variables", groups - 1, 0, t.variables);
        for (size_t g = 0; g + 1 < groups; ++g) {
            t.groups.emplace_back(t.variables, uint8_t{0});
            for (int64_t v : variables[g]) t.groups.back()[static_cast<size_t>(v)] = 1;
        }
        read_negations();
        const int64_t many = static_cast<int64_t>(programs.size());
        auto having = arrays.at("having", Arrays::any, 0, many), returns = arrays.at("returns", Arrays::any, 0, many);
        if (having.size() > 1) bad("HAVING");
        const size_t wholes = having.size() + returns.size();
        auto refs = lists(arrays, "whole_refs", wholes, std::numeric_limits<int64_t>::min(), NO_END);
        for (size_t i = 0; i < wholes; ++i) {
            const auto program = static_cast<uint32_t>(i < having.size() ? having[i] : returns[i - having.size()]);
            (i < having.size() ? t.having : t.returns).push_back({program, refs_of(refs[i], program, 0, false, {})});
        }
    }

    void read_negations() {
        const size_t n = arrays.at("negation_class").size(), many = arrays.at("conjunct_program").size();
        auto event_class = arrays.at("negation_class", n, 0, t.classes);
        auto weight = arrays.at("negation_weight", n, -1, FAR);
        auto since = times("negation_since", n);
        auto around = lists(arrays, "negation_around", n, 0, static_cast<int64_t>(t.groups.size()));
        auto columns = lists(arrays, "negation_columns", n, 0, t.columns);
        auto numbers = lists(arrays, "negation_conjuncts", n, 0, static_cast<int64_t>(many));
        auto program = arrays.at("conjunct_program", many, 0, static_cast<int64_t>(programs.size()));
        auto refs = lists(arrays, "conjunct_refs", many, std::numeric_limits<int64_t>::min(), NO_END);
        auto loops = lists(arrays, "conjunct_loops", many, 0, MOST);
        auto least = lists(arrays, "conjunct_least", many, 0, MOST);
        const auto pairs = [&](std::span<const int64_t> words, auto&& take) {
            if (words.size() % 2 != 0) bad("length of a conjunct's lists");
            for (size_t i = 0; i < words.size(); i += 2) {
                if (words[i] >= static_cast<int64_t>(t.variables)) bad("variable of a conjunct");
                take(static_cast<uint32_t>(words[i]), static_cast<size_t>(words[i + 1]));
            }
        };
        for (size_t i = 0; i < n; ++i) {
            Negation negation{static_cast<uint32_t>(event_class[i]),
                              weight[i],
                              as<uint32_t>(around[i]),
                              since[i],
                              as<uint32_t>(columns[i]),
                              {}};
            for (int64_t k : numbers[i]) {
                const auto c = static_cast<size_t>(k);
                Conjunct conjunct{static_cast<uint32_t>(program[c]), {}, {}, {}};
                pairs(loops[c], [&](uint32_t var, size_t low) { conjunct.loops.push_back({var, low}); });
                pairs(least[c], [&](uint32_t var, size_t events) { conjunct.least.push_back({var, events}); });
                conjunct.refs = refs_of(refs[c], conjunct.program, negation.columns.size(), true, conjunct.loops);
                negation.conjuncts.push_back(std::move(conjunct));
            }
            t.negations.push_back(std::move(negation));
        }
    }
};

}  // namespace

Tables tables_from(const Arrays& arrays, const std::vector<uint32_t>& programs) {
    return Builder{arrays, programs, {}, {}, {}}.build();
}

}  // namespace acep
