// The node engine's memory, which is freed by compaction if there is no time window, and its state as bytes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "nodes/nodes.hpp"

namespace acep {

// Keep the cells that live nodes reach. Without a time window, cells cannot be freed by their age.
void NodeEngine::compact(int64_t oldest) {
    arena_.compact([&](auto&& visit) {
        for (Part& part : parts_) {
            int64_t low = oldest;
            if (tables_.counted && tables_.span >= 0 && part.last >= 0) low = part.last - tables_.span;
            part.each([&](NodeList& list, uint32_t s) {
                keep(list, s, low + std::max<int64_t>(tables_.span, 0), EndReason::expired,
                     [&](uint32_t i) { return list.starts()[i] >= low; });
                for (uint32_t i = list.head; i < list.end; ++i) visit(list.cells()[i], low);
            });
        }
    });
    kept_cells_ = arena_.cells.size();
}

void NodeEngine::compact_frames() {
    const uint32_t tail = frames_.tail(), many = frames_.size();
    std::vector<uint32_t> moved(many, NIL);
    auto each = [&](auto&& visit) {
        for (Part& part : parts_) {
            part.each([&](NodeList& list, uint32_t s) {
                const uint32_t slots = tables_.states[s].slots;
                for (uint32_t k = 0; k < slots; ++k) {
                    if (framed_[s][k] == 0) continue;
                    list.moved();
                    for (uint32_t i = list.head; i < list.end; ++i) {
                        if (list.tags(k, slots)[i] == value) visit(list.slot(k)[i]);
                    }
                }
            });
        }
    };
    each([&](int64_t& head) {
        for (auto f = static_cast<uint32_t>(head); f != NIL && moved[f - tail] == NIL; f = frames_[f].previous)
            moved[f - tail] = f;
    });
    uint32_t to = tail;
    for (uint32_t i = 0; i < many; ++i) {
        const uint32_t from = tail + i;
        if (from == NIL || moved[i] == NIL) continue;
        if (to == NIL) ++to;
        Frame frame = frames_[from];
        if (frame.previous != NIL) frame.previous = moved[frame.previous - tail];
        frames_[to] = frame;
        moved[i] = to++;
    }
    each([&](int64_t& head) { head = moved[static_cast<uint32_t>(head) - tail]; });
    frames_.truncate(to);
    kept_frames_ = frames_.size();
}

int64_t NodeEngine::oldest() const {
    if (dominance_) return std::numeric_limits<int64_t>::max();  // it outputs no ids
    if (arena_.events.empty()) return NEVER;
    const int64_t bound = arena_.events[arena_.events.tail()].id;
    return completion_ ? std::min(bound, completion_->oldest()) : bound;
}

void NodeEngine::dump(Writer& out) const {
    out.number(work_.nodes);
    out.number(work_.touches);
    out.number(work_.matches);
    if (shed_ || resting_) {
        out.number(clock_);
        out.number(resting_ ? 1 : 0);
        out.number(memory_.next);
        out.number(memory_.peak);
        out.number(memory_.given);
        out.number(memory_.given_since);
        out.number(int64_t{kept_cells_});
        out.number(int64_t{kept_frames_});
        out.number((shed_ ? *shed_ : *resting_).withheld);
        for (const Unions& one : merging_.unions) {
            for (const uint32_t n : {one.seen, one.joined, one.rest}) out.number(n);
        }
    }
    for (const Likes& one : merging_.likes) {
        for (const uint32_t n : {one.seen, one.met, one.joined, one.rest, one.often ? 1u : 0u}) out.number(n);
    }
    arena_.cells.dump(out);
    arena_.events.dump(out);
    frames_.dump(out);
    const int64_t low = timed() ? before(clock_, tables_.span) : NEVER;
    out.number(static_cast<int64_t>(parts_.size()));
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        out.number(part.last);
        out.number(part.seen);
        out.number(part.bundle.any ? 1 : 0);
        out.number(part.bundle.last_ts);
        out.number(part.bundle.last_position);
        out.number(part.bundle.first);
        out.number(part.lists.empty() ? 0 : 1);
        if (shed_) out.number(part.shadow.empty() ? 0 : 1);
        // Reading a list's columns does not change them, apart from utilities that were put off.
        const_cast<Part&>(part).each([&](NodeList& list, uint32_t s) {
            if (shed_) shed_->catch_up(list, s, p);
            const uint32_t slots = tables_.states[s].slots;
            if (shed_) {
                for (int64_t k : {list.touched, list.tended, std::bit_cast<int64_t>(list.price), int64_t{list.limit},
                                  int64_t{list.births}, int64_t{list.popped}, int64_t{list.room},
                                  int64_t{list.patience}, int64_t{list.sorted}}) {
                    out.number(k);
                }
            }
            // Expired nodes are also dropped on loading.
            std::vector<uint32_t> rows;
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (shed_ || list.starts()[i] >= low) rows.push_back(i);
            }
            const auto column = [&](auto* values) {
                std::vector<std::remove_cvref_t<decltype(*values)>> kept;
                kept.reserve(rows.size());
                for (const uint32_t row : rows) kept.push_back(values[row]);
                out.items(kept);
            };
            column(list.starts());
            if (rows.empty()) return;
            column(list.positions());
            column(list.cells());
            column(list.errors());
            for (uint32_t k = 0; k < slots; ++k) {
                column(list.slot(k));
                column(list.tags(k, slots));
            }
        });
    }
    out.items(live_);
    if (completion_) completion_->dump(out);
    if (dominance_) dump_dominance(out);
    if (shed_ || resting_) (shed_ ? *shed_ : *resting_).dump(out);
}

