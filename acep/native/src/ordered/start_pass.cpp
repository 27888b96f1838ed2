#include "ordered/start_pass.hpp"

#include <algorithm>
#include <bit>

namespace acep {

namespace {

constexpr size_t most_head = 16;
constexpr size_t first_rows = 128;  // of the first passes
constexpr size_t first_chunk = 4;
constexpr size_t sparse = 2;  // rows of a label are gathered if there are fewer than one in so many
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
    : graph_(graph),
      masks_(masks),
      references_(references),
      hits_(block_rows),
      pass_(block_rows),
      next_pass_(block_rows) {
    if (masks == nullptr) return;
    find_head();
    const std::vector<uint8_t> later = later_labels();
    usable_ = true;
    for (size_t label = 0; label < graph.labels(); ++label) {
        if (later[label] == 0 || conditions.of_label(label).empty()) continue;
        add_label(label, conditions);
        for (const uint32_t condition : conditions.of_label(label)) {
            for (const uint32_t reference : conditions[condition].references) {
                usable_ = usable_ && fixed(references[reference], sets, later);
            }
        }
    }
}

void StartPass::find_head() {
    uint32_t state = 0;
    while (head_.size() < most_head) {
        const PatternState& it = graph_[state];
        const bool row = it.op == PatternState::row;
        // Where a match starts, its anchors hold.
        if (!row && it.op != PatternState::jump && (it.op != PatternState::first || !head_.empty())) break;
        if (row) head_.push_back(state);
        state = it.a;
    }
    after_head_ = state;
}

// Return a flag for each label that a row after the head can have.
std::vector<uint8_t> StartPass::later_labels() const {
    std::vector<uint8_t> later(graph_.labels(), 0), seen(graph_.size(), 0);
    std::vector<uint32_t> waiting{after_head_};
    while (!waiting.empty()) {
        const uint32_t state = waiting.back();
        waiting.pop_back();
        if (seen[state] != 0) continue;
        seen[state] = 1;
        const PatternState& it = graph_[state];
        if (it.op == PatternState::row) later[it.b] = 1;
        if (it.op != PatternState::accept) waiting.push_back(it.a);
        if (it.op == PatternState::split) waiting.push_back(it.b);
    }
    return later;
}

// Return whether the value of a reference for a row after the head is decided by that row and the head.
bool StartPass::fixed(const Reference& reference, const std::vector<LabelSet>& sets,
                      const std::vector<uint8_t>& later) const {
    if (!reference.reads_set()) return true;
    if (reference.reads_label() && reference.shift != 0) return false;
    if (reference.kind == Reference::sum && reference.type != 1) return false;  // it may be too great for its type
    const LabelSet& set = sets[reference.set];
    size_t rows = 0;
    for (const uint32_t state : head_) rows += set.contains(graph_[state].b) ? 1 : 0;
    const bool first = reference.kind == Reference::first || reference.kind == Reference::first_label;
    if (first && reference.offset < rows) return true;
    for (size_t label = 0; label < later.size(); ++label) {
        if (later[label] != 0 && set.contains(label)) return false;
    }
    return true;
}

void StartPass::add_label(size_t label, const RowConditions& conditions) {
    Label made{label, masks_->of_label(label), {}, false, {}};
    conditional_ |= made.states;
    for (const uint32_t number : conditions.of_label(label)) {
        Condition condition{&conditions[number].program, {}, false};
        for (const uint32_t reference : conditions[number].references) {
            const bool current = references_[reference].kind == Reference::current;
            condition.inputs.push_back({reference, current, {}, {}, {}, {}});
        }
        leaves_.resize(std::max(leaves_.size(), condition.inputs.size()));
        made.conditions.push_back(std::move(condition));
    }
    labels_.push_back(std::move(made));
}

bool StartPass::enter(const OrderedRowsView& view, const std::vector<const uint8_t*>& local, size_t begin, size_t rows,
                      size_t memory) {
    view_ = &view;
    begin_ = begin;
    rows_ = rows;
    size_t words = 2 * rows;
    for (Label& label : labels_) {
        label.gathered = gathers(label, local[label.label]);
        if (!label.gathered) continue;
        for (const Condition& condition : label.conditions) words += rows * (condition.inputs.size() + 1);
    }
    if (words > memory / sizeof(int64_t)) return false;
    for (Label& label : labels_) {
        gather(label, local[label.label]);
        for (Condition& condition : label.conditions) condition.falls = falls(condition);
    }
    find_bounded();
    return true;
}

// Return whether the rows of a label are gathered: few ones, and those whose conditions read other rows.
bool StartPass::gathers(const Label& label, const uint8_t* local) const {
    for (const Condition& condition : label.conditions) {
        for (const Input& input : condition.inputs) {
            if (input.current && references_[input.reference].shift != 0) return true;
        }
    }
    if (local == nullptr) return false;
    const auto allowed = std::count_if(local + begin_, local + begin_ + rows_, [](uint8_t bit) { return bit != 0; });
    return static_cast<size_t>(allowed) < rows_ / sparse;
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

// Return whether a condition of the rows of this partition falls, whatever the head is.
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
    if (!bind_head(start, window, bound, conditions)) return false;
    read_head(bound);
    const size_t begin = start + head_.size();
    Progress at{begin, 0, 0, begin, masks_->closure(reachable.place(begin), after_head_), begin, begin, 0, none, false};
    at.stop = std::max(std::min(window, rows_), begin);
    at.limit = bounded_ != 0 ? limit(begin, at.stop) : at.stop;
    reached_.clear();
    for (size_t rows = first_rows;; rows *= 2) {
        const size_t before = at.position;
        go_forward(at, begin + rows, reachable, conditions);
        polling.work(at.position - before + 1);
        rows_met_ += at.position - before;
        if (at.match_end == none) {
            if (at.ended) return false;
            continue;
        }
        go_back(at, reachable);
        if (walk(at, reachable, bound)) return true;
        bound.unbind(head_.size());
    }
}

bool StartPass::bind_head(size_t start, size_t window, BoundRows& bound, RowConditions& conditions) const {
    if (start + head_.size() > std::max(window, start)) return false;
    for (const uint32_t state : head_) {
        const uint32_t label = graph_[state].b;
        bound.bind(static_cast<uint16_t>(label));
        if (!conditions.hold(label, bound, *view_->texts)) return false;
    }
    return true;
}

// Read what the head decides of the inputs of conditions.
void StartPass::read_head(const BoundRows& bound) {
    for (Label& label : labels_) {
        for (Condition& condition : label.conditions) {
            for (Input& input : condition.inputs) {
                if (!input.current) input.leaf = bound.value(input.reference, input.cell);
            }
        }
    }
}

// Return the first position from which on no row can have a label in bounded_labels_.
size_t StartPass::limit(size_t position, size_t stop) {
    size_t last = position;
    for (Label& label : labels_) {
        if (bounded_labels_[label.label] == 0) continue;
        size_t least = stop;
        for (Condition& condition : label.conditions) {
            if (condition.falls) least = std::min(least, limit(condition, position, least));
        }
        last = std::max(last, least);
    }
    return last;
}

// Return the first position at which a condition that falls is false; `stop` if there is none before it.
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

// Return whether a condition is false for a row, and not null.
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

// Go forward to a position, as long as rows matter.
void StartPass::go_forward(Progress& at, size_t to, Reachable& reachable, RowConditions& conditions) {
    const uint64_t accept = masks_->accept();
    const size_t end = std::min(to, at.stop);
    for (;; ++at.position) {
        if (at.position >= at.limit) at.states &= ~bounded_;
        if ((at.states & accept) != 0) at.match_end = at.position;
        if (at.position == end) break;
        if (at.position == at.chunk_end) begin_chunk(at);
        uint64_t states = at.states & reachable.mask_at(at.position) & ~accept;
        if ((states & at.untested) != 0) test(at, states, conditions);
        states &= ~conditional_ | hits_[at.position - at.chunk];
        if (states == 0) {
            at.ended = true;
            return;
        }
        reached_.push_back(states);
        at.states = at.position + 1 == rows_ ? masks_->after_last(states) : masks_->after(states);
    }
    at.ended = at.position == at.stop;
}

void StartPass::begin_chunk(Progress& at) {
    const size_t rows = std::clamp(2 * (at.chunk_end - at.chunk), first_chunk, block_rows);
    at.chunk = at.position;
    at.chunk_end = std::min(at.chunk + rows, at.position < at.limit ? at.limit : at.stop);
    at.untested = conditional_;
    std::fill_n(hits_.begin(), at.chunk_end - at.chunk, uint64_t{0});
}

// Test the conditions of some states for the remaining rows of the chunk.
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

// Find the states from which a match ends, or may end after the rows that were met.
void StartPass::go_back(const Progress& at, const Reachable& reachable) {
    const uint64_t accept = masks_->accept();
    const size_t rows = (at.ended ? at.match_end : at.position) - at.begin;
    if (ending_.size() <= rows) ending_.resize(std::max(rows + 1, 2 * ending_.size()));
    uint64_t states = ending_[rows] = at.ended ? accept : at.states;
    for (size_t i = rows; i-- > 0;) {
        const bool last = reachable.place(at.begin + i + 1) == Place::last;
        states = accept | (reached_[i] & (last ? masks_->before_last(states) : masks_->before(states)));
        ending_[i] = states;
    }
}

// Bind the preferred way; return false if it leads beyond the rows that were met.
bool StartPass::walk(const Progress& at, const Reachable& reachable, BoundRows& bound) const {
    size_t position = at.begin;
    uint32_t state = after_head_;
    while (graph_[state].op != PatternState::accept) {
        const PatternState& it = graph_[state];
        if (it.op == PatternState::row) {
            if (!at.ended && position == at.position) return false;
            bound.bind(static_cast<uint16_t>(it.b));
            ++position;
            state = it.a;
        } else if (it.op == PatternState::split) {
            const uint64_t preferred = masks_->closure(reachable.place(position), it.a);
            state = (preferred & ending_[position - at.begin]) != 0 ? it.a : it.b;
        } else {
            state = it.a;
        }
    }
    return true;
}

size_t StartPass::bytes() const {
    size_t all = (reached_.capacity() + ending_.capacity()) * sizeof(uint64_t);
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
