// Reading and checking a plan's tables.
#include "tables.hpp"

#include <limits>

namespace acep {
namespace {

constexpr int64_t MOST = int64_t{1} << 31;
constexpr int64_t FAR = int64_t{1} << 40;  // no weight or budget is larger, so that sums of them cannot overflow

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

struct Builder {
    const Arrays& arrays;
    const std::vector<uint32_t>& programs;
    Tables t{};
    std::vector<Check> checks;
    std::vector<Crossing> crossings;

    // `slots`: those of the state on whose registers the sources are read; 0 frames outside a loop.
    void check_source(const Source& s, uint32_t slots, size_t loops) const {
        auto slot = [&](int64_t i) {
            if (i < 0 || i >= static_cast<int64_t>(slots)) bad("slot of a source");
        };
        switch (s.from) {
            case From::event:
                if (s.a < 0 || s.a >= static_cast<int64_t>(t.columns)) bad("column of a source");
                break;
            case From::one:
                if (s.a < -1 || s.a >= static_cast<int64_t>(t.columns)) bad("column of a source");
                break;
            case From::slot:
                slot(s.a);
                break;
            case From::total:
                slot(s.a);
                slot(s.a + 1);
                break;
            case From::average:
                slot(s.a);
                slot(s.a + 1);
                slot(s.b);
                break;
            case From::mean:
                slot(s.a);
                slot(s.b);
                break;
            case From::frame:
                if (s.a < 0 || static_cast<size_t>(s.a) >= loops || s.b < 0 || s.b >= most_of_frame) bad("frame of a source");
                break;
        }
    }

    static std::vector<Source> sources(std::span<const int64_t> words) {
        if (words.size() % 3 != 0) bad("length of sources");
        std::vector<Source> found;
        for (size_t i = 0; i < words.size(); i += 3) {
            if (words[i] < 0 || words[i] > 6) bad("kind of a source");
            found.push_back({static_cast<From>(words[i]), static_cast<int32_t>(words[i + 1]),
                             static_cast<int32_t>(words[i + 2])});
        }
        return found;
    }

