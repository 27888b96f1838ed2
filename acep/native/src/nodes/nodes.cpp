// The node engine. An event is processed as in acep/reference/engine.py: first all transitions of existing nodes, then
// new beginnings; only then are the new nodes stored for later events. Other parts: check_evaluator.cpp (predicates),
// register_writer.cpp (registers of new nodes), nodes_contiguity.cpp (what contiguity ends), nodes_merging.cpp (union of equal nodes,
// storage), nodes_dominance.cpp (match points only), nodes_matches.cpp (complete runs), nodes_shedding.cpp,
// nodes_memory.cpp and nodes_state.cpp.
#include "nodes/nodes.hpp"

namespace acep {

NodeEngine::NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
                       std::unique_ptr<Dominance> dominance)
    : Engine(std::move(tables), classifier, partitions),
      made_(tables_.states.size()),
      dominance_(std::move(dominance)) {
    nothing_.add(0, NEVER);
    nothing_.starts()[0] = nothing_.positions()[0] = 0;
    nothing_.cells()[0] = NIL;
    nothing_.errors()[0] = 0;
    // The choice among all matches needs the beginning of each run, which united nodes do not keep.
    merging_.unites = tables_.unambiguous && tables_.choice == Choice::all;
    tells_live_ = true;
    if (tables_.completes() && !dominance_) complete_in_steps();
    // Nodes of different events are not equal under contiguity (last positions differ), or with new lists of frames.
    merging_.likes.resize(tables_.states.size());
    merging_.unions.resize(tables_.states.size());
    for (const State& s : tables_.states) {
        for (const Arc& arc : s.arcs) {
            const bool fresh =
                std::any_of(arc.puts.begin(), arc.puts.end(), [](const Put& p) { return p.write == Write::frames; });
            if (merging_.unites && !tables_.contiguous() && !fresh) merging_.likes[arc.target].possible = true;
        }
    }
    find_replacing();
    find_ended();
    if (KnownFuture::serves(tables_)) {
        future_ = std::make_unique<KnownFuture>(tables_, classifier_, partitions_.columns());
    }
}

void NodeEngine::take_ways(Taking index, Taking future) {
    finder_.set_index_use(index);
    if (future_) future_->taking = future;
}

void NodeEngine::expect(const Batch& batch, size_t from, int64_t stream_row, bool last) {
    if (!future_) return;
    if (stream_row < 0 || bounded()) return future_->forget();
    future_->look(batch, from, stream_row, last, work_, sifted);
}

// Return whether partial matches can go on with other tables.
bool NodeEngine::goes_on_as(const Tables& tables) const {
    bool same = tables_.dynamic && tables.dynamic && tables.states.size() >= tables_.states.size() &&
                tables.variables >= tables_.variables && tables.span == tables_.span &&
                tables.counted == tables_.counted && tables.strict == tables_.strict && tables.told == tables_.told &&
                tables.partitions == tables_.partitions && !unfinished() && !shed_ && !resting_ &&
                tables.choice == tables_.choice && tables.skip == tables_.skip && tables.firsts == tables_.firsts &&
                tables.kept.size() >= tables_.kept.size() && tables.negations.size() >= tables_.negations.size() &&
                tables.returns.size() == tables_.returns.size();
    for (size_t s = 0; same && s < tables_.states.size(); ++s) {
        same = tables.states[s].slots == tables_.states[s].slots;
    }
    return same;
}

void NodeEngine::change(Tables tables) {
    if (!goes_on_as(tables)) throw std::invalid_argument("tables: of another plan");
    const size_t after = tables.states.size();
    places_.clear();
    tables_ = std::move(tables);
    made_.resize(after);
    merging_.likes.resize(after);
    merging_.unions.resize(after);
    frames_.find_slots();
    if (completion_) {
        completion_->change();
    } else if (tables_.completes()) {
        complete_in_steps();
        for (uint32_t p = 0; p < parts_.size(); ++p) completion_->begin(p, parts_[p].bundle, parts_[p].last);
    }
    find_replacing();
    find_ended();
    for (Part& part : parts_) {
        for (auto* lists : {&part.lists, &part.shadow}) {
            if (!lists->empty()) lists->resize(after);
        }
    }
}

