// Texts as codes: each text is kept once, and columns hold its number.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace acep {

// A code stays that of its text until it is released; then another text may get it, so that a long stream of ever new
// texts needs room only for those in use. Codes are 0, 1, 2, ...
struct Texts {
    Texts() = default;
    Texts(const Texts&) = delete;  // the keys of `codes_` look into `kept_`
    Texts& operator=(const Texts&) = delete;

    // The code of UTF-8 bytes, a new one if they are new.
    int64_t intern(std::string_view text);
    // Frees a code. Throws std::invalid_argument if it is not in use.
    void release(int64_t code);
    bool known(int64_t code) const {
        return code >= 0 && static_cast<uint64_t>(code) < used_.size() && used_[static_cast<size_t>(code)] != 0;
    }
    // The bytes of a text; those of a code not in use are empty.
    std::string_view text(int64_t code) const {
        return known(code) ? std::string_view(kept_[static_cast<size_t>(code)]) : std::string_view();
    }
    // Below, at or above zero as the bytes of one text compare with another's, which is the order of code points.
    int order(int64_t a, int64_t b) const { return a == b ? 0 : text(a).compare(text(b)); }
    // A hash of a text in use, the same in every run; `keep`: it may be asked for again.
    uint64_t hash(int64_t code, bool keep) const;
    // How many codes are in use.
    size_t size() const { return codes_.size(); }
    // Frees the codes from `begin` on that are not marked, and the room of those at the end.
    void keep(std::span<const uint8_t> used, int64_t begin);
    int64_t bytes() const;
    // How many codes there are, in use or free.
    size_t capacity() const { return kept_.size(); }

private:
    std::deque<std::string> kept_;  // by code; a deque leaves strings where they are
    std::vector<uint8_t> used_;
    std::vector<int64_t> free_;
    std::unordered_map<std::string_view, int64_t> codes_;
    int64_t letters_ = 0;  // bytes of long texts
    mutable std::vector<uint64_t> hashes_;  // by code; 0: not known yet
};

}  // namespace acep
