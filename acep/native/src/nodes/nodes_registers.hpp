// A block of candidates: rows of a list for which the predicates of an arc are computed together (nodes_registers.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "expression/vm.hpp"

namespace acep {

struct CandidateBlock {
    std::vector<uint32_t> rows = std::vector<uint32_t>(block_rows);
    bool contiguous = false;  // the rows follow each other
    std::vector<int64_t> words;  // inputs of a predicate that had to be gathered, `block_rows` values each
    std::vector<uint8_t> valid;
    std::vector<Leaf> leaves;
    alignas(64) uint8_t pass[block_rows];
    uint8_t dropped[block_rows];  // by place: an input is unbound, so the predicate is ignored
    bool drops = false;  // `dropped` has any
    std::vector<std::vector<uint32_t>> loops;  // by loop of a predicate: the frames of one row
    Scratch scratch;

    // Make room for the inputs of a predicate before any is loaded, as they point into these buffers.
    void room_for(size_t inputs) {
        if (inputs <= leaves.size()) return;
        leaves.resize(inputs);
        words.resize(inputs * block_rows);
        valid.resize(inputs * block_rows);
    }
};

}  // namespace acep
