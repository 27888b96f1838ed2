// Conditions over whole bindings: aggregates of variables, and negations (acep/reference/bindings.py).
#include "completion/conditions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/numbers.hpp"

namespace acep {

void Suspects::discard(size_t upto, size_t width) {
    head = upto;
    if (head < 64 || 2 * head < size()) {
        if (!empty()) return;
    }
    cut(width);
}

void Suspects::cut(size_t width) {
    const auto erase = [](auto& all, size_t n) {
        all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    };
    erase(ts, head);
    erase(positions, head);
    erase(rows, head * width);
    erase(valid, head * width);
    head = 0;
}

Conditions::Conditions(const Tables& tables, EventClassifier& classifier) : tables_(tables), classifier_(classifier) {
    change();
}

void Conditions::change() {
    arcs_.clear();
    for (const State& s : tables_.states) {
        for (const Arc& a : s.arcs) {
            if (arcs_.size() <= a.number) arcs_.resize(a.number + size_t{1}, &gone_);
            arcs_[a.number] = &a;
        }
    }
    events_.resize(tables_.variables);
    gathered_.resize(tables_.variables, 0);
}

// Two passes over the differences from the first value, in doubles, as in acep/reference/bindings.py.
Conditions::Word Conditions::deviation(std::span<const int64_t> words, bool floats, bool population) {
    const auto n = static_cast<double>(words.size());
    const double by = population ? n : n - 1;
    if (by <= 0) return {0, false};
    const auto from_first = [&](int64_t word) {
        if (floats) return std::bit_cast<double>(word) - std::bit_cast<double>(words[0]);
        return static_cast<double>(static_cast<int128>(word) - words[0]);
    };
    double mean = 0;
    for (const int64_t word : words) mean += from_first(word);
    mean /= n;
    double squares = 0;
    for (const int64_t word : words) {
        const double off = from_first(word) - mean;
        const double square = off * off;
        squares += square;
    }
    const double result = std::sqrt(squares / by);
    return {std::bit_cast<int64_t>(result), !std::isnan(result)};  // NaN, from infinities, is null
}

Conditions::Word Conditions::summary(const Ref& ref, std::span<const uint32_t> events, const Rows& rows) const {
    const auto n = static_cast<int64_t>(events.size());
    if (ref.how == How::length) return {n, true};
    const auto place = [&](int64_t i) {
        return events[static_cast<size_t>(i)] * rows.width + static_cast<size_t>(ref.column);
    };
    const auto at = [&](int64_t i) { return Word{rows.rows[place(i)], rows.valid[place(i)] != 0}; };
    const Word none{ref.otherwise, ref.fallback};
    int128 total = 0;
    double sum = 0;
    int64_t known = 0;
    Word found{0, false};
    switch (ref.how) {
        case How::nth: return ref.n <= n ? at(ref.n - 1) : none;
        case How::count:
            for (int64_t i = 0; i < n; ++i) known += at(i).valid ? 1 : 0;
            return {known, true};
        case How::sum:
        case How::average:
            for (int64_t i = 0; i < n; ++i) {
                const Word w = at(i);
                if (!w.valid) continue;
                total += w.word;
                ++known;
            }
            if (known == 0) return {0, false};
            if (ref.how == How::average) return {std::bit_cast<int64_t>(average(total, known, ref.n)), true};
            return {static_cast<int64_t>(total), total >= int64_min && total <= int64_max};
        case How::add:
        case How::mean:
            for (int64_t i = 0; i < n; ++i) {
                const Word w = at(i);
                if (!w.valid) continue;
                const double x = std::bit_cast<double>(w.word);
                sum = known == 0 ? x : sum + x;
                ++known;
            }
            if (ref.how == How::mean && known != 0) sum /= static_cast<double>(known);
            return {std::bit_cast<int64_t>(sum), known != 0 && !std::isnan(sum)};  // NaN, from two infinities, is null
        case How::least:
        case How::greatest:
            for (int64_t i = 0; i < n; ++i) {
                const Word w = at(i);
                if (!w.valid) continue;
                const int order = found.valid ? order_of(ref.n, w.word, found.word, classifier_.texts) : 0;
                if (!found.valid || (ref.how == How::least ? order < 0 : order > 0)) found = w;
            }
            return found;
        case How::distinct: {
            std::vector<int64_t> words;
            for (int64_t i = 0; i < n; ++i) {
                if (const Word w = at(i); w.valid) words.push_back(w.word);
            }
            std::sort(words.begin(), words.end());
            return {std::unique(words.begin(), words.end()) - words.begin(), true};
        }
        case How::spread: {
            std::vector<int64_t> words;
            for (int64_t i = 0; i < n; ++i) {
                if (const Word w = at(i); w.valid) words.push_back(w.word);
            }
            return deviation(words, ref.n >= 2, ref.n % 2 == 1);
        }
        default: return n != 0 ? at(n - 1) : none;
    }
}

// HAVING and RETURN ------------------------------------------------------------------------------

void Conditions::group_events(const Binding& binding) {
    for (auto& events : events_) events.clear();
    for (uint32_t s = 0; s < binding.size(); ++s) events_[binding.vars[s]].push_back(s);
}

void Conditions::load_references(const Whole& whole, const Binding& binding) {
    const Rows rows{binding.rows.data(), binding.valid.data(), tables_.kept.size()};
    words_.resize(std::max(words_.size(), whole.refs.size()));
    valid_.resize(std::max(valid_.size(), whole.refs.size()));
    leaves_.clear();
    for (size_t k = 0; k < whole.refs.size(); ++k) {
        const Ref& ref = whole.refs[k];
        const Word w = summary(ref, events_[static_cast<size_t>(ref.var)], rows);
        words_[k] = w.word;
        valid_[k] = w.valid ? 1 : 0;
        leaves_.push_back({&words_[k], &valid_[k], 0});
    }
}

bool Conditions::meets_having(const Binding& binding) {
    if (tables_.having.empty()) return true;
    group_events(binding);
    load_references(tables_.having[0], binding);
    uint8_t pass = 0;
    classifier_.programs()[tables_.having[0].program].test(leaves_.data(), 1, classifier_.texts, scratch_, &pass);
    return pass != 0;
}

void Conditions::add_returns(Binding& binding) {
    if (tables_.returns.empty()) return;
    group_events(binding);
    for (const Whole& whole : tables_.returns) {
        load_references(whole, binding);
        int64_t word = 0;
        uint8_t known = 0;
        classifier_.programs()[whole.program].value(leaves_.data(), 1, classifier_.texts, scratch_, &word, &known);
        binding.values.push_back(known != 0 ? word : 0);
        binding.known.push_back(known);
    }
}

// Negations --------------------------------------------------------------------------------------

void Conditions::gather_events(const Negation& negation, const CrossingRun& run, uint32_t var) {
    const auto has = [&](uint32_t g) { return tables_.groups[g][var] != 0; };
    size_t enclosing = 0;  // number of outer groups up to the innermost one that contains the variable
    for (size_t i = 0; i < negation.around.size(); ++i) {
        if (has(negation.around[i])) enclosing = i + 1;
    }
    const auto encloses = [&](uint32_t g) {
        const auto end = negation.around.begin() + static_cast<std::ptrdiff_t>(enclosing);
        return std::find(negation.around.begin(), end, g) != end;
    };
    size_t first = 0, last = run.binding.size();
    if (enclosing != 0) {
        const bool entered = run.next == 0 || std::ranges::any_of(run.crossing.entered, encloses);
        const size_t inside = entered ? run.next : run.next - 1;
        for (size_t s = 1; s < run.binding.size(); ++s) {
            if (!std::ranges::any_of(arc(run.arcs[s]).resets, encloses)) continue;
            if (s <= inside) {
                first = s;
            } else {
                last = s;
                break;
            }
        }
    }
    auto& events = events_[var];
    events.clear();
    for (size_t s = first; s < last; ++s) {
        if (s > first && std::ranges::any_of(arc(run.arcs[s]).resets, has)) events.clear();
        if (run.binding.vars[s] == var) events.push_back(static_cast<uint32_t>(s));
    }
}

bool Conditions::gather_all_events(const Negation& negation, const CrossingRun& run) {
    std::fill(gathered_.begin(), gathered_.end(), uint8_t{0});
    for (const Conjunct& c : negation.conjuncts) {
        for (const Ref& ref : c.refs) {
            if (ref.var < 0 || gathered_[static_cast<size_t>(ref.var)] != 0) continue;
            const auto var = static_cast<uint32_t>(ref.var);
            gather_events(negation, run, var);
            if (events_[var].empty()) return false;
            gathered_[var] = 1;
        }
    }
    return true;
}

bool Conditions::count_combinations(const Negation& negation) {
    combinations_.assign(negation.conjuncts.size(), 1);
    for (size_t i = 0; i < negation.conjuncts.size(); ++i) {
        const Conjunct& c = negation.conjuncts[i];
        for (const auto& l : c.least) {
            if (gathered_[l.var] != 0 && events_[l.var].size() < l.events) return false;
        }
        for (const auto& l : c.loops) {
            const size_t n = gathered_[l.var] != 0 ? events_[l.var].size() : 0;
            combinations_[i] *= n > l.low ? n - l.low : 0;
        }
    }
    return true;
}

void Conditions::prepare(const Negation& negation, const Binding& binding) {
    const Rows rows{binding.rows.data(), binding.valid.data(), tables_.kept.size()};
    prepared_.resize(std::max(prepared_.size(), negation.conjuncts.size()));
    for (size_t i = 0; i < negation.conjuncts.size(); ++i) {
        const Conjunct& c = negation.conjuncts[i];
        prepared_[i].resize(std::max(prepared_[i].size(), c.refs.size()));
        for (size_t k = 0; k < c.refs.size(); ++k) {
            prepared_[i][k].clear();
            if (c.refs[k].var >= 0 && combinations_[i] != 0) prepare_values(c, c.refs[k], rows, prepared_[i][k]);
        }
    }
}

void Conditions::prepare_values(const Conjunct& conjunct, const Ref& ref, const Rows& rows, Prepared& values) const {
    const std::span<const uint32_t> events(events_[static_cast<size_t>(ref.var)]);
    if (ref.loop < 0) {
        values.push_back(summary(ref, events, rows));
        return;
    }
    for (size_t i = conjunct.loops[static_cast<size_t>(ref.loop)].low; i < events.size(); ++i) {
        if (ref.how == How::each || ref.how == How::previous) {
            const size_t cell = events[ref.how == How::each ? i : i - 1] * rows.width + static_cast<size_t>(ref.column);
            values.push_back({rows.rows[cell], rows.valid[cell] != 0});
        } else {
            values.push_back(summary(ref, events.first(i), rows));
        }
    }
}

size_t Conditions::loop_stride(const Conjunct& conjunct, const Ref& ref) const {
    size_t stride = 1;
    for (size_t l = static_cast<size_t>(ref.loop) + 1; l < conjunct.loops.size(); ++l) {
        stride *= events_[conjunct.loops[l].var].size() - conjunct.loops[l].low;
    }
    return stride;
}

void Conditions::load_values(const Negation& negation, size_t i, const Suspects& suspects, size_t first, size_t row,
                             size_t count) {
    const Conjunct& c = negation.conjuncts[i];
    const Rows rows{suspects.rows.data(), suspects.valid.data(), negation.columns.size()};
    leaves_.clear();
    for (size_t r = 0; r < c.refs.size(); ++r) {
        const Ref& ref = c.refs[r];
        int64_t* words = words_.data() + r * block_rows;
        uint8_t* valid = valid_.data() + r * block_rows;
        const Prepared& values = prepared_[i][r];
        const bool constant = ref.var >= 0 && ref.loop < 0;
        const size_t stride = ref.loop >= 0 ? loop_stride(c, ref) : 1;
        for (size_t x = 0; x < (constant ? 1 : count); ++x) {
            Word w{};
            if (ref.var < 0) {
                const auto event = static_cast<uint32_t>(first + (row + x) / combinations_[i]);
                w = summary(ref, {&event, 1}, rows);
            } else {
                w = constant ? values[0] : values[(row + x) / stride % values.size()];
            }
            words[x] = w.word;
            valid[x] = w.valid ? 1 : 0;
        }
        leaves_.push_back({words, valid, constant ? 0u : 1u});
    }
}

void Conditions::test_conjunct(const Negation& negation, size_t i, const Suspects& suspects, size_t first) {
    const Conjunct& c = negation.conjuncts[i];
    words_.resize(std::max(words_.size(), c.refs.size() * block_rows));
    valid_.resize(std::max(valid_.size(), c.refs.size() * block_rows));
    const size_t total = pass_.size() * combinations_[i];
    for (size_t row = 0; row < total; row += block_rows) {
        const size_t count = std::min(total - row, block_rows);
        load_values(negation, i, suspects, first, row, count);
        uint8_t pass[block_rows];
        classifier_.programs()[c.program].test(leaves_.data(), count, classifier_.texts, scratch_, pass);
        for (size_t x = 0; x < count; ++x) pass_[(row + x) / combinations_[i]] &= pass[x];
    }
}

int64_t Conditions::count_breaking(const CrossingRun& run, const Suspects& suspects, size_t from, size_t to,
                                   int64_t most) {
    const Negation& negation = tables_.negations[run.crossing.negation];
    const auto all = static_cast<int64_t>(to - from);
    if (all <= 0 || most <= 0) return 0;
    if (negation.conjuncts.empty()) return std::min(all, most);
    if (!gather_all_events(negation, run) || !count_combinations(negation)) return 0;
    prepare(negation, run.binding);
    int64_t count = 0;
    for (size_t first = from; first < to && count < most; first += block_rows) {
        pass_.assign(std::min(to - first, block_rows), 1);
        for (size_t i = 0; i < negation.conjuncts.size(); ++i) {
            if (combinations_[i] != 0) test_conjunct(negation, i, suspects, first);
        }
        count += std::count(pass_.begin(), pass_.end(), uint8_t{1});
    }
    return std::min(count, most);
}

}  // namespace acep
