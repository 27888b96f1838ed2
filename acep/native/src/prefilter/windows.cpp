// Match windows: the needs of a match, and the decision when waiting events are passed to the engine.
#include "prefilter/windows.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace acep {
namespace {

constexpr int64_t EVER = std::numeric_limits<int64_t>::max();
constexpr int64_t most_needs = 64;
constexpr int64_t most_count = 16;
constexpr int64_t most_levels = 8;

// Return the columns of an event that a plan reads besides its classes.
std::vector<uint32_t> columns_read(const Tables& tables) {
    std::vector<uint8_t> read(tables.columns, 0);
    const auto sources = [&](const std::vector<Source>& all) {
        for (const Source& s : all) {
            if ((s.from == From::event || s.from == From::one) && s.a >= 0) read[static_cast<size_t>(s.a)] = 1;
        }
    };
    for (const State& s : tables.states) {
        for (const Check& c : s.ending) sources(c.sources);
        for (const Arc& a : s.arcs) {
            for (const Check& c : a.leaving) sources(c.sources);
            for (const Check& c : a.binding) sources(c.sources);
            for (const Put& p : a.puts) {
                if (p.column >= 0) read[static_cast<size_t>(p.column)] = 1;
            }
        }
    }
    for (const auto& frame : tables.frames) sources(frame);
    for (uint32_t c : tables.kept) read[c] = 1;
    std::vector<uint32_t> found;
    for (uint32_t c = 0; c < tables.columns; ++c) {
        if (read[c] != 0) found.push_back(c);
    }
    return found;
}

}  // namespace

Needs needs_from(const Arrays& arrays, const Tables& tables) {
    if (tables.span < 0 || tables.contiguous() || !tables.negations.empty() || tables.choice != Choice::all) {
        throw std::invalid_argument("windows: events of this plan may not be kept back");
    }
    const auto stage = arrays.at("need_stage", Arrays::any, 0, most_needs);
    const size_t n = stage.size();
    if (n == 0 || n > most_needs || stage[0] != 0) throw std::invalid_argument("windows: needs");
    const auto count = arrays.at("need_count", n, 1, most_count + 1);
    const auto weight = arrays.at("need_weight", n, -1, int64_t{1} << 30);
    const auto vars = arrays.at("need_vars", Arrays::any, 0, tables.variables);
    const auto at = arrays.offsets("need_vars_at", n, vars.size());
    const auto meta = arrays.at("need_meta", 2, 0, most_needs + 1);
    if (meta[0] >= most_levels) throw std::invalid_argument("windows: levels of error");
    Needs found;
    found.levels = static_cast<uint32_t>(meta[0]) + 1;
    found.least = static_cast<uint32_t>(meta[1]);
    for (size_t i = 0; i < n; ++i) {
        if (i > 0 && (stage[i] < stage[i - 1] || stage[i] > stage[i - 1] + 1))
            throw std::invalid_argument("windows: stages");
        Need need{static_cast<uint32_t>(stage[i]), static_cast<uint32_t>(count[i]), static_cast<int32_t>(weight[i]), 0,
                  std::vector<uint8_t>(tables.classes, 0)};
        for (const State& s : tables.states) {
            for (const Arc& a : s.arcs) {
                const auto own = vars.subspan(static_cast<size_t>(at[i]), static_cast<size_t>(at[i + 1] - at[i]));
                if (std::find(own.begin(), own.end(), int64_t{a.var}) != own.end()) need.classes[a.event_class] = 1;
            }
        }
        // No event serves two needs: needs for the same events are added up.
        const auto same = std::find_if(found.all.begin(), found.all.end(), [&](const Need& other) {
            return other.stage == need.stage && other.weight == need.weight && other.classes == need.classes &&
                   other.count + need.count <= most_count;
        });
        if (same != found.all.end()) {
            same->count += need.count;
        } else {
            found.all.push_back(std::move(need));
        }
    }
    for (uint32_t i = 0; i < found.all.size(); ++i) {
        if (found.all[i].stage == found.stage_at.size()) found.stage_at.push_back(i);
        found.all[i].at = found.places;
        found.places += found.all[i].count;
    }
    found.stage_at.push_back(static_cast<uint32_t>(found.all.size()));
    return found;
}

