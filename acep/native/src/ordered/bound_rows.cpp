#include "ordered/bound_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace acep {

namespace {

constexpr uint8_t valid_byte = 1;

Leaf leaf_of(const Scratch::Cell& cell) { return {&cell.word, cell.valid ? &valid_byte : null_leaf.valid, 0}; }

int64_t signed_of(size_t number) { return static_cast<int64_t>(number); }

}  // namespace

LabelSet::LabelSet(const std::vector<int64_t>& members, size_t labels) : words_((labels + 63) / 64, 0) {
    for (const int64_t label : members) {
        if (label < 0 || static_cast<size_t>(label) >= labels) throw std::invalid_argument("sets: a label beyond all");
        words_[static_cast<size_t>(label) / 64] |= uint64_t{1} << label % 64;
    }
}

BoundRows::BoundRows(std::vector<Reference> references, const std::vector<LabelSet>& sets, size_t labels)
    : references_(std::move(references)) {
    for (const Reference& reference : references_) sources_.push_back(source_of(reference));
    offsets_.push_back(0);
    for (size_t label = 0; label < labels; ++label) {
        for (size_t t = 0; t < tracks_.size(); ++t) {
            if (sets[tracks_[t].set].contains(label)) tracks_of_.push_back(static_cast<uint32_t>(t));
        }
        offsets_.push_back(tracks_of_.size());
    }
}

BoundRows::Source BoundRows::source_of(const Reference& reference) {
    if (!reference.reads_set()) return {};
    auto track = std::ranges::find(tracks_, reference.set, &Track::set);
    if (track == tracks_.end()) track = tracks_.insert(tracks_.end(), {reference.set, {}, {}});
    Source source{static_cast<size_t>(track - tracks_.begin()), 0};
    if (!reference.aggregates()) return source;
    const auto same = [&](const Totals& totals) {
        return totals.kind == reference.kind && totals.column == reference.column && totals.type == reference.type;
    };
    auto totals = std::ranges::find_if(track->totals, same);
    if (totals == track->totals.end()) {
        totals = track->totals.insert(totals, {reference.kind, reference.column, reference.type, {}});
    }
    source.totals = static_cast<size_t>(totals - track->totals.begin());
    return source;
}

void BoundRows::begin(const OrderedRowsView& view, size_t begin, size_t end, size_t first, int64_t match_number) {
    view_ = &view;
    begin_ = begin;
    end_ = end;
    first_ = first;
    match_number_ = match_number;
    labels_.clear();
    for (Track& track : tracks_) {
        track.rows.clear();
        for (Totals& totals : track.totals) totals.values.clear();
    }
}

void BoundRows::track(uint16_t label, size_t row) {
    for (size_t i = offsets_[label]; i < offsets_[label + size_t{1}]; ++i) {
        Track& track = tracks_[tracks_of_[i]];
        track.rows.push_back(row);
        for (Totals& totals : track.totals) totals.values.push_back(added(totals, row));
    }
}

void BoundRows::untrack(uint16_t label) {
    for (size_t i = offsets_[label]; i < offsets_[label + size_t{1}]; ++i) {
        Track& track = tracks_[tracks_of_[i]];
        track.rows.pop_back();
        for (Totals& totals : track.totals) totals.values.pop_back();
    }
}

BoundRows::Total BoundRows::added(const Totals& totals, size_t row) const {
    Total value = totals.values.empty() ? Total{0, 0, 0} : totals.values.back();
    const Column& column = view_->columns[totals.column];
    if (column.null(row)) return value;
    const int64_t word = column.values[row];
    if (totals.kind == Reference::count_valid) return {0, 0, value.count + 1};
    if (value.count++ == 0) return {word, word < 0 ? -1 : 0, 1};
    if (totals.kind == Reference::least || totals.kind == Reference::greatest) {
        const int order = order_of(totals.type, word, value.word, *view_->texts);
        if (totals.kind == Reference::least ? order < 0 : order > 0) value.word = word;
    } else if (totals.type == 1) {
        value.word = std::bit_cast<int64_t>(std::bit_cast<double>(value.word) + std::bit_cast<double>(word));
    } else {
        const uint128 total = wide(value.high, value.word) + static_cast<uint128>(static_cast<int128>(word));
        value = {static_cast<int64_t>(total), static_cast<int64_t>(total >> 64), value.count};
    }
    return value;
}

size_t BoundRows::shifted(size_t row, int64_t shift) const {
    const int64_t place = signed_of(row) + shift;  // shifts are small enough
    return place < signed_of(begin_) || place >= signed_of(end_) ? end_ : static_cast<size_t>(place);
}

Leaf BoundRows::at_row(const Reference& reference, size_t row) const {
    const size_t place = shifted(row, reference.shift);
    if (place == end_) return null_leaf;
    const Column& column = view_->columns[reference.column];
    return {column.values + place, column.valid == nullptr ? nullptr : column.valid + place, 0};
}

Leaf BoundRows::at_label(const Reference& reference, size_t row) const {
    const size_t place = shifted(row, reference.shift);
    if (place == end_ || place < first_ || place >= next_row()) return null_leaf;
    const Column& column = view_->columns[reference.column];
    const size_t label = labels_[place - first_];
    return {column.values + label, column.valid == nullptr ? nullptr : column.valid + label, 0};
}

