// The functions that concern several parts of shedding. All results depend on the events, the budget and the table
// alone.
#include "shedding/shedding.hpp"

namespace acep {

Shedding::Shedding(const Tables& tables, const Texts& texts, const Partitions& partitions, uint64_t seed)
    : keys_(texts, partitions),
      slots(tables),
      budget(table_),
      utilities(tables, table_, texts, keys_, mixed(seed)),
      log(tables, table_, utilities, mixed(seed)),
      sample(tables, table_, keys_, log, mixed(seed)),
      admission(tables, table_, budget, utilities),
      eviction(tables, table_, budget, utilities, log, sample) {}

void Shedding::set(SheddingTable table) {
    table_ = std::move(table);
    keys_.clear();
    sample.clear_draws();
    budget.use_table();
    utilities.use_table();
    admission.use_table();
    sample_units(table_.shadow);
}

void Shedding::sample_units(uint64_t share) {
    table_.shadow = share;
    if (share != 0 && !sample.any()) sample.begin(budget.arrived() == 0);
}

void Shedding::bound_log(int64_t bytes) {
    log.bound(bytes);
    keys_.bound();
    budget.invalidate();
}

void Shedding::log_match(Mark parent, uint32_t partition, int64_t when, int64_t ts, int64_t error) {
    if (sample.any()) {
        const auto kind = budget.in_sample() ? Trajectories::Point::whole : Trajectories::Point::kept;
        sample.log_point(partition, when, ts, kind);
    }
    log.log_match(parent, partition, when, error);
}

int64_t Shedding::table_bytes() const {
    int64_t total = heap_bytes(table_.level, table_.admit, table_.later, table_.decay);
    for (const auto& terms : table_.terms) {
        total += static_cast<int64_t>(terms.size() * sizeof(Term));
        for (const Term& t : terms) total += heap_bytes(t.bounds, t.utility);
    }
    return total;
}

template <class Archive>
void Shedding::fields(auto& self, Archive& archive) {
    TouchBudget::pace_fields(self.budget, archive);
    archive.within(0, most_positions, self.admission.refused, self.eviction.dropped, self.admission.skipped,
                   self.admission.keyless, self.log.n_match_points);
    TouchBudget::sample_fields(self.budget, archive);
    Utilities::fields(self.utilities, archive);
    TouchBudget::shortfall_fields(self.budget, archive);
    TrajectoryLog::fields(self.log, archive);
    ShadowSample::fields(self.sample, archive);
}

void Shedding::fields(Writer& out) const { fields(*this, out); }

void Shedding::fields(Reader& in) {
    fields(*this, in);
    budget.finish_reading();
    keys_.clear();
}

}  // namespace acep
