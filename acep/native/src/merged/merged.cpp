// The merged engine: release of memory, and enumeration of matches.
#include "merged/merged.hpp"

#include <algorithm>
#include <optional>

namespace acep {

Merger::Merger(const Tables& tables, const EventClassifier& classifier, bool one_partition)
    : tables_(tables), one_partition_(one_partition), automaton_(tables, classifier) {}

void Merger::advance(int64_t clock, const Ring<Root>& held) {
    if (!by_epoch()) return;
    int64_t low = earliest(tables_.counted ? now_ : clock, tables_.span);
    if (!held.empty()) low = std::min(low, held[held.tail()].low);
    auto old = [&](const BoundEvent& e) { return tables_.key(e) < low; };
    while (!arena_.cells.empty() && old(arena_.events[arena_.cells[arena_.cells.tail()].event])) arena_.cells.drop();
    while (!arena_.events.empty() && old(arena_.events[arena_.events.tail()])) arena_.events.drop();
}

void Merger::make_room(Ring<Root>& held, Cursor& cursor) {
    if (by_epoch() || arena_.cells.size() < compact_at_) return;
    arena_.compact([&](auto&& visit) {
        for (Part& part : parts_) {
            for (Live& live : part.live) visit(live.chain.cell, part.low);
        }
        for (uint32_t k = 0; k < held.size(); ++k) {
            Root& root = held[held.tail() + k];
            if (held.tail() + k != NIL) visit(root.past, root.low);
        }
        cursor.visit(visit);
    });
    for (Part& part : parts_) std::erase_if(part.live, [](const Live& live) { return live.chain.cell == NIL; });
    compact_at_ = std::max<uint32_t>(4096, 2 * arena_.cells.size());
}

Arena Merger::hand_over(bool last) {
    Arena whole;
    if (last) {
        std::swap(whole, arena_);
        parts_.clear();
        return whole;
    }
    whole = arena_;
    arena_.compact([&](auto&& visit) {
        for (Part& part : parts_) {
            const int64_t low = by_epoch() ? std::max(part.low, earliest(now_, tables_.span)) : part.low;
            for (Live& live : part.live) visit(live.chain.cell, low);
        }
    });
    for (Part& part : parts_) std::erase_if(part.live, [](const Live& live) { return live.chain.cell == NIL; });
    return whole;
}

bool Merger::expire_partition(uint32_t partition, int64_t soonest) {
    if (partition >= parts_.size()) return true;
    Part& part = parts_[partition];
    const int64_t low = earliest(soonest, tables_.span);
    std::erase_if(part.live, [&](const Live& live) { return live.chain.latest < low; });
    return part.live.empty() && part.bundle.closed(low, tables_.counted);
}

int64_t Merger::needs(uint32_t partition, const Event& event) {
    int64_t found = automaton_.step(event.pattern, Automaton::start).count;
    if (partition >= parts_.size()) return found;
    const Part& part = parts_[partition];
    if (tables_.contiguous() && event.position != part.last + 1) return found;
    const int64_t low = earliest(key(event), tables_.span);
    for (const Live& live : part.live) {
        if (live.chain.latest >= low) found += automaton_.step(event.pattern, live.state).count;
    }
    return found;
}

int64_t Merger::drop(uint32_t partition, int64_t ts) {
    if (partition >= parts_.size()) return 0;
    Part& part = parts_[partition];
    const int64_t low = tables_.counted ? part.low : std::max(part.low, earliest(ts, tables_.span));
    const auto many =
        std::count_if(part.live.begin(), part.live.end(), [&](const Live& l) { return l.chain.latest >= low; });
    part.live.clear();
    return many;
}

int64_t Merger::partial_matches(int64_t clock) const {
    int64_t found = 0;
    for (const Part& part : parts_) {
        const int64_t low = tables_.counted ? part.low : earliest(clock, tables_.span);
        found +=
            std::count_if(part.live.begin(), part.live.end(), [&](const Live& l) { return l.chain.latest >= low; });
    }
    return found;
}

int64_t Merger::bytes() const {
    int64_t total = arena_.bytes() + automaton_.bytes() + heap_bytes(parts_, made_, places_);
    for (const Part& part : parts_) total += heap_bytes(part.live);
    return total;
}

MergedEngine::MergedEngine(Tables tables, EventClassifier& classifier, Partitions& partitions)
    : BoundedEngine(std::move(tables), classifier, partitions),
      merger_(tables_, classifier, partitions.width() == 0),
      writer_(partitions.width()),
      cursor_(tables_.counted, partitions.width()),
      walk_(tables_.counted, partitions.width()) {}

void MergedEngine::event(uint32_t partition, const Event& event) {
    const size_t written = writer_.written(), room = full_ - std::min(full_, written);
    if (unfinished()) {
        block(room, room, true);
        return;
    }
    if (!suffices(merger_.most_touches(partition), [&] { return merger_.needs(partition, event); })) return;
    merger_.make_room(roots_, cursor_);
    const int64_t before = merger_.points();
    walks.begin();
    merger_.event(partition, event, work_, [&](const Root& root) {
        if (lazy_ || full_ != endless || !roots_.empty()) {
            roots_.push(root);
            return;
        }
        work_.matches += static_cast<int64_t>(give_some(root));
    });
    match_points += merger_.points() - before;
    if (full_ != endless && !roots_.empty()) block(room, room, true);
}

size_t MergedEngine::give_some(const Root& root) {
    const size_t most = static_cast<size_t>(std::max<int64_t>(walks.left, walks.any ? 0 : 1));
    walks.any = true;
    if (most == 0) {
        if (walks.lacks_first()) ++walks.withheld;
        return 0;
    }
    const int64_t* key = partitions_.key(root.partition);
    size_t given = 0;
    bool all = true;
    if (most > 1 && walk_.open(merger_.arena(), root, key)) {  // opening takes time in proportion to the cells
        given = walk_.next(writer_, most);
        all = walk_.done();
        walk_.stop();
    } else {
        cursor_.open(root, key);
        given = cursor_.next<true>(merger_.arena(), writer_, most);
        all = cursor_.done();
        cursor_.stop();
    }
    if (!all && walks.lacks_first()) ++walks.withheld;
    walks.left -= static_cast<int64_t>(given);
    walks.walked += static_cast<int64_t>(given);
    return given;
}

size_t MergedEngine::block(size_t most, size_t sorted, bool whole) {
    size_t given = 0;
    sorted = std::max(most, sorted);
    std::optional<int64_t> before;  // the time of the previous root
    const auto first = [&]() -> const Root& { return roots_[roots_.tail()]; };
    while (given < (walk_.done() ? sorted : whole ? sorted : most)) {
        if (!walk_.done()) {
            given += walk_.next(writer_, (whole ? sorted : most) - given);
            if (walk_.done() && given >= most) break;
            continue;
        }
        if (roots_.empty()) break;
        if (cursor_.done()) {  // else it is within the first root
            const Root root = first();
            const bool tied =
                (roots_.size() > 1 && roots_[roots_.tail() + 1].ts == root.ts) || (before && *before == root.ts);
            if (!tied && walk_.open(merger_.arena(), root, partitions_.key(root.partition))) {
                roots_.drop();
                continue;
            }
            cursor_.open(root, partitions_.key(root.partition));
        }
        const int64_t ts = first().ts;
        given += cursor_.next<true>(merger_.arena(), writer_, sorted - given);
        if (!cursor_.done()) break;
        roots_.drop();
        before = ts;
        if (given >= most && (roots_.empty() || first().ts != ts)) break;
    }
    work_.matches += static_cast<int64_t>(given);
    return given;
}

size_t MergedEngine::more(size_t most) {
    size_t given = 0;
    while (given < most && !roots_.empty()) {
        if (cursor_.done()) {
            const Root& root = roots_[roots_.tail()];
            cursor_.open(root, partitions_.key(root.partition));
        }
        given += cursor_.next<true>(merger_.arena(), writer_, most - given);
        if (cursor_.done()) roots_.drop();
    }
    work_.matches += static_cast<int64_t>(given);
    return given;
}

void MergedEngine::advance(int64_t clock) { merger_.advance(clock, roots_); }

bool MergedEngine::expire_partition(uint32_t partition, int64_t soonest) {
    return roots_.empty() && merger_.expire_partition(partition, soonest);
}

void MergedEngine::used_texts(UsedTexts& used) const { writer_.trimmed().used_texts(used); }

void MergedEngine::used_ids(std::vector<int64_t>& ids) const {
    merger_.arena().used_ids(ids);
    roots_.each([&](const Root& root) { ids.push_back(root.id); });
    writer_.trimmed().used_ids(ids);
}

int64_t MergedEngine::bytes() const { return merger_.bytes() + heap_bytes(roots_); }

}  // namespace acep
