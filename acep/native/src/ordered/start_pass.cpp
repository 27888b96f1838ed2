#include "ordered/start_pass.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace acep {

namespace {

constexpr size_t most_head = 16;
constexpr size_t most_pivots = 3;
constexpr uint32_t no_state = static_cast<uint32_t>(-1);
constexpr size_t first_rows = 128;  // of the first passes
constexpr size_t first_chunk = 4;
constexpr size_t sparse_share = 2;  // rows of a label are gathered if there are fewer than one in so many
constexpr size_t none = static_cast<size_t>(-1);

// Return the slope of words, of which those of null rows do not count.
template <class Number>
Slope slope_of_words(const Column& column, size_t begin, size_t end) {
    bool rises = true, falls = true, any = false;
    Number last{};
    for (size_t row = begin; row < end && (rises || falls); ++row) {
        if (column.null(row)) continue;
        const auto number = std::bit_cast<Number>(column.values[row]);
        rises = rises && number == number && (!any || last <= number);
        falls = falls && number == number && (!any || last >= number);
        last = number;
        any = true;
    }
    return rises ? (falls ? Slope::level : Slope::rising) : falls ? Slope::falling : Slope::any;
}

}  // namespace

StartPass::StartPass(const PatternGraph& graph, const StateMasks* masks, const std::vector<LabelSet>& sets,
                     const RowConditions& conditions, const std::vector<Reference>& references)
    : graph_(graph), masks_(masks), references_(references) {
    if (masks == nullptr) return;
    before_.others.assign(graph.labels(), 0);
    find_head();
    prepare({graph, masks, sets, conditions, references});
}

StartPass::StartPass(const Pattern& pattern, uint32_t first_state, Before before)
    : graph_(pattern.graph),
      masks_(pattern.masks),
      references_(pattern.references),
      first_state_(first_state),
      before_(std::move(before)) {
    prepare(pattern);
}

void StartPass::find_head() {
    uint32_t state = 0;
    while (head_.size() < most_head) {
        const PatternState& it = graph_[state];
        const bool row = it.op == PatternState::row;
        // Where a match starts, its anchors hold.
        if (!row && it.op != PatternState::jump && (it.op != PatternState::first || !head_.empty())) break;
        if (row) {
            head_.push_back(state);
            before_.head.push_back(it.b);
        }
        state = it.a;
    }
    first_state_ = state;
}

void StartPass::prepare(const Pattern& pattern) {
    hits_.resize(block_rows);
    pass_.resize(block_rows);
    next_pass_.resize(block_rows);
    const Ahead all = ahead(first_state_, no_state);
    usable_ = all_fixed(pattern, all);
    if (usable_) add_labels(pattern, all, all);
    if (before_.pivots.size() == most_pivots) return;
    for (size_t i = 0; !usable_ && i < all.states.size(); ++i) {
        if (graph_[all.states[i]].op == PatternState::row) usable_ = prepare_pivot(pattern, all.states[i], all);
    }
}

bool StartPass::prepare_pivot(const Pattern& pattern, uint32_t pivot, const Ahead& all) {
    const Ahead rows = ahead(first_state_, pivot);
    const PatternState& it = graph_[pivot];
    if (!all_fixed(pattern, rows)) return false;
    if (std::ranges::count(ahead(it.a, no_state).states, pivot) != 0) return false;  // it is in a loop
    Before before = before_;
    for (const uint32_t state : rows.states) {
        if (state != pivot && graph_[state].op == PatternState::row) before.others[graph_[state].b] = 1;
    }
    before.pivots.push_back(it.b);
    std::unique_ptr<StartPass> inner(new StartPass(pattern, it.a, std::move(before)));
    if (!inner->usable_) return false;
    pivot_ = masks_->of_state(pivot);
    pivot_label_ = static_cast<uint16_t>(it.b);
    std::vector<uint32_t> earlier = before_.head;
    earlier.insert(earlier.end(), before_.pivots.begin(), before_.pivots.end());
    lasting_ = !inner->reads(pattern, earlier);
    inner_ = std::move(inner);
    add_labels(pattern, rows, all);
    return true;
}

