#include "ordered/failures.hpp"

#include <algorithm>
#include <limits>

#include "common/hash.hpp"

namespace acep {

namespace {

constexpr size_t least_slots = 1024;
constexpr int64_t no_key = std::numeric_limits<int64_t>::min();  // in place of the first word of a key taken out

}  // namespace

void Failures::start(size_t memory) {
    memory_ = memory;
    clear();
}

void Failures::clear() {
    words_.clear();
    entries_.clear();
    way_.clear();
    if (++age_ != 0) return;
    std::ranges::fill(slots_, Slot{0, 0});
    age_ = 1;
}

bool Failures::equal(size_t entry, const std::vector<int64_t>& key) const {
    const size_t begin = entries_[entry].begin, size = end_of(entry) - begin;
    return size == key.size() &&
           std::equal(key.begin(), key.end(), words_.begin() + static_cast<std::ptrdiff_t>(begin));
}

bool Failures::add(const std::vector<int64_t>& key) {
    if (2 * entries_.size() >= slots_.size()) grow();
    if (!entries_.empty() && (words_.size() + key.size()) * 2 * sizeof(int64_t) > memory_) clear();
    const uint64_t hash = WordsHash()(key);
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    for (; slots_[at].age == age_; at = (at + 1) & mask) {
        const uint32_t entry = slots_[at].entry;
        if (entries_[entry].hash == hash && equal(entry, key)) return false;
    }
    const auto entry = static_cast<uint32_t>(entries_.size());
    slots_[at] = {entry, age_};
    entries_.push_back({hash, words_.size()});
    words_.insert(words_.end(), key.begin(), key.end());
    way_.push_back(entry);
    ++added_;
    return true;
}

void Failures::grow() {
    const size_t size = std::max(2 * slots_.size(), least_slots);
    const size_t later = size * (sizeof(Slot) + sizeof(Entry) / 2) + 2 * words_.size() * sizeof(int64_t);
    if (slots_.size() >= least_slots && (later > memory_ || size > size_t{1} << 32)) return clear();
    slots_.assign(size, Slot{0, 0});
    for (size_t entry = 0; entry < entries_.size(); ++entry) {
        size_t at = entries_[entry].hash & (size - 1);
        while (slots_[at].age == age_) at = (at + 1) & (size - 1);
        slots_[at] = {static_cast<uint32_t>(entry), age_};
    }
}

void Failures::forget_way() {
    for (const uint32_t entry : way_) words_[entries_[entry].begin] = no_key;
    way_.clear();
}

size_t Failures::bytes() const {
    return words_.capacity() * sizeof(int64_t) + entries_.capacity() * sizeof(Entry) +
           slots_.capacity() * sizeof(Slot) + way_.capacity() * sizeof(uint32_t);
}

}  // namespace acep
