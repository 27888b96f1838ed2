// Counting, sampling and enumeration of matches that share one graph. Numbers of matches are exact, of any size.
#include "merged/compressed.hpp"

#include <random>
#include <stdexcept>

namespace acep {

BigIntegerView TrailCounts::of(const Arena& arena, uint32_t chain, int64_t low) {
    known_.resize(arena.cells.size());
    if (round_ == 0 || low != low_) {
        if (++round_ == 0) {
            std::fill(known_.begin(), known_.end(), Known{0, 0, 0});
            round_ = 1;
        }
        low_ = low;
        pool_.clear();
    }
    const uint32_t tail = arena.cells.tail();
    auto known = [&](uint32_t cell) -> Known& { return known_[cell - tail]; };
    stack_.assign(1, chain);
    while (!stack_.empty()) {
        const uint32_t at = stack_.back();
        const Cell& c = arena.cells[at];
        const bool first = c.var != UNION && c.past == NIL;
        const bool through = c.latest >= low, more = c.below >= low;
        const size_t depth = stack_.size();
        if (known(at).round != round_) {
            if (through && !first && known(c.past).round != round_) stack_.push_back(c.past);
            if (more && known(c.next).round != round_) stack_.push_back(c.next);
        }
        if (stack_.size() != depth) continue;
        stack_.pop_back();
        Known& here = known(at);
        if (here.round == round_) continue;
        const Known one{1, 1, round_}, none{0, 0, round_};
        const Known& a = !through ? none : first ? one : known(c.past);
        const Known& b = more ? known(c.next) : none;
        uint64_t sum;
        if (a.words <= 1 && b.words <= 1 && !__builtin_add_overflow(a.number, b.number, &sum)) {
            here = {sum, sum == 0 ? 0u : 1u, round_};
            continue;
        }
        sum_.assign(words(a).begin(), words(a).end());
        increase(sum_, words(b));
        if (pool_.size() + sum_.size() > most_words)
            throw std::runtime_error("there are too many matches to be counted exactly");
        here = {pool_.size(), static_cast<uint32_t>(sum_.size()), round_};
        pool_.insert(pool_.end(), sum_.begin(), sum_.end());
    }
    return words(known(chain));
}

int64_t Compressed::bytes() {
    std::lock_guard lock(mutex_);
    int64_t total = arena_.bytes() + heap_bytes(roots_, keys_, before_) + counts_.bytes();
    for (const BigInteger& n : before_) total += heap_bytes(n);
    return total;
}

BigIntegerView Compressed::count_of(const Root& root) {
    static constexpr uint64_t one[1] = {1};
    return root.past == NIL ? BigIntegerView(one) : counts_.of(arena_, root.past, root.low);
}

void Compressed::prepare() {
    if (prepared_) return;
    total_.clear();
    before_.clear();
    for (size_t i = 0; i < roots_.size(); ++i) {
        if (i % stride == 0) before_.push_back(total_);
        increase(total_, count_of(roots_[i]));
    }
    prepared_ = true;
}

BigInteger Compressed::count() {
    std::lock_guard lock(mutex_);
    prepare();
    return total_;
}

void Compressed::find(const BigInteger& number, Place& place, Cursor& cursor) {
    auto after = std::upper_bound(before_.begin(), before_.end(), number,
                                  [](const BigInteger& a, const BigInteger& b) { return compare(a, b) < 0; });
    const auto block = static_cast<size_t>(after - before_.begin()) - 1;
    if (place.root < block * stride || compare(number, place.before) < 0) place = {block * stride, before_[block]};
    BigInteger left = number;
    decrease(left, place.before);
    for (;; ++place.root) {
        const BigIntegerView here = count_of(roots_[place.root]);
        if (compare(left, here) < 0) break;
        decrease(left, here);
        increase(place.before, here);
    }
    const Root& root = roots_[place.root];
    cursor.open(root, key(root));
    if (root.past == NIL) return;
    cursor.seek(arena_, [&](const Cell& c) {
        static constexpr uint64_t one[1] = {1};
        const BigIntegerView through = c.past == NIL ? BigIntegerView(one) : counts_.of(arena_, c.past, root.low);
        if (compare(left, through) < 0) return false;
        decrease(left, through);
        return true;
    });
}

Output Compressed::sample(size_t n, uint64_t seed) {
    std::lock_guard lock(mutex_);
    prepare();
    MatchWriter writer(width_);
    if (total_.empty()) return std::move(writer.trimmed());
    std::mt19937_64 random(seed);
    std::vector<BigInteger> numbers(n);
    for (BigInteger& number : numbers) number = below(total_, random);
    std::sort(numbers.begin(), numbers.end(),
              [](const BigInteger& a, const BigInteger& b) { return compare(a, b) < 0; });
    Cursor cursor(counted_, width_);
    Place place;
    for (const BigInteger& number : numbers) {
        find(number, place, cursor);
        cursor.next<false>(arena_, writer, 1);
    }
    return std::move(writer.trimmed());
}

Walk::Walk(std::shared_ptr<Compressed> matches, const BigInteger& first)
    : matches_(std::move(matches)), cursor_(matches_->counted_, matches_->width_), root_(0) {
    if (first.empty()) return;
    std::lock_guard lock(matches_->mutex_);
    matches_->prepare();
    root_ = matches_->roots_.size();
    if (compare(first, matches_->total_) >= 0) return;
    Compressed::Place place;
    matches_->find(first, place, cursor_);
    root_ = place.root + 1;
}

Output Walk::next(size_t limit) {
    const Compressed& from = *matches_;
    MatchWriter writer(from.width_);
    size_t left = limit;
    while (left > 0) {
        if (cursor_.done()) {
            if (root_ == from.roots_.size()) break;
            const Root& root = from.roots_[root_++];
            cursor_.open(root, from.key(root));
        }
        left -= cursor_.next<false>(from.arena_, writer, left);
    }
    return std::move(writer.trimmed());
}

CompressedEngine::CompressedEngine(Tables tables, EventClassifier& classifier, Partitions& partitions)
    : Engine(std::move(tables), classifier, partitions), merger_(tables_, classifier, partitions.width() == 0) {}

void CompressedEngine::event(uint32_t partition, const Event& event) {
    merger_.event(partition, event, work_, [&](const Root& root) {
        if (place_of_.size() <= partition) place_of_.resize(size_t{partition} + 1, NIL);
        if (place_of_[partition] == NIL) {
            const int64_t* key = partitions_.key(partition);
            keys_.insert(keys_.end(), key, key + partitions_.width());
            place_of_[partition] = places_++;
        }
        roots_.push_back(root);
        roots_.back().partition = place_of_[partition];
    });
}

void CompressedEngine::forget(uint32_t partition) {
    merger_.forget(partition);
    if (partition < place_of_.size()) place_of_[partition] = NIL;
}

void CompressedEngine::used_ids(std::vector<int64_t>& ids) const {
    merger_.arena().used_ids(ids);
    for (const Root& root : roots_) ids.push_back(root.id);
}

int64_t CompressedEngine::bytes() const { return merger_.bytes() + heap_bytes(roots_, keys_, place_of_); }

std::shared_ptr<Compressed> CompressedEngine::take(bool last) {
    roots_.shrink_to_fit();
    auto taken = std::make_shared<Compressed>(merger_.hand_over(last), std::move(roots_), std::move(keys_),
                                              partitions_.width(), tables_.counted);
    roots_.clear();
    keys_.clear();
    places_ = 0;
    std::fill(place_of_.begin(), place_of_.end(), NIL);
    return taken;
}

}  // namespace acep