StartPass::Ahead StartPass::ahead(uint32_t from, uint32_t pivot) const {
    Ahead rows{{}, std::vector<uint8_t>(graph_.labels(), 0)};
    std::vector<uint8_t> seen(graph_.size(), 0);
    std::vector<uint32_t> waiting{from};
    while (!waiting.empty()) {
        const uint32_t state = waiting.back();
        waiting.pop_back();
        if (seen[state] != 0) continue;
        seen[state] = 1;
        rows.states.push_back(state);
        const PatternState& it = graph_[state];
        if (it.op == PatternState::row) rows.labels[it.b] = 1;
        if (it.op == PatternState::accept || state == pivot) continue;
        waiting.push_back(it.a);
        if (it.op == PatternState::split) waiting.push_back(it.b);
    }
    return rows;
}

bool StartPass::fixed(const Pattern& pattern, const Reference& reference, const Ahead& rows) const {
    if (!reference.reads_set()) return true;
    if (reference.reads_label() && (reference.shift != 0 || !before_.pivots.empty())) return false;
    const LabelSet& set = pattern.sets[reference.set];
    const auto among = [&](const std::vector<uint32_t>& labels) {
        return static_cast<size_t>(std::ranges::count_if(labels, [&](uint32_t label) { return set.contains(label); }));
    };
    const auto disjoint = [&](const std::vector<uint8_t>& labels) {
        for (size_t label = 0; label < labels.size(); ++label) {
            if (labels[label] != 0 && set.contains(label)) return false;
        }
        return true;
    };
    const bool first = reference.kind == Reference::first || reference.kind == Reference::first_label;
    if (first && reference.offset < among(before_.head)) return true;
    if (!disjoint(before_.others)) return false;
    if (first && reference.offset < among(before_.head) + among(before_.pivots)) return true;
    return disjoint(rows.labels);
}

bool StartPass::fixed(const Pattern& pattern, uint32_t condition, const Ahead& rows) const {
    return std::ranges::all_of(pattern.conditions[condition].references,
                               [&](uint32_t reference) { return fixed(pattern, references_[reference], rows); });
}

bool StartPass::all_fixed(const Pattern& pattern, const Ahead& rows) const {
    for (size_t label = 0; label < rows.labels.size(); ++label) {
        if (rows.labels[label] == 0) continue;
        for (const uint32_t condition : pattern.conditions.of_label(label)) {
            if (!fixed(pattern, condition, rows)) return false;
        }
    }
    return true;
}

bool StartPass::reads(const Pattern& pattern, const std::vector<uint32_t>& labels) const {
    for (const Label& label : labels_) {
        for (const Condition& condition : label.conditions) {
            for (const Input& input : condition.inputs) {
                const Reference& reference = references_[input.reference];
                if (reference.kind == Reference::match_number) return true;
                if (!reference.reads_set()) continue;
                const LabelSet& set = pattern.sets[reference.set];
                if (std::ranges::any_of(labels, [&](uint32_t it) { return set.contains(it); })) return true;
            }
        }
    }
    return inner_ != nullptr && inner_->reads(pattern, labels);
}

void StartPass::add_labels(const Pattern& pattern, const Ahead& rows, const Ahead& all) {
    for (size_t number = 0; number < all.labels.size(); ++number) {
        if (all.labels[number] == 0) continue;
        const bool before_pivot = rows.labels[number] != 0;
        Label label{number, before_pivot ? masks_->of_label(number) : 0, {}, false, {}};
        for (const uint32_t place : pattern.conditions.of_label(number)) {
            if (!before_pivot && !fixed(pattern, place, all)) continue;
            Condition condition{&pattern.conditions[place].program, {}, false};
            for (const uint32_t reference : pattern.conditions[place].references) {
                const bool current = references_[reference].kind == Reference::current;
                condition.inputs.push_back({reference, current, {}, {}, {}, {}});
            }
            leaves_.resize(std::max(leaves_.size(), condition.inputs.size()));
            label.conditions.push_back(std::move(condition));
        }
        if (label.conditions.empty()) continue;
        conditional_ |= label.states;
        labels_.push_back(std::move(label));
    }
}

bool StartPass::enter(const OrderedRowsView& view, const std::vector<const uint8_t*>& local, size_t begin, size_t rows,
                      size_t memory) {
    view_ = &view;
    begin_ = begin;
    rows_ = rows;
    size_t words = 3 * rows;
    for (Label& label : labels_) {
        label.gathered = label.states != 0 && gathers(label, local[label.label]);
        if (!label.gathered) continue;
        for (const Condition& condition : label.conditions) words += rows * (condition.inputs.size() + 1);
    }
    const size_t bytes = words * sizeof(int64_t);
    if (bytes > memory || (inner_ && !inner_->enter(view, local, begin, rows, memory - bytes))) return false;
    pivots_.assign(lasting_ ? rows : 0, 0);
    for (Label& label : labels_) {
        gather(label, local[label.label]);
        for (Condition& condition : label.conditions) condition.falls = falls(condition);
    }
    find_bounded();
    return true;
}

