// Interning of texts: each text is stored once, and columns hold its code.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace acep {

// A code belongs to its text until it is released. Then another text may get it, so a long stream of ever new texts
// needs room only for the texts in use. Codes are 0, 1, 2, ...
struct Texts {
    Texts() = default;
    Texts(const Texts&) = delete;  // the keys of `codes_` point into `kept_`
    Texts& operator=(const Texts&) = delete;

    // Return the code of UTF-8 bytes, a new one for a new text.
    int64_t intern(std::string_view text);
    // Free a code. Throws std::invalid_argument if it is not in use.
    void release(int64_t code);
    // Return whether a code is in use.
    bool known(int64_t code) const {
        return code >= 0 && static_cast<uint64_t>(code) < used_.size() && used_[static_cast<size_t>(code)] != 0;
    }
    // Return the bytes of a text; empty for a code not in use.
    std::string_view text(int64_t code) const {
        return known(code) ? std::string_view(kept_[static_cast<size_t>(code)]) : std::string_view();
    }
    // Compare the bytes of two texts, which is the order of code points: the result is below, at or above zero.
    int order(int64_t a, int64_t b) const { return a == b ? 0 : text(a).compare(text(b)); }
    // Return a hash of a text in use, the same in every run; `keep`: cache it.
    uint64_t hash(int64_t code, bool keep) const;
    // Return the number of codes in use.
    size_t size() const { return codes_.size(); }
    // Free the codes that are not marked in `used`, and the memory of free codes at the end.
    void keep(std::span<const uint8_t> used);
    // Return the bytes of all texts and of what finds them.
    int64_t bytes() const;
    // Return the number of codes, in use or free.
    size_t capacity() const { return kept_.size(); }

private:
    std::deque<std::string> kept_;  // by code; a deque does not move its strings
    std::vector<uint8_t> used_;
    std::vector<int64_t> free_;
    std::unordered_map<std::string_view, int64_t> codes_;
    int64_t letters_ = 0;  // bytes of long texts
    mutable std::vector<uint64_t> hashes_;  // by code; 0: not computed yet
};

// The codes of texts that something still refers to: all others may be freed. Words that are no codes may be added too.
class UsedTexts {
public:
    explicit UsedTexts(size_t codes) : used_(codes, 0) {}

    // Mark a word, if it is a code.
    void add(int64_t word) {
        if (word >= 0 && static_cast<uint64_t>(word) < used_.size()) used_[static_cast<size_t>(word)] = 1;
    }
    // Mark each of some words that is a code.
    void add(std::span<const int64_t> words) {
        for (const int64_t word : words) add(word);
    }
    // Return a flag for each code.
    std::vector<uint8_t> take() { return std::move(used_); }

private:
    std::vector<uint8_t> used_;
};

// Compare two words as integers (kind 0), doubles (1) or codes of texts (2): the result is below, at or above zero.
inline int order_of(int64_t kind, int64_t x, int64_t y, const Texts& texts) {
    if (kind == 2) return texts.order(x, y);
    if (kind == 0) return x < y ? -1 : x > y ? 1 : 0;
    const double a = std::bit_cast<double>(x), b = std::bit_cast<double>(y);
    return a < b ? -1 : a > b ? 1 : 0;
}

}  // namespace acep
