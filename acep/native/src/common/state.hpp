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

// Throw the error of a state that is invalid; `what`: the part of it.
[[noreturn]] inline void bad_state(const char* what) { throw std::invalid_argument(std::string("state: ") + what); }

// Writer and Reader are *archives*: they have the same functions, so that one list of fields serves to write and to
// read. The functions are `words` (any values), `within` (numbers in [low, high)), `at_most` (numbers that are clamped
// to [0, most] when read), `finite` (doubles), `items` (an array with its length) and `size` (the length of a vector
// whose elements follow). `saw` notes a time that had come when the state was written.
class Writer {
public:
    static constexpr bool reads = false;
    std::vector<uint8_t> bytes;

    // Write an array of any trivially copyable elements, with its length.
    template <class T>
    void items(const T* first, size_t count, const char* = nullptr) {
        static_assert(std::is_trivially_copyable_v<T>);
        number(static_cast<int64_t>(count));
        append(first, count * sizeof(T));
    }
    // Write a container with its length.
    void items(const auto& all) { items(all.data(), all.size()); }
    // Write a number.
    void number(int64_t value) { append(&value, sizeof value); }

    // Write numbers, each as one word.
    void words(const auto&... values) { (number(static_cast<int64_t>(values)), ...); }
    // Write numbers; the reader checks that they are in [low, high).
    void within(int64_t, int64_t, const auto&... values) { words(values...); }
    // Write numbers; the reader clamps them to [0, most].
    void at_most(int64_t, const auto&... values) { words(values...); }
    // Write doubles; the reader checks that they are finite.
    void finite(const char*, const auto&... values) { (number(std::bit_cast<int64_t>(values)), ...); }
    // Write the length of a vector; the reader resizes it, and checks the length.
    void size(const auto& all, int64_t) { words(all.size()); }
    // Do nothing: a reader notes the time.
    void saw(int64_t) {}

private:
    // Append bytes.
    void append(const void* first, size_t size) {
        const auto* from = static_cast<const uint8_t*>(first);
        bytes.insert(bytes.end(), from, from + size);
    }
};

// The bytes of a state, read from the first on. Each function throws std::invalid_argument if they do not fit.
class Reader {
public:
    static constexpr bool reads = true;
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    // Note a time that had come when the state was written.
    void saw(int64_t time) { latest = std::max(latest, time); }
    // Read an array of any length.
    template <class T>
    std::vector<T> items() {
        const int64_t count = number();
        if (count < 0 || static_cast<uint64_t>(count) > left() / sizeof(T)) bad_state("length");
        std::vector<T> found(static_cast<size_t>(count));
        take(found.data(), found.size());
        return found;
    }
    // Read an array of any length into a vector.
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
    // Read a number.
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
    // Return the number of bytes not read yet.
    size_t left() const { return bytes_.size() - at_; }
    // Check that all bytes were read.
    void end() const {
        if (left() != 0) bad_state("end");
    }

    // Read numbers or truth values, each from one word.
    void words(auto&... values) { (word(values), ...); }
    // Read numbers in [low, high).
    template <class... T>
    void within(int64_t low, int64_t high, T&... values) {
        ((values = static_cast<T>(number(low, high))), ...);
    }
    // Read numbers, and clamp each to [0, most].
    template <class... T>
    void at_most(int64_t most, T&... values) {
        ((values = static_cast<T>(std::clamp<int64_t>(number(), 0, most))), ...);
    }
    // Read doubles, which must be finite; `what`: the part of the state.
    void finite(const char* what, auto&... values) { (finite_word(what, values), ...); }
    // Read the length of a vector, below `end`, and resize the vector to new elements.
    void size(auto& all, int64_t end) {
        const auto count = static_cast<size_t>(number(0, end));
        if (count > left() / sizeof(int64_t)) bad_state("end");  // each element has a word at least
        all.clear();
        all.resize(count);
    }

private:
    // Read a truth value.
    void word(bool& value) { value = number(0, 2) != 0; }
    // Read a number as a value of its type.
    template <class T>
    void word(T& value) {
        value = static_cast<T>(number());
    }
    // Read a double, which must be finite.
    void finite_word(const char* what, double& value) {
        value = std::bit_cast<double>(number());
        if (!std::isfinite(value)) bad_state(what);
    }
    // Read `count` elements; the bytes must be there.
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
