// Match points without matches (nodes/point_storer.hpp).
#include "nodes/point_storer.hpp"

#include <algorithm>

namespace acep {
namespace {

// Number of comparisons that may be made without credit.
constexpr int64_t dominance_margin = 16;

}  // namespace

void PointStorer::store(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low) {
    const int64_t best = find_best(partition, event);
    if (best <= tables_.budget && !(shedding_.active() != nullptr && shedding_.active()->budget.in_sample())) {
        write_point(part, partition, event, best);
    }
    Dominance& dominance = *dominance_;
    dominance.log = shedding_.active();
    dominance.now = tables_.key(event);
    dominance.credit = std::min(dominance.credit + work_.touches - dominance.paid, Dominance::most_credit);
    int64_t compared = 0;
    for (const uint32_t state : maker_.states()) {
        NewNodes& new_nodes = maker_.new_nodes(state);
        if (!tables_.states[state].arcs.empty()) {
            dominance.state = state;
            store_state(part.lists[state], new_nodes, partition, state, event, low, compared);
        }
        new_nodes.clear();
    }
    maker_.forget_states();
    work_.touches += compared;
    dominance.paid = work_.touches;
}

int64_t PointStorer::find_best(uint32_t partition, const Event& event) {
    int64_t best = tables_.budget + 1;
    const bool logs = shedding_.logs();
    for (const uint32_t state : maker_.states()) {
        if (tables_.states[state].accepts.empty()) continue;
        NodeList& nodes = maker_.new_nodes(state).nodes;
        const auto is_wanted = [&](uint32_t, int64_t error) { return error < (logs ? tables_.budget + 1 : best); };
        visit_endings(evaluator_, tables_.states[state], nodes, event, is_wanted, [&](uint32_t i, int64_t error) {
            best = std::min(best, error);
            if (!logs) return;
            Shedding& shed = *shedding_.active();
            shed.log_match(shed.slots.mark(nodes, i, state), partition, tables_.key(event), event.ts, error);
        });
    }
    return best;
}

void PointStorer::write_point(PartitionNodes& part, uint32_t partition, const Event& event, int64_t error) {
    const int64_t bundle = part.bundle.at(event.ts, event.position, tables_.span, tables_.counted);
    output_.add(event.ts, event.ts, error, bundle, partitions_.key(partition), partitions_.width());
    output_.offsets.push_back(0);
    output_.at.push_back(arrived_);
    ++work_.matches;
    if (shedding_.active() != nullptr) shedding_.note_point();
}

void PointStorer::store_state(NodeList& list, NewNodes& new_nodes, uint32_t partition, uint32_t state,
                              const Event& event, int64_t low, int64_t& compared) {
    Shedding* const shed = shedding_.active();
    for (uint32_t i = 0; i < new_nodes.nodes.end; ++i) {
        if (shed != nullptr && !shed->admission.admit(new_nodes.nodes, i, state, partition, tables_.key(event)))
            continue;
        if (shed != nullptr) store_.make_room(list, state, low);
        if (!limit_credit(event, compared)) continue;
        const uint32_t to = find_row(list, new_nodes, i, state, event, low, compared);
        if (to == NIL) continue;
        list.take(to, new_nodes.nodes, i, tables_.states[state].slots, new_nodes.nodes.starts()[i], NIL);
        if (shed != nullptr) shed->log.log_new(list, to, state, partition);
    }
}

// Comparisons count as touches.
bool PointStorer::limit_credit(const Event& event, int64_t compared) {
    Dominance& dominance = *dominance_;
    if (Shedding* const shed = shedding_.active(); shed != nullptr && shed->budget.limited()) {
        shed->budget.touched(work_.touches + compared);
        const double room = shed->budget.afforded() - static_cast<double>(dominance_margin);
        if (room < 0) {
            if (shed->budget.in_sample()) shed->record_loss(tables_.key(event));
            ++shed->admission.refused;
            return false;
        }
        if (room < static_cast<double>(dominance.credit)) dominance.credit = static_cast<int64_t>(room);
    }
    if (Shedding* const resting = shedding_.resting()) {
        resting->budget.touched(work_.touches + compared);
        const auto others = static_cast<double>(dominance_margin * shedding_.nodes_made());
        const double room = resting->budget.tokens() - others;
        if (room < static_cast<double>(dominance.credit)) dominance.credit = static_cast<int64_t>(room);
    }
    return true;
}

uint32_t PointStorer::find_row(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, const Event& event,
                               int64_t low, int64_t& compared) {
    Shedding* const shed = shedding_.active();
    Ranking& ranking = dominance_->states[state];
    // Where only a part of a list is compared, equal nodes are still looked up, as they are many.
    const bool compares_some = !ranking.front && ranking.equal.empty() && !ranking.ordered.empty();
    const uint32_t equal = compares_some ? merging_.find_equal(list, new_nodes, row, state, low) : NIL;
    if (equal == NIL) {
        const Dominance::Lows lows{low, shed != nullptr ? NEVER : low};
        return dominance_->make_row(ranking, list, new_nodes.nodes, row, tables_.states[state].slots, lows, compared);
    }
    if (list.starts()[equal] >= new_nodes.nodes.starts()[row]) return NIL;
    if (shed != nullptr) shed->log.log_end(list, equal, state, tables_.key(event), EndReason::taken);
    return equal;
}

}  // namespace acep
