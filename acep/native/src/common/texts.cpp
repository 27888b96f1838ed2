// Interning of texts (texts.hpp).
#include "common/texts.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "common/pooled.hpp"

namespace acep {
namespace {

// Bytes that a text takes on the heap, if it is too long for the string object itself.
int64_t beside(std::string_view text) { return text.size() < 16 ? 0 : static_cast<int64_t>(text.size()) + 17; }

}  // namespace

int64_t Texts::intern(std::string_view text) {
    const auto found = codes_.find(text);
    if (found != codes_.end()) return found->second;
    int64_t code = 0;
    if (free_.empty()) {
        code = static_cast<int64_t>(kept_.size());
        kept_.emplace_back(text);
        used_.push_back(1);
    } else {
        code = free_.back();
        kept_[static_cast<size_t>(code)].assign(text);
        free_.pop_back();
        used_[static_cast<size_t>(code)] = 1;
    }
    codes_.emplace(kept_[static_cast<size_t>(code)], code);
    letters_ += beside(text);
    return code;
}

void Texts::release(int64_t code) {
    if (!known(code)) throw std::invalid_argument("texts: code " + std::to_string(code) + " is not in use");
    const auto at = static_cast<size_t>(code);
    codes_.erase(kept_[at]);
    letters_ -= beside(kept_[at]);
    std::string().swap(kept_[at]);
    used_[at] = 0;
    free_.push_back(code);
    if (at < hashes_.size()) hashes_[at] = 0;
}

uint64_t Texts::hash(int64_t code, bool keep) const {
    const auto at = static_cast<size_t>(code);
    if (at < hashes_.size() && hashes_[at] != 0) return hashes_[at];
    uint64_t found = 0xCBF29CE484222325u;
    for (const char c : kept_[at]) found = (found ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
    if (!keep) return found;
    if (at >= hashes_.size()) hashes_.resize(kept_.size(), 0);
    return hashes_[at] = found;
}

void Texts::keep(std::span<const uint8_t> used) {
    for (size_t code = 0; code < used_.size(); ++code) {
        if (used_[code] != 0 && (code >= used.size() || used[code] == 0)) release(static_cast<int64_t>(code));
    }
    while (!used_.empty() && used_.back() == 0) {
        used_.pop_back();
        kept_.pop_back();
    }
    std::erase_if(free_, [&](int64_t code) { return static_cast<size_t>(code) >= used_.size(); });
    std::sort(free_.begin(), free_.end(), std::greater<>());  // the least is reused first, so that the last become free
    used_.shrink_to_fit();
    free_.shrink_to_fit();
}

int64_t Texts::bytes() const {
    constexpr size_t entry = sizeof(std::string_view) + sizeof(int64_t) + 4 * sizeof(void*);  // of the hash table
    return letters_ + heap_bytes(used_, free_) +
           static_cast<int64_t>(kept_.size() * sizeof(std::string) + codes_.size() * entry);
}

}  // namespace acep
