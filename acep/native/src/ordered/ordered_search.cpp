#include "ordered/ordered_search.hpp"

#include <algorithm>
#include <map>

#include "common/numbers.hpp"

namespace acep {

namespace {

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

}  // namespace

size_t MemoryGauge::start() {
    if (useless_) on_ = false;
    return on_ ? static_cast<size_t>(-1) : most_moves();
}

void MemoryGauge::note(bool fresh) {
    ++(fresh ? fresh_ : met_);
    if (fresh_ + met_ < std::max(least_moves, 2 * most_moves())) return;
    useless_ = met_ * 64 < fresh_;
    fresh_ = met_ = 0;
}

void MemoryGauge::fail(size_t moves) {
    if (on_) return;
    rows_ = 0;
    wasted_ += moves;
    if (wasted_ > least_moves) begin();
}

void MemoryGauge::begin() {
    on_ = true;
    useless_ = false;
    fresh_ = met_ = wasted_ = 0;
}

OrderedSearch::OrderedSearch(OrderedPattern pattern)
    : pattern_(std::move(pattern)),
      reachable_(pattern_.graph),
      bound_(pattern_.references, pattern_.sets, pattern_.graph.labels()),
      conditions_(pattern_.conditions, pattern_.graph.labels()),
      pass_(pattern_.graph, reachable_.masks(), pattern_.sets, conditions_, pattern_.references) {
    check();
    find_remembered();
}

void OrderedSearch::check() const {
    if (pattern_.live.size() != pattern_.graph.size()) refuse("live: a list for each state");
    const bool to_set = pattern_.skip == Skip::to_first || pattern_.skip == Skip::to_last;
    if (to_set && pattern_.skip_set >= pattern_.sets.size()) refuse("skip: a set beyond all");
}

void OrderedSearch::find_remembered() {
    const PatternGraph& graph = pattern_.graph;
    std::vector<uint8_t> conditional(graph.labels(), 0);
    for (const RowCondition& condition : pattern_.conditions) {
        conditional[condition.label] = 1;
        for (const uint32_t reference : condition.references) {
            numbered_ = numbered_ || pattern_.references[reference].kind == Reference::match_number;
        }
    }
    open_ = graph.leading_to(conditional);
    remembered_.assign(graph.size(), 0);
    keys_.assign(graph.size(), 0);
    std::map<std::vector<uint32_t>, uint32_t> numbers;
    for (size_t s = 0; s < graph.size(); ++s) {
        remembered_[s] = graph.joins(s);
        if (!graph.joins(s)) continue;
        const auto [entry, fresh] = numbers.try_emplace(pattern_.live[s], static_cast<uint32_t>(numbers.size()));
        if (fresh) key_references_.push_back(bound_.key_references(pattern_.live[s]));
        keys_[s] = entry->second;
    }
}

void OrderedSearch::check(const OrderedInput& input) const {
    const size_t rows = input.view.rows;
    if (input.local.size() != pattern_.graph.labels()) refuse("local: one for each label");
    if (input.offsets.empty() || input.offsets.front() != 0 || input.offsets.back() != rows) {
        refuse("partitions: offsets from 0 to the number of rows");
    }
    for (size_t p = 0; p + 1 < input.offsets.size(); ++p) {
        if (input.offsets[p] >= input.offsets[p + 1]) refuse("partitions: offsets that rise");
        for (size_t row = input.offsets[p] + 1; input.times != nullptr && row < input.offsets[p + 1]; ++row) {
            if (input.times[row - 1] > input.times[row]) refuse("times: not ascending in a partition");
        }
    }
    for (const Reference& reference : pattern_.references) {
        if (!reference.reads_column()) continue;
        if (reference.column >= input.view.columns.size()) refuse("columns: a reference to one beyond all");
        const size_t length = reference.reads_label() ? pattern_.graph.labels() : rows;
        if (input.view.lengths[reference.column] != length) refuse("columns: of another length than rows or labels");
    }
    check_starts(input);
}

void OrderedSearch::check_starts(const OrderedInput& input) const {
    if (input.open_label != OrderedInput::no_label && input.open_label >= pattern_.graph.labels()) {
        refuse("open label: beyond all");
    }
    const size_t partitions = input.offsets.size() - 1;
    if (input.starts.size() != input.stops.size() || input.starts.size() != input.numbers.size()) {
        refuse("starts: a start, a stop and a number for each partition");
    }
    if (input.starts.empty()) return;
    if (input.starts.size() != partitions) refuse("starts: one for each partition");
    for (size_t p = 0; p < partitions; ++p) {
        const size_t rows = input.offsets[p + 1] - input.offsets[p];
        if (input.starts[p] > input.stops[p] || input.stops[p] > rows) refuse("starts: not before the stop");
        if (input.numbers[p] < 0) refuse("numbers: below 0");
    }
}

void OrderedSearch::start(OrderedInput input) {
    started_ = false;
    check(input);
    input_ = std::move(input);
    started_ = true;
    partition_ = 0;
    entered_ = false;
    partition_ends_ = {};
}

void OrderedSearch::enter_partition(Polling& polling) {
    begin_ = input_.offsets[partition_];
    rows_ = input_.offsets[partition_ + 1] - begin_;
    const size_t half = pattern_.memory / 2;
    reachable_.start(input_.local, begin_, rows_, half, polling);
    passing_ = pass_.usable() && (pass_.conditional() || input_.times != nullptr) &&
               pass_.enter(input_.view, input_.local, begin_, rows_, half);
    failures_.start(half);
    if (input_.times != nullptr) ends_.start(pattern_.graph, input_.local, begin_, rows_, half / 2, polling);
    const bool limited = !input_.starts.empty();
    start_ = window_ = limited ? input_.starts[partition_] : 0;
    stop_ = limited ? input_.stops[partition_] : rows_;
    number_ = limited ? input_.numbers[partition_] : 0;
    entered_ = true;
}

void OrderedSearch::leave_partition() {
    partition_ends_.positions.push_back(static_cast<int64_t>(std::min(start_, stop_)));
    partition_ends_.numbers.push_back(number_);
    partition_ends_.offsets.push_back(static_cast<int64_t>(partition_ends_.labels.size()));
    ++partition_;
    entered_ = false;
}

std::optional<OrderedMatches> OrderedSearch::take(size_t rows, Polling& polling) {
    if (!started_) throw std::runtime_error("the search has not been started, or it was ended by an error");
    started_ = false;  // unless this call ends well
    reachable_.poll(polling);
    OrderedMatches matches;
    size_t written = 0;
    while (partition_ + 1 < input_.offsets.size()) {
        if (!entered_) enter_partition(polling);
        if (!next(polling)) {
            leave_partition();
            continue;
        }
        if (is_open()) {
            --number_;
            if (conditions_.size() > 0) {
                partition_ends_.labels.insert(partition_ends_.labels.end(), bound_.labels().begin(),
                                              bound_.labels().end());
            }
            leave_partition();
            continue;
        }
        write(matches);
        written += std::max<size_t>(bound_.labels().size(), 1);
        start_ = skipped();
        if (written >= rows) break;
    }
    started_ = true;
    if (written == 0) return std::nullopt;
    return matches;
}

bool OrderedSearch::next(Polling& polling) {
    while (start_ < stop_) {
        start_ = reachable_.next_start(start_);
        if (start_ >= stop_) return false;
        move_window();
        const bool possible = input_.times == nullptr || ends_.before(start_, std::max(start_, window_));
        polling.work(1);
        if (possible && find(start_, polling)) {
            ++number_;
            if (numbered_) failures_.clear();
            failures_.forget_way();
            return true;
        }
        ++start_;
    }
    return false;
}

// Return whether the match that is bound is decided by rows that are not there.
bool OrderedSearch::is_open() const { return !bound_.labels().empty() && bound_.labels().back() == input_.open_label; }

void OrderedSearch::move_window() {
    if (input_.times == nullptr) {
        window_ = rows_;
        return;
    }
    failures_.clear();
    const int64_t* const times = input_.times + begin_;
    const uint64_t first = static_cast<uint64_t>(times[start_]);
    const uint64_t latest = first + std::min(input_.width, static_cast<uint64_t>(int64_max) - first);
    while (window_ < rows_ && times[window_] <= static_cast<int64_t>(latest)) ++window_;
}

bool OrderedSearch::find(size_t start, Polling& polling) {
    if (!passing_) return search_from(start, polling);
    bound_.begin(input_.view, begin_, begin_ + rows_, begin_ + start, number_ + 1);
    return pass_.find(start, window_, reachable_, bound_, conditions_, polling);
}

bool OrderedSearch::search_from(size_t start, Polling& polling) {
    size_t moves = 0;
    const size_t most_moves = memory_gauge_.start();
    bool matched = search_from(start, most_moves, moves, polling);
    if (!matched && moves > most_moves) {
        memory_gauge_.begin();
        matched = search_from(start, memory_gauge_.start(), moves, polling);
    }
    if (matched) {
        memory_gauge_.succeed(bound_.labels().size());
    } else {
        memory_gauge_.fail(moves);
    }
    return matched;
}

// Bind the preferred match from a position on; return false if there is none, or if that takes more than so many moves.
bool OrderedSearch::search_from(size_t start, size_t most_moves, size_t& moves, Polling& polling) {
    bound_.begin(input_.view, begin_, begin_ + rows_, begin_ + start, number_ + 1);
    choices_.clear();
    failures_.go_back(0);
    size_t position = start;
    uint32_t state = 0;
    // The backward pass says of each position and state that the search comes to that a match can end from it.
    for (moves = 0; pattern_.graph[state].op != PatternState::accept; ++moves) {
        polling.work(8);
        if (moves > most_moves) return false;
        if (step(position, state)) continue;
        if (choices_.empty()) return false;
        position = choices_.back().position;
        state = choices_.back().state;
        failures_.go_back(choices_.back().way);
        choices_.pop_back();
        bound_.unbind(position - start);
    }
    return true;
}

bool OrderedSearch::step(size_t& position, uint32_t& state) {
    const PatternState& it = pattern_.graph[state];
    const bool windowed = input_.times != nullptr;
    const bool remembered = memory_gauge_.on() && remembered_[state] != 0 && (windowed || open_[state] != 0);
    if (remembered && !remember(position, state)) return false;
    if (it.op == PatternState::row) {
        ++steps_;
        if (position >= window_) return false;
        bound_.bind(static_cast<uint16_t>(it.b));
        if (!conditions_.hold(it.b, bound_, *input_.view.texts)) return false;
        ++position;
        state = it.a;
    } else if (it.op == PatternState::split) {
        const bool preferred = reachable_.at(position, it.a);
        if (preferred && (windowed || open_[it.a] != 0) && reachable_.at(position, it.b)) {
            choices_.push_back({position, it.b, failures_.way()});
        }
        state = preferred ? it.a : it.b;
    } else {
        state = it.a;
    }
    return true;
}

// Remember a configuration; return false if it was.
bool OrderedSearch::remember(size_t position, uint32_t state) {
    key_.assign({static_cast<int64_t>(state), static_cast<int64_t>(position)});
    bound_.append_key(key_references_[keys_[state]], key_);
    const bool fresh = failures_.add(key_);
    memory_gauge_.note(fresh);
    return fresh;
}

void OrderedSearch::write(OrderedMatches& matches) const {
    const auto& labels = bound_.labels();
    matches.partition.push_back(static_cast<int64_t>(partition_));
    matches.number.push_back(number_);
    matches.first.push_back(static_cast<int64_t>(begin_ + start_));
    matches.labels.insert(matches.labels.end(), labels.begin(), labels.end());
    matches.offsets.push_back(static_cast<int64_t>(matches.labels.size()));
}

size_t OrderedSearch::skipped() const {
    const auto& labels = bound_.labels();
    if (labels.empty() || pattern_.skip == Skip::to_next) return start_ + 1;
    if (pattern_.skip == Skip::past_last) return start_ + labels.size();
    const LabelSet& set = pattern_.sets[pattern_.skip_set];
    const auto in_set = [&](uint16_t label) { return set.contains(label); };
    size_t row = labels.size();
    if (pattern_.skip == Skip::to_first) {
        row = static_cast<size_t>(std::ranges::find_if(labels, in_set) - labels.begin());
    } else {
        const auto last = std::find_if(labels.rbegin(), labels.rend(), in_set);
        if (last != labels.rend()) row = static_cast<size_t>(labels.rend() - last) - 1;
    }
    if (row == labels.size()) throw SkipError("unbound", partition_, begin_ + start_);
    if (row == 0) throw SkipError("first row", partition_, begin_ + start_);
    return start_ + row;
}

OrderedSearch::Counts OrderedSearch::counts() const {
    const size_t bytes = reachable_.bytes() + failures_.bytes() + pass_.bytes() + ends_.bytes() + bound_.bytes() +
                         choices_.capacity() * sizeof(Choice) + key_.capacity() * sizeof(int64_t);
    return {steps_ + pass_.rows_met(), conditions_.evaluated(), failures_.added(), bytes};
}

}  // namespace acep
