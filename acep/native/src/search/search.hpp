// The search engine: it keeps events, and no partial matches. When an event comes that may be the last one of a match,
// it looks back for the others, most selective first (Kolchinsky et al. 2015, "lazy evaluation"). It gives match
// points.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "common/output.hpp"
#include "search/search_plan.hpp"
#include "session/engine.hpp"

namespace acep {

// The search engine: it keeps events, and looks for those of a match from its last one back, along chains of events
// with equal values.
class SearchEngine final : public Engine {
public:
    SearchEngine(Tables tables, EventClassifier& classifier, Partitions& partitions);

    static constexpr int64_t endless_work = std::numeric_limits<int64_t>::max();
    // The most rows that are looked at for one event, and the most hops. Where they do not suffice, the search has
    // given up, and `event` does not process the event at all.
    int64_t limit = endless_work, hop_limit = endless_work;
    // Return whether the last search has reached a limit before its end.
    bool has_given_up() const { return given_up_; }
    int64_t hops =
        0;  // what it costs beside rows that are looked at: steps along the chains, and programs that are run
    // Return the plan of the search.
    const SearchPlan& plan() const { return plan_; }
    void event(uint32_t partition, const Event& event) override;
    // The parts of `event`: read an event, and return whether a match may have it; return whether matches may end with
    // it; search for those with an error in a range, and return the least error, or `no_error`; keep the event.
    bool begin(uint32_t partition, const Event& event);
    // Return whether matches may end with the event that was read by `begin`.
    bool may_end(uint32_t partition) const;
    static constexpr int64_t no_error = std::numeric_limits<int64_t>::max();
    // Search for matches that end with that event and have an error in a range; return the least error, or
    // `no_error`.
    int64_t least_error(uint32_t partition, int64_t least = 0, int64_t most = no_error - 1);
    // Keep that event, if a later match may bind it.
    void keep(uint32_t partition);
    // Return a value of the event that was read; `place`: that of its column in the plan.
    std::optional<int64_t> value(size_t place) const {
        if ((static_cast<uint64_t>(current_[valid_word]) >> place & 1) == 0) return std::nullopt;
        return current_[first_value_ + place];
    }
    // Keep an event without a search, as other partial matches tell whether matches end with it.
    void keep_only(uint32_t partition, const Event& event);
    // Give a match point.
    void give(uint32_t partition, const Event& event, int64_t error);
    // Call visit(partition, event) for the events that are kept, as rows of a batch with so many columns. Return false
    // if a visit does.
    bool replay(size_t columns, auto&& visit);
    void advance(int64_t clock) override;
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>&) const override {}
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    // Write or read the notes of needed rows, which the state of a search does without: they save work, and a budget of
    // work must not depend on a restart.
    void dump_notes(Writer& out) const;
    // Read the notes that `dump_notes` wrote, after the state.
    void load_notes(Reader& in);
    int64_t bytes() const override;
    // Count the events that are kept and whose window is not over.
    int64_t partial_matches(int64_t clock) const override;

private:
    // A row is one kept event, as consecutive words: time, partition and kinds, a bit for each value that is not null,
    // links to the row before it in the chain of each index and by rank, the last search that failed from it by step,
    // notes of the rows that it needs before it, values.
    enum Word : size_t { time_word, place_word, valid_word, first_link };
    // The state of a partition.
    struct Part {
        Bundle bundle;
        int64_t last = NEVER;  // time of its last row
        int64_t last_first = NEVER;  // time of its last row that may be the first of a match
        int64_t since = 0;  // number of its first row: those before are of another partition, or came too early
    };
    static constexpr int64_t none = -1;  // number of no row
    static constexpr int64_t not_looked = std::numeric_limits<int64_t>::max();  // a note of needed rows
    // The result of trying a row: it does not fit, or it fits but nothing is found from it, or a match is found.
    enum class Tried : uint8_t { no, failed, succeeded };