// Add an arc in a state; what refers to the arcs of the state must be made anew.
void NodeEngine::add_arc(Arc arc) {
    auto& arcs = tables_.states[arc.source].arcs;
    arc.number = static_cast<uint16_t>(places_.size());
    places_.emplace_back(arc.source, static_cast<uint32_t>(arcs.size()));
    arcs.push_back(std::move(arc));
}

void NodeEngine::extend(Tables tables) {
    // Only hand-written automata: their arcs keep no lists of frames and pass no negations.
    const auto ignores = [](const State& s) { return !s.ignoring.empty(); };
    const bool plain = tables_.told != 0 && tables_.frames.empty() && tables.frames.empty() && !tables_.completes() &&
                       std::none_of(tables.states.begin(), tables.states.end(), ignores);
    if (!plain || !goes_on_as(tables) || tables.states.size() != tables_.states.size()) {
        throw std::invalid_argument("tables: of another plan");
    }
    find_places();
    if (places_.size() + tables.arcs() > most_arcs) throw std::invalid_argument("tables: number of arcs");
    const auto assigned = static_cast<int64_t>(tables_.assigns.size());
    for (State& state : tables.states) {
        for (Arc& arc : state.arcs) {
            for (Put& put : arc.puts) {
                if (put.write == Write::assign) put.extra += assigned;
            }
            add_arc(std::move(arc));
        }
    }
    tables_.assigns.insert(tables_.assigns.end(), tables.assigns.begin(), tables.assigns.end());
    tables_.classes = tables.classes;
    tables_.columns = tables.columns;
    tables_.variables = tables.variables;
    forget_patterns();
}

void NodeEngine::renew(const std::vector<ArcTimes>& times) {
    find_places();
    const size_t before = places_.size();
    size_t many = before;
    bool fits = tables_.dynamic && tables_.told != 0 && !unfinished();
    for (const ArcTimes& one : times) {
        fits = fits && one.number <= many && one.like < many;
        many += fits && one.number == many ? 1 : 0;
    }
    if (!fits || many > most_arcs) throw std::invalid_argument("arcs: no such number");
    for (const ArcTimes& one : times) {
        if (one.number == places_.size()) {
            const auto [state, place] = places_[one.like];
            add_arc(tables_.states[state].arcs[place]);
        }
        const auto [state, place] = places_[one.number];
        tables_.states[state].arcs[place].lifetime = one.lifetime;
    }
    if (many != before) forget_patterns();
}

// Find the place of each arc by its number. The numbers are those from 0 on.
void NodeEngine::find_places() {
    if (!places_.empty()) return;
    std::vector<std::pair<uint32_t, uint32_t>> found(tables_.arcs());
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        const auto& arcs = tables_.states[s].arcs;
        for (uint32_t i = 0; i < arcs.size(); ++i) {
            if (arcs[i].number >= found.size()) throw std::invalid_argument("arcs: no such number");
            found[arcs[i].number] = {s, i};
        }
    }
    places_ = std::move(found);
}

uint32_t NodeEngine::bound(const Event& event) {
    if (current_ == NIL) {
        current_ = arena_.events.push({event.ts, event.position, event.id});
        if (completion_) completion_->keep(current_, event);
    }
    return current_;
}

void NodeEngine::fetch(uint32_t partition, uint32_t hop) const {
    if (partition >= parts_.size()) return;
    const Part& part = parts_[partition];
    if (hop == 0) return prefetch(&part, sizeof(Part));
    const size_t most = std::min<size_t>(part.lists.size(), most_fetched);
    if (hop == 1) return prefetch(part.lists.data(), most * sizeof(NodeList));
    if (hop > 2 && arena_.cells.empty()) return;
    for (size_t s = 0; s < most; ++s) {
        const NodeList& list = part.lists[s];
        if (hop == 2) list.fetch(tables_.states[s].slots);
        for (uint32_t i = list.head; hop > 2 && i < std::min(list.end, list.head + 4); ++i) {
            const uint32_t cell = list.cells()[i];
            if (cell == NIL) continue;
            const Cell& last = arena_.cells[cell];
            if (hop == 3) prefetch(&last, sizeof(Cell));
            if (hop == 4 && last.past != NIL) prefetch(&arena_.cells[last.past], sizeof(Cell));
        }
    }
}

