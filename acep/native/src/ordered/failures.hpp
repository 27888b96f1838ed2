// A memory of configurations from which no match ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace acep {

// A set of keys, which are words of any number and compared exactly. A search puts a configuration in when it comes to
// it, and does not go on where it is in already. Those on the way to a match are taken out when there is one: all
// others have failed. Beyond a bound of memory the set is emptied.
class Failures {
public:
    // Empty the set and the way; at most `memory` bytes are to be used from now on.
    void start(size_t memory);
    // Empty the set and the way.
    void clear();
    // Put a key in and on the way; return false if it is in already.
    bool add(const std::vector<int64_t>& key);
    // Return the length of the way; take keys off its end, which stay in.
    size_t way() const { return way_.size(); }
    void go_back(size_t length) {
        if (length < way_.size()) way_.resize(length);
    }
    // Take the keys on the way out.
    void forget_way();
    // Return how many keys were put in, ever.
    size_t added() const { return added_; }
    // Return the bytes on the heap.
    size_t bytes() const;

private:
    // A key that is in.
    struct Entry {
        uint64_t hash;
        size_t begin;  // in words_, up to that of the next entry
    };
    // A place of the hash table.
    struct Slot {
        uint32_t entry;
        uint32_t age;  // an older one than the set's own: empty
    };

    // Return the end of a key in words_.
    size_t end_of(size_t entry) const {
        return entry + 1 < entries_.size() ? entries_[entry + 1].begin : words_.size();
    }
    // Return whether an entry has a key.
    bool equal(size_t entry, const std::vector<int64_t>& key) const;
    // Make room for more keys; where there must not be more, empty the set.
    void grow();

    std::vector<int64_t> words_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;
    std::vector<uint32_t> way_;
    uint32_t age_ = 1;
    size_t memory_ = 0;
    size_t added_ = 0;
};

}  // namespace acep