    void read_checks() {
        size_t n = arrays.at("check_program").size();
        auto program = arrays.at("check_program", n, 0, static_cast<int64_t>(programs.size()));
        auto only = arrays.at("check_only", n, -1, MOST);
        auto turn = arrays.at("check_turn", n, 0, MOST);
        auto from = lists(arrays, "check_sources", n, -1, MOST);
        auto loops = lists(arrays, "check_loops", n, 0, MOST);
        for (size_t i = 0; i < n; ++i) {
            Check c{static_cast<uint32_t>(program[i]), static_cast<int32_t>(only[i]), turn[i], sources(from[i]), {}};
            if (c.sources.size() != programs[c.program]) bad("number of sources");
            for (int64_t l : loops[i]) c.loops.push_back(static_cast<int32_t>(l));
            checks.push_back(std::move(c));
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
        auto negation = arrays.at("crossing_negation", n, 0, MOST);
        auto entered = lists(arrays, "crossing_entered", n, 0, MOST);
        for (size_t i = 0; i < n; ++i) {
            Crossing c{static_cast<uint32_t>(negation[i]), {}};
            for (int64_t g : entered[i]) c.entered.push_back(static_cast<uint32_t>(g));
            crossings.push_back(std::move(c));
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
            if (words[i] < 0 || words[i] > 9) bad("kind of a put");
            Put p{static_cast<Write>(words[i]), static_cast<int32_t>(words[i + 1]), static_cast<int32_t>(words[i + 2]),
                  static_cast<int32_t>(words[i + 3]), static_cast<int32_t>(words[i + 4]), words[i + 5]};
            int32_t wide = p.write == Write::sum ? 1 : 0;
            if (p.slot < 0 || p.slot + wide >= static_cast<int64_t>(after)) bad("slot of a put");
            if (p.from < -1 || (p.from >= 0 && p.from + wide >= static_cast<int64_t>(before))) bad("origin of a put");
            bool reads = p.write != Write::copy && p.write != Write::count && p.write != Write::frames;
            if (reads && (p.column < 0 || p.column >= static_cast<int64_t>(t.columns))) bad("column of a put");
            if (p.counter < -1 || p.counter >= static_cast<int64_t>(before)) bad("counter of a put");
            if (p.write == Write::frames) {
                if (p.extra < 0 || p.extra >= static_cast<int64_t>(t.frames.size())) bad("frame of a put");
                for (const Source& s : t.frames[static_cast<size_t>(p.extra)]) check_source(s, before, 0);
            }
            if ((p.write == Write::least || p.write == Write::greatest) && (p.extra < 0 || p.extra > 2)) bad("order");
            for (int32_t k = 0; k <= wide; ++k) {
                if (written[static_cast<size_t>(p.slot + k)]++ != 0) bad("slot written twice");
            }
            found.push_back(p);
        }
        for (uint8_t w : written) {
            if (w == 0) bad("slot not written");
        }
        return found;
    }

    Tables build() {
        auto meta = arrays.at("meta", 12, -1, FAR);
        if (meta[0] < 0 || meta[0] > 3) bad("strategy");
        if (meta[1] < 0 || meta[1] >= (int64_t{1} << 30) || meta[2] < 1) bad("budget");
        t.strategy = static_cast<Strategy>(meta[0]);
        t.budget = meta[1];
        t.scale = meta[2];
        t.counted = meta[3] != 0;
        t.strict = meta[4] != 0;
        t.unambiguous = meta[5] != 0;
        t.positions = meta[6] != 0;
        t.partitions = static_cast<uint32_t>(meta[7]);
        t.classes = static_cast<uint32_t>(meta[8]);
        t.columns = static_cast<uint32_t>(meta[9]);
        t.variables = static_cast<uint32_t>(meta[10]);
        for (size_t i = 7; i < 12; ++i) {
            if (meta[i] < 0 || meta[i] > 0xFFFE) bad("meta");
        }
        t.span = arrays.at("span", 1, -1, std::numeric_limits<int64_t>::max())[0];
        size_t frames = static_cast<size_t>(meta[11]);
        auto frame_sources = lists(arrays, "frame_sources", frames, -1, MOST);
        for (size_t i = 0; i < frames; ++i) {
            t.frames.push_back(sources(frame_sources[i]));
            if (t.frames.back().size() > most_of_frame) bad("size of a frame");
        }
        read_checks();
        read_crossings();
        read_states();
        return std::move(t);
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
        if (arcs > 0xFFFE) bad("number of arcs");
        auto arc_at = arrays.offsets("arc_at", n, arcs);
        auto target = arrays.at("arc_target", arcs, 1, static_cast<int64_t>(n));
        auto var = arrays.at("arc_var", arcs, 0, static_cast<int64_t>(t.variables));
        auto event_class = arrays.at("arc_class", arcs, 0, static_cast<int64_t>(t.classes));
        auto blocking = arrays.at("arc_blocking", arcs, 0, 2);
        auto gaps = lists(arrays, "arc_gaps", arcs, 0, FAR);
        auto leaving = lists(arrays, "arc_leaving", arcs, 0, many);
        auto binding = lists(arrays, "arc_binding", arcs, 0, many);
        auto puts = lists(arrays, "arc_puts", arcs, std::numeric_limits<int64_t>::min(), FAR);
        auto crossing = lists(arrays, "arc_crossings", arcs, 0, crossed);
        auto resets = lists(arrays, "arc_resets", arcs, 0, MOST);
        for (size_t s = 0; s < n; ++s) {
            State state{rest[s], static_cast<uint32_t>(slots[s]), {}, {}, checks_of(ending[s], static_cast<uint32_t>(slots[s]))};
            for (auto i = static_cast<size_t>(accept_at[s]); i < static_cast<size_t>(accept_at[s + 1]); ++i) {
                state.accepts.push_back({accept_cost[i], crossings_of(accept_crossings[i])});
            }
            for (auto i = static_cast<size_t>(arc_at[s]); i < static_cast<size_t>(arc_at[s + 1]); ++i) {
                auto to = static_cast<size_t>(target[i]);
                Arc arc{};
                arc.source = static_cast<uint32_t>(s);
                arc.target = static_cast<uint32_t>(to);
                arc.var = static_cast<uint16_t>(var[i]);
                arc.number = static_cast<uint16_t>(i);
                arc.event_class = static_cast<uint32_t>(event_class[i]);
                arc.blocking = blocking[i] != 0;
                if (gaps[i].empty() || gaps[i].size() % 2 != 0) bad("gaps of an arc");
                for (size_t g = 0; g < gaps[i].size(); g += 2) arc.gaps.push_back({gaps[i][g], gaps[i][g + 1]});
                arc.weight = arc.gaps.front().weight;
                arc.leaving = checks_of(leaving[i], state.slots);
                arc.binding = checks_of(binding[i], state.slots);
                arc.puts = puts_of(puts[i], state.slots, static_cast<uint32_t>(slots[to]));
                arc.copies = true;
                for (const Put& p : arc.puts) arc.copies = arc.copies && p.write == Write::copy;
                arc.crossings = crossings_of(crossing[i]);
                for (int64_t g : resets[i]) arc.resets.push_back(static_cast<uint32_t>(g));
                state.arcs.push_back(std::move(arc));
            }
            t.states.push_back(std::move(state));
        }
        if (t.states[0].slots != 0) bad("registers at the start");
    }
};

}  // namespace

Tables tables_from(const Arrays& arrays, const std::vector<uint32_t>& programs) {
    return Builder{arrays, programs, {}, {}, {}}.build();
}

}  // namespace acep
