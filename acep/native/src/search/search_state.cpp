// Writing and reading the state of the search engine: the events that are kept.
#include "search/search.hpp"

namespace acep {

template <class Archive>
void SearchEngine::fields(auto& self, Archive& archive) {
    archive.within(0, most_positions, self.work_.nodes, self.work_.touches, self.work_.matches);
    archive.size(self.parts_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (auto& part : self.parts_) Bundle::fields(part.bundle, archive);
    // A row as it is kept, but without links and notes of failed searches.
    std::vector<int64_t> rows;
    const size_t width = first_link + self.plan_.columns.size();
    for (int64_t number = self.begin_; number < self.end_ && !Archive::reads; ++number) {
        const int64_t* const words = self.row(number);
        if (number < self.parts_[partition_of(words)].since) continue;
        rows.insert(rows.end(), words, words + first_link);
        rows.insert(rows.end(), self.values(words), self.values(words) + self.plan_.columns.size());
    }
    archive.items(rows);
    if constexpr (Archive::reads) {
        if (rows.size() % width != 0) bad_state("length of rows");
        for (size_t at = 0; at < rows.size(); at += width) self.take_row(std::span(rows).subspan(at, width), archive);
    }
}

void SearchEngine::take_row(std::span<const int64_t> words, Reader& archive) {
    const uint32_t partition = partition_of(words.data());
    const uint64_t kinds = static_cast<uint64_t>(words[place_word]) >> 32,
                   valid = static_cast<uint64_t>(words[valid_word]);
    const bool known = partition < parts_.size() && partitions_.used(partition);
    const size_t columns = plan_.columns.size();
    if (!known || (kinds & plan_.kept) == 0 || kinds >> plan_.classes.size() != 0 ||
        (columns < 64 && valid >> columns != 0)) {
        bad_state("row");
    }
    archive.saw(words[time_word]);
    std::copy_n(words.begin(), first_link, current_.begin());
    std::copy_n(words.begin() + first_link, columns, current_.begin() + static_cast<std::ptrdiff_t>(first_value_));
    Part& part = parts_[partition];
    part.last = std::max(part.last, words[time_word]);
    if ((kinds & plan_.first) != 0) part.last_first = std::max(part.last_first, words[time_word]);
    add_row();
}

void SearchEngine::dump(Writer& out) const { fields(*this, out); }

void SearchEngine::load(Reader& in) { fields(*this, in); }

void SearchEngine::dump_notes(Writer& out) const {
    std::vector<int64_t> notes;
    for (int64_t number = begin_; number < end_; ++number) {
        const int64_t* const words = row(number);
        if (number < parts_[partition_of(words)].since) continue;
        notes.insert(notes.end(), words + first_need_, words + first_value_);
    }
    out.items(notes);
}

void SearchEngine::load_notes(Reader& in) {
    std::vector<int64_t> notes;
    in.items(notes);
    if (notes.size() != static_cast<size_t>(end_ - begin_) * plan_.needs) bad_state("notes of rows");
    for (int64_t number = begin_; number < end_; ++number) {
        std::copy_n(notes.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(number - begin_) * plan_.needs),
                    plan_.needs, row(number) + first_need_);
    }
}

}  // namespace acep
