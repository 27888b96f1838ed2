// The session's single pass over a batch for all plans.
#include "session/session.hpp"

#include <algorithm>

namespace acep {
namespace {

constexpr uint32_t many_partitions = 1024;
constexpr size_t few_partitions = 1024;  // beyond twice those kept before idle ones are looked for

// Return by how many events a hop of Engine::fetch comes before the event itself.
constexpr size_t ahead(uint32_t hop) { return 6 * size_t{Engine::hops - hop}; }

}  // namespace

Session::Session(Texts& texts, std::vector<BlockProgram> programs, std::vector<EventClass> classes, size_t columns,
                 const std::vector<std::pair<std::vector<uint32_t>, bool>>& keys)
    : classifier_(texts, std::move(programs), std::move(classes)) {
    for (const auto& [key, counts] : keys) {
        for (uint32_t c : key) {
            if (c >= columns) throw std::invalid_argument("keys: no such column");
        }
        tables_.push_back(std::make_unique<KeyTable>(KeyTable{Partitions(key), counts, {}}));
    }
}

Engine& Session::add(std::unique_ptr<Engine> engine) {
    const Tables& t = engine->tables();
    KeyTable& table = *tables_.at(t.partitions);
    table.engines.push_back(engine.get());
    table.timed = table.timed && t.timed();
    table.span = std::max(table.span, t.span);
    engines_.push_back(std::move(engine));
    return *engines_.back();
}

void Session::change(Engine& engine, Tables tables, std::vector<BlockProgram> programs,
                     std::vector<EventClass> classes) {
    check_changes();
    engine.change(std::move(tables));
    classify_by(std::move(programs), std::move(classes));
}

void Session::extend(Engine& engine, Tables tables, std::vector<BlockProgram> programs,
                     std::vector<EventClass> classes) {
    check_changes();
    engine.extend(std::move(tables));
    classify_by(std::move(programs), std::move(classes));
}

void Session::check_changes() const {
    for (const auto& one : engines_) {
        if (!one->changes()) throw std::invalid_argument("a plan of this session cannot change");
    }
}

void Session::classify_by(std::vector<BlockProgram> programs, std::vector<EventClass> classes) {
    classifier_.renew(std::move(programs), std::move(classes));
    for (auto& one : engines_) one->forget_patterns();
}

void Session::begin_at(int64_t events) {
    if (seen_ != 0 || events < 0 || events > most_positions)
        throw std::invalid_argument("begin_at: of a new session only");
    seen_ = events;
}

void Session::set_lane(Lane lane) {
    if (lane.number >= lane.lanes || seen_ != 0 || bounded_)
        throw std::invalid_argument("lanes: of a new session only");
    lane_ = lane;
    uint32_t number = 0;
    for (auto& table : tables_) {
        if (table->partitions.width() != 0) continue;
        std::erase_if(table->engines, [&](const Engine*) { return number++ % lane.lanes != lane.number; });
    }
}

LaneRows Session::rows_of_lane(const Batch& batch) const {
    if (batch.size >= NIL) throw std::length_error("too many events in a batch");
    Numbers<uint32_t> places(batch.size);
    size_t size = 0;
    const auto add = [&](size_t row, bool taken) {
        places[size] = static_cast<uint32_t>(row);
        size += taken ? 1 : 0;
    };
    if (tables_.size() == 1 && tables_[0]->partitions.width() == 1) {  // as usual, and each lane does it for all rows
        const Column key = batch.columns[tables_[0]->partitions.columns()[0]];
        const Lane lane = lane_;
        for (size_t row = 0; row < batch.size; ++row) {
            const bool taken = Partitions::lane_of_word(key.values[row], lane.lanes) == lane.number;
            add(row, taken && !key.null(row));
        }
        places.resize(size);
        return {batch, std::move(places)};
    }
    const auto takes = [&](const KeyTable& table, size_t row) {
        if (table.engines.empty()) return false;
        return table.partitions.width() == 0 || table.partitions.lane_of(batch, row, lane_.lanes) == lane_.number;
    };
    for (size_t row = 0; row < batch.size; ++row) {
        add(row, std::ranges::any_of(tables_, [&](const auto& table) { return takes(*table, row); }));
    }
    places.resize(size);
    return {batch, std::move(places)};
}

size_t Session::push(const TakenRows& rows, size_t from, size_t to, const Pushing& how) {
    if (!how.hold && from < to && rows.ts[from] < loaded_) {
        throw std::invalid_argument("push: an event is older than the state that was loaded");
    }
    classifier_.forget_ahead();
    // Blocks end at the same events however the stream is split into batches and lanes, and idle partitions are
    // forgotten only there: the engines' counts of work must not depend on the batches.
    size_t first = rows.first_from(from);
    for (size_t at = from; at < to;) {
        const size_t n = std::min(to - at, block_rows - static_cast<size_t>(seen_) % block_rows);
        const size_t stop = rows.first_from(at + n);
        const Block block{at, n, first, stop - first};
        first = stop;
        const Stop stopped = block.size > 0 ? push_block(rows, block, how) : Stop{n, false};
        seen_ += static_cast<int64_t>(stopped.rows);
        repeated_ += static_cast<int64_t>(block.repeated(stopped.rows, how.again));
        at += stopped.rows;
        if (stopped.unfinished) return at;
        if (how.hold) continue;
        pass_time(rows.ts[at - 1]);
        if (how.enough != Engine::endless && engines_[0]->output().size() >= how.enough) return at;
    }
    return to;
}

Session::Stop Session::push_block(const TakenRows& rows, const Block& block, const Pushing& how) {
    uint32_t pattern[block_rows];
    const int64_t before =
        rows.places == nullptr ? seen_ - static_cast<int64_t>(block.at) : taken_ - static_cast<int64_t>(block.first);
    for (auto& engine : engines_) engine->expect(rows.batch, block.first, how.hold ? -1 : before, how.last);
    classifier_.classify(rows.batch, block.first, block.size, pattern);
    Stop stopped{block.n, false};
    for (auto& table : tables_) {
        if (table->engines.empty()) continue;
        stopped = push_to_table(*table, rows, block, pattern, how);
        if (stopped.unfinished) return stopped;
    }
    taken_ += static_cast<int64_t>(block.size);
    return stopped;
}

void Session::pass_time(int64_t time) {
    latest_ = time;
    for (auto& engine : engines_) engine->advance(time);
    if (!forgets_only_when_told_ && at_block_end()) sweep(time);
}

void Session::find_wanted(KeyTable& table, const TakenRows& rows, const Block& block, const uint32_t* pattern,
                          uint8_t* wanted) const {
    const bool counts = table.counts || rows.batch.positions();
    std::fill_n(wanted, block.size, counts ? uint8_t{1} : uint8_t{0});
    for (Engine* engine : table.engines) {
        engine->learn_wants();
        for (size_t i = 0; i < block.size && !counts; ++i) {
            wanted[i] |= static_cast<uint8_t>(engine->wants(pattern[i]));
        }
    }
    // Rows may have been taken for another table.
    for (size_t i = 0; i < block.size && lane_.lanes > 1 && tables_.size() > 1 && table.partitions.width() != 0; ++i) {
        if (table.partitions.lane_of(rows.batch, block.first + i, lane_.lanes) != lane_.number) wanted[i] = 0;
    }
}

Session::Stop Session::push_to_table(KeyTable& table, const TakenRows& rows, const Block& block,
                                     const uint32_t* pattern, const Pushing& how) {
    uint32_t partition[block_rows];
    uint8_t wanted[block_rows];
    const Batch& batch = rows.batch;
    table.numbers = table.numbers || batch.positions();
    find_wanted(table, rows, block, pattern, wanted);
    const BlockOfTable events{table, rows, block, pattern, partition, how};
    if (bounded_) return push_bounded(events, wanted);
    table.partitions.find(batch, block.first, block.size, wanted, partition);
    // With many partitions, each event would wait for memory several times.
    const auto fetches = [](const Engine* engine) { return engine->fetches(); };
    if (table.partitions.size() >= many_partitions && std::ranges::any_of(table.engines, fetches))
        return push_fetching(events);
    // Where positions count, few of the events may concern an engine.
    if ((table.counts || batch.positions()) && table.engines.size() == 1) return push_sparse(events);
    return push_each(events, [](size_t i) { return i; });
}

Session::Stop Session::push_bounded(const BlockOfTable& events, const uint8_t* wanted) {
    return push_each(events, [&](size_t i) {
        const size_t row = events.block.first + i;
        events.partition[i] = wanted[i] == 0 ? NIL : find_bounded(events.table, events.rows.batch, row);
        return i;
    });
}

Session::Stop Session::push_fetching(const BlockOfTable& events) {
    const auto fetch = [&](size_t row, uint32_t hop) {
        if (row >= events.block.size || events.partition[row] == NIL) return;
        for (Engine* engine : events.table.engines) {
            if (engine->takes(events.pattern[row], events.partition[row])) engine->fetch(events.partition[row], hop);
        }
    };
    for (uint32_t hop = 0; hop < Engine::hops; ++hop) {
        for (size_t row = 0; row < ahead(hop); ++row) fetch(row, hop);
    }
    return push_each(events, [&](size_t i) {
        for (uint32_t hop = 0; hop < Engine::hops; ++hop) fetch(i + ahead(hop), hop);
        return i;
    });
}

Session::Stop Session::push_sparse(const BlockOfTable& events) {
    const Engine& engine = *events.table.engines[0];
    return push_each(events, [&](size_t i) {
        int64_t* positions = events.table.partitions.positions.data();
        for (; i < events.block.size; ++i) {
            const uint32_t p = events.partition[i];
            if (p == NIL) continue;
            if (engine.takes(events.pattern[i], p)) break;
            ++positions[p];
        }
        return i;
    });
}

template <class Next>
Session::Stop Session::push_each(const BlockOfTable& events, Next&& next) {
    const auto& [table, rows, block, pattern, partition, how] = events;
    const Batch& batch = rows.batch;
    Partitions& partitions = table.partitions;
    const std::span<Engine* const> engines = table.engines;
    const bool positions = batch.positions();
    const int64_t arrivals = arrived();
    for (size_t i = 0; i < block.size; ++i) {
        i = next(i);
        if (i == block.size) break;
        const uint32_t p = partition[i];
        if (p == NIL) continue;
        const size_t row = block.first + i;
        const size_t offset = rows.place(row) - block.at;
        const int64_t position = partitions.positions[p]++;
        bool full = false;
        for (Engine* engine : engines) {
            if (!engine->takes(pattern[i], p)) continue;
            const int64_t id = batch.ids != nullptr ? batch.ids[row]
                               : positions          ? position
                                                    : batch.first_id + static_cast<int64_t>(row);
            engine->arrived = arrivals + static_cast<int64_t>(offset + 1 - block.repeated(offset + 1, how.again));
            engine->again = row < how.again;
            engine->event(p, {batch.ts[row], engine->tables().strict ? seen_ + static_cast<int64_t>(offset) : position,
                              id, pattern[i], &batch, row});
            if (how.enough == Engine::endless) continue;
            if (engine->unfinished()) {
                --partitions.positions[p];
                return {offset, true};
            }
            full =
                (row + 1 == batch.size || batch.ts[row + 1] != batch.ts[row]) && engine->output().size() >= how.enough;
        }
        if (full) return {offset + 1, false};
    }
    return {block.n, false};
}

void Session::reset(const Batch& batch, size_t rows) {
    for (auto& table : tables_) {
        const bool strict = std::any_of(table->engines.begin(), table->engines.end(),
                                        [](const Engine* engine) { return engine->tables().strict; });
        for (uint32_t p = 0; strict && p < table->partitions.size(); ++p) {
            if (table->partitions.used(p)) reset(*table, p);
        }
        for (size_t row = 0; !strict && row < rows; ++row) {
            if (row > 0 && table->partitions.same_words(batch, row, row - 1)) continue;
            const uint32_t p = table->partitions.known(batch, row);
            if (p != NIL && table->partitions.positions[p] != 0) reset(*table, p);
        }
    }
}

void Session::begin_again(int64_t fresh) {
    repeated_ -= fresh;
    for (auto& engine : engines_) engine->begin_again();
}

void Session::reset(KeyTable& table, uint32_t partition) {
    for (Engine* engine : table.engines) engine->restart(partition);
    table.partitions.positions[partition] = 0;
}

void Session::advance(int64_t clock) {
    for (auto& engine : engines_) engine->advance(clock);
    if (!forgets_only_when_told_) sweep(clock);
}

void Session::finish() {
    for (auto& engine : engines_) engine->end();
}

void Session::sweep(int64_t clock) {
    // Positions pass only with the events of a partition, so those of such windows are looked at as they become more.
    for (auto& table : tables_) {
        if (table->timed || table->partitions.live() <= 2 * table->kept + few_partitions) continue;
        forget_idle(*table, clock);
        table->kept = table->partitions.live();
    }
    int64_t span = 0;
    for (auto& table : tables_) span = std::max(span, table->span);
    int64_t next;
    if (any_ && (__builtin_add_overflow(swept_, span, &next) || clock <= next)) return;
    any_ = true;
    swept_ = clock;
    for (auto& table : tables_) {
        if (table->timed) forget_idle(*table, clock);
    }
}

int64_t Session::soonest(const KeyTable& table, const Engine& engine, uint32_t partition, int64_t clock) const {
    const Tables& tables = engine.tables();
    if (!tables.counted) return clock;
    return tables.strict ? seen_ : table.partitions.positions[partition];
}

void Session::forget_idle(KeyTable& table, int64_t clock) {
    if (table.numbers) return;
    table.partitions.forget([&](uint32_t p) {
        for (Engine* engine : table.engines) {
            if (!engine->expire_partition(p, soonest(table, *engine, p, clock))) return false;
        }
        for (Engine* engine : table.engines) engine->forget(p);
        return true;
    });
}

void Session::give_up_oldest(KeyTable& table, int64_t clock) {
    std::vector<int64_t> seen;
    const auto last = [&](uint32_t p) {
        int64_t found = -1;
        for (const Engine* engine : table.engines) found = std::max(found, engine->seen(p));
        return found;
    };
    for (uint32_t p = 0; p < table.partitions.size(); ++p) {
        if (table.partitions.used(p)) seen.push_back(last(p));
    }
    if (seen.empty()) return;
    const auto border = seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 8);
    std::nth_element(seen.begin(), border, seen.end());
    table.partitions.forget([&](uint32_t p) {
        if (last(p) > *border) return false;
        for (Engine* engine : table.engines) {
            engine->give_up_partition(p, clock);
            engine->forget(p);
        }
        return true;
    });
}