    // Write or read the state.
    template <class Archive>
    static void fields(auto& self, Archive& archive);
    // Keep a row of a state once it is checked.
    void take_row(std::span<const int64_t> words, Reader& archive);
    // Return the words of a kept row.
    const int64_t* row(int64_t number) const { return words_.data() + place(number) * stride_; }
    int64_t* row(int64_t number) { return words_.data() + place(number) * stride_; }
    // Return the place of a row in the ring.
    size_t place(int64_t number) const { return static_cast<size_t>(number) & mask_; }
    // Return the column values of a row.
    const int64_t* values(const int64_t* row) const { return row + first_value_; }
    // Return the partition of a row.
    static uint32_t partition_of(const int64_t* row) { return static_cast<uint32_t>(row[place_word]); }
    // Return whether a row is of a kind of events of the plan.
    static bool is_of(const int64_t* row, uint32_t kind) {
        return (static_cast<uint64_t>(row[place_word]) >> (32 + kind) & 1) != 0;
    }
    // Return the event classes of the plan that events of a pattern are of.
    uint32_t kinds_of(uint32_t pattern);
    // Return a pattern of events of these classes of the plan, and of no others.
    uint32_t pattern_of(uint32_t kinds) const;
    // Return the kinds of the current event, as bits.
    uint32_t current_kinds() const { return static_cast<uint32_t>(static_cast<uint64_t>(current_[place_word]) >> 32); }
    // Put an event into `current_`.
    void read(uint32_t partition, const Event& event, uint32_t kinds);
    // Return whether an event may be the first of a match, or whether one that may be is in its window.
    bool concerns(const Part& part, uint32_t kinds) const;
    // Keep the current event as the last row, and link it.
    void add_row();
    // Double the room for rows, and make the indexes anew.
    void grow();
    // Put a row into the chain of each index.
    void link(int64_t number);
    // Return whether a row has a number to compare.
    bool has_value(const int64_t* row, const SearchRanks& ranks) const;
    // Return whether the value of a row is lower (or higher) than that of another one.
    bool is_beyond(const int64_t* row, const int64_t* other, const SearchRanks& ranks) const;
    // Link a row to the last one before it with a lower (or higher) value, by the links of the rows between.
    void link_by_rank(int64_t number, size_t place);
    // Compute the hash of a row in an index. Return whether it has one: null is equal to nothing.
    bool hash_of(const SearchIndex& index, const int64_t* row, uint64_t& hash) const;
    // Free the oldest rows as long as they are from before `low`.
    void free_before(int64_t low);
    // Find rows for the steps from `number` on. Return whether there are some.
    bool search(size_t number);
    // Try the rows of a chain that lie between two others. `hash`: of the cells of bands, where the key has some.
    bool search_chain(const SearchStep& step, size_t number, int64_t from, uint64_t hash, int64_t above, int64_t below);
    // Go on in each bucket of the index that may have rows for a step; `hash`: of the parts of the key before
    // `part`.
    bool search_cells(const SearchStep& step, size_t number, size_t part, uint64_t hash, int64_t above, int64_t below);
    // The same without an index.
    bool search_all(const SearchStep& step, size_t number, int64_t above, int64_t below);
    // Bind a row to the variable of a step if it passes, and search on.
    Tried try_row(const SearchStep& step, size_t number, int64_t at);
    // Return whether a check holds for the rows that are bound.
    bool holds(const SearchCheck& check);
    // Return how late the first of the rows that a bound row needs may be, at best: this row's own time without
    // any. It is looked for once.
    int64_t reach(const SearchStep& step, int64_t at);
    // Return the latest time of a row that a row needs before it, by one of its needs; NEVER: there is none.
    int64_t latest_needed(const SearchNeed& need, int64_t at);

    SearchPlan plan_;
    size_t stride_ = 0, first_rank_ = 0, first_failure_ = 0, first_need_ = 0, first_value_ = 0;
    std::vector<uint32_t> kinds_;  // by pattern: the event classes of the plan that its events are of, as bits
    std::vector<Part> parts_;
    // Rows [begin_, end_) in a ring.
    std::vector<int64_t> words_;
    int64_t begin_ = 0, end_ = 0;
    size_t mask_ = 0;
    bool sorted_ = true;  // times do not fall from row to row
    int64_t newest_ = NEVER;  // time of the last row
    std::vector<std::vector<int64_t>> heads_;  // by index and bucket: the last row
    // The current search.
    std::vector<int64_t> current_;  // the last event, as a row
    const SearchPath* path_ = nullptr;
    std::vector<const int64_t*> bound_;  // by level: its row
    std::vector<int64_t> numbers_;  // by level: the number of its row
    int64_t searches_ = 0, low_ = 0, since_ = 0;
    int64_t until_ = endless_work, most_hops_ = endless_work;  // in all, at which it is given up
    bool given_up_ = false;
    std::vector<Leaf> leaves_;
    Scratch scratch_;
};

bool SearchEngine::replay(size_t columns, auto&& visit) {
    std::vector<int64_t> words, times;
    std::vector<uint8_t> valid;
    const auto rows = static_cast<size_t>(end_ - begin_);
    words.resize(rows * plan_.columns.size());
    valid.resize(words.size());
    for (int64_t number = begin_; number < end_; ++number) {
        const int64_t* const from = row(number);
        const auto at = static_cast<size_t>(number - begin_);
        times.push_back(from[time_word]);
        for (size_t k = 0; k < plan_.columns.size(); ++k) {
            words[k * rows + at] = values(from)[k];
            valid[k * rows + at] = static_cast<uint8_t>(static_cast<uint64_t>(from[valid_word]) >> k & 1);
        }
    }
    Batch batch;
    batch.size = rows;
    batch.ts = times.data();
    batch.columns.resize(columns);
    for (size_t k = 0; k < plan_.columns.size(); ++k) {
        batch.columns[plan_.columns[k]] = {words.data() + k * rows, valid.data() + k * rows};
    }
    for (int64_t number = begin_; number < end_; ++number) {
        const int64_t* const from = row(number);
        const uint32_t partition = partition_of(from);
        if (number < parts_[partition].since) continue;
        const uint32_t pattern = pattern_of(static_cast<uint32_t>(static_cast<uint64_t>(from[place_word]) >> 32));
        const Event event{from[time_word], 0, 0, pattern, &batch, static_cast<size_t>(number - begin_)};
        if (!visit(partition, event)) return false;
    }
    return true;
}

}  // namespace acep