void NodeEngine::event(uint32_t partition, const Event& event) {
    if (unfinished()) return go_on(partition, event);
    if (!bounded()) {
        if (!tables_.timed()) free_expired(event.ts);
        if (parts_.size() <= partition) parts_.resize(partition + 1);
        Part& part = parts_[partition];
        if (!replaces_ || !may_replace_all(part, partition, event) || !replace(part, partition, event)) {
            look(part, partition, event);
        }
        return;
    }
    make_way(event.ts);
    if (parts_.size() <= partition) parts_.resize(partition + 1);
    Part& part = parts_[partition];
    const HeldBytes before = held(part);
    look(part, partition, event);
    memory_.held += held(part) - before;
    if (memory_.coming_made > memory_.most_made / 8) {
        for (Made& made : made_) made = Made{};
    }
    memory_.coming = memory_.coming_made = 0;
    if (bytes() + partitions_.bytes() > memory_.most) squeeze();
    memory_.peak = std::max(memory_.peak, bytes() + partitions_.bytes());
}

// Return whether the budget allows an event to replace all nodes of a partition.
bool NodeEngine::may_replace_all(Part& part, uint32_t partition, const Event& event) {
    if (!resting_) return !shed_;
    admission_.nodes_before = work_.nodes;
    resting_->arrive(partition, arrived, work_.touches, again);
    if (resting_->changed()) look_at_allowance();
    size_t touches = 0;
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        const size_t nodes = turn.state == 0 ? 1 : part.lists.empty() ? 0 : part.lists[turn.state].size();
        touches += nodes * turn.arcs.size();
    }
    return suffices(touches);
}

// Note the event as the last one of its partition.
void NodeEngine::meet(Part& part, const Event& event) {
    part.last = event.position;
    part.seen = arrived;
    if (again) part.again = holds_;
    current_ = NIL;
    walks.begin();
}

void NodeEngine::look(Part& part, uint32_t partition, const Event& event) {
    if (part.lists.empty()) {
        part.lists.resize(tables_.states.size());
        for (NodeList& list : part.lists) list.tight = bounded();
    }
    meet(part, event);
    part.shared = true;
    admission_.nodes_before = work_.nodes;
    memory_.given_before = output_.given();
    if (shedding() != nullptr) shedding()->arrive(partition, arrived, work_.touches, again);
    if (shed_ && !bounded() && !again && shed_->calm()) rest(key(event));
    if (resting_) {
        if (resting_->changed()) look_at_allowance();
        if (!suffices(0)) wake(key(event));
    }
    const bool watched = shed_ && !again && (shed_->limited() || bounded()) && shed_->sample().any,
               begins = watched && is_shadow(partition, event);
    if (!shed_ || admits(part, event)) take_in(part, partition, event);
    if (watched) shadow_sample(part, partition, event, begins);
    if (tells_live_) {
        if (live_.size() <= partition) live_.resize(parts_.size());
        const auto full = [](const NodeList& list) { return !list.empty(); };
        live_[partition] = std::any_of(part.lists.rbegin(), part.lists.rend(), full) ||
                           std::any_of(part.shadow.rbegin(), part.shadow.rend(), full);
    }
}

// Let an event extend the existing nodes, and begin new ones.
void NodeEngine::take_in(Part& part, uint32_t partition, const Event& event) {
    if (completion_) {
        completion_->arrived = arrived;
        completion_->before(partition, event);
    }
    const int64_t low = oldest_start(event);
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        if (turn.state == 0) {
            admission_.mark = shed_ ? shed_->begin(partition, event) : Mark();
            begin(turn, event);
        } else {
            step(part, turn, event, low);
        }
    }
    if (tables_.contiguous()) contiguous_end(part, event);
    if (!ended_.empty()) end_broken(part, event);
    if (!touched_.empty()) finish(part, partition, event, low);
    if (admission_.clears) {
        // Nodes that began before a match point would end in the same bundle.
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            NodeList& list = part.lists[s];
            shed_->dropped += list.living(low) - list.living(key(event));
            keep(list, s, key(event), EndReason::cleared, [&](uint32_t i) { return list.starts()[i] >= key(event); });
        }
        admission_.clears = false;
    }
    if (!endings_.all.empty()) return go_on(partition, event);
    if (completion_) completion_->after(partition, event);
}

