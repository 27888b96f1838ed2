// Hashes of the keys of partitions, stored for later calls unless memory is bounded.
#pragma once

#include <cstdint>
#include <vector>

#include "common/texts.hpp"
#include "session/partitions.hpp"
#include "shedding/sampling_unit.hpp"

namespace acep {

// Hashes by partition. A partition's key must not change between two calls without `forget`.
class KeyHashes {
public:
    KeyHashes(const Texts& texts, const Partitions& partitions) : texts_(texts), partitions_(partitions) {}

    // Return whether memory is bounded, so that nothing is stored by partition.
    bool bounded() const { return bounded_; }
    // Store no further hashes, as memory is bounded.
    void bound() { bounded_ = true; }
    // Return the hash of a partition's key, the same in every run; `key_texts` has a bit for each part that is a text.
    uint64_t of(uint32_t partition, uint32_t key_texts) const {
        if (bounded_) return key_hash(partitions_, texts_, partition, key_texts, false);
        if (partition >= hashes_.size()) hashes_.resize(partition + size_t{1}, 0);
        uint64_t& hash = hashes_[partition];
        if (hash == 0) hash = key_hash(partitions_, texts_, partition, key_texts, true);
        return hash;
    }
    // Discard all hashes: which parts of keys are texts may change.
    void clear() { hashes_.clear(); }
    // Discard the hash of a partition, as its number may be reused for another key.
    void forget(uint32_t partition) {
        if (partition < hashes_.size()) hashes_[partition] = 0;
    }

private:
    const Texts& texts_;
    const Partitions& partitions_;
    bool bounded_ = false;
    mutable std::vector<uint64_t> hashes_;  // by partition; 0: not computed yet
};

}  // namespace acep