bool StartPass::gathers(const Label& label, const uint8_t* local) const {
    for (const Condition& condition : label.conditions) {
        for (const Input& input : condition.inputs) {
            if (input.current && references_[input.reference].shift != 0) return true;
        }
    }
    if (local == nullptr) return false;
    const auto allowed = std::count_if(local + begin_, local + begin_ + rows_, [](uint8_t bit) { return bit != 0; });
    return static_cast<size_t>(allowed) < rows_ / sparse_share;
}

void StartPass::gather(Label& label, const uint8_t* local) {
    label.rows.clear();
    for (size_t i = 0; label.gathered && i < rows_; ++i) {
        if (local == nullptr || local[begin_ + i] != 0) label.rows.push_back(i);
    }
    for (Condition& condition : label.conditions) {
        for (Input& input : condition.inputs) {
            if (!input.current) continue;
            if (label.gathered) {
                gather(input, label.rows);
            } else {
                const Column& column = view_->columns[references_[input.reference].column];
                const uint8_t* const valid = column.valid == nullptr ? nullptr : column.valid + begin_;
                input.leaf = {column.values + begin_, valid, 1};
            }
        }
    }
}

void StartPass::gather(Input& input, const std::vector<size_t>& rows) {
    const Reference& reference = references_[input.reference];
    const Column& column = view_->columns[reference.column];
    input.words.resize(rows.size());
    input.valid.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t place = static_cast<int64_t>(rows[i]) + reference.shift;
        const bool inside = place >= 0 && place < static_cast<int64_t>(rows_);
        const size_t row = inside ? begin_ + static_cast<size_t>(place) : 0;
        input.valid[i] = inside && !column.null(row);
        input.words[i] = input.valid[i] != 0 ? column.values[row] : 0;
    }
    input.leaf = {input.words.data(), input.valid.data(), 1};
}

bool StartPass::falls(const Condition& condition) const {
    std::vector<InputSlope> slopes(condition.inputs.size());
    const auto with = [&](auto slope) {
        for (size_t i = 0; i < slopes.size(); ++i) {
            const bool current = condition.inputs[i].current;
            slopes[i] = current ? slope(condition.inputs[i]) : InputSlope{Slope::level, Slope::level};
        }
        return condition.program->slope(slopes) == Slope::falling;
    };
    const bool possible = with([](const Input&) { return InputSlope{Slope::rising, Slope::rising}; }) ||
                          with([](const Input&) { return InputSlope{Slope::falling, Slope::falling}; });
    return possible && with([&](const Input& input) { return slope_of(input); });
}

InputSlope StartPass::slope_of(const Input& input) const {
    const Column& column = view_->columns[references_[input.reference].column];
    const size_t end = begin_ + rows_;
    return {slope_of_words<int64_t>(column, begin_, end), slope_of_words<double>(column, begin_, end)};
}

void StartPass::find_bounded() {
    std::vector<uint8_t> bounded(graph_.labels(), 0);
    for (const Label& label : labels_) bounded[label.label] = std::ranges::any_of(label.conditions, &Condition::falls);
    if (bounded == bounded_labels_) return;
    bounded_labels_ = std::move(bounded);
    bounded_ = masks_->without(graph_.avoiding(bounded_labels_));
}

bool StartPass::find(size_t start, size_t window, Reachable& reachable, BoundRows& bound, RowConditions& conditions,
                     Polling& polling) {
    Search search{window, reachable, bound, conditions, polling};
    return bind_head(start, search) && bind_rest(start + head_.size(), search);
}

bool StartPass::bind_head(size_t start, Search& search) const {
    if (start + head_.size() > std::max(search.window, start)) return false;
    for (const uint32_t state : head_) {
        const uint32_t label = graph_[state].b;
        search.bound.bind(static_cast<uint16_t>(label));
        if (!search.conditions.hold(label, search.bound, *view_->texts)) return false;
    }
    return true;
}

void StartPass::read_before(const BoundRows& bound) {
    for (Label& label : labels_) {
        for (Condition& condition : label.conditions) {
            for (Input& input : condition.inputs) {
                if (!input.current) input.leaf = bound.value(input.reference, input.cell);
            }
        }
    }
}

