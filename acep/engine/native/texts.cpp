// Texts as codes (texts.hpp).
#include "texts.hpp"

#include <stdexcept>

namespace acep {

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
    return code;
}

void Texts::release(int64_t code) {
    if (!known(code)) throw std::invalid_argument("texts: code " + std::to_string(code) + " is not in use");
    const auto at = static_cast<size_t>(code);
    codes_.erase(kept_[at]);
    std::string().swap(kept_[at]);
    used_[at] = 0;
    free_.push_back(code);
}

}  // namespace acep
