// The node engine. An event is processed as in acep/reference/engine.py: first all transitions of existing nodes, then
// new beginnings; only then are the new nodes stored for later events. Other parts: check_evaluator.cpp (predicates),
// register_writer.cpp (registers of new nodes), nodes_contiguity.cpp (what contiguity ends), nodes_merging.cpp (union of equal nodes,
// storage), nodes_dominance.cpp (match points only), nodes_matches.cpp (complete runs), nodes_shedding.cpp,
// nodes_memory.cpp and nodes_state.cpp.
#include "nodes/nodes.hpp"

namespace acep {
namespace {

// With dominance, each evaluated node may make a new one, which may be compared with a few others.
constexpr double touches_with_dominance = 20;

}  // namespace

NodeEngine::NodeEngine(Tables tables, EventClassifier& classifier, Partitions& partitions,
                       std::unique_ptr<Dominance> dominance)
    : Engine(std::move(tables), classifier, partitions),
      dominance_(std::move(dominance)),
      shedding_(tables_, classifier_, work_, dominance_ ? touches_with_dominance : 1),
      store_(tables_, arena_, frames_, shedding_, dominance_.get()),
      merging_(tables_, store_, shedding_, dominance_ != nullptr),
      memory_(tables_, store_, arena_, frames_, partitions_, shedding_, merging_, dominance_.get()),
      maker_(tables_, writer_, shedding_, memory_, work_),
      binder_(tables_, arena_, completion_) {
    nothing_.add(0, NEVER);
    nothing_.starts()[0] = nothing_.positions()[0] = 0;
    nothing_.cells()[0] = NIL;
    nothing_.errors()[0] = 0;
    tells_live_ = true;
    if (tables_.completes() && !dominance_) complete_in_steps();
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
                tables.partitions == tables_.partitions && !unfinished() && !shedding_.active() &&
                !shedding_.resting() && tables.choice == tables_.choice && tables.skip == tables_.skip &&
                tables.firsts == tables_.firsts && tables.kept.size() >= tables_.kept.size() &&
                tables.negations.size() >= tables_.negations.size() && tables.returns.size() == tables_.returns.size();
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
    maker_.add_states();
    merging_.add_states();
    frames_.find_slots();
    if (completion_) {
        completion_->change();
    } else if (tables_.completes()) {
        complete_in_steps();
        for (uint32_t p = 0; p < store_.partitions().size(); ++p)
            completion_->begin(p, store_.partitions()[p].bundle, store_.partitions()[p].last_position);
    }
    find_replacing();
    find_ended();
    for (PartitionNodes& part : store_.partitions()) {
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

void NodeEngine::fetch(uint32_t partition, uint32_t hop) const {
    if (partition >= store_.partitions().size()) return;
    const PartitionNodes& part = store_.partitions()[partition];
    if (hop == 0) return prefetch(&part, sizeof(PartitionNodes));
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
        if (!tables_.timed()) store_.free_unreached();
        PartitionNodes& part = store_.make(partition);
        if (!replaces_ || !may_replace_all(part, partition, event) || !replace(part, partition, event)) {
            look(part, partition, event);
        }
        return;
    }
    memory_.free_for_event(event.ts, arrived);
    PartitionNodes& part = store_.make(partition);
    const StoredBytes before = memory_.bytes_of(part);
    look(part, partition, event);
    memory_.update(part, before);
    if (memory_.end_event()) maker_.release();
    limit_bytes();
}

// Shrink all to its content if more than the bound is reserved, and note how much is.
void NodeEngine::limit_bytes() {
    if (memory_.exceeds(bytes() + partitions_.bytes())) squeeze();
    memory_.note(bytes() + partitions_.bytes());
}

void NodeEngine::begin_event(PartitionNodes& part, const Event& event) {
    store_.note_event(part, event, arrived, again);
    binder_.begin_event();
    walks.begin();
}

// Return whether the budget allows an event to replace all nodes of a partition.
bool NodeEngine::may_replace_all(PartitionNodes& part, uint32_t partition, const Event& event) {
    if (!shedding_.resting()) return !shedding_.active();
    shedding_.begin_event();
    shedding_.resting()->arrive(partition, arrived, work_.touches, again);
    shedding_.update_if_changed();
    size_t touches = 0;
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        const size_t nodes = turn.state == 0 ? 1 : part.lists.empty() ? 0 : part.lists[turn.state].size();
        touches += nodes * turn.arcs.size();
    }
    return shedding_.suffices(touches);
}

void NodeEngine::look(PartitionNodes& part, uint32_t partition, const Event& event) {
    if (part.lists.empty()) {
        store_.make_lists(part.lists, bounded());
    }
    begin_event(part, event);
    part.shared = true;
    shedding_.begin_event();
    memory_.begin_matches(output_.given());
    if (shedding_.any() != nullptr) shedding_.any()->arrive(partition, arrived, work_.touches, again);
    if (shedding_.active() && !bounded() && !again && shedding_.active()->calm()) rest(key(event));
    if (shedding_.resting()) {
        shedding_.update_if_changed();
        if (!shedding_.suffices(0)) wake(key(event));
    }
    const bool watched = shedding_.active() && !again && (shedding_.active()->limited() || bounded()) &&
                         shedding_.active()->sample().any,
               begins = watched && is_shadow(partition, event);
    if (!shedding_.active() || admits(part, event)) take_in(part, partition, event);
    if (watched) shadow_sample(part, partition, event, begins);
    if (tells_live_) {
        if (live_.size() <= partition) live_.resize(store_.partitions().size());
        const auto full = [](const NodeList& list) { return !list.empty(); };
        live_[partition] = std::any_of(part.lists.rbegin(), part.lists.rend(), full) ||
                           std::any_of(part.shadow.rbegin(), part.shadow.rend(), full);
    }
}

// Let an event extend the existing nodes, and begin new ones.
void NodeEngine::take_in(PartitionNodes& part, uint32_t partition, const Event& event) {
    if (completion_) {
        completion_->arrived = arrived;
        completion_->before(partition, event);
    }
    const int64_t low = oldest_start(event);
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        if (turn.state == 0) {
            shedding_.set_first_mark(shedding_.active() ? shedding_.active()->begin(partition, event) : Mark());
            begin(turn, event);
        } else {
            step(part, turn, event, low);
        }
    }
    if (tables_.contiguous()) contiguous_end(part, event);
    if (!ended_.empty()) end_broken(part, event);
    if (!maker_.states().empty()) finish(part, partition, event, low);
    if (shedding_.take_clears()) {
        // Nodes that began before a match point would end in the same bundle.
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            NodeList& list = part.lists[s];
            shedding_.active()->dropped += list.living(low) - list.living(key(event));
            store_.keep(list, s, key(event), EndReason::cleared,
                        [&](uint32_t i) { return list.starts()[i] >= key(event); });
        }
    }
    if (!endings_.all.empty()) return go_on(partition, event);
    if (completion_) completion_->after(partition, event);
}