// Load cells, events and frames. Links must lead to older elements, so every walk ends; links to freed ones are cut.
void NodeEngine::load_arena(Reader& in) {
    arena_.cells.load(in);
    arena_.events.load(in);
    frames_.load(in);
    auto& cells = arena_.cells;
    const auto links = [&](uint32_t& link, int64_t& latest, uint32_t at) {
        if (link == NIL) return;
        const uint32_t age = at - link, old = at - cells.tail();
        if (age == 0 || age > (uint32_t{1} << 31)) bad_state("link");
        if (age > old) {
            link = NIL;
            latest = NEVER;
        }
    };
    size_t arcs = 0;
    for (const State& s : tables_.states) arcs += s.arcs.size();
    for (uint32_t i = cells.tail(); i != cells.head(); ++i) {
        if (i == NIL) continue;
        Cell& c = cells[i];
        links(c.past, c.latest, i);
        links(c.next, c.below, i);
        if (c.event - arena_.events.tail() >= arena_.events.size()) bad_state("event of a cell");
        if (c.var == UNION && c.past == NIL) c.latest = NEVER;  // its link was cut
        if (c.var != UNION && (c.var >= tables_.variables || c.arc >= arcs)) bad_state("cell");
    }
    for (uint32_t i = frames_.tail(); i != frames_.head(); ++i) {
        if (i == NIL) continue;
        Frame& f = frames_[i];
        if (f.previous == NIL) continue;
        const uint32_t age = i - f.previous;
        if (age == 0 || age > (uint32_t{1} << 31)) bad_state("frame");
        if (age > i - frames_.tail()) f.previous = NIL;
    }
}

