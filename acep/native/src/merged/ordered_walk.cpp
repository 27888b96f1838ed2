// Conversion of a root's chains to lists, and of these to rows of matches.
#include "merged/ordered_walk.hpp"

#include <algorithm>
#include <cstring>

namespace acep {
namespace {

// Write n rows: the same `depth` ids of the path, one of `ids`, and the last id.
template <size_t depth>
void rows(int64_t* out, const int64_t* path, const int64_t* ids, size_t n, int64_t last) {
    int64_t same[depth + 1];
    for (size_t k = 0; k < depth; ++k) same[k] = path[k];
    for (size_t i = 0; i < n; ++i, out += depth + 2) {
        for (size_t k = 0; k < depth; ++k) out[k] = same[k];
        out[depth] = ids[i];
        out[depth + 1] = last;
    }
}

void rows(size_t depth, int64_t* out, const int64_t* path, const int64_t* ids, size_t n, int64_t last) {
    switch (depth) {
        case 1: return rows<1>(out, path, ids, n, last);
        case 2: return rows<2>(out, path, ids, n, last);
        case 3: return rows<3>(out, path, ids, n, last);
        case 4: return rows<4>(out, path, ids, n, last);
        default: break;
    }
    for (size_t i = 0; i < n; ++i) {
        out = std::copy_n(path, depth, out);
        *out++ = ids[i];
        *out++ = last;
    }
}

}  // namespace

bool OrderedWalk::open(const Arena& arena, const Root& root, const int64_t* key) {
    root_ = root;
    key_.assign(key, key + key_.size());
    resumed_ = false;
    frames_.clear();
    path_.clear();
    vars_.clear();
    if (single(arena)) return true;
    nodes_.assign(1, {root.id, root.ts, root.past, NIL, 0, root.var});
    lists_.clear();
    firsts_.clear();
    follower_.clear();
    ids_.clear();
    if (places_.size() != arena.cells.capacity() || ++walk_ == 0) {
        places_.assign(arena.cells.capacity(), 0);
        walk_ = 1;
    }
    for (uint32_t node = ROOT; node < nodes_.size(); ++node) {
        if (nodes_[node].past == NIL) {
            firsts_.push_back({node, 0});
        } else if (!reach(arena, node, nodes_[node].past)) {
            return false;
        }
    }
    for (uint32_t l = 0; l < lists_.size(); ++l) {
        auto& followers = followers_[l];
        if (!follow(followers)) return false;
        List& list = lists_[l];
        list.stop = static_cast<uint32_t>(follower_.size());
        list.last = followers.size() == 1 && followers[0].node == ROOT;
        size_t k = 0;
        for (uint32_t node = list.begin; node < list.end; ++node) {
            while (k < followers.size() && followers[k].after <= node) ++k;
            nodes_[node].follows = list.stop - static_cast<uint32_t>(k);
        }
    }
    for (uint32_t l = 0; l < lists_.size(); ++l) {
        const uint16_t var = nodes_[followers_[l][0].node].var;
        lists_[l].rows = std::all_of(followers_[l].begin(), followers_[l].end(), [&](const Follower& f) {
            const Node& node = nodes_[f.node];
            return f.node != ROOT && node.var == var && lists_[node.list].last;
        });
    }
    const auto begin = static_cast<uint32_t>(follower_.size());
    if (!follow(firsts_)) return false;
    push(begin, static_cast<uint32_t>(follower_.size()), false);
    return true;
}

bool OrderedWalk::single(const Arena& arena) {
    int64_t start = root_.ts;
    for (uint32_t cell = root_.past; cell != NIL;) {
        const Cell& c = arena.cells[cell];
        if (c.var == UNION || c.latest < root_.low || c.below >= root_.low) {
            path_.clear();
            vars_.clear();
            return false;
        }
        path_.push_back(c.id);
        vars_.push_back(c.var);
        start = counted_ ? arena.events[c.event].ts : c.latest;
        cell = c.past;
    }
    std::reverse(path_.begin(), path_.end());
    std::reverse(vars_.begin(), vars_.end());
    start_ = start;
    nodes_.assign(1, {root_.id, root_.ts, NIL, NIL, 0, root_.var});
    follower_.assign(1, ROOT);
    ids_.assign(1, root_.id);
    push(0, 1, false);
    return true;
}

bool OrderedWalk::reach(const Arena& arena, uint32_t node, uint32_t cell) {
    const size_t mask = arena.cells.capacity() - 1;
    const auto known = [&] { return places_[cell & mask] >> 32 == walk_; };
    if (!known() && !add_list(arena, cell)) return false;
    const auto after = static_cast<uint32_t>(places_[cell & mask]);
    followers_[nodes_[after].list].push_back({node, after});
    return true;
}

bool OrderedWalk::add_list(const Arena& arena, uint32_t cell) {
    const size_t mask = arena.cells.capacity() - 1;
    const auto number = static_cast<uint32_t>(lists_.size());
    const auto begin = static_cast<uint32_t>(nodes_.size());
    for (;;) {
        const Cell& c = arena.cells[cell];
        uint64_t& place = places_[cell & mask];
        if (c.var == UNION || c.latest < root_.low || place >> 32 == walk_) return false;
        place = uint64_t{walk_} << 32 | nodes_.size();
        const int64_t start = c.past == NIL && counted_ ? arena.events[c.event].ts : c.latest;
        nodes_.push_back({c.id, start, c.past, number, 0, c.var});
        if (c.below < root_.low) break;
        cell = c.next;
    }
    lists_.push_back({begin, static_cast<uint32_t>(nodes_.size()), 0, false, false});
    if (followers_.size() < lists_.size()) followers_.emplace_back();
    followers_[number].clear();
    return true;
}

bool OrderedWalk::follow(std::vector<Follower>& followers) {
    const auto newer = [this](const Follower& a, const Follower& b) { return nodes_[a.node].id > nodes_[b.node].id; };
    if (!std::is_sorted(followers.begin(), followers.end(), newer))
        std::sort(followers.begin(), followers.end(), newer);
    for (size_t i = 1; i < followers.size(); ++i) {
        if (!newer(followers[i - 1], followers[i]) || followers[i - 1].after > followers[i].after) return false;
    }
    for (size_t i = followers.size(); i-- > 0;) {
        follower_.push_back(followers[i].node);
        ids_.push_back(nodes_[followers[i].node].id);
    }
    return true;
}

size_t OrderedWalk::next(MatchWriter& writer, size_t most) {
    if (most == 0 || done()) return 0;
    writer.begin();
    Output& o = writer.output_;
    const size_t before = writer.n_;
    // Matches of several roots of one time are not in order.
    if (before > 0 && o.end[before - 1] >= root_.ts && !resumed_) o.ordered = false;
    resumed_ = true;
    size_t left = most;
    shape_.clear();
    from_ = writer.n_;
    from_item_ = writer.items_;
    while (left > 0 && !frames_.empty()) {
        Frame& f = frames_.back();
        if (f.at == f.stop) {
            frames_.pop_back();
            if (!path_.empty()) path_.pop_back();
            if (!vars_.empty()) vars_.pop_back();
            continue;
        }
        const uint32_t node = follower_[f.at];
        const size_t depth = path_.size();
        if (f.rows) {
            const size_t n = std::min<size_t>(left, f.stop - f.at);
            shape(writer, depth + 2, nodes_[node].var);
            writer.make_room(n, n * (depth + 2));
            rows(depth, o.ids.data() + writer.items_, path_.data(), ids_.data() + f.at, n, root_.id);
            std::fill_n(o.start.data() + writer.n_, n, start_);
            writer.n_ += n;
            writer.items_ += n * (depth + 2);
            left -= n;
            f.at += static_cast<uint32_t>(n);
        } else if (node == ROOT) {
            ++f.at;
            shape(writer, depth + 1, 0);
            writer.make_room(1, depth + 1);
            int64_t* row = std::copy_n(path_.data(), depth, o.ids.data() + writer.items_);
            *row = root_.id;
            o.start[writer.n_] = depth == 0 ? root_.ts : start_;
            ++writer.n_;
            writer.items_ += depth + 1;
            --left;
        } else {
            ++f.at;
            const Node& bound = nodes_[node];
            if (depth == 0) start_ = bound.start;
            path_.push_back(bound.id);
            vars_.push_back(bound.var);
            const List& list = lists_[bound.list];
            push(bound.follows, list.stop, list.rows);
        }
    }
    close(writer);
    const size_t n = writer.n_ - before;
    std::fill_n(o.end.data() + before, n, root_.ts);
    std::fill_n(o.error.data() + before, n, root_.error);
    std::fill_n(o.bundle.data() + before, n, root_.bundle);
    if (key_.size() == 1) {
        std::fill_n(o.keys.data() + before, n, key_[0]);
    } else {
        for (size_t i = before; i < writer.n_; ++i)
            std::copy(key_.begin(), key_.end(), o.keys.data() + i * key_.size());
    }
    return n;
}

// Set the variables of the next matches, of `size` events: those of the path, `var` if there is room, and the last.
void OrderedWalk::shape(MatchWriter& writer, size_t size, uint16_t var) {
    if (shape_.size() == size && (vars_.size() + 1 == size || shape_[size - 2] == var) &&
        std::equal(vars_.begin(), vars_.end(), shape_.begin())) {
        return;
    }
    close(writer);
    shape_ = vars_;
    if (vars_.size() + 1 < size) shape_.push_back(var);
    shape_.push_back(root_.var);
}

// Write offsets and variables of the matches of one shape.
void OrderedWalk::close(MatchWriter& writer) {
    Output& o = writer.output_;
    const size_t n = writer.n_ - from_, size = shape_.size();
    if (n > 0) {
        writer.shaped(shape_, from_ == 0);
        int64_t* offsets = o.offsets.data() + from_ + 1;
        for (size_t i = 0; i < n; ++i) offsets[i] = static_cast<int64_t>(from_item_ + (i + 1) * size);
        uint16_t* vars = o.vars.data() + from_item_;
        std::copy(shape_.begin(), shape_.end(), vars);
        for (size_t done = size, all = n * size; done < all;) {
            const size_t more = std::min(done, all - done);
            std::memcpy(vars + done, vars, more * sizeof(uint16_t));
            done += more;
        }
    }
    from_ = writer.n_;
    from_item_ = writer.items_;
}

}  // namespace acep
