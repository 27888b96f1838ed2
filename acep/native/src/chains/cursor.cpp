// Output columns for enumerated matches, and buffers of the cursor.
#include "chains/cursor.hpp"

namespace acep {

Output& MatchWriter::trimmed() {
    if (!trimmed_) {
        output_.resize(n_, width_);
        output_.resize_events(items_);
        trimmed_ = true;
        most_ = std::max<size_t>(256, n_ + n_ / 8);
        most_items_ = std::max<size_t>(1024, items_ + items_ / 8);
    }
    return output_;
}

void MatchWriter::begin() {
    if (!trimmed_) return;
    trimmed_ = false;
    n_ = output_.start.size();
    items_ = output_.ids.size();
    if (output_.offsets.empty()) output_.offsets.push_back(0);
    if (n_ == 0) output_.ordered = true;
}

void MatchWriter::shaped(const std::vector<uint16_t>& vars, bool first) {
    if (first) output_.shape = vars;
    output_.uniform = first || (output_.uniform && output_.shape == vars);
}

void MatchWriter::shapeless() { output_.ordered = output_.uniform = false; }

void MatchWriter::make_room(size_t matches, size_t items) {
    // After columns are taken, new ones start at the same size. Large ones grow by more: unused memory costs nothing,
    // and first writes to new pages cost most.
    auto larger = [](size_t size) { return size < (size_t{1} << 17) ? 2 * size : 8 * size; };
    if (n_ + matches >= output_.offsets.size()) {
        const size_t wanted = std::max<size_t>(
            {n_ == 0 ? most_ : std::max<size_t>(256, larger(n_)), n_ + matches, output_.start.capacity()});
        output_.resize(wanted, width_);
    }
    if (items_ + items > output_.ids.size()) {
        const size_t wanted =
            std::max<size_t>({items_ == 0 ? most_items_ : larger(items_), items_ + items, output_.ids.capacity()});
        output_.resize_events(wanted);
    }
}

void Cursor::open(const Root& root, const int64_t* key) {
    root_ = root;
    key_.assign(key, key + key_.size());
    stack_.clear();
    at_ = root.past;
    alone_ = root.past == NIL;
    depth_ = 0;
    if (!alone_) put(depth_++, root.id, root.var);
}

void Cursor::deepen() {
    const size_t size = ids_.size();
    ids_.resize(2 * size);
    vars_.resize(2 * size);
    std::copy_backward(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(size), ids_.end());
    std::copy_backward(vars_.begin(), vars_.begin() + static_cast<std::ptrdiff_t>(size), vars_.end());
}

}  // namespace acep