WindowedEngine::WindowedEngine(Tables tables, Needs needs, EventClassifier& classifier, Partitions& partitions,
                               std::unique_ptr<Engine> engine)
    : Engine(std::move(tables), classifier, partitions),
      needs_(std::move(needs)),
      stages_(static_cast<uint32_t>(needs_.stage_at.size()) - 1),
      engine_(std::move(engine)),
      used_(columns_read(tables_)) {
    batch_.columns.resize(tables_.columns);
    for (uint32_t s = 0; s < stages_; ++s) {
        dropped_.resize(std::max<size_t>(dropped_.size(), needs_.stage_at[s + 1] - needs_.stage_at[s]));
    }
}

const WindowedEngine::Kind& WindowedEngine::kind(uint32_t pattern) {
    while (kinds_.size() <= pattern) {
        const auto next = static_cast<uint32_t>(kinds_.size());
        Kind found{static_cast<uint32_t>(touched_.size()), 0, stages_, false};
        for (auto i = static_cast<uint32_t>(needs_.all.size()); i-- > 0;) {
            const Need& need = needs_.all[i];
            bool serves = false;
            for (uint32_t c = 0; c < need.classes.size(); ++c)
                serves = serves || (need.classes[c] != 0 && classifier_.has(next, c));
            if (!serves) continue;
            touched_.push_back(i);
            found.lowest = need.stage;
        }
        found.to = static_cast<uint32_t>(touched_.size());
        for (const State& s : tables_.states) {
            for (const Arc& a : s.arcs) {
                const bool ends = tables_.states[a.target].ends <= tables_.budget;
                found.ends = found.ends || (ends && classifier_.has(next, a.event_class));
            }
        }
        kinds_.push_back(found);
    }
    return kinds_[pattern];
}

int64_t WindowedEngine::reach(const Part& part, uint32_t stage, uint32_t level, uint32_t paid) const {
    const uint32_t levels = needs_.levels, from = needs_.stage_at[stage], to = needs_.stage_at[stage + 1];
    const int64_t* places = part.known.data() + size_t{levels} * stages_;
    const auto before = [&] { return stage == 0 ? EVER : part.known[size_t{levels} * (stage - 1) + level]; };
    const Need& only = needs_.all[from];
    const bool pays = only.weight >= 0 && static_cast<uint32_t>(only.weight) <= paid;
    if (to - from == 1 && (!pays || only.count == 1))
        return pays ? before() : places[size_t{levels} * (only.at + only.count - 1) + level];
    if (paid == 0) {
        int64_t worst = EVER;
        bool free = false;
        for (uint32_t i = from; i < to; ++i) {
            const Need& need = needs_.all[i];
            free = free || need.weight == 0;
            worst = std::min(worst, places[size_t{levels} * (need.at + need.count - 1) + level]);
        }
        if (!free) return worst;
    }
    std::fill(dropped_.begin(), dropped_.begin() + (to - from), 0u);
    for (;;) {
        int64_t worst = EVER;
        uint32_t which = NIL;
        for (uint32_t i = from; i < to; ++i) {
            const Need& need = needs_.all[i];
            const uint32_t gone = dropped_[i - from];
            if (gone == need.count) continue;
            const int64_t value = places[size_t{levels} * (need.at + need.count - 1 - gone) + level];
            if (value < worst || which == NIL) worst = value, which = i;
        }
        if (which == NIL) return before();
        const int32_t weight = needs_.all[which].weight;
        if (weight < 0 || static_cast<uint32_t>(weight) > paid) return worst;
        paid -= static_cast<uint32_t>(weight);
        ++dropped_[which - from];
    }
}

