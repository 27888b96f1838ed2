// Keeping events, and searching back from the last one of a match.
#include "search/search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "common/hash.hpp"

namespace acep {
namespace {

constexpr size_t least_rows = 64;
constexpr uint8_t is_null = 0;
constexpr int64_t costs_of_program = 8;  // hops

uint64_t with(uint64_t hash, int64_t word) { return mixed(hash + static_cast<uint64_t>(word) + golden_step); }

}  // namespace

SearchEngine::SearchEngine(Tables tables, EventClassifier& classifier, Partitions& partitions)
    : Engine(std::move(tables), classifier, partitions), plan_(search_plan(tables_, classifier.programs())) {
    first_rank_ = first_link + plan_.indexes.size();
    first_failure_ = first_rank_ + plan_.ranks.size();
    first_need_ = first_failure_ + plan_.failures;
    first_value_ = first_need_ + plan_.needs;
    stride_ = first_value_ + plan_.columns.size();
    current_.resize(stride_);
    heads_.resize(plan_.indexes.size());
    size_t levels = 0, refs = 0;
    for (const SearchPath& path : plan_.paths) {
        levels = std::max<size_t>(levels, path.levels);
        for (const SearchStep& step : path.steps) {
            for (const SearchCheck& check : step.checks) refs = std::max(refs, check.refs.size());
        }
    }
    bound_.resize(levels);
    numbers_.resize(levels);
    leaves_.resize(refs);
}

uint32_t SearchEngine::kinds_of(uint32_t pattern) {
    while (kinds_.size() <= pattern) {
        uint32_t bits = 0;
        for (size_t kind = 0; kind < plan_.classes.size(); ++kind) {
            if (classifier_.has(static_cast<uint32_t>(kinds_.size()), plan_.classes[kind])) bits |= 1u << kind;
        }
        kinds_.push_back(bits);
    }
    return kinds_[pattern];
}

uint32_t SearchEngine::pattern_of(uint32_t kinds) const {
    std::vector<uint64_t> bits(classifier_.bits(0).size(), 0);
    for (size_t kind = 0; kind < plan_.classes.size(); ++kind) {
        const uint32_t wanted = plan_.classes[kind];
        if ((kinds >> kind & 1) != 0) bits[wanted / 64] |= uint64_t{1} << (wanted % 64);
    }
    return classifier_.pattern_of(bits);
}

void SearchEngine::event(uint32_t partition, const Event& event) {
    if (!begin(partition, event)) return;
    if (may_end(partition)) {
        const int64_t error = least_error(partition);
        if (given_up_) return;
        if (error != no_error) give(partition, event, error);
    }
    keep(partition);
}

bool SearchEngine::begin(uint32_t partition, const Event& event) {
    const uint32_t kinds = kinds_of(event.pattern);
    if (parts_.size() <= partition) parts_.resize(size_t{partition} + 1);
    low_ = earliest(event.ts, tables_.span);
    given_up_ = false;
    if (!concerns(parts_[partition], kinds)) return false;
    read(partition, event, kinds);
    return true;
}

bool SearchEngine::may_end(uint32_t partition) const {
    const uint32_t kinds = current_kinds();
    const bool is_alone = (kinds & plan_.ending & plan_.first) != 0;
    return (kinds & plan_.ending) != 0 && (is_alone || parts_[partition].last_first >= low_);
}

bool SearchEngine::concerns(const Part& part, uint32_t kinds) const {
    return (kinds & plan_.first) != 0 || (part.last_first >= low_ && (kinds & (plan_.ending | plan_.kept)) != 0);
}

void SearchEngine::keep_only(uint32_t partition, const Event& event) {
    if (begin(partition, event)) keep(partition);
}

int64_t SearchEngine::least_error(uint32_t partition, int64_t least, int64_t most) {
    const Part& part = parts_[partition];
    const uint32_t kinds = current_kinds();
    since_ = std::max(begin_, part.since);
    ++searches_;
    until_ = limit == endless_work ? endless_work : work_.touches + limit;
    most_hops_ = hop_limit == endless_work ? endless_work : hops + hop_limit;
    for (const SearchPath& path : plan_.paths) {
        if ((kinds >> path.last_kind & 1) == 0 || (path.levels > 1 && part.last_first < low_)) continue;
        if (path.error < least || path.error > most) continue;
        path_ = &path;
        bound_[path.levels - 1] = current_.data();
        numbers_[path.levels - 1] = end_;
        if (search(0)) return path.error;
        if (given_up_) break;
    }
    return no_error;
}

void SearchEngine::give(uint32_t partition, const Event& event, int64_t error) {
    const int64_t bundle = parts_[partition].bundle.at(event.ts, event.position, tables_.span, tables_.counted);
    output_.add(event.ts, event.ts, error, bundle, partitions_.key(partition), partitions_.width());
    output_.offsets.push_back(0);
    output_.at.push_back(arrived);
    ++work_.matches;
}

void SearchEngine::read(uint32_t partition, const Event& event, uint32_t kinds) {
    current_[time_word] = event.ts;
    current_[place_word] = static_cast<int64_t>(uint64_t{partition} | uint64_t{kinds} << 32);
    uint64_t valid = 0;
    for (size_t k = 0; k < plan_.columns.size(); ++k) {
        const Column& column = event.batch->columns[plan_.columns[k]];
        const bool null = column.null(event.row);
        current_[first_value_ + k] = null ? 0 : column.values[event.row];
        valid |= uint64_t{null ? 0u : 1u} << k;
    }
    current_[valid_word] = static_cast<int64_t>(valid);
}

void SearchEngine::keep(uint32_t partition) {
    const uint32_t kinds = current_kinds();
    if ((kinds & plan_.kept) == 0) return;
    Part& part = parts_[partition];
    const int64_t now = current_[time_word];
    if ((kinds & plan_.first) != 0) part.last_first = std::max(part.last_first, now);
    part.last = std::max(part.last, now);
    add_row();
}

void SearchEngine::add_row() {
    if (static_cast<size_t>(end_ - begin_) == mask_ + 1 || words_.empty()) grow();
    sorted_ = (sorted_ || begin_ == end_) && (begin_ == end_ || current_[time_word] >= newest_);
    newest_ = current_[time_word];
    std::fill_n(current_.begin() + static_cast<std::ptrdiff_t>(first_failure_), plan_.failures, int64_t{0});
    std::fill_n(current_.begin() + static_cast<std::ptrdiff_t>(first_need_), plan_.needs, not_looked);
    std::copy(current_.begin(), current_.end(), row(end_));
    link(end_++);
}

void SearchEngine::grow() {
    const size_t rows = words_.empty() ? least_rows : 2 * (mask_ + 1);
    std::vector<int64_t> words(rows * stride_);
    for (int64_t number = begin_; number < end_; ++number) {
        std::copy_n(row(number), stride_, words.data() + (static_cast<size_t>(number) & (rows - 1)) * stride_);
    }
    words_.swap(words);
    mask_ = rows - 1;
    for (auto& heads : heads_) heads.assign(2 * rows, none);
    for (int64_t number = begin_; number < end_; ++number) link(number);
}

void SearchEngine::link(int64_t number) {
    int64_t* const words = row(number);
    for (size_t i = 0; i < plan_.indexes.size(); ++i) {
        // Where the index has all rows of a partition, other rows have a link to the last one of them, too.
        const SearchIndex& index = plan_.indexes[i];
        const bool member = is_of(words, index.kind);
        uint64_t hash = 0;
        if ((!member && !index.parts.empty()) || !hash_of(index, words, hash)) continue;
        int64_t& head = heads_[i][hash & (heads_[i].size() - 1)];
        words[first_link + i] = head;
        if (member) head = number;
    }
    for (size_t i = 0; i < plan_.ranks.size(); ++i) {
        if (is_of(words, plan_.indexes[plan_.ranks[i].index].kind)) link_by_rank(number, i);
    }
}

bool SearchEngine::has_value(const int64_t* row, const SearchRanks& ranks) const {
    if ((static_cast<uint64_t>(row[valid_word]) >> ranks.value & 1) == 0) return false;
    return !ranks.doubles || !std::isnan(std::bit_cast<double>(values(row)[ranks.value]));
}

bool SearchEngine::is_beyond(const int64_t* row, const int64_t* other, const SearchRanks& ranks) const {
    int64_t x = values(row)[ranks.value], y = values(other)[ranks.value];
    if (!ranks.lower) std::swap(x, y);
    return ranks.doubles ? std::bit_cast<double>(x) < std::bit_cast<double>(y) : x < y;
}

void SearchEngine::link_by_rank(int64_t number, size_t place) {
    const SearchRanks& ranks = plan_.ranks[place];
    int64_t* const words = row(number);
    int64_t other = words[first_link + ranks.index];
    while (has_value(words, ranks) && other >= begin_) {
        const int64_t* const before = row(other);
        const bool same = partition_of(before) == partition_of(words);
        if (same && has_value(before, ranks) && is_beyond(before, words, ranks)) break;
        other = before[same ? first_rank_ + place : first_link + ranks.index];
    }
    words[first_rank_ + place] = other;
}

bool SearchEngine::hash_of(const SearchIndex& index, const int64_t* row, uint64_t& hash) const {
    hash = with(0, partition_of(row));
    for (const auto& part : index.parts) {
        if ((static_cast<uint64_t>(row[valid_word]) >> part.slot & 1) == 0) return false;
        hash = with(hash, part.cell(values(row)[part.slot]));
    }
    return true;
}

// Find rows for the steps from `number` on. Return whether there are some.
bool SearchEngine::search(size_t number) {
    if (number == path_->steps.size()) return true;
    const SearchStep& step = path_->steps[number];
    const int64_t above = numbers_[step.above];
    const int64_t below = step.below < 0 ? since_ - 1 : numbers_[static_cast<size_t>(step.below)];
    if (step.follows) {
        return search_chain(step, number, row(above)[first_link + step.index], 0, above, below);
    }
    return search_cells(step, number, 0, with(0, partition_of(current_.data())), above, below);
}

bool SearchEngine::search_cells(const SearchStep& step, size_t number, size_t part, uint64_t hash, int64_t above,
                                int64_t below) {
    if (part == step.links.size()) {
        const auto& heads = heads_[step.index];
        return search_chain(step, number, heads[hash & (heads.size() - 1)], hash, above, below);
    }
    const SearchLink& link = step.links[part];
    const int64_t* const other = bound_[link.other.level];
    if ((static_cast<uint64_t>(other[valid_word]) >> link.other.place & 1) == 0) return false;
    const int64_t word = values(other)[link.other.place];
    const auto cells = link.part.cells(word);
    if (cells.is_wide()) return search_all(step, number, above, below);
    for (int64_t cell = cells.first;; ++cell) {
        if (search_cells(step, number, part + 1, with(hash, cell), above, below)) return true;
        if (cell == cells.last || given_up_) return false;
    }
}

bool SearchEngine::search_chain(const SearchStep& step, size_t number, int64_t from, uint64_t hash, int64_t above,
                                int64_t below) {
    const size_t link = first_link + step.index;
    const size_t ranked = step.order ? first_rank_ + step.order->place : link;
    for (int64_t at = from, next; at > below && at >= begin_; at = next) {
        const int64_t* const words = row(at);
        next = words[link];
        if (++hops > most_hops_) given_up_ = true;
        if (given_up_) return false;
        if (at >= above) continue;
        if (words[time_word] < low_) {
            if (sorted_) return false;
            continue;
        }
        if (step.near) {
            // A row of other cells is found with these, or not.
            uint64_t own = 0;
            if (!hash_of(plan_.indexes[step.index], words, own) || own != hash) continue;
        }
        if (step.order && partition_of(words) == partition_of(current_.data())) {
            bound_[step.level] = words;
            if (!holds(step.order->check)) {
                if (++work_.touches > until_) given_up_ = true;
                if (given_up_) return false;
                next = words[ranked];
                continue;
            }
        }
        const Tried tried = try_row(step, number, at);
        if (given_up_) return false;
        if (tried == Tried::succeeded) return true;
        if (tried == Tried::failed && step.greedy) return false;
    }
    return false;
}

bool SearchEngine::search_all(const SearchStep& step, size_t number, int64_t above, int64_t below) {
    for (int64_t at = above - 1; at > below && at >= begin_; --at) {
        const int64_t* const words = row(at);
        if (++hops > most_hops_) given_up_ = true;
        if (given_up_) return false;
        if (words[time_word] < low_ || !is_of(words, step.kind)) continue;
        if (try_row(step, number, at) == Tried::succeeded) return true;
        if (given_up_) return false;
    }
    return false;
}

SearchEngine::Tried SearchEngine::try_row(const SearchStep& step, size_t number, int64_t at) {
    int64_t* const words = row(at);
    if (partition_of(words) != partition_of(current_.data())) return Tried::no;
    for (const SearchLink& link : step.equal) {
        const int64_t* const other = bound_[link.other.level];
        const uint64_t valid = static_cast<uint64_t>(words[valid_word]) >> link.part.slot &
                               static_cast<uint64_t>(other[valid_word]) >> link.other.place & 1;
        if (valid == 0) return Tried::no;
        const int64_t own = values(words)[link.part.slot];
        if (!equal_words(own, values(other)[link.other.place], link.part.doubles)) return Tried::no;
    }
    // Other rows of a bucket of the index are not counted, as which these are depends on how texts are numbered.
    if (++work_.touches > until_) given_up_ = true;
    if (step.failures >= 0 && words[first_failure_ + static_cast<size_t>(step.failures)] == searches_) return Tried::no;
    bound_[step.level] = words;
    for (const SearchCheck& check : step.checks) {
        if (!holds(check)) return Tried::no;
    }
    if (!step.needs.empty() && (reach(step, at) < low_ || given_up_)) return Tried::no;
    ++work_.nodes;
    numbers_[step.level] = at;
    if (search(number + 1)) return Tried::succeeded;
    if (given_up_) return Tried::no;
    if (step.failures >= 0) words[first_failure_ + static_cast<size_t>(step.failures)] = searches_;
    return Tried::failed;
}

int64_t SearchEngine::reach(const SearchStep& step, int64_t at) {
    int64_t least = row(at)[time_word];
    for (const SearchNeed& need : step.needs) {
        const size_t note = first_need_ + need.place;
        if (row(at)[note] == not_looked) {
            const int64_t latest = latest_needed(need, at);
            bound_[step.level] = row(at);
            if (given_up_) return least;
            row(at)[note] = latest;
        }
        least = std::min(least, row(at)[note]);
        if (least < low_) break;
    }
    return least;
}

int64_t SearchEngine::latest_needed(const SearchNeed& need, int64_t at) {
    int64_t latest = NEVER;
    const uint32_t partition = partition_of(current_.data());
    const size_t link = first_link + need.index;
    int64_t other = row(at)[link];
    for (int64_t next; other >= since_; other = next) {
        const int64_t* const words = row(other);
        next = words[link];
        if (++hops > most_hops_) given_up_ = true;
        if (given_up_) return latest;
        if (words[time_word] < low_ || words[time_word] <= latest) {
            if (sorted_) break;
            continue;
        }
        if (partition_of(words) != partition) continue;
        if (++work_.touches > until_) given_up_ = true;
        if (given_up_) return latest;
        bound_[need.level] = words;
        if (need.order && !holds(need.order->check)) {
            next = words[first_rank_ + need.order->place];
            continue;
        }
        if (!std::ranges::all_of(need.checks, [&](const SearchCheck& check) { return holds(check); })) continue;
        latest = std::max(latest, reach(path_->steps[need.step], other));
        if (given_up_) return latest;
    }
    return latest;
}

bool SearchEngine::holds(const SearchCheck& check) {
    static constexpr int64_t truth[2] = {0, 1};
    const auto valid_at = [&](const SearchRef& ref) {
        return ref.place < 0 || (static_cast<uint64_t>(bound_[ref.level][valid_word]) >> ref.place & 1) != 0;
    };
    if (check.simple) {
        const SearchRef &a = check.refs[check.simple->a], &b = check.refs[check.simple->b];
        return valid_at(a) && valid_at(b) &&
               check.simple->holds(values(bound_[a.level])[a.place], values(bound_[b.level])[b.place]);
    }
    for (size_t k = 0; k < check.refs.size(); ++k) {
        const SearchRef& ref = check.refs[k];
        const bool valid = valid_at(ref);
        if (ref.one) {
            leaves_[k] = {truth + (valid ? 1 : 0), nullptr, 0};
        } else {
            leaves_[k] = {values(bound_[ref.level]) + ref.place, valid ? nullptr : &is_null, 0};
        }
    }
    const BlockProgram& program = classifier_.programs()[check.program];
    hops += costs_of_program;
    if (program.short_way()) return program.passes(leaves_.data(), 0);
    uint8_t pass = 0;
    program.test(leaves_.data(), 1, classifier_.texts, scratch_, &pass);
    return pass != 0;
}

void SearchEngine::advance(int64_t clock) { free_before(earliest(clock, tables_.span)); }

void SearchEngine::free_before(int64_t low) {
    while (begin_ < end_ && row(begin_)[time_word] < low) ++begin_;
}

bool SearchEngine::expire_partition(uint32_t partition, int64_t soonest) {
    if (partition >= parts_.size()) return true;
    const int64_t low = earliest(soonest, tables_.span);
    return parts_[partition].last < low && parts_[partition].bundle.closed(low, tables_.counted);
}

void SearchEngine::forget(uint32_t partition) {
    if (partition >= parts_.size()) return;
    parts_[partition] = Part{};
    parts_[partition].since = end_;
}

void SearchEngine::used_texts(UsedTexts& used) const {
    output_.used_texts(used);
    for (int64_t number = begin_; number < end_; ++number) {
        used.add({values(row(number)), plan_.columns.size()});
    }
}

int64_t SearchEngine::bytes() const {
    int64_t total = heap_bytes(words_, parts_, kinds_, current_, bound_, numbers_, heads_);
    for (const auto& heads : heads_) total += heap_bytes(heads);
    return total;
}

int64_t SearchEngine::partial_matches(int64_t clock) const {
    const int64_t low = earliest(clock, tables_.span);
    int64_t alive = 0;
    for (int64_t number = begin_; number < end_; ++number) {
        const int64_t* const words = row(number);
        alive += words[time_word] >= low && number >= parts_[partition_of(words)].since ? 1 : 0;
    }
    return alive;
}

}  // namespace acep
