// The known future of partial matches (nodes/known_future.hpp).
#include "nodes/known_future.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "common/hash.hpp"

namespace acep {
namespace {

constexpr size_t most_arcs_ahead = 64;
constexpr uint32_t passed = NIL - 1;  // all rows of a key are over
constexpr size_t first_stretch = 4096, most_stretch = 65536, tested_stretch = 16;  // rows
constexpr size_t stretch_of_window = 2;  // the least length of a stretch, in windows
constexpr size_t most_rows = size_t{1} << 22;  // that are known ahead
constexpr size_t sampled_rows = 32;  // of which the cost is estimated before the first stretch

}  // namespace

// Rows ahead -------------------------------------------------------------------------------------

void RowsAhead::clear(size_t rows) {
    later_.assign(rows, NIL);
    ends_.assign(rows, FAR);
    heads_.assign(64, Head());
    keys_ = 0;
}

uint64_t RowsAhead::hash(const Batch& batch, std::span<const uint32_t> keys, size_t row) const {
    uint64_t hash = 0;
    for (const uint32_t c : keys) {
        hash = mixed(hash + static_cast<uint64_t>(batch.columns[c].values[row]) + golden_step);
    }
    for (const int64_t cell : cells_) hash = mixed(hash + static_cast<uint64_t>(cell) + golden_step);
    return hash;
}

RowsAhead::Head& RowsAhead::head(uint64_t hash) {
    size_t at = hash & (heads_.size() - 1);
    while (heads_[at].place != NIL && heads_[at].hash != hash) at = (at + 1) & (heads_.size() - 1);
    return heads_[at];
}

void RowsAhead::add(const Batch& batch, std::span<const uint32_t> keys, PlacedRow added, int64_t end) {
    cells_.clear();
    for (const auto& part : parts_) {
        const Column& c = batch.columns[part.column];
        if (c.null(added.row)) return;  // equal to nothing
        cells_.push_back(part.cell(c.values[added.row]));
    }
    if (2 * (keys_ + 1) > heads_.size()) {
        std::vector<Head> before(heads_.size() * 2);
        before.swap(heads_);
        for (const Head& head : before) {
            if (head.place != NIL) this->head(head.hash) = head;
        }
    }
    const uint64_t own = hash(batch, keys, added.row);
    Head& first = head(own);
    if (first.place == NIL) ++keys_;
    later_[added.place] = first.place;
    ends_[added.place] = first.place == NIL ? end : std::min(end, ends_[first.place]);
    first = {own, added.place};
}

int64_t RowsAhead::earliest_end(const Batch& batch, std::span<const uint32_t> keys, PlacedRow now,
                                const int64_t* words) {
    cells_.resize(parts_.size());
    // All combinations of the cells of bands.
    const auto walk = [&](auto&& self, size_t k) -> int64_t {
        if (k == parts_.size()) return earliest_end_of(head(hash(batch, keys, now.row)).place, now.place);
        const RegisterKey::Cells cells = parts_[k].cells(words[k]);
        if (cells.is_wide()) return NEVER;
        int64_t end = FAR;
        for (int64_t i = 0; i <= cells.last - cells.first; ++i) {
            cells_[k] = cells.first + i;
            end = std::min(end, self(self, k + 1));
        }
        return end;
    };
    return walk(walk, 0);
}

int64_t RowsAhead::earliest_end_of(uint32_t& first, uint32_t now) {
    while (first <= now) first = later_[first] == NIL ? passed : later_[first];
    return first >= passed ? FAR : ends_[first];
}

// Known future -----------------------------------------------------------------------------------

bool KnownFuture::serves(const Tables& tables) {
    if (tables.counted || tables.contiguous() || tables.dynamic || tables.arcs() > most_arcs_ahead) return false;
    return std::ranges::all_of(tables.states, [&](const State& s) {
        return std::ranges::all_of(s.arcs, [&](const Arc& arc) { return arc.number < tables.arcs(); });
    });
}

KnownFuture::KnownFuture(const Tables& tables, EventClassifier& classifier, std::span<const uint32_t> keys)
    : tables_(tables), classifier_(classifier), keys_(keys.begin(), keys.end()), bindings_(tables.arcs()) {
    for (const State& s : tables.states) {
        for (const Arc& arc : s.arcs) {
            Binding& binding = bindings_.at(arc.number);
            binding.event_class = arc.event_class;
            binding.ends = !tables.states[arc.target].accepts.empty();
            if (!binding.ends) add_cuts(binding, arc);
        }
    }
    for (uint32_t k = 0; k < rows_ahead_.size(); ++k) bindings_[rows_ahead_[k].arc].entered.push_back(k);
    for (Binding& binding : bindings_) {
        binding.steps = static_cast<uint32_t>(binding.entered.size());
        for (const Cut& cut : binding.cuts) {
            if (cut.asks_rows) binding.steps += static_cast<uint32_t>(cut.followers.size());
        }
    }
}

void KnownFuture::add_cuts(Binding& binding, const Arc& arc) {
    const Reach reach = reach_from(tables_, arc.target, -1);
    const auto add = [&](auto&& belongs) {
        Cut cut;
        std::vector<uint32_t> arcs;
        for (const State& s : tables_.states) {
            for (const Arc& next : s.arcs) {
                if (!reach.states[next.source] || !belongs(next)) continue;
                const int64_t least = next.weight + tables_.states[next.target].rest;
                if (arc.weight + least > tables_.budget) continue;
                arcs.push_back(next.number);
                cut.followers.push_back(follower_of(arc, next, reach.slots[next.source], least));
            }
        }
        const bool first = binding.cuts.empty();
        const auto has_arcs = [](const Cut& other, const std::vector<uint32_t>& of) {
            return std::ranges::equal(other.followers, of, {}, &Follower::arc);
        };
        if (!first && std::ranges::any_of(binding.cuts, [&](const Cut& c) { return has_arcs(c, arcs); })) return;
        cut.asks_rows =
            first || std::ranges::all_of(cut.followers, [](const Follower& f) { return !f.of_row.empty(); });
        cut.asks_nodes =
            first || std::ranges::all_of(cut.followers, [](const Follower& f) { return !f.of_node.empty(); });
        if (cut.asks_nodes || cut.asks_rows) binding.cuts.push_back(std::move(cut));
    };
    add([&](const Arc& next) { return next.source == arc.target; });
    std::vector<uint16_t> variables;
    for (const State& s : tables_.states) {
        for (const Arc& next : s.arcs) {
            if (reach.states[next.source] && std::ranges::find(variables, next.var) == variables.end()) {
                variables.push_back(next.var);
            }
        }
    }
    for (const uint16_t v : variables) {
        const Reach without = reach_from(tables_, arc.target, v);
        if (!without.ends) add([&](const Arc& next) { return next.var == v; });
    }
    add([&](const Arc& next) { return !tables_.states[next.target].accepts.empty(); });
}

KnownFuture::Reach KnownFuture::reach_from(const Tables& tables, uint32_t state, int32_t without) {
    Reach reach{std::vector<uint8_t>(tables.states.size(), 0), std::vector<std::vector<int32_t>>(tables.states.size()),
                false};
    reach.states[state] = 1;
    for (uint32_t slot = 0; slot < tables.states[state].slots; ++slot) {
        reach.slots[state].push_back(static_cast<int32_t>(slot));
    }
    for (bool more = true; more;) {
        more = false;
        for (const State& s : tables.states) {
            for (const Arc& arc : s.arcs) {
                if (reach.states[arc.source] == 0 || arc.var == without) continue;
                std::vector<int32_t> origin(tables.states[arc.target].slots, elsewhere);
                for (const Put& put : arc.puts) {
                    if (put.write != Write::copy || put.from < 0) continue;
                    origin[static_cast<size_t>(put.slot)] = reach.slots[arc.source][static_cast<size_t>(put.from)];
                }
                auto& known = reach.slots[arc.target];
                if (reach.states[arc.target] == 0) {
                    reach.states[arc.target] = 1;
                    known = std::move(origin);
                    more = true;
                    continue;
                }
                for (size_t slot = 0; slot < known.size(); ++slot) {
                    if (known[slot] == elsewhere || known[slot] == origin[slot]) continue;
                    known[slot] = elsewhere;
                    more = true;
                }
            }
        }
    }
    for (size_t s = 0; s < tables.states.size(); ++s) {
        reach.ends = reach.ends || (reach.states[s] != 0 && !tables.states[s].accepts.empty());
    }
    return reach;
}

KnownFuture::Follower KnownFuture::follower_of(const Arc& arc, const Arc& next, const std::vector<int32_t>& slots,
                                               int64_t least) {
    const auto setting_of = [&](uint32_t slot, bool of_row) -> std::optional<Setting> {
        const int32_t own = slots[slot];
        for (const Put& put : arc.puts) {
            if (own == elsewhere || put.slot != own) continue;
            if (put.write == Write::last && put.column >= 0) {
                return Setting{Setting::read, static_cast<uint32_t>(put.column)};
            }
            if (put.write == Write::copy && put.from >= 0 && !of_row) {
                return Setting{Setting::copied, static_cast<uint32_t>(put.from)};
            }
        }
        return std::nullopt;
    };
    Follower follower{next.number, least, 0, {}, 0, {}};
    std::vector<RegisterKey::Part> of_row, of_node;
    for (const auto& part : register_key(next, classifier_.programs()).parts) {
        if (const auto setting = setting_of(part.slot, true)) {
            of_row.push_back(part);
            follower.of_row.push_back(*setting);
        }
        if (const auto setting = setting_of(part.slot, false)) {
            of_node.push_back(part);
            follower.of_node.push_back(*setting);
        }
    }
    follower.by_row = add_rows_ahead(next.number, std::move(of_row));
    follower.by_node = add_rows_ahead(next.number, std::move(of_node));
    return follower;
}

uint32_t KnownFuture::add_rows_ahead(uint32_t arc, std::vector<RegisterKey::Part> parts) {
    for (auto& part : parts) part.slot = 0;  // only columns matter
    for (uint32_t k = 0; k < rows_ahead_.size(); ++k) {
        if (rows_ahead_[k].has_key(arc, parts)) return k;
    }
    rows_ahead_.emplace_back(arc, std::move(parts));
    return static_cast<uint32_t>(rows_ahead_.size() - 1);
}

void KnownFuture::sample_rows(const Batch& batch, size_t from) {
    uint32_t pattern[sampled_rows];
    const size_t rows = std::min(sampled_rows, batch.size - from);
    classifier_.classify(batch, from, rows, pattern);
    for (size_t i = 0; i < rows; ++i) {
        if (pattern[i] == 0) continue;
        for (const Binding& binding : bindings_) {
            if (classifier_.has(pattern[i], binding.event_class)) steps_ += binding.steps;
        }
    }
    sampled_rows_ += rows;
}

double KnownFuture::row_cost() const {
    if (row_cost_ != 0) return row_cost_;
    return static_cast<double>(FutureTrials::to_enter * steps_) /
           static_cast<double>(std::max(sampled_rows_, size_t{1}));
}

void KnownFuture::end_stretch(int64_t row, const Work& work, bool sifted) {
    if (stretch_rows_ == 0) return;
    const int64_t entering = entered_ * FutureTrials::to_enter;
    row_cost_ = std::max(1.0, static_cast<double>(entering) / static_cast<double>(stretch_rows_));
    trials_.end(row, work, entering + asked_ * FutureTrials::to_ask, saved_, sifted);
    if (!trials_.pays()) stretch_ = 0;
    stretch_rows_ = 0;
    entered_ = asked_ = saved_ = 0;
}

void KnownFuture::prepare(const Batch& batch, size_t from, int64_t stream_row, bool last, const Work& work,
                          bool sifted) {
    const int64_t row = stream_row + static_cast<int64_t>(from);
    if (stream_row != stream_row_ || batch.size != batch_size_) {  // another batch
        stream_row_ = stream_row;
        batch_size_ = batch.size;
        from_ = limit_ = 0;
    }
    batch_ = &batch;
    if (from >= from_ && from < limit_) return;
    end_stretch(row, work, sifted);
    from_ = limit_ = 0;
    if (batch.ts[batch.size - 1] == FAR) return;  // this time stands for none
    if (taking == Taking::never || (tables_.span < 0 && !last)) return;
    const bool always = taking == Taking::always, tries = !always && !trials_.pays();
    if (tries && !trials_.has_rested(row)) return;
    // Return the row behind the last one in the window of a row.
    const auto behind = [&](size_t first) {
        return static_cast<size_t>(std::upper_bound(batch.ts + first, batch.ts + batch.size, end_of(batch.ts[first])) -
                                   batch.ts);
    };
    // Only rows whose window ends within the batch gain by it, if events may come later.
    if (!last && behind(from) == batch.size) return;
    size_t limit =
        std::min(batch.size, from + (always ? tested_stretch : std::clamp(2 * stretch_, first_stretch, most_stretch)));
    size_t end = behind(limit - 1);
    // Rows behind the stretch are entered again for the next one, so it is some times as long as they are.
    if (const size_t long_enough = stretch_of_window * (end - limit); long_enough > limit - from) {
        limit = std::min(batch.size, from + long_enough);
        end = behind(limit - 1);
    }
    if (end == batch.size) limit = end;
    if (end - from > most_rows) return;
    if (tries && row_cost_ == 0) sample_rows(batch, from);
    if (tries && !trials_.allows(row, work, end - from, limit - from, row_cost(), sifted)) return;
    trials_.begin(row, work);
    stretch_ = limit - from;
    stretch_rows_ = end - from;
    open_ = end == batch.size && !last;
    from_ = from;
    limit_ = limit;
    enter_rows(batch, from, end);
}

void KnownFuture::place_rows(const Batch& batch, size_t from, size_t end) {
    rows_.clear();
    place_ = 0;
    const uint32_t* pattern = classifier_.classify_ahead(batch, from, end);
    while (concerns_.size() < classifier_.patterns()) {
        const auto next = static_cast<uint32_t>(concerns_.size());
        concerns_.push_back(std::ranges::any_of(
            bindings_, [&](const Binding& binding) { return classifier_.has(next, binding.event_class); }));
    }
    for (size_t row = from; row < end; ++row) {
        if (concerns_[pattern[row]] == 0) continue;
        const bool null = std::ranges::any_of(keys_, [&](uint32_t c) { return batch.columns[c].null(row); });
        if (!null) rows_.push_back(static_cast<uint32_t>(row));
    }
}

void KnownFuture::enter_rows(const Batch& batch, size_t from, size_t end) {
    horizon_ = batch.ts[end - 1];
    place_rows(batch, from, end);
    for (RowsAhead& rows : rows_ahead_) rows.clear(rows_.size());
    const size_t arcs = bindings_.size();
    const auto within = static_cast<size_t>(std::ranges::lower_bound(rows_, limit_) - rows_.begin());
    ends_.assign(within * arcs, FAR);
    std::vector<std::pair<uint32_t, int64_t>> bound;  // arcs that may bind the row, with the earliest ends
    const uint32_t* pattern = classifier_.classify_ahead(batch, from, end);
    for (size_t place = rows_.size(); place-- > 0;) {
        const PlacedRow placed{rows_[place], static_cast<uint32_t>(place)};
        bound.clear();
        for (uint32_t a = 0; a < arcs; ++a) {
            if (!classifier_.has(pattern[placed.row], bindings_[a].event_class)) continue;
            const int64_t ends = earliest_end(batch, bindings_[a], placed);
            if (ends == FAR || ends > end_of(batch.ts[placed.row])) continue;
            if (place < within) ends_[place * arcs + a] = ends;
            bound.emplace_back(a, ends);
        }
        for (const auto& [a, ends] : bound) {
            for (const uint32_t k : bindings_[a].entered) {
                rows_ahead_[k].add(batch, keys_, placed, ends);
                ++entered_;
            }
        }
    }
}

int64_t KnownFuture::earliest_end(const Batch& batch, const Binding& binding, PlacedRow placed) {
    if (binding.ends) return batch.ts[placed.row];
    int64_t latest = NEVER;
    for (const Cut& cut : binding.cuts) {
        if (!cut.asks_rows) continue;
        int64_t end = open_ ? horizon_ : FAR;
        for (const Follower& follower : cut.followers) {
            key_words_.clear();
            bool null = false;
            for (const Setting& setting : follower.of_row) {
                null = null || batch.columns[setting.from].null(placed.row);
                key_words_.push_back(batch.columns[setting.from].word(placed.row));
            }
            if (null) continue;
            ++entered_;
            end = std::min(end, rows_ahead_[follower.by_row].earliest_end(batch, keys_, placed, key_words_.data()));
        }
        latest = std::max(latest, end);
        if (latest == FAR) break;
    }
    return latest;
}

bool KnownFuture::may_be_followed(const Arc& arc, NodeList& list, uint32_t slots, uint32_t from, const Event& event,
                                  int64_t start, int64_t error) {
    Binding& binding = bindings_[arc.number];
    const int64_t latest = end_of(start);
    if (binding.ends || (open_ && latest >= horizon_)) return true;
    for (Cut& cut : binding.cuts) {
        if (!cut.asks_nodes || cut.trial.pauses()) continue;
        ++asked_;
        const bool passes = may_pass(cut, list, slots, from, event, latest, error);
        cut.trial.met += passes ? 0 : 1;
        if (++cut.trial.seen == Trial::size)
            cut.trial.end(taking == Taking::always || cut.trial.met >= Trial::size / 16);
        if (!passes) {
            note_saved(0, true);
            return false;
        }
    }
    return true;
}

bool KnownFuture::may_pass(const Cut& cut, NodeList& list, uint32_t slots, uint32_t from, const Event& event,
                           int64_t latest, int64_t error) {
    const Batch& batch = *event.batch;
    const PlacedRow now{event.row, place_of(event.row)};
    if (now.place == NIL) return false;
    for (const Follower& follower : cut.followers) {
        if (error + follower.least > tables_.budget) continue;
        key_words_.clear();
        bool null_value = false;
        for (const Setting& setting : follower.of_node) {
            if (setting.kind == Setting::read) {
                null_value = null_value || batch.columns[setting.from].null(now.row);
                key_words_.push_back(batch.columns[setting.from].word(now.row));
            } else {
                const uint8_t tag = list.plain ? uint8_t{value} : list.tags(setting.from, slots)[from];
                if (tag == unbound) return true;  // the comparison is dropped
                null_value = null_value || tag == null;
                key_words_.push_back(list.slot(setting.from)[from]);
            }
        }
        if (null_value) continue;
        const int64_t end = rows_ahead_[follower.by_node].earliest_end(batch, keys_, now, key_words_.data());
        if (end != FAR && end <= latest) return true;
    }
    return false;
}

template <class Archive>
void KnownFuture::fields(auto& self, Archive& archive) {
    constexpr int64_t most = int64_t{1} << 60;
    auto size = static_cast<int64_t>(self.batch_size_), stretch = static_cast<int64_t>(self.stretch_),
         limit = static_cast<int64_t>(self.limit_);
    archive.within(-1, most, self.stream_row_);
    auto rows = static_cast<int64_t>(self.stretch_rows_), sampled = static_cast<int64_t>(self.sampled_rows_);
    archive.within(0, int64_t{1} << 32, size, stretch, limit, rows, sampled);
    archive.within(0, most, self.steps_, self.entered_, self.asked_, self.saved_);
    archive.finite("costs of the known future", self.row_cost_);
    FutureTrials::fields(self.trials_, archive);
    for (auto& binding : self.bindings_) {
        for (auto& cut : binding.cuts) Trial::fields(cut.trial, archive, Trial::size - 1);
    }
    if constexpr (Archive::reads) {
        self.batch_ = nullptr;
        self.batch_size_ = static_cast<size_t>(size);
        self.stretch_ = static_cast<size_t>(stretch);
        self.stretch_rows_ = static_cast<size_t>(rows);
        self.sampled_rows_ = static_cast<size_t>(sampled);
        self.from_ = self.limit_ = static_cast<size_t>(limit);
    }
}

void KnownFuture::fields(Writer& out) const { fields(*this, out); }
void KnownFuture::fields(Reader& in) { fields(*this, in); }

int64_t KnownFuture::bytes() const {
    int64_t total = heap_bytes(ends_, rows_, concerns_, key_words_, rows_ahead_);
    for (const RowsAhead& rows : rows_ahead_) total += rows.bytes();
    return total;
}

}  // namespace acep