// Update the reaches from a stage on, after its events or earlier stages have changed.
void WindowedEngine::follow(Part& part, uint32_t stage) {
    const uint32_t levels = needs_.levels;
    for (uint32_t s = stage; s < stages_; ++s) {
        for (uint32_t k = 0; k < levels; ++k) {
            int64_t latest = NEVER;
            for (uint32_t paid = 0; paid <= k; ++paid) latest = std::max(latest, reach(part, s, k - paid, paid));
            part.known[size_t{levels} * s + k] = latest;
        }
    }
}

void WindowedEngine::forget_events(Part& part) {
    part.known.assign(known_size(), NEVER);
    follow(part, 0);
}

bool WindowedEngine::note(Part& part, const Kind& kind, int64_t now, int64_t low) {
    const uint32_t levels = needs_.levels;
    if (part.known.empty()) forget_events(part);
    int64_t* reaches = part.known.data();
    int64_t* places = reaches + size_t{levels} * stages_;
    bool enough = true;
    if (needs_.least > 1) {
        int64_t* keys = places + size_t{levels} * needs_.places;
        keys[part.oldest_key] = now;
        part.oldest_key = part.oldest_key + 1 == needs_.least ? 0 : part.oldest_key + 1;
        enough = keys[part.oldest_key] >= low;
    }
    // Later stages first, as an event follows only what was there before it.
    for (uint32_t t = kind.from; t < kind.to; ++t) {
        const Need& need = needs_.all[touched_[t]];
        int64_t* place = places + size_t{levels} * need.at;
        if (need.count > 1)
            std::copy_backward(place, place + size_t{levels} * (need.count - 1), place + size_t{levels} * need.count);
        const int64_t* before = need.stage == 0 ? nullptr : reaches + size_t{levels} * (need.stage - 1);
        for (uint32_t k = 0; k < levels; ++k) place[k] = before == nullptr ? now : std::min(before[k], now);
    }
    if (levels == 1) {
        for (uint32_t t = kind.from; t < kind.to; ++t) {
            const uint32_t s = needs_.all[touched_[t]].stage;
            int64_t least = EVER;
            for (uint32_t i = needs_.stage_at[s]; i < needs_.stage_at[s + 1]; ++i) {
                least = std::min(least, places[needs_.all[i].at + needs_.all[i].count - 1]);
            }
            reaches[s] = least;
        }
    } else {
        follow(part, kind.lowest);
    }
    return enough && reaches[size_t{levels} * (stages_ - 1) + levels - 1] >= low;
}

void WindowedEngine::fetch(uint32_t partition, uint32_t hop) const {
    engine_->fetch(partition, hop);
    if (hop > 1 || partition >= parts_.size()) return;
    const Part& part = parts_[partition];
    if (hop == 0) return prefetch(&part, sizeof(Part));
    prefetch(part.known.data(), part.known.size() * sizeof(int64_t));
    if (part.ring.empty()) return;
    const size_t capacity = part.ring.size();
    prefetch(&part.ring[part.head], 1);
    prefetch(&part.ring[(part.head + part.size) & (capacity - 1)], 1);
    for (size_t u = 0; u < used_.size(); ++u) prefetch(part.words.data() + u * capacity + part.head, 1);
    prefetch(part.valid.data() + part.head, 1);
}