StartPass::Progress StartPass::progress(size_t begin, const Search& search) {
    read_before(search.bound);
    reached_.clear();
    const uint64_t states = masks_->closure(search.reachable.place(begin), first_state_);
    Progress at{begin, 0, 0, begin, states, begin, begin, 0, none, false};
    at.stop = std::max(std::min(search.window, rows_), begin);
    at.limit = bounded_ != 0 ? limit(begin, at.stop) : at.stop;
    return at;
}

bool StartPass::bind_rest(size_t begin, Search& search) {
    const size_t bound_rows = search.bound.labels().size();
    Progress at = progress(begin, search);
    for (size_t rows = first_rows;; rows *= 2) {
        go_forward(at, rows, search);
        if (at.match_end == none) {
            if (at.ended) return false;
            continue;
        }
        go_back(at, search.reachable);
        if (walk(at, search)) return true;
        if (at.ended) return false;
        search.bound.unbind(bound_rows);
    }
}

// Return whether there is a way from a position on.
bool StartPass::exists(size_t begin, Search& search) {
    Progress at = progress(begin, search);
    for (size_t rows = 4; at.match_end == none && !at.ended; rows *= 2) go_forward(at, rows, search);
    return at.match_end != none;
}

bool StartPass::pivotal(size_t position, Search& search) {
    const bool lasting = lasting_ && search.window == rows_;
    if (lasting && pivots_[position] != 0) return pivots_[position] == 1;
    search.bound.bind_apart(pivot_label_, begin_ + position);
    const bool can_be = inner_->exists(position + 1, search);
    search.bound.unbind_apart(pivot_label_);
    if (lasting) pivots_[position] = can_be ? 1 : 2;
    return can_be;
}

size_t StartPass::limit(size_t position, size_t stop) {
    size_t last = position;
    for (Label& label : labels_) {
        if (bounded_labels_[label.label] == 0) continue;
        size_t earliest = stop;
        for (Condition& condition : label.conditions) {
            if (condition.falls) earliest = std::min(earliest, limit(condition, position, earliest));
        }
        last = std::max(last, earliest);
    }
    return last;
}

