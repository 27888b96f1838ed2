// Conversion of state to bytes and back. Reading checks lengths only; callers must check the values.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace acep {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

[[noreturn]] inline void bad_state(const char* what) { throw std::invalid_argument(std::string("state: ") + what); }

// Writer and Reader are *archives*: they have the same functions, so that one list of fields serves to write and to
// read. The functions are `words` (any values), `within` (numbers in [low, high)), `at_most` (numbers that are clamped
// to [0, most] when read), `finite` (doubles), `items` (an array with its length) and `size` (the length of a vector
// whose elements follow). `saw` notes a time that had come when the state was written.
class Writer {
public:
    static constexpr bool reads = false;
    std::vector<uint8_t> bytes;

    template <class T>
    void items(const T* first, size_t count, const char* = nullptr) {
        static_assert(std::is_trivially_copyable_v<T>);
        number(static_cast<int64_t>(count));
        append(first, count * sizeof(T));
    }
    void items(const auto& all) { items(all.data(), all.size()); }
    void number(int64_t value) { append(&value, sizeof value); }

    void words(const auto&... values) { (number(static_cast<int64_t>(values)), ...); }
    void within(int64_t, int64_t, const auto&... values) { words(values...); }
    void at_most(int64_t, const auto&... values) { words(values...); }
    void finite(const char*, const auto&... values) { (number(std::bit_cast<int64_t>(values)), ...); }
    void size(const auto& all, int64_t) { words(all.size()); }
    void saw(int64_t) {}

private:
    void append(const void* first, size_t size) {
        const auto* from = static_cast<const uint8_t*>(first);
        bytes.insert(bytes.end(), from, from + size);
    }
};

class Reader {
public:
    static constexpr bool reads = true;
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    void saw(int64_t time) { latest = std::max(latest, time); }
    template <class T>
    std::vector<T> items() {
        const int64_t count = number();
        if (count < 0 || static_cast<uint64_t>(count) > left() / sizeof(T)) bad_state("length");
        std::vector<T> found(static_cast<size_t>(count));
        take(found.data(), found.size());
        return found;
    }
    template <class T>
    void items(std::vector<T>& all) {
        all = items<T>();
    }
    // Read an array of `count` elements into place.
    template <class T>
    void items(T* to, size_t count, const char* what) {
        const auto found = items<T>();
        if (found.size() != count) bad_state(what);
        std::copy(found.begin(), found.end(), to);
    }
    int64_t number() {
        int64_t value;
        if (left() < sizeof value) bad_state("end");
        take(&value, 1);
        return value;
    }
    // Read a number in [low, high).
    int64_t number(int64_t low, int64_t high) {
        const int64_t value = number();
        if (value < low || value >= high) bad_state("number");
        return value;
    }
    size_t left() const { return bytes_.size() - at_; }
    void end() const {
        if (left() != 0) bad_state("end");
    }

    void words(auto&... values) { (word(values), ...); }
    template <class... T>
    void within(int64_t low, int64_t high, T&... values) {
        ((values = static_cast<T>(number(low, high))), ...);
    }
    template <class... T>
    void at_most(int64_t most, T&... values) {
        ((values = static_cast<T>(std::clamp<int64_t>(number(), 0, most))), ...);
    }
    void finite(const char* what, auto&... values) { (finite_word(what, values), ...); }
    void size(auto& all, int64_t end) {
        const auto count = static_cast<size_t>(number(0, end));
        if (count > left() / sizeof(int64_t)) bad_state("end");  // each element has a word at least
        all.clear();
        all.resize(count);
    }

private:
    void word(bool& value) { value = number(0, 2) != 0; }
    template <class T>
    void word(T& value) {
        value = static_cast<T>(number());
    }
    void finite_word(const char* what, double& value) {
        value = std::bit_cast<double>(number());
        if (!std::isfinite(value)) bad_state(what);
    }
    template <class T>
    void take(T* to, size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (count != 0) std::memcpy(to, bytes_.data() + at_, count * sizeof(T));
        at_ += count * sizeof(T);
    }
    std::span<const uint8_t> bytes_;
    size_t at_ = 0;

public:
    // How far the stream had come, by what was read of the state: the number of events, which no position reaches, and
    // the latest time, before which no event will come. What lies further ahead would outlive its window.
    int64_t events = 0;
    int64_t latest = std::numeric_limits<int64_t>::min();
};

}  // namespace acep