void WindowedEngine::event(uint32_t partition, const Event& event) {
    if (parts_.size() <= partition) parts_.resize(partition + 1);
    Part& part = parts_[partition];
    const int64_t now = tables_.key(event), low = earliest(now, tables_.span);
    if (stage_ != Stage::done) return go_on(part, partition, event, low);
    ++received_;
    const bool knows = engine_->knows(event);  // then it asks more of an event than a window does
    if (passing_ || knows) {
        stage_ = part.passed ? Stage::own : Stage::waiting;
        part.passed = true;
        if (!knows) passing_ = --until_trial_ > 0;
        return go_on(part, partition, event, low);
    }
    if (part.passed) {
        part.passed = false;
        part.since = now;
        forget_events(part);
    }
    const Kind& found = kind(event.pattern);
    const bool possible = note(part, found, now, low);
    ++watched_;
    if (part.since >= low) {  // some events of the window were not recorded
        stage_ = Stage::own;
        return go_on(part, partition, event, low);
    }
    if (possible && found.ends) {
        tried_passed_on_ += part.size + 1;
        stage_ = Stage::waiting;
    } else {
        wait(part, event, low);
    }
    if (++tried_ == trial) end_trial();
    if (stage_ != Stage::done) go_on(part, partition, event, low);
}

void WindowedEngine::go_on(Part& part, uint32_t partition, const Event& event, int64_t low) {
    if (stage_ == Stage::waiting) {
        pass_on_waiting(part, partition, low);
        if (engine_->unfinished()) return;
        stage_ = Stage::own;
    }
    pass_on(partition, event);
    if (!engine_->unfinished()) stage_ = Stage::done;
}

void WindowedEngine::end_trial() {
    passing_ = tried_passed_on_ > trial - trial / 8;
    sifts_ = !passing_;
    if (passing_) until_trial_ = std::max(least_rest, rests * watched_);
    tried_ = tried_passed_on_ = watched_ = 0;
}

void WindowedEngine::pass_on(uint32_t partition, const Event& event) {
    engine_->arrived = arrived;
    passed_on_ += engine_->unfinished() ? 0 : 1;
    engine_->event(partition, event);
    work_ = engine_->work();
}

void WindowedEngine::pass_on_waiting(Part& part, uint32_t partition, int64_t low) {
    expire(part, low);
    if (part.size == 0) return;
    const size_t capacity = part.ring.size();
    batch_.size = capacity;
    for (size_t u = 0; u < used_.size(); ++u) {
        batch_.columns[used_[u]] = {part.words.data() + u * capacity, part.valid.data() + u * capacity};
    }
    for (uint32_t i = 0; i < part.size; ++i) {
        const size_t at = (part.head + i) & (capacity - 1);
        const Waiting& w = part.ring[at];
        pass_on(partition, {w.ts, w.position, w.id, w.pattern, &batch_, at});
        if (engine_->unfinished()) {  // it will be the first one next time
            part.head = (part.head + i) & static_cast<uint32_t>(capacity - 1);
            part.size -= i;
            return;
        }
    }
    part.head = part.size = 0;
}

// The events that wait are passed on to a copy of the engine: no match ends with them, but partial matches begin.
ListedColumns WindowedEngine::list_partial_matches(const ListingRequest& request) const {
    struct Place {
        int64_t ts;
        uint32_t partition;
        size_t row;  // of the ring
    };
    std::vector<Place> places;
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        const int64_t last = request.last_position(tables_.strict, partitions_.positions[p]);
        const int64_t low = earliest(tables_.counted ? last : request.clock, tables_.span);
        for (uint32_t i = 0; i < part.size; ++i) {
            const size_t row = (part.head + i) & (part.ring.size() - 1);
            if (tables_.key(part.ring[row]) >= low) places.push_back({part.ring[row].ts, p, row});
        }
    }
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.ts < b.ts; });
    const std::unique_ptr<Engine> copy = engine_->copy(request.arrived);
    Batch batch = batch_;
    for (const Place& place : places) {
        const Part& part = parts_[place.partition];
        batch.size = part.ring.size();
        for (size_t u = 0; u < used_.size(); ++u) {
            batch.columns[used_[u]] = {part.words.data() + u * batch.size, part.valid.data() + u * batch.size};
        }
        const Waiting& waiting = part.ring[place.row];
        copy->event(place.partition, {waiting.ts, waiting.position, waiting.id, waiting.pattern, &batch, place.row});
    }
    return copy->list_partial_matches(request);
}