void NodeEngine::load_list(Reader& in, uint32_t state, NodeList& list) {
    const uint32_t slots = tables_.states[state].slots;
    int64_t touched = 0, tended = 0;
    double price = 0;
    uint32_t limit = 0, births = 0, popped = 0, room = 0, patience = 0;
    bool sorted = true;
    if (shed_) {
        touched = in.number(0, most_positions);
        tended = in.number();
        price = std::bit_cast<double>(in.number());
        if (!std::isfinite(price)) bad_state("price");
        limit = static_cast<uint32_t>(in.number(0, int64_t{1} << 32));
        births = static_cast<uint32_t>(in.number(0, int64_t{1} << 16));
        popped = static_cast<uint32_t>(in.number(0, int64_t{1} << 16));
        room = static_cast<uint32_t>(in.number(0, int64_t{1} << 32));
        patience = static_cast<uint32_t>(in.number(0, 4));
        sorted = in.number(0, 2) != 0;
    }
    auto starts = in.items<int64_t>();
    list.touched = touched;
    list.tended = tended;
    list.price = price;
    list.limit = limit;
    list.births = births;
    list.popped = popped;
    list.patience = patience;
    list.room = room;
    const size_t n = starts.size();
    if (n == 0) return;
    const int64_t expired = tables_.span < 0 || tables_.counted ? NEVER : before(clock_, tables_.span);
    if (n > (size_t{1} << 30) || tables_.states[state].arcs.empty()) bad_state("list");
    auto positions = in.items<int64_t>();
    auto cells = in.items<uint32_t>();
    auto errors = in.items<int32_t>();
    if (positions.size() != n || cells.size() != n || errors.size() != n) bad_state("list");
    std::vector<std::vector<int64_t>> words;
    std::vector<std::vector<uint8_t>> tags;
    for (uint32_t k = 0; k < slots; ++k) {
        words.push_back(in.items<int64_t>());
        tags.push_back(in.items<uint8_t>());
        if (words.back().size() != n || tags.back().size() != n) bad_state("list");
    }
    for (size_t i = 0; i < n; ++i) {
        if (positions[i] < 0 || positions[i] >= most_positions) bad_state("position of a node");
        if (errors[i] < 0 || errors[i] > tables_.budget) bad_state("error of a node");
        bool alive = dominance_ ? cells[i] == NIL : cells[i] - arena_.cells.tail() < arena_.cells.size();
        for (uint32_t k = 0; k < slots; ++k) {
            if (tags[k][i] > value) bad_state("tag");
            if (framed_[state][k] == 0 || tags[k][i] != value) continue;
            const int64_t frame = words[k][i];
            if (frame >= 0 && frame < NIL && static_cast<uint32_t>(frame) - frames_.tail() < frames_.size()) continue;
            alive = false;
        }
        // Its cells were freed, as it has expired. With shedding it counts until the list is pruned.
        if (!alive && (!shed_ || starts[i] >= expired)) continue;
        const uint32_t to = list.add(slots, NEVER);
        list.starts()[to] = starts[i];
        list.positions()[to] = positions[i];
        list.cells()[to] = cells[i];
        list.errors()[to] = errors[i];
        if (to > list.head && list.starts()[to - 1] > starts[i]) list.sorted = false;
        for (uint32_t k = 0; k < slots; ++k) {
            if (tags[k][i] != value) list.plain = false;
            list.slot(k)[to] = words[k][i];
            list.tags(k, slots)[to] = tags[k][i];
        }
    }
    list.sorted = list.sorted && sorted;
    if (dominance_ && dominance_->states[state].front && !list.sorted) bad_state("order of nodes");
}

void NodeEngine::load(Reader& in) {
    const auto counted = [&] { return in.number(0, most_positions); };
    work_ = {counted(), counted(), counted()};
    // Any numbers are safe here: they only control how long to search.
    const auto within = [&](uint32_t most) { return static_cast<uint32_t>(std::clamp<int64_t>(in.number(), 0, most)); };
    if (shed_ || resting_) {
        clock_ = in.number();
        const bool rests = in.number(0, 2) != 0;
        if (rests && !resting_) bad_state("nodes of another kind");
        if (!rests) rouse();
        memory_.next = std::min(memory_.next, in.number(0, most_positions));
        memory_.peak = in.number(0, most_positions);
        memory_.given = in.number(0, most_positions);
        memory_.given_since = in.number(0, most_positions);
        kept_cells_ = static_cast<uint32_t>(in.number(0, int64_t{1} << 32));
        kept_frames_ = static_cast<uint32_t>(in.number(0, int64_t{1} << 32));
        shed().withheld = in.number(0, most_positions);
        for (Unions& one : merging_.unions) {
            one.seen = within(1 << 30);
            one.joined = within(1 << 30);
            one.rest = within(16 * Merging::trial);
        }
    }
    for (Likes& one : merging_.likes) {
        one.seen = within(Merging::trial - 1);
        one.met = within(one.seen);
        one.joined = within(one.met);
        one.rest = within(16 * Merging::trial);
        one.often = in.number() != 0;
    }
    load_arena(in);
    const int64_t parts = in.number(0, static_cast<int64_t>(partitions_.size()) + 1);
    parts_.clear();
    parts_.resize(static_cast<size_t>(parts));
    for (Part& part : parts_) {
        part.last = in.number(-1, most_positions);
        part.seen = in.number(-1, most_positions);
        part.bundle.any = in.number(0, 2) != 0;
        part.bundle.last_ts = in.number();
        part.bundle.last_position = in.number();
        part.bundle.first = in.number();
        if (in.number(0, 2) != 0) part.lists.resize(tables_.states.size());
        if (shed_ && in.number(0, 2) != 0) part.shadow.resize(tables_.states.size());
        part.each([&](NodeList& list, uint32_t s) {
            list.tight = bounded();
            load_list(in, s, list);
        });
    }
    live_ = in.items<uint8_t>();
    if (live_.size() > parts_.size()) bad_state("partitions");
    if (completion_) completion_->load(in);
    if (dominance_) load_dominance(in);
    if (shed_ || resting_) shed().load(in);
    if (bounded()) recount();
}

}  // namespace acep
