// The steps from complete runs to output (acep/reference/runtime.py), but only for partitions that may have changed.
#include "completion/completion.hpp"

#include <algorithm>

namespace acep {

Completion::Completion(const Tables& tables, EventClassifier& classifier, Partitions& partitions, Arena& arena,
                       Output& output, Work& work, Nodes alive, EndNodes end_nodes)
    : tables_(tables),
      classifier_(classifier),
      partitions_(partitions),
      arena_(arena),
      output_(output),
      work_(work),
      alive_(std::move(alive)),
      end_nodes_(std::move(end_nodes)),
      conditions_(tables, classifier),
      waits_(tables.waits()),
      trailing_(tables.trailing()),
      leading_(tables.leading()),
      timed_(tables.timed()),
      strict_(tables.strict && sequential(tables.choice)),
      best_of_first_(by_first_event(tables.choice) && tables.budget == 0),
      first_come_(tables.choice == Choice::non_overlap) {
    arena_.kept.widen(tables.kept.size(), arena_.events);
}

void Completion::change() {
    waits_ = tables_.waits();
    trailing_ = tables_.trailing();
    leading_ = tables_.leading();
    conditions_.change();
    const size_t width = tables_.kept.size(), before = arena_.kept.width;
    arena_.kept.widen(width, arena_.events);
    for (Held& h : held_) {
        if (!h.suspects.empty()) h.suspects.resize(tables_.negations.size());
        for (auto* all : {&h.undecided, &h.waiting, &h.ready}) {
            for (Binding& b : *all) {
                for (size_t i = b.size(); i-- > 0 && width > before;) {
                    const auto at = static_cast<std::ptrdiff_t>((i + 1) * before);
                    b.rows.insert(b.rows.begin() + at, width - before, 0);
                    b.valid.insert(b.valid.begin() + at, width - before, uint8_t{0});
                }
            }
        }
    }
}

void Completion::begin(uint32_t partition, const Bundle& bundle, int64_t last) {
    Held& h = held(partition);
    h.bundle = bundle;
    h.last = last;
}

Completion::Held& Completion::held(uint32_t partition) {
    if (held_.size() <= partition) held_.resize(partition + 1);
    Held& h = held_[partition];
    if (h.suspects.empty()) h.suspects.resize(tables_.negations.size());
    return h;
}

void Completion::touch(uint32_t partition) {
    Held& h = held(partition);
    if (!h.touched) touched_.push_back(partition);
    h.touched = true;
}

int64_t Completion::low(const Held& h, int64_t clock) const { return earliest(timed_ ? clock : h.last, tables_.span); }

Binding Completion::fresh() {
    if (recycled_.empty()) return {};
    Binding b = std::move(recycled_.back());
    recycled_.pop_back();
    b.clear();
    return b;
}

void Completion::recycle(Binding&& b) {
    if (recycled_.size() < 1024) recycled_.push_back(std::move(b));
}

// An event ---------------------------------------------------------------------------------------

void Completion::keep(uint32_t number, const Event& event) {
    KeptRows& kept = arena_.kept;
    kept.fit(arena_.events);
    for (size_t k = 0; k < kept.width; ++k) {
        const Column& c = event.batch->columns[tables_.kept[k]];
        kept.values[kept.at(number) + k] = c.word(event.row);
        kept.valid[kept.at(number) + k] = c.null(event.row) ? 0 : 1;
    }
}

void Completion::before(uint32_t partition, const Event& event) {
    Held& h = held(partition);
    h.last = event.position;
    failed_ = FAR;
    if (!h.undecided.empty()) decide(h, partition, low(h, event.ts));
    const bool covers = tables_.skip.place == SkipPlace::past_last;  // those of one first event cover the same
    if (best_of_first_ && covers && !strict_) cover(h, partition, event);
    // Without errors no later match stands before those that have ended, so they need not wait.
    const bool at_once = first_come_ && !strict_ && !trailing_ && tables_.budget == 0;
    if (at_once && !h.waiting.empty() && h.waiting.back().end < event.ts) choose_output(partition, event.ts);
    if (waits_) touch(partition);
}

void Completion::cover(Held& h, uint32_t partition, const Event& event) {
    h.covered = -1;
    if (h.waiting.empty()) return;
    const Binding& front = *std::min_element(h.waiting.begin(), h.waiting.end(),
                                             [](const Binding& x, const Binding& y) { return x.first() < y.first(); });
    Alive found;
    living(h, partition, low(h, event.ts), event.ts, found);
    if (found.first < front.first()) return;
    h.chosen = front.first();
    h.covered = front.last();
}

bool Completion::trail(uint32_t partition, const Event& event, const Cell* const* path, size_t length, uint32_t state,
                       int64_t error) {
    const KeptRows& kept = arena_.kept;
    if (const Held& h = held(partition); h.covered >= 0) {
        const int64_t first = arena_.events[path[length - 1]->event].position;
        if (first > h.chosen && first <= h.covered) return false;
    }
    Binding b = fresh();
    for (size_t i = length; i-- > 0;) {
        const Cell& cell = *path[i];
        const BoundEvent& bound = arena_.events[cell.event];
        if (b.positions.empty()) b.start = bound.ts;
        b.positions.push_back(bound.position);
        b.ids.push_back(bound.id);
        b.vars.push_back(cell.var);
        b.arcs.push_back(cell.arc);
        const size_t at = kept.width == 0 ? 0 : kept.at(cell.event);
        for (size_t k = 0; k < kept.width; ++k) {
            b.rows.push_back(kept.values[at + k]);
            b.valid.push_back(kept.valid[at + k]);
        }
    }
    b.end = event.ts;
    error += broken(held(partition), b, tables_.budget - error);
    const auto& accepts = tables_.states[state].accepts;
    bool free = false;  // it ends here at no further cost
    for (size_t a = 0; a < accepts.size(); ++a) {
        if (error + accepts[a].cost > tables_.budget) continue;
        b.options.push_back({error + accepts[a].cost, 0, static_cast<uint16_t>(state), static_cast<uint16_t>(a)});
        free = free || accepts[a].cost == 0;
    }
    if (b.options.empty()) {
        recycle(std::move(b));
        return false;
    }
    if (!tables_.unambiguous) {
        current_.push_back(std::move(b));
        return false;
    }
    // A longer match with this beginning has no smaller error, ends no earlier, and overlaps whatever this one does.
    return accept_run(partition, std::move(b)) && free && first_come_;
}

void Completion::after(uint32_t partition, const Event& event) {
    if (!current_.empty()) unite(partition);
    Held& h = held(partition);
    size_t all = 0;
    for (size_t n = 0; n < tables_.negations.size(); ++n) {
        const Negation& negation = tables_.negations[n];
        Suspects& s = h.suspects[n];
        if (event.ts >= negation.since && classifier_.has(event.pattern, negation.event_class)) {
            if (tables_.span >= 0) forget_suspects(h, low(h, event.ts));
            s.ts.push_back(event.ts);
            s.positions.push_back(event.position);
            for (uint32_t column : negation.columns) {
                const Column& c = event.batch->columns[column];
                s.rows.push_back(c.word(event.row));
                s.valid.push_back(c.null(event.row) ? 0 : 1);
            }
        }
        all += s.size() - s.head;
    }
    if (tables_.span < 0 && all > 2 * h.trimmed + 64) touch(partition);
}

// Return the cost of the negations broken before the last event of a run, or a number above `most`.
int64_t Completion::broken(const Held& h, const Binding& b, int64_t most) {
    int64_t total = 0;
    if (tables_.negations.empty()) return total;
    for (size_t j = 0; j < b.size() && total <= most; ++j) {
        for (const Crossing& c : conditions_.arc(b.arcs[j]).crossings) total += cost(h, b, b.arcs, j, c, most);
    }
    return total;
}

int64_t Completion::cost(const Held& h, const Binding& b, std::span<const uint16_t> arcs, size_t j,
                         const Crossing& crossing, int64_t most) {
    const Suspects& s = h.suspects[crossing.negation];
    const auto from = s.positions.begin() + static_cast<std::ptrdiff_t>(s.head);
    const auto place = [&](auto found) { return static_cast<size_t>(found - s.positions.begin()); };
    size_t first = s.head, last = s.size();
    if (j > 0) first = place(std::upper_bound(from, s.positions.end(), b.positions[j - 1]));
    if (j < b.size()) last = place(std::lower_bound(from, s.positions.end(), b.positions[j]));
    if (j == 0) {  // leading
        const int64_t low = earliest(tables_.counted ? b.last() : b.end, tables_.span);
        const auto& keys = tables_.counted ? s.positions : s.ts;
        first = static_cast<size_t>(
            std::lower_bound(keys.begin() + static_cast<std::ptrdiff_t>(s.head), keys.end(), low) - keys.begin());
    }
    if (j == b.size()) {
        const auto& keys = tables_.counted ? s.positions : s.ts;
        const auto start = static_cast<uint64_t>(key(b));
        while (last > first && static_cast<uint64_t>(keys[last - 1]) - start > static_cast<uint64_t>(tables_.span))
            --last;
    }
    if (first >= last) return 0;
    const int64_t weight = tables_.negations[crossing.negation].weight;
    const int64_t enough = weight < 0 ? 1 : weight == 0 ? 0 : most / weight + 1;
    const int64_t count = conditions_.count_breaking({crossing, b, arcs, j}, s, first, last, enough);
    return weight < 0 ? (count == 0 ? 0 : most + 1) : count * weight;
}

void Completion::unite(uint32_t partition) {
    std::sort(current_.begin(), current_.end(), [](const Binding& x, const Binding& y) {
        return x.positions != y.positions ? x.positions < y.positions : x.vars < y.vars;
    });
    for (size_t i = 0; i < current_.size();) {
        Binding& b = current_[i];
        size_t k = i + 1;
        for (; k < current_.size() && current_[k].positions == b.positions && current_[k].vars == b.vars; ++k) {
            const auto shift = static_cast<uint32_t>(b.arcs.size());
            b.arcs.insert(b.arcs.end(), current_[k].arcs.begin(), current_[k].arcs.end());
            for (Option o : current_[k].options) {
                o.arcs += shift;
                b.options.push_back(o);
            }
        }
        for (size_t gone = i + 1; gone < k; ++gone) recycle(std::move(current_[gone]));
        accept_run(partition, std::move(b));
        i = k;
    }
    current_.clear();
}

// Return whether it is a match; false if that is not known yet.
bool Completion::accept_run(uint32_t partition, Binding&& b) {
    if (!conditions_.meets_having(b)) {
        if (tables_.rises) failed_ = std::min(failed_, b.first());
        recycle(std::move(b));
        return false;
    }
    conditions_.add_returns(b);
    const bool trailing = std::any_of(b.options.begin(), b.options.end(), [&](const Option& o) {
        return !tables_.states[o.state].accepts[o.accept].crossings.empty();
    });
    if (trailing) {
        Held& h = held(partition);
        h.earliest = std::min(h.earliest, key(b));
        if (timed_) schedule(partition, expiry(b.start));
        h.undecided.push_back(std::move(b));
        return false;
    }
    b.error = std::min_element(b.options.begin(), b.options.end(), [](const Option& x, const Option& y) {
        return x.error < y.error;
    })->error;
    choose(partition, std::move(b));
    return true;
}

void Completion::choose(uint32_t partition, Binding&& b) {
    if (!waits_) {
        give(partition, b);
        recycle(std::move(b));
        return;
    }
    Held& h = held(partition);
    if ((best_of_first_ || first_come_) && stands_back(h, b)) return;
    (tables_.choice == Choice::all ? h.ready : h.waiting).push_back(std::move(b));
}

bool Completion::stands_back(Held& h, Binding& b) {
    const auto stands_before = [&](const Binding& x, const Binding& y) {
        return acep::before(x, y, tables_, classifier_.texts);
    };
    if (!h.indexed) {
        h.best.clear();
        for (size_t i = 0; i < h.waiting.size(); ++i) {
            const auto [known, fresh] = h.best.try_emplace(h.waiting[i].first(), i);
            if (!fresh && stands_before(h.waiting[i], h.waiting[known->second])) known->second = i;
        }
        h.indexed = true;
    }
    const auto [known, fresh] = h.best.try_emplace(b.first(), h.waiting.size());
    if (fresh) return false;
    Binding& other = h.waiting[known->second];
    const bool better = stands_before(b, other);
    if (best_of_first_ && better) std::swap(b, other);
    if (first_come_ && better) known->second = h.waiting.size();
    if (first_come_ && (better || other.last() > b.last())) return false;
    recycle(std::move(b));
    return true;
}

// Time -------------------------------------------------------------------------------------------

void Completion::decide(Held& h, uint32_t partition, int64_t low) {
    if (h.earliest >= low) return;
    std::vector<Binding> undecided;
    undecided.swap(h.undecided);
    h.earliest = FAR;
    size_t kept = 0;
    for (Binding& b : undecided) {
        if (key(b) >= low) {
            h.earliest = std::min(h.earliest, key(b));
            if (&undecided[kept] != &b) undecided[kept] = std::move(b);
            ++kept;
            continue;
        }
        int64_t least = tables_.budget + 1;
        for (const Option& o : b.options) {
            const std::span<const uint16_t> arcs(b.arcs.data() + o.arcs, b.size());
            int64_t error = o.error;
            for (const Crossing& c : tables_.states[o.state].accepts[o.accept].crossings) {
                if (error < least) error += cost(h, b, arcs, b.size(), c, tables_.budget - error);
            }
            least = std::min(least, error);
        }
        b.error = least;
        if (least <= tables_.budget) {
            choose(partition, std::move(b));
        } else {
            recycle(std::move(b));
        }
    }
    undecided.resize(kept);
    h.undecided.swap(undecided);
}

void Completion::settle(int64_t clock) {
    if (!waits_ && tables_.span >= 0) return;
    while (!due_.empty() && due_.top().time < clock) {
        const Due due = due_.top();
        due_.pop();
        if (due.partition >= held_.size() || held_[due.partition].due != due.time) continue;
        held_[due.partition].due = FAR;
        touch(due.partition);
    }
    if (touched_.empty()) return;
    for (uint32_t p : touched_) decide(held_[p], p, low(held_[p], clock));
    if (strict_) choose_strict(clock);
    for (uint32_t p : touched_) settle(p, clock);
    touched_.clear();
}

void Completion::settle(uint32_t partition, int64_t clock) {
    Held& h = held_[partition];
    if (tables_.choice != Choice::all && !strict_) choose_output(partition, clock);
    release(partition);
    if (timed_ && !h.undecided.empty()) schedule(partition, expiry(h.earliest));
    if (tables_.span < 0 && !tables_.negations.empty()) trim_suspects(partition);
    h.touched = false;
}

int64_t Completion::expiry(int64_t start) const {
    int64_t last;
    return __builtin_add_overflow(start, tables_.span, &last) ? FAR : last;
}

void Completion::schedule(uint32_t partition, int64_t time) {
    Held& h = held_[partition];
    if (time >= h.due) return;
    h.due = time;
    due_.push({time, partition});
}

void Completion::living(const Held& h, uint32_t partition, int64_t low, int64_t clock, Alive& found) {
    alive_(partition, low, clock, found);
    for (const Binding& b : h.undecided) {
        int64_t error = FAR;
        for (const Option& option : b.options) error = std::min(error, option.error);
        found.add({b.first(), error, b.end}, key(b));
    }
}

void Completion::choose_output(uint32_t partition, int64_t clock) {
    Held& h = held_[partition];
    for (bool again = true; again && !h.waiting.empty();) {
        Alive found;
        living(h, partition, low(h, clock), clock, found);
        std::vector<const Binding*> waiting;
        for (const Binding& b : h.waiting) waiting.push_back(&b);
        size_t at = 0;
        Given given;
        if (first_come_) {
            sort_out(non_overlap(waiting, std::move(found.prospects), tables_, classifier_.texts), at, h, given);
            end_runs(partition, given);
        } else if (by_first_event(tables_.choice)) {
            sort_out(choose_by_first_event(waiting, found.first, tables_, classifier_.texts), at, h, given);
        } else {
            std::unordered_set<int64_t> firsts;
            for (const Prospect& one : found.prospects) firsts.insert(one.first);
            sort_out(earliest_maximal(waiting, firsts), at, h, given);
        }
        again = first_come_ && !given.empty();  // fewer matches may come now, so more of those that wait are decided
        if (again || h.waiting.empty()) continue;
        if (timed_ && found.start != FAR) schedule(partition, expiry(found.start));
        wait_for_next_time(partition, clock);
    }
}

void Completion::wait_for_next_time(uint32_t partition, int64_t clock) {
    if (!first_come_) return;
    for (const Binding& b : held_[partition].waiting) {
        if (b.end >= clock) schedule(partition, b.end);
    }
}

void Completion::choose_strict(int64_t clock) {
    for (bool again = true; again;) {
        std::vector<const Binding*> waiting;
        Alive all;
        int64_t soonest = FAR;
        uint32_t next = 0;
        for (uint32_t p = 0; p < held_.size(); ++p) {
            Held& h = held_[p];
            for (const Binding& b : h.waiting) waiting.push_back(&b);
            living(h, p, low(h, clock), clock, all);
            if (all.start < soonest) {
                soonest = all.start;
                next = p;
            }
        }
        if (waiting.empty()) return;
        const auto verdicts = first_come_ ? non_overlap(waiting, std::move(all.prospects), tables_, classifier_.texts)
                                          : choose_by_first_event(waiting, all.first, tables_, classifier_.texts);
        size_t at = 0;
        Given given;
        bool wait = false;
        for (uint32_t p = 0; p < held_.size(); ++p) {
            Held& h = held_[p];
            if (h.waiting.empty()) continue;
            sort_out(verdicts, at, h, given);
            wait = wait || !h.waiting.empty();
            touch(p);
        }
        again = first_come_ && wait && !given.empty();
        for (uint32_t p = 0; first_come_ && p < held_.size(); ++p) end_runs(p, given);
        if (again || !wait) continue;
        if (timed_ && soonest != FAR) schedule(next, expiry(soonest));
        for (uint32_t p = 0; p < held_.size(); ++p) wait_for_next_time(p, clock);
    }
}

void Completion::sort_out(const std::vector<Verdict>& verdicts, size_t& at, Held& h, Given& given) {
    size_t kept = 0;
    for (Binding& b : h.waiting) {
        const Verdict v = verdicts[at++];
        if (v == Verdict::give) {
            given.emplace_back(b.first(), b.last());
            h.ready.push_back(std::move(b));
        }
        if (v == Verdict::drop) recycle(std::move(b));
        if (v != Verdict::wait) continue;
        if (&h.waiting[kept] != &b) h.waiting[kept] = std::move(b);
        ++kept;
    }
    h.waiting.resize(kept);
    h.indexed = false;
}

void Completion::end_runs(uint32_t partition, const Given& given) {
    if (given.empty()) return;
    const auto later = [](const auto& x, const auto& y) { return x.second < y.second; };
    end_nodes_(partition, std::max_element(given.begin(), given.end(), later)->second);
    std::erase_if(held_[partition].undecided, [&](const Binding& b) {
        return std::any_of(given.begin(), given.end(),
                           [&](const auto& match) { return b.first() <= match.second && match.first <= b.last(); });
    });
}

void Completion::release(uint32_t partition) {
    Held& h = held_[partition];
    if (h.ready.empty()) return;
    int64_t limit = FAR;
    for (const Binding& b : h.undecided) limit = std::min(limit, b.last());
    for (const Binding& b : h.waiting) limit = std::min(limit, b.last());
    std::stable_sort(h.ready.begin(), h.ready.end(),
                     [](const Binding& x, const Binding& y) { return x.last() < y.last(); });
    size_t n = 0;
    for (; n < h.ready.size() && h.ready[n].last() <= limit; ++n) {
        give(partition, h.ready[n]);
        recycle(std::move(h.ready[n]));
    }
    h.ready.erase(h.ready.begin(), h.ready.begin() + static_cast<std::ptrdiff_t>(n));
}

void Completion::give(uint32_t partition, const Binding& b) {
    Output& o = output_;
    const int64_t bundle = held(partition).bundle.at(b.end, b.last(), tables_.span, tables_.counted);
    const int64_t* keys = partitions_.key(partition);
    ++work_.matches;
    if (o.tally.kind != Tally::off) {
        return o.tally.add(partition, keys, partitions_.width(), b.end, bundle, b.error, arrived);
    }
    o.add(b.start, b.end, b.error, bundle, keys, partitions_.width());
    o.ids.insert(o.ids.end(), b.ids.begin(), b.ids.end());
    o.vars.insert(o.vars.end(), b.vars.begin(), b.vars.end());
    o.offsets.push_back(static_cast<int64_t>(o.ids.size()));
    o.values.insert(o.values.end(), b.values.begin(), b.values.end());
    o.valid.insert(o.valid.end(), b.known.begin(), b.known.end());
}

void Completion::end() {
    for (uint32_t p = 0; p < held_.size(); ++p) {
        decide(held_[p], p, FAR);
        touch(p);
    }
    if (strict_) choose_strict(FAR);
    for (uint32_t p : touched_) settle(p, FAR);
    touched_.clear();
    held_.clear();
    due_ = {};
}

// Forgetting -------------------------------------------------------------------------------------

void Completion::forget_suspects(Held& h, int64_t low) {
    for (size_t n = 0; n < h.suspects.size(); ++n) {
        Suspects& s = h.suspects[n];
        const auto& keys = tables_.counted ? s.positions : s.ts;
        size_t to = s.head;
        while (to < s.size() && keys[to] < low) ++to;
        if (to != s.head) s.discard(to, tables_.negations[n].columns.size());
    }
}

void Completion::trim_suspects(uint32_t partition) {
    Held& h = held_[partition];
    Alive found;
    alive_(partition, NEVER + 1, NEVER, found);
    h.trimmed = 0;
    for (size_t n = 0; n < h.suspects.size(); ++n) {
        Suspects& s = h.suspects[n];
        const auto from = s.positions.begin() + static_cast<std::ptrdiff_t>(s.head);
        const auto to =
            static_cast<size_t>(std::lower_bound(from, s.positions.end(), found.first) - s.positions.begin());
        if (to != s.head) s.discard(to, tables_.negations[n].columns.size());
        h.trimmed += s.size() - s.head;
    }
}

bool Completion::expire_partition(uint32_t partition, int64_t low) {
    if (partition >= held_.size()) return true;
    Held& h = held_[partition];
    if (!h.undecided.empty() || !h.waiting.empty() || !h.ready.empty()) return false;
    // Without runs only a negation at the beginning looks at events that have come.
    if (leading_ || tables_.dynamic) forget_suspects(h, low);
    for (const Suspects& s : h.suspects) {
        if ((leading_ || tables_.dynamic) && !s.empty()) return false;
    }
    return h.bundle.closed(low, tables_.counted);
}

void Completion::forget(uint32_t partition) {
    if (partition < held_.size()) held_[partition] = Held{};
}

void Completion::used_texts(UsedTexts& used) const {
    const KeptRows& kept = arena_.kept;
    arena_.events.each_number([&](uint32_t number) {
        if (kept.width != 0) used.add(std::span(kept.values).subspan(kept.at(number), kept.width));
    });
    for (const Held& h : held_) {
        for (const Suspects& s : h.suspects) used.add(s.rows);
        for (const auto* all : {&h.undecided, &h.waiting, &h.ready}) {
            for (const Binding& b : *all) {
                used.add(b.rows);
                used.add(b.values);
            }
        }
    }
}

void Completion::used_ids(std::vector<int64_t>& ids) const {
    for (const Held& h : held_) {
        for (const auto* all : {&h.undecided, &h.waiting, &h.ready}) {
            for (const Binding& b : *all) ids.insert(ids.end(), b.ids.begin(), b.ids.end());
        }
    }
}

int64_t Completion::bytes() const {
    int64_t total = heap_bytes(held_) + static_cast<int64_t>(due_.size() * sizeof(Due));
    for (const Held& h : held_) {
        total += static_cast<int64_t>(h.best.size() * 6 * sizeof(int64_t));  // an entry, its node, and its place
        for (const Suspects& s : h.suspects) total += heap_bytes(s.ts, s.positions, s.rows, s.valid);
        for (const auto* all : {&h.undecided, &h.waiting, &h.ready}) {
            for (const Binding& b : *all) total += b.bytes();
        }
    }
    for (const Binding& b : recycled_) total += b.bytes();
    return total;
}

}  // namespace acep