void WindowedEngine::wait(Part& part, const Event& event, int64_t low) {
    expire(part, low);
    if (part.size == part.ring.size()) grow(part);
    const size_t capacity = part.ring.size(), at = (part.head + part.size) & (capacity - 1);
    part.ring[at] = {event.ts, event.position, event.id, event.pattern};
    for (size_t u = 0; u < used_.size(); ++u) {
        const Column& column = event.batch->columns[used_[u]];
        part.words[u * capacity + at] = column.values[event.row];
        part.valid[u * capacity + at] = column.null(event.row) ? 0 : 1;
    }
    ++part.size;
}

void WindowedEngine::expire(Part& part, int64_t low) {
    const auto mask = static_cast<uint32_t>(part.ring.size()) - 1;
    while (part.size != 0 && tables_.key(part.ring[part.head]) < low) {
        part.head = (part.head + 1) & mask;
        --part.size;
    }
}

void WindowedEngine::grow(Part& part) {
    const size_t old = part.ring.size(), wanted = old == 0 ? 8 : 2 * old;
    if (wanted > (size_t{1} << 31)) throw std::bad_alloc();
    std::vector<Waiting> ring(wanted);
    std::vector<int64_t> words(wanted * used_.size());
    std::vector<uint8_t> valid(wanted * used_.size());
    for (uint32_t i = 0; i < part.size; ++i) {
        const size_t from = (part.head + i) & (old - 1);
        ring[i] = part.ring[from];
        for (size_t u = 0; u < used_.size(); ++u) {
            words[u * wanted + i] = part.words[u * old + from];
            valid[u * wanted + i] = part.valid[u * old + from];
        }
    }
    part.ring.swap(ring);
    part.words.swap(words);
    part.valid.swap(valid);
    part.head = 0;
}

// Time -------------------------------------------------------------------------------------------

// Advance the engine's clock by a window less: it may still get waiting events of the window before `clock`.
void WindowedEngine::advance(int64_t clock) {
    if (tables_.counted) {
        engine_->advance(NEVER + 1);
        return;
    }
    const int64_t low = earliest(clock, tables_.span);
    engine_->advance(low);
    work_ = engine_->work();
    if (swept_ >= low) return;
    swept_ = clock;
    for (Part& part : parts_) {
        expire(part, low);
        if (part.size != 0 || part.ring.size() <= few) continue;
        part.ring = {};
        part.words = {};
        part.valid = {};
        part.head = 0;
    }
}

void WindowedEngine::end() {
    engine_->end();
    work_ = engine_->work();
}

bool WindowedEngine::expire_partition(uint32_t partition, int64_t soonest) {
    if (partition < parts_.size()) {
        Part& part = parts_[partition];
        expire(part, earliest(soonest, tables_.span));
        if (part.size != 0) return false;
    }
    return engine_->expire_partition(partition, soonest);
}

void WindowedEngine::forget(uint32_t partition) {
    if (partition < parts_.size()) parts_[partition] = Part{};
    engine_->forget(partition);
}

void WindowedEngine::used_texts(UsedTexts& used) const {
    engine_->used_texts(used);
    for (const Part& part : parts_) {
        if (part.size != 0) used.add(part.words);
    }
}

void WindowedEngine::used_ids(std::vector<int64_t>& ids) const {
    engine_->used_ids(ids);
    for (const Part& part : parts_) {
        for (uint32_t i = 0; i < part.size; ++i) ids.push_back(part.ring[(part.head + i) & (part.ring.size() - 1)].id);
    }
}

int64_t WindowedEngine::bytes() const {
    int64_t total = heap_bytes(parts_) + engine_->bytes();
    for (const Part& part : parts_) total += heap_bytes(part.known, part.ring, part.words, part.valid);
    return total;
}

}  // namespace acep