int64_t NodeEngine::oldest_start(const Event& event) const {
    const int64_t low = earliest(key(event), tables_.span);
    // Older cells may be freed, unless they are made again.
    return shedding_.active() && !tables_.counted && !again ? std::max(low, earliest(store_.clock(), tables_.span))
                                                            : low;
}

// Find the states in which events may end nodes by breaking a negation.
void NodeEngine::find_ended() {
    ended_.clear();
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        if (!tables_.states[s].ended.empty()) ended_.push_back(s);
    }
}

// End the nodes from before the event that cannot go on, as it breaks a negation that all their arcs go past.
void NodeEngine::end_broken(PartitionNodes& part, const Event& event) {
    for (const uint32_t s : ended_) {
        NodeList& list = part.lists[s];
        for (const Ended& one : tables_.states[s].ended) {
            if (list.empty() || !classifier_.has(event.pattern, one.event_class)) continue;
            if (one.checks.empty()) {
                store_.drop_all(list, s, key(event), EndReason::taken);
                continue;
            }
            if (shedding_.resting() && !shedding_.suffices(list.size())) wake(key(event));
            work_.touches += list.size();
            if (shedding_.active()) shedding_.active()->touched(work_.touches);
            taken_.assign(list.end, 0);
            size_t many = 0;
            evaluator_.visit_passing(one.checks, list, tables_.states[s].slots, event, [&](uint32_t row) {
                taken_[row] = 1;
                ++many;
            });
            if (many == 0) continue;
            store_.keep(list, s, key(event), EndReason::taken, [&](uint32_t i) { return taken_[i] == 0; });
        }
    }
}

// New nodes, time and memory ---------------------------------------------------------------------

void NodeEngine::finish(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low) {
    if (dominance_) return dominate(part, partition, event, low);
    const size_t given = output_.given();
    const size_t written = output_.size();
    for (uint32_t state : maker_.states()) {
        NewNodes& made = maker_.of(state);
        const State& s = tables_.states[state];
        merging_.unite(made, state);
        if (shedding_.active()) merging_.count_united(made, state);
        if (!s.accepts.empty()) complete(part, partition, state, made, event, low);
    }
    if (!completion_) {
        if (!tables_.unambiguous && output_.size() > written) {
            if (output_.size() > written + 1 && tables_.told == 0) distinct(written);
            if (output_.tally.kind != Tally::off) count_written(partition);
        }
        work_.matches += static_cast<int64_t>(output_.given() - given);
    }
    binder_.forget_cells();
    for (uint32_t state : maker_.states()) {
        NewNodes& made = maker_.of(state);
        if (!tables_.states[state].arcs.empty() || tables_.dynamic) {
            if (!takes_over(made, part.lists[state], event)) store(made, part, partition, state, event, low);
        }
        made.clear();
    }
    maker_.forget_states();
}