int64_t NodeEngine::oldest_start(const Event& event) const {
    const int64_t low = earliest(key(event), tables_.span);
    // Older cells may be freed, unless they are made again.
    return shed_ && !tables_.counted && !again ? std::max(low, earliest(clock_, tables_.span)) : low;
}

// Find the states in which events may end nodes by breaking a negation.
void NodeEngine::find_ended() {
    ended_.clear();
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        if (!tables_.states[s].ended.empty()) ended_.push_back(s);
    }
}

// End the nodes from before the event that cannot go on, as it breaks a negation that all their arcs go past.
void NodeEngine::end_broken(Part& part, const Event& event) {
    for (const uint32_t s : ended_) {
        NodeList& list = part.lists[s];
        for (const Ended& one : tables_.states[s].ended) {
            if (list.empty() || !classifier_.has(event.pattern, one.event_class)) continue;
            if (one.checks.empty()) {
                drop_all(list, s, key(event), EndReason::taken);
                continue;
            }
            if (resting_ && !suffices(list.size())) wake(key(event));
            work_.touches += list.size();
            if (shed_) shed_->touched(work_.touches);
            taken_.assign(list.end, 0);
            size_t many = 0;
            evaluator_.visit_passing(one.checks, list, tables_.states[s].slots, event, [&](uint32_t row) {
                taken_[row] = 1;
                ++many;
            });
            if (many == 0) continue;
            keep(list, s, key(event), EndReason::taken, [&](uint32_t i) { return taken_[i] == 0; });
        }
    }
}

// New nodes, time and memory ---------------------------------------------------------------------

void NodeEngine::finish(Part& part, uint32_t partition, const Event& event, int64_t low) {
    if (dominance_) return dominate(part, partition, event, low);
    const size_t given = output_.given();
    const size_t written = output_.size();
    for (uint32_t state : touched_) {
        Made& made = made_[state];
        const State& s = tables_.states[state];
        unite(made, state);
        if (shed_) apart(made, state);
        if (!s.accepts.empty()) complete(part, partition, state, made, event, low);
    }
    if (!completion_) {
        if (!tables_.unambiguous && output_.size() > written) {
            if (output_.size() > written + 1 && tables_.told == 0) distinct(written);
            if (output_.tally.kind != Tally::off) count_written(partition);
        }
        work_.matches += static_cast<int64_t>(output_.given() - given);
    }
    bound_to_.clear();
    for (uint32_t state : touched_) {
        Made& made = made_[state];
        if (!tables_.states[state].arcs.empty() || tables_.dynamic) {
            if (!takes_over(made, part.lists[state], event)) store(made, part, partition, state, event, low);
        }
        made.nodes.clear();
        made.arcs.clear();
    }
    touched_.clear();
}

void NodeEngine::advance(int64_t clock) {
    clock_ = clock;
    if (completion_) completion_->settle(clock);
    // Otherwise done before each event, so that it does not depend on batches, as it shortens lists.
    if (!bounded() && tables_.timed()) free_expired(clock);
}

void NodeEngine::free_expired(int64_t clock) {
    if (!tables_.timed()) {
        if (bounded()) return;  // done when memory is short
        // An event whose runs all end with it leaves no cell, so events may outnumber cells.
        const uint32_t cells = arena_.cells.size(), events = arena_.events.size();
        if (cells / 2 > kept_cells_ + 2048 || events / 2 > cells + 2048) compact();
        if (frames_.has_doubled()) compact_frames();
        return;
    }
    const int64_t low = earliest(clock, tables_.span);
    while (!arena_.cells.empty() && arena_.events[arena_.cells[arena_.cells.tail()].event].ts < low)
        arena_.cells.drop();
    while (!arena_.events.empty() && arena_.events[arena_.events.tail()].ts < low) arena_.events.drop();
    frames_.drop_before(low);
}