uint32_t Session::find_bounded(KeyTable& table, const Batch& batch, size_t row) {
    const int64_t now = batch.ts[row];
    bool gave_up = false;
    for (Engine* engine : table.engines) gave_up = engine->gave_up() || gave_up;
    if (gave_up) forget_idle(table, now);
    if (!table.partitions.unknown(batch, row)) return table.partitions.find(batch, row);
    const auto room = [&] {
        return std::all_of(table.engines.begin(), table.engines.end(),
                           [&](Engine* e) { return e->takes_partition(now); });
    };
    bool has = room();
    // Partitions are only scanned after a proportional number of skipped events, which bounds the cost.
    if (!has && table.refused >= int64_t{table.partitions.size()} / 4) {
        forget_idle(table, now);
        if (!table.timed && !table.numbers) give_up_oldest(table, now);
        table.refused = 0;
        has = room();
    }
    if (has) return table.partitions.find(batch, row);
    ++table.refused;
    for (Engine* engine : table.engines) engine->passed_over();
    return NIL;
}

void Session::fields(auto& self, auto& archive) {
    archive.within(0, most_positions, self.seen_);
    archive.words(self.swept_, self.any_);
    if constexpr (std::remove_cvref_t<decltype(archive)>::reads) archive.events = self.seen_;
    if (self.any_) archive.saw(self.swept_);
    for (const auto& table : self.tables_) Partitions::fields(table->partitions, archive);
}