size_t StartPass::limit(Condition& condition, size_t position, size_t stop) {
    size_t low = position, high = position;
    for (size_t step = 1; high < stop && !over(condition, high); step *= 2) {
        low = high + 1;
        high = std::min(high + step, stop);
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (over(condition, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

bool StartPass::over(Condition& condition, size_t position) {
    for (size_t i = 0; i < condition.inputs.size(); ++i) {
        const Input& input = condition.inputs[i];
        leaves_[i] = input.leaf;
        if (!input.current) continue;
        const Reference& reference = references_[input.reference];
        const int64_t place = static_cast<int64_t>(position) + reference.shift;
        if (place < 0 || place >= static_cast<int64_t>(rows_)) {
            leaves_[i] = null_leaf;
            continue;
        }
        const Column& column = view_->columns[reference.column];
        const size_t row = begin_ + static_cast<size_t>(place);
        leaves_[i] = {column.values + row, column.valid == nullptr ? nullptr : column.valid + row, 0};
    }
    int64_t truth = 0;
    uint8_t valid = 0;
    condition.program->value(leaves_.data(), 1, *view_->texts, scratch_, &truth, &valid);
    return valid != 0 && truth == 0;
}

void StartPass::go_forward(Progress& at, size_t rows, Search& search) {
    const uint64_t accept = masks_->accept();
    const size_t end = std::min(at.begin + rows, at.stop), before = at.position;
    for (;; ++at.position) {
        if (at.position >= at.limit) at.states &= ~bounded_;
        if ((at.states & accept) != 0) at.match_end = at.position;
        if (at.position == end) break;
        if (at.position == at.chunk_end) begin_chunk(at);
        uint64_t states = at.states & search.reachable.mask_at(at.position) & ~accept;
        if ((states & at.untested) != 0) test(at, states, search.conditions);
        states &= ~conditional_ | hits_[at.position - at.chunk];
        if ((states & pivot_) != 0) {
            if (pivotal(at.position, search)) {
                at.match_end = at.position;
            } else {
                states &= ~pivot_;
            }
        }
        if (states == 0) break;
        reached_.push_back(states);
        states &= ~pivot_;
        at.states = at.position + 1 == rows_ ? masks_->after_last(states) : masks_->after(states);
    }
    at.ended = at.position < end || end == at.stop;
    search.polling.work(at.position - before + 1);
    rows_met_ += at.position - before;
}

void StartPass::begin_chunk(Progress& at) {
    const size_t rows = std::clamp(2 * (at.chunk_end - at.chunk), first_chunk, block_rows);
    at.chunk = at.position;
    at.chunk_end = std::min(at.chunk + rows, at.position < at.limit ? at.limit : at.stop);
    at.untested = conditional_;
    std::fill_n(hits_.begin(), at.chunk_end - at.chunk, uint64_t{0});
}

void StartPass::test(Progress& at, uint64_t states, RowConditions& conditions) {
    for (const Label& label : labels_) {
        if ((label.states & states & at.untested) == 0) continue;
        at.untested &= ~label.states;
        test(label, at.position, at.chunk, at.chunk_end, conditions);
    }
}

void StartPass::test(const Label& label, size_t from, size_t chunk, size_t to, RowConditions& conditions) {
    size_t begin = from, n = to - from;
    if (label.gathered) {
        const auto first = std::ranges::lower_bound(label.rows, from);
        begin = static_cast<size_t>(first - label.rows.begin());
        n = static_cast<size_t>(std::lower_bound(first, label.rows.end(), to) - first);
    }
    if (n == 0) return;
    uint8_t* out = pass_.data();
    for (const Condition& condition : label.conditions) {
        for (size_t i = 0; i < condition.inputs.size(); ++i) {
            Leaf& leaf = leaves_[i] = condition.inputs[i].leaf;
            if (!condition.inputs[i].current) continue;
            leaf.values += begin;
            if (leaf.valid != nullptr) leaf.valid += begin;
        }
        condition.program->test(leaves_.data(), n, *view_->texts, scratch_, out);
        conditions.count(n);
        if (out == next_pass_.data()) {
            for (size_t i = 0; i < n; ++i) pass_[i] = static_cast<uint8_t>(pass_[i] & next_pass_[i]);
        }
        if (std::find(pass_.begin(), pass_.begin() + static_cast<std::ptrdiff_t>(n), uint8_t{1}) ==
            pass_.begin() + static_cast<std::ptrdiff_t>(n)) {
            return;
        }
        out = next_pass_.data();
    }
    for (size_t i = 0; i < n; ++i) {
        if (pass_[i] != 0) hits_[(label.gathered ? label.rows[begin + i] : begin + i) - chunk] |= label.states;
    }
}

void StartPass::go_back(const Progress& at, const Reachable& reachable) {
    const uint64_t accept = masks_->accept();
    const size_t rows = (at.ended ? at.match_end : at.position) - at.begin;
    if (ending_.size() <= rows) ending_.resize(std::max(rows + 1, 2 * ending_.size()));
    const uint64_t pivots = rows < reached_.size() ? reached_[rows] & pivot_ : 0;
    uint64_t states = ending_[rows] = at.ended ? accept | pivots : at.states;
    for (size_t i = rows; i-- > 0;) {
        const bool last = reachable.place(at.begin + i + 1) == Place::last;
        const uint64_t before = last ? masks_->before_last(states) : masks_->before(states);
        states = accept | (reached_[i] & (before | pivot_));
        ending_[i] = states;
    }
}

bool StartPass::walk(const Progress& at, Search& search) {
    size_t position = at.begin;
    uint32_t state = first_state_;
    while (graph_[state].op != PatternState::accept) {
        const PatternState& it = graph_[state];
        if (it.op == PatternState::row) {
            if (!at.ended && position == at.position) return false;
            search.bound.bind(static_cast<uint16_t>(it.b));
            ++position;
            if (inner_ && masks_->of_state(state) == pivot_) return inner_->bind_rest(position, search);
            state = it.a;
        } else if (it.op == PatternState::split) {
            const uint64_t preferred = masks_->closure(search.reachable.place(position), it.a);
            state = (preferred & ending_[position - at.begin]) != 0 ? it.a : it.b;
        } else {
            state = it.a;
        }
    }
    return true;
}

size_t StartPass::bytes() const {
    size_t all = (reached_.capacity() + ending_.capacity()) * sizeof(uint64_t) + pivots_.capacity();
    if (inner_) all += inner_->bytes();
    for (const Label& label : labels_) {
        all += label.rows.capacity() * sizeof(size_t);
        for (const Condition& condition : label.conditions) {
            for (const Input& input : condition.inputs) {
                all += input.words.capacity() * sizeof(int64_t) + input.valid.capacity();
            }
        }
    }
    return all;
}

}  // namespace acep
