#include "ordered/reachable.hpp"

#include <algorithm>
#include <cmath>

namespace acep {

namespace {

constexpr size_t least_length = 256;
constexpr size_t most_stretches = 8;

}  // namespace

Reachable::Reachable(const PatternGraph& graph) : graph_(graph) {
    if (StateMasks::fit(graph)) masks_.emplace(graph);
    width_ = masks_ ? 1 : (graph.size() + 63) / 64;
}

void Reachable::start(std::span<const uint8_t* const> local, size_t begin, size_t rows, size_t memory,
                      Polling& polling) {
    local_ = local;
    begin_ = begin;
    rows_ = rows;
    polling_ = &polling;
    const size_t positions = rows + 1, each = width_ * sizeof(uint64_t);
    length_ = positions;
    if (positions > memory / each) {
        length_ = std::max(least_length, static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(positions)))));
    }
    const size_t numbers = (positions + length_ - 1) / length_;
    const size_t room = std::clamp(memory / (length_ * each), size_t{2}, most_stretches);
    stretches_.resize(std::min(room, numbers));
    for (Stretch& stretch : stretches_) stretch.number = none;
    ends_.resize(numbers * width_);
    starts_.assign(numbers, 0);
    count_ = 0;
    for (size_t number = numbers; number-- > 0;) {
        look_at(number);
        starts_[number] = any_start(first_, count_, current_);
        if (number > 0) std::copy_n(current_, width_, ends_.data() + (number - 1) * width_);
    }
}

void Reachable::look_at(size_t number) {
    auto stretch = std::ranges::find(stretches_, number, &Stretch::number);
    if (stretch == stretches_.end()) {
        stretch =
            std::ranges::min_element(stretches_, {}, [](const Stretch& it) { return it.number == none ? 0 : it.used; });
        fill(*stretch, number);
    }
    stretch->used = ++clock_;
    first_ = number * length_;
    count_ = std::min(length_, rows_ + 1 - first_);
    current_ = stretch->words.data();
}

void Reachable::fill(Stretch& stretch, size_t number) {
    stretch.number = none;
    const size_t first = number * length_, count = std::min(length_, rows_ + 1 - first);
    if (stretch.words.size() < count * width_) stretch.words.resize(count * width_);
    const uint64_t* after = first + count > rows_ ? nullptr : ends_.data() + number * width_;
    for (size_t left = count; left > 0;) {
        const size_t n = masks_ ? std::min(left, StateMasks::block) : 1;
        uint64_t* const words = stretch.words.data() + (left - n) * width_;
        if (masks_) {
            fill_masks(words, first + left - n, n, after);
        } else {
            fill_bits(words, first + left - n, after);
        }
        polling_->work(masks_ ? n : graph_.size());
        after = words;
        left -= n;
    }
    stretch.number = number;
}

void Reachable::fill_masks(uint64_t* words, size_t first, size_t count, const uint64_t* after) const {
    const uint64_t accept = masks_->accept();
    uint64_t live = after != nullptr ? *after : 0;
    size_t i = count;
    if (after == nullptr) words[--i] = live = accept;
    if (i == 0) return;
    masks_->allowed(local_, begin_ + first, i, words);
    if (first + i == rows_) {
        --i;
        words[i] = live = accept | (words[i] & masks_->before_last(live));
    }
    while (i-- > 0) words[i] = live = accept | (words[i] & masks_->before(live));
}

void Reachable::fill_bits(uint64_t* words, size_t position, const uint64_t* after) const {
    std::fill_n(words, width_, uint64_t{0});
    const auto bit = [](const uint64_t* bits, size_t state) { return bits[state / 64] >> state % 64 & 1; };
    for (const uint32_t state : graph_.order()) {
        const PatternState& it = graph_[state];
        uint64_t live = 0;
        switch (it.op) {
            case PatternState::row:
                live = position < rows_ && bit(after, it.a) != 0 &&
                       (local_[it.b] == nullptr || local_[it.b][begin_ + position] != 0);
                break;
            case PatternState::split: live = bit(words, it.a) | bit(words, it.b); break;
            case PatternState::jump: live = bit(words, it.a); break;
            case PatternState::first: live = position == 0 ? bit(words, it.a) : 0; break;
            case PatternState::last: live = position == rows_ ? bit(words, it.a) : 0; break;
            case PatternState::accept: live = 1; break;
        }
        words[state / 64] |= live << state % 64;
    }
}

bool Reachable::any_start(size_t first, size_t count, const uint64_t* words) const {
    for (size_t i = 0; i < count && first + i < rows_; ++i) {
        const uint64_t bits = words[i * width_];
        if ((masks_ ? bits & masks_->closure(place(first + i), 0) : bits & 1) != 0) return true;
    }
    return false;
}

size_t Reachable::next_start(size_t position) {
    while (position < rows_) {
        const size_t number = position / length_;
        if (starts_[number] == 0) {
            position = (number + 1) * length_;
            continue;
        }
        const size_t stop = std::min((number + 1) * length_, rows_), begin = position;
        while (position < stop && !at(position, 0)) ++position;
        polling_->work(position - begin);
        if (position < stop) return position;
    }
    return rows_;
}

size_t Reachable::bytes() const {
    size_t words = ends_.capacity();
    for (const Stretch& stretch : stretches_) words += stretch.words.capacity();
    return words * sizeof(uint64_t) + starts_.capacity();
}

}  // namespace acep