Leaf BoundRows::total(const Reference& reference, const Source& source, Scratch::Cell& cell) const {
    const auto& values = tracks_[source.track].totals[source.totals].values;
    const Total value = values.empty() ? Total{0, 0, 0} : values.back();
    cell = {value.word, value.count > 0};
    if (reference.kind == Reference::count_valid) {
        cell = {value.count, true};
    } else if (reference.kind == Reference::average && cell.valid) {
        const auto sum = static_cast<int128>(wide(value.high, value.word));
        cell.word = std::bit_cast<int64_t>(average(sum, value.count, static_cast<int64_t>(reference.offset)));
    } else if (reference.kind == Reference::sum && reference.type == 1) {
        cell.valid = cell.valid && !std::isnan(std::bit_cast<double>(cell.word));
    } else if (reference.kind == Reference::sum) {
        cell.valid = cell.valid && value.high == (value.word < 0 ? -1 : 0);
    }
    return leaf_of(cell);
}

Leaf BoundRows::value(size_t reference, Scratch::Cell& cell) const {
    const Reference& it = references_[reference];
    const Source& source = sources_[reference];
    if (it.kind == Reference::current) return at_row(it, next_row() - 1);
    if (it.kind == Reference::match_number) {
        cell = {match_number_, true};
        return leaf_of(cell);
    }
    const auto& rows = tracks_[source.track].rows;
    switch (it.kind) {
        case Reference::first:
        case Reference::first_label:
            if (it.offset >= rows.size()) return null_leaf;
            return it.reads_label() ? at_label(it, rows[it.offset]) : at_row(it, rows[it.offset]);
        case Reference::last:
        case Reference::last_label: {
            if (it.offset >= rows.size()) return null_leaf;
            const size_t row = rows[rows.size() - 1 - it.offset];
            return it.reads_label() ? at_label(it, row) : at_row(it, row);
        }
        case Reference::count: cell = {signed_of(rows.size()), true}; return leaf_of(cell);
        default: return total(it, source, cell);
    }
}

std::vector<uint32_t> BoundRows::key_references(std::span<const uint32_t> references) const {
    std::vector<uint32_t> chosen;
    std::vector<std::tuple<int, size_t, size_t, int64_t, size_t, int64_t>> contents;
    for (const uint32_t reference : references) {
        const Reference& it = references_[reference];
        if (!it.reads_set()) continue;
        const bool total = it.aggregates(), label = it.reads_label();
        const std::tuple content{
            static_cast<int>(it.kind), it.set, it.offset, label ? it.shift : 0, total ? it.column : 0,
            total ? it.type : 0};
        if (std::ranges::find(contents, content) != contents.end()) continue;
        contents.push_back(content);
        chosen.push_back(reference);
    }
    return chosen;
}

void BoundRows::append_key(std::span<const uint32_t> references, std::vector<int64_t>& key) const {
    for (const uint32_t reference : references) {
        const Reference& it = references_[reference];
        const Track& track = tracks_[sources_[reference].track];
        switch (it.kind) {
            case Reference::first:
            case Reference::first_label: append_first(it, track, key); break;
            case Reference::last:
            case Reference::last_label: append_last(it, track, key); break;
            case Reference::count: key.push_back(signed_of(track.rows.size())); break;
            default: {
                const auto& values = track.totals[sources_[reference].totals].values;
                const Total value = values.empty() ? Total{0, 0, 0} : values.back();
                const bool counts = it.kind == Reference::count_valid || it.kind == Reference::average;
                key.insert(key.end(), {value.word, value.high, counts ? value.count : value.count > 0 ? 1 : 0});
            }
        }
    }
}

void BoundRows::append_labels(size_t row, int64_t shift, std::vector<int64_t>& key) const {
    const int64_t from = std::max(signed_of(first_), signed_of(row) + std::min<int64_t>(shift, 0));
    const size_t begin = std::min(static_cast<size_t>(from), next_row());
    key.push_back(signed_of(next_row() - begin));
    key.insert(key.end(), labels_.begin() + static_cast<std::ptrdiff_t>(begin - first_), labels_.end());
}

void BoundRows::append_first(const Reference& reference, const Track& track, std::vector<int64_t>& key) const {
    const bool there = reference.offset < track.rows.size();
    const size_t row = there ? track.rows[reference.offset] : next_row();
    key.push_back(there ? signed_of(row) : -1 - signed_of(track.rows.size()));
    if (reference.reads_label()) append_labels(row, reference.shift, key);
}

void BoundRows::append_last(const Reference& reference, const Track& track, std::vector<int64_t>& key) const {
    const size_t rows = track.rows.size(), deciding = rows - std::min(rows, reference.offset + 1);
    key.push_back(signed_of(rows - deciding));
    for (size_t i = deciding; i < rows; ++i) key.push_back(signed_of(track.rows[i]));
    if (!reference.reads_label()) return;
    if (reference.shift == 0) {
        for (size_t i = deciding; i < rows; ++i) key.push_back(labels_[track.rows[i] - first_]);
        return;
    }
    const size_t row = deciding < rows ? track.rows[deciding] : next_row();
    append_labels(row, reference.shift, key);
}

size_t BoundRows::bytes() const {
    size_t all = labels_.capacity() * sizeof(uint16_t);
    for (const Track& track : tracks_) {
        all += track.rows.capacity() * sizeof(size_t);
        for (const Totals& totals : track.totals) all += totals.values.capacity() * sizeof(Total);
    }
    return all;
}

}  // namespace acep