bool NodeEngine::idle(uint32_t partition, int64_t soonest) {
    if (partition >= parts_.size()) return true;
    Part& part = parts_[partition];
    const int64_t low = earliest(soonest, tables_.span);
    if (bounded()) memory_.held.charged -= held(part).charged;  // empty lists keep their room
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        if (!expire(list, s, low)) drop_expired(list, s, low, soonest);
    }
    const bool shadow = !idle_shadow(part, low, soonest);
    if (bounded()) memory_.held.charged += held(part).charged;
    for (const NodeList& list : part.lists) {
        if (!list.empty()) return false;
    }
    if (shadow) return false;
    // If another key got its number, the record of starts that were not fully followed would be lost.
    if (shed_ && !bounded() && shed_->sample().blind_since(partition, low)) return false;
    if (completion_ && !completion_->idle(partition, low)) return false;
    return part.bundle.closed(low, tables_.counted);
}

void NodeEngine::forget(uint32_t partition) {
    if (partition < parts_.size()) {
        if (bounded()) memory_.held = memory_.held - held(parts_[partition]);
        parts_[partition] = Part{};
    }
    if (shedding() != nullptr) shedding()->forget(partition);
    if (completion_) completion_->forget(partition);
}

// The end of partial matches that are forgotten is not known, so their shadow-sampled unit is given up.
void NodeEngine::restart(uint32_t partition) {
    if (shed_ && partition < parts_.size()) {
        Part& part = parts_[partition];
        const int64_t now = tables_.counted ? part.last : clock_;
        if (bounded()) memory_.held = memory_.held - held(part);
        part.each([&](NodeList& list, uint32_t s) { drop_all(list, s, now, EndReason::cleared); });
        part.shadow.clear();
        if (bounded()) memory_.held += held(part);
        shed_->give_up_unit(partition, now);
    }
    forget(partition);
}

// Remove what has expired, since while older events are matched again, the time alone does not tell which cells may be
// freed already.
void NodeEngine::begin_again() {
    ++holds_;
    if (!bounded() || !tables_.timed()) return;
    const int64_t low = earliest(clock_, tables_.span);
    for (Part& part : parts_) {
        part.each([&](NodeList& list, uint32_t s) {
            if (!list.empty()) drop_expired(list, s, low, clock_);
        });
    }
    recount();
}

// Count the partial matches without those of the shadow sample.
int64_t NodeEngine::partial_matches_in(const std::vector<uint32_t>& states, int64_t clock) const {
    std::vector<uint8_t> wanted(tables_.states.size(), states.empty() ? 1 : 0);
    for (uint32_t state : states) wanted.at(state) = 1;
    int64_t found = 0;
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        int64_t low = NEVER;
        if (tables_.timed()) low = earliest(clock, tables_.span);
        if (tables_.counted) low = earliest(tables_.strict ? part.last : partitions_.positions[p] - 1, tables_.span);
        for (size_t s = 0; s < part.lists.size(); ++s) {
            if (wanted[s] != 0) found += const_cast<NodeList&>(part.lists[s]).living(low);  // only read
        }
    }
    return found;
}

int64_t NodeEngine::bytes() const {
    int64_t total = arena_.bytes() + arena_.kept.bytes() + frames_.bytes() + evaluator_.bytes() +
                    heap_bytes(parts_, live_, all_, taken_, blocked_);
    total += finder_.bytes() + blocked_rows_.bytes();
    total += heap_bytes(memory_.scores, memory_.best);
    for (const Made& made : made_) total += made.nodes.bytes() + heap_bytes(made.arcs, made.also, made.gone);
    if (bounded()) {
        total += memory_.held.reserved;
    } else {
        for (const Part& part : parts_) total += held(part).reserved;
    }
    if (completion_) total += completion_->bytes();
    if (future_) total += future_->bytes();
    return total + (shedding() != nullptr ? shedding()->bytes() : 0);
}

}  // namespace acep
