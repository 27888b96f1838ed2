// Switching between a search and partial matches.
#include "search/switching.hpp"

#include <algorithm>

namespace acep {

void SwitchingEngine::event(uint32_t partition, const Event& event) {
    search_.arrived = arrived;
    search_.again = again;
    const bool is_endless = nodes_ || index_ == Taking::never;
    search_.limit = is_endless ? SearchEngine::endless_work : most_of_search;
    search_.hop_limit = is_endless ? SearchEngine::endless_work : most_hops_of_search;
    if (!nodes_) {
        const Work before = search_.work();
        const int64_t hops_before = search_.hops;
        search_.event(partition, event);
        count(before, search_.work());
        cost_ += (search_.hops - hops_before) / hops_of_touch;
        if (search_.has_given_up()) {
            searched_ = SearchEngine::endless_work;
            begin_nodes();
        }
    }
    if (nodes_) {
        const Work before = nodes_->work();
        follow(partition, event);
        count(before, nodes_->work());
    }
    // Nothing that costs much waits for the end of a stretch.
    ++seen_;
    bool ends = seen_ >= (index_ == Taking::always ? forced_stretch : stretch);
    if (index_ == Taking::where_it_pays) {
        ends = ends || (nodes_ ? cost_ > cost_of_search(seen_) + searched_ / 16 : cost_ > much * stretch);
    }
    if (ends) decide();
}

int64_t SwitchingEngine::cost_of_search(int64_t events) const {
    return searched_ == SearchEngine::endless_work ? searched_ / 2 : searched_ / stretch * events;
}

void SwitchingEngine::count(const Work& before, const Work& after) {
    const int64_t nodes = after.nodes - before.nodes, touches = after.touches - before.touches;
    work_.nodes += nodes;
    work_.touches += touches;
    work_.matches += after.matches - before.matches;
    cost_ += touches + (nodes_ ? to_make * nodes : nodes);
}

void SwitchingEngine::follow(uint32_t partition, const Event& event) {
    nodes_->arrived = arrived;
    nodes_->again = again;
    nodes_->event(partition, event);
    Output& points = nodes_->output();
    const bool ends = points.size() > 0;
    const int64_t error = ends ? points.error.back() : 0;
    points.clear_matches();
    search_.keep_only(partition, event);
    if (ends) search_.give(partition, event, error);
}

// At the end of a stretch, choose how the next one is run.
void SwitchingEngine::decide() {
    const int64_t events = std::exchange(seen_, 0), spent = std::exchange(cost_, 0);
    const int64_t cost = nodes_ ? spent : spent / events * stretch;
    if (nodes_) {
        const int64_t before = cost_of_search(events);
        const bool pays = index_ != Taking::always && cost < before - before / 8;
        if (pays && --rest_ > 0) return;
        // Search again, as what it costs may have changed.
        rest_ = pays ? 0 : rests_;
        rests_ = pays ? 1 : std::min(2 * rests_, most_rests);
        nodes_.reset();
        return;
    }
    searched_ = cost;
    if (index_ == Taking::never) return;
    if (index_ != Taking::always && (cost < dear * stretch || --rest_ > 0)) return;
    if (!begin_nodes()) {
        rest_ = rests_;
        rests_ = std::min(2 * rests_, most_rests);
    }
}

bool SwitchingEngine::begin_nodes() {
    nodes_ = std::make_unique<NodeEngine>(tables_, classifier_, partitions_, std::make_unique<Dominance>(dominance_));
    nodes_->take_ways(index_, future_);
    const Work& work = nodes_->work();
    const bool replayed = search_.replay(tables_.columns, [&](uint32_t partition, const Event& event) {
        nodes_->arrived = arrived;
        nodes_->event(partition, event);
        nodes_->output().clear_matches();
        return index_ == Taking::always || searched_ == SearchEngine::endless_work ||
               work.touches + to_make * work.nodes <= searched_ / 4;
    });
    work_.nodes += work.nodes;
    work_.touches += work.touches;
    if (!replayed) nodes_.reset();
    if (replayed) rest_ = most_rests;
    return replayed;
}

void SwitchingEngine::drop_nodes() {
    nodes_.reset();
    seen_ = cost_ = rest_ = 0;
    rests_ = 1;
}

void SwitchingEngine::add(const Work& before) { count(before, search_.work()); }

void SwitchingEngine::advance(int64_t clock) {
    search_.advance(clock);
    if (nodes_) nodes_->advance(clock);
}

bool SwitchingEngine::expire_partition(uint32_t partition, int64_t soonest) {
    const bool nodes_have_expired = !nodes_ || nodes_->expire_partition(partition, soonest);
    return search_.expire_partition(partition, soonest) && nodes_have_expired;
}

void SwitchingEngine::forget(uint32_t partition) {
    search_.forget(partition);
    if (nodes_) nodes_->forget(partition);
}

void SwitchingEngine::expect(const Batch& batch, size_t from, int64_t stream_row, bool last) {
    if (nodes_) nodes_->expect(batch, from, stream_row, last);
}

void SwitchingEngine::take_ways(Taking index, Taking future) {
    index_ = index;
    future_ = future;
}

void SwitchingEngine::used_texts(UsedTexts& used) const {
    search_.used_texts(used);
    if (nodes_) nodes_->used_texts(used);
}

// Only the events that are kept: where partial matches are followed, they are made again once that pays.
void SwitchingEngine::dump(Writer& out) const {
    out.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    search_.dump(out);
}

void SwitchingEngine::load(Reader& in) {
    in.within(0, most_positions, work_.nodes, work_.touches, work_.matches);
    search_.load(in);
}

}  // namespace acep