void NodeEngine::advance(int64_t clock) {
    store_.clock() = clock;
    if (completion_) completion_->settle(clock);
    // Otherwise done before each event, so that it does not depend on batches, as it shortens lists.
    if (!bounded() && tables_.timed()) store_.free_by_age(clock);
}

bool NodeEngine::idle(uint32_t partition, int64_t soonest) {
    if (partition >= store_.partitions().size()) return true;
    PartitionNodes& part = store_.partitions()[partition];
    const int64_t low = earliest(soonest, tables_.span);
    const StoredBytes before = bounded() ? memory_.bytes_of(part) : StoredBytes{};
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        if (!store_.expire_head(list, s, low)) store_.drop_expired(list, s, low, soonest);
    }
    const bool shadow = !store_.expire_shadow(part, low, soonest);
    if (bounded()) memory_.update_charged(part, before);
    for (const NodeList& list : part.lists) {
        if (!list.empty()) return false;
    }
    if (shadow) return false;
    // If another key got its number, the record of starts that were not fully followed would be lost.
    if (shedding_.active() && !bounded() && shedding_.active()->sample().blind_since(partition, low)) return false;
    if (completion_ && !completion_->idle(partition, low)) return false;
    return part.bundle.closed(low, tables_.counted);
}

void NodeEngine::forget(uint32_t partition) {
    if (partition < store_.partitions().size()) {
        if (bounded()) memory_.remove(store_.partitions()[partition]);
        store_.partitions()[partition] = PartitionNodes{};
    }
    if (shedding_.any() != nullptr) shedding_.any()->forget(partition);
    if (completion_) completion_->forget(partition);
}

// The end of partial matches that are forgotten is not known, so their shadow-sampled unit is given up.
void NodeEngine::restart(uint32_t partition) {
    if (shedding_.active() && partition < store_.partitions().size()) {
        PartitionNodes& part = store_.partitions()[partition];
        const int64_t now = tables_.counted ? part.last_position : store_.clock();
        const StoredBytes before = bounded() ? memory_.bytes_of(part) : StoredBytes{};
        part.each([&](NodeList& list, uint32_t s) { store_.drop_all(list, s, now, EndReason::cleared); });
        part.shadow.clear();
        if (bounded()) memory_.update(part, before);
        shedding_.active()->give_up_unit(partition, now);
    }
    forget(partition);
}

// Remove what has expired, since while older events are matched again, the time alone does not tell which cells may be
// freed already.
void NodeEngine::begin_again() {
    store_.begin_rematch();
    if (!bounded() || !tables_.timed()) return;
    const int64_t low = earliest(store_.clock(), tables_.span);
    for (PartitionNodes& part : store_.partitions()) {
        part.each([&](NodeList& list, uint32_t s) {
            if (!list.empty()) store_.drop_expired(list, s, low, store_.clock());
        });
    }
    memory_.recount();
}

// Count the partial matches without those of the shadow sample.
int64_t NodeEngine::partial_matches_in(const std::vector<uint32_t>& states, int64_t clock) const {
    std::vector<uint8_t> wanted(tables_.states.size(), states.empty() ? 1 : 0);
    for (uint32_t state : states) wanted.at(state) = 1;
    int64_t found = 0;
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        const PartitionNodes& part = store_.partitions()[p];
        int64_t low = NEVER;
        if (tables_.timed()) low = earliest(clock, tables_.span);
        if (tables_.counted)
            low = earliest(tables_.strict ? part.last_position : partitions_.positions[p] - 1, tables_.span);
        for (size_t s = 0; s < part.lists.size(); ++s) {
            if (wanted[s] != 0) found += const_cast<NodeList&>(part.lists[s]).living(low);  // only read
        }
    }
    return found;
}

int64_t NodeEngine::bytes() const {
    int64_t total = arena_.bytes() + arena_.kept.bytes() + frames_.bytes() + evaluator_.bytes() + finder_.bytes() +
                    merging_.bytes() + memory_.bytes() + maker_.bytes() + blocked_rows_.bytes();
    total += heap_bytes(store_.partitions(), live_, taken_, blocked_);
    if (bounded()) {
        total += memory_.stored().reserved;
    } else {
        for (const PartitionNodes& part : store_.partitions()) total += memory_.bytes_of(part).reserved;
    }
    if (completion_) total += completion_->bytes();
    if (future_) total += future_->bytes();
    return total + (shedding_.any() != nullptr ? shedding_.any()->bytes() : 0);
}

}  // namespace acep