void Session::dump(Writer& out) const {
    fields(*this, out);
    for (const auto& engine : engines_) engine->dump(out);
}

void Session::load(Reader& in, int64_t clock) {
    fields(*this, in);
    for (auto& engine : engines_) engine->load(in);
    in.end();
    if (in.latest > clock) bad_state("time");
    loaded_ = in.latest;
}

std::vector<uint8_t> Session::used_texts(size_t codes) const {
    UsedTexts used(codes);
    for (const auto& table : tables_) {
        const Partitions& all = table->partitions;
        for (uint32_t p = 0; p < all.size(); ++p) {
            if (all.used(p)) used.add({all.key(p), all.width()});
        }
    }
    for (const auto& engine : engines_) engine->used_texts(used);
    return used.take();
}

std::vector<int64_t> Session::used_ids() const {
    std::vector<int64_t> found;
    for (const auto& engine : engines_) engine->used_ids(found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

std::vector<size_t> Session::kept() const {
    std::vector<size_t> found;
    for (const auto& table : tables_) found.push_back(table->kept);
    return found;
}

void Session::kept(const std::vector<size_t>& partitions) {
    if (partitions.size() != tables_.size()) throw std::invalid_argument("kept: one number for each key table");
    for (size_t i = 0; i < tables_.size(); ++i) tables_[i]->kept = partitions[i];
}

int64_t Session::bytes() const {
    int64_t total = 0;
    for (const auto& engine : engines_) total += engine->bytes();
    for (const auto& table : tables_) total += table->partitions.bytes();
    return total;
}

}  // namespace acep
