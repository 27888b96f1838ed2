// The engine for match points that searches where that costs least, and else follows partial matches: it tries both.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nodes/nodes.hpp"
#include "search/search.hpp"

namespace acep {

// A search, or partial matches in its place as long as they cost less: which is tried now and then.
class SwitchingEngine final : public Engine {
public:
    SwitchingEngine(Tables tables, const Dominance& dominance, EventClassifier& classifier, Partitions& partitions)
        : Engine(std::move(tables), classifier, partitions),
          search_(tables_, classifier, partitions),
          dominance_(dominance) {}

    static constexpr int64_t most_of_search = 1 << 16;  // rows looked at for one event
    static constexpr int64_t most_hops_of_search = 4 * most_of_search;

    // Return the plan of the search.
    const SearchPlan& plan() const { return search_.plan(); }
    // Return the search.
    SearchEngine& search() { return search_; }
    // Return whether partial matches are followed. Drop them: a search needs the events alone.
    bool follows() const { return nodes_ != nullptr; }
    // Drop the partial matches: a search needs the events alone.
    void drop_nodes();
    // Add what was done with `search` since its work was `before`.
    void add(const Work& before);
    Output& output() override { return search_.output(); }
    void event(uint32_t partition, const Event& event) override;
    void advance(int64_t clock) override;
    bool expire_partition(uint32_t partition, int64_t soonest) override;
    void forget(uint32_t partition) override;
    void expect(const Batch& batch, size_t from, int64_t stream_row, bool last) override;
    // `index` also says when partial matches take the place of a search: never, by turns, or where that pays.
    void take_ways(Taking index, Taking future) override;
    void used_texts(UsedTexts& used) const override;
    void used_ids(std::vector<int64_t>&) const override {}
    void dump(Writer& out) const override;
    void load(Reader& in) override;
    int64_t bytes() const override { return search_.bytes() + (nodes_ ? nodes_->bytes() : 0); }
    int64_t partial_matches(int64_t clock) const override { return search_.partial_matches(clock); }

private:
    static constexpr int64_t stretch = 4096;  // events between two decisions
    static constexpr int64_t forced_stretch = 16;
    // Touches of a search for each event from which on partial matches are tried, and from which on at once.
    static constexpr int64_t dear = 6, much = 32;
    static constexpr int64_t hops_of_touch = 8;  // cost as much as one
    static constexpr int64_t to_make = 12;  // touches that cost as much as a partial match
    static constexpr int64_t most_rests = 64;

    // Let an event extend the partial matches, and keep it for a later search.
    void follow(uint32_t partition, const Event& event);
    // At the end of a stretch, choose how the next one is run.
    void decide();
    // Return what a search of so many events would have cost.
    int64_t cost_of_search(int64_t events) const;
    // Make the partial matches of the events that are kept. Return false if that cannot be done now, or costs too
    // much.
    bool begin_nodes();
    // Add what an event has cost.
    void count(const Work& before, const Work& after);

    SearchEngine search_;
    Dominance dominance_;
    std::unique_ptr<NodeEngine> nodes_;  // while partial matches are followed
    Taking index_ = Taking::where_it_pays, future_ = Taking::where_it_pays;
    int64_t seen_ = 0;  // events of this stretch
    int64_t cost_ = 0;  // of this stretch, in touches of a search
    int64_t searched_ = 0;  // cost of the last stretch of a search
    int64_t rest_ = 0, rests_ = 1;  // stretches until partial matches are tried again, and how many they will be after
};

}  // namespace acep
