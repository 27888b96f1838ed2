// The parts of a node engine, and what concerns several of them (nodes/node_parts.hpp).
#include "nodes/node_parts.hpp"

#include <utility>

namespace acep {
namespace {

// With dominance, each evaluated node may make a new one, which may be compared with a few others.
constexpr double touches_with_dominance = 20;

}  // namespace

NodeParts::NodeParts(Tables& tables, EventClassifier& classifier, Partitions& partitions, Work& work,
                     std::unique_ptr<Dominance> points)
    : dominance(std::move(points)),
      frames(tables),
      shedding(tables, classifier, work, dominance ? touches_with_dominance : 1),
      store(tables, arena, frames, shedding),
      archive(tables, arena, frames, shedding, store, dominance.get()),
      merging(tables, store, shedding, dominance != nullptr),
      memory(tables, store, arena, frames, partitions, shedding, merging, dominance != nullptr),
      evaluator(classifier, frames),
      writer(tables, classifier, evaluator, frames),
      finder(classifier),
      pattern_arcs(tables, classifier, finder, writer),
      maker(tables, writer, shedding, memory, work),
      binder(tables, arena, completion),
      shedding_switch(tables, frames, shedding, store, maker) {
    if (KnownFuture::serves(tables)) {
        future = std::make_unique<KnownFuture>(tables, classifier, partitions.columns());
    }
}

void NodeParts::bound_memory(int64_t bytes, int64_t clock) {
    begin_shedding();
    shedding_switch.compute_utilities();
    finder.forbid_index(true);
    if (future) future->forget();
    memory.set_bound(bytes, clock);
}

void NodeParts::rest_far_from_bound(int64_t now) {
    if (!shedding.may_rest()) return;
    if (shedding.active() != nullptr) shedding_switch.rest(now);
    finder.forbid_index(false);
    memory.keep_bound_distant();
}

void NodeParts::set_table(SheddingTable table) {
    shedding_switch.compute_utilities();
    shedding.any()->set(std::move(table));
}

void NodeParts::take_over_tables() {
    maker.add_states();
    merging.add_states();
    frames.find_slots();
}

void NodeParts::shrink(const Tables& tables) {
    for (PartitionNodes& part : store.partitions()) {
        part.each([&](NodeList& list, uint32_t s) { list.shrink(tables.states[s].slots); });
    }
    arena.shrink();
    frames.shrink();
    maker.release();
    merging.release();
    finder.release();
    memory.release();
    if (shedding.active() != nullptr) shedding.active()->eviction.shrink();
    memory.recount();
}

int64_t NodeParts::bytes() const {
    int64_t total = arena.bytes() + arena.kept.bytes() + frames.bytes() + evaluator.bytes() + finder.bytes() +
                    merging.bytes() + memory.bytes() + maker.bytes() + heap_bytes(store.partitions());
    if (memory.is_bounded()) {
        total += memory.stored_bytes().reserved;
    } else {
        for (const PartitionNodes& part : store.partitions()) total += memory.bytes_of(part).reserved;
    }
    if (completion) total += completion->bytes();
    if (future) total += future->bytes();
    return total + (shedding.any() != nullptr ? shedding.any()->bytes() : 0);
}

}  // namespace acep
