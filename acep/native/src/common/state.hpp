// Conversion of state to bytes and back. Reading checks lengths only; callers must check the values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace acep {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

[[noreturn]] inline void bad_state(const char* what) { throw std::invalid_argument(std::string("state: ") + what); }

class Writer {
public:
    std::vector<uint8_t> bytes;

    template <class T>
    void items(const T* first, size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        number(static_cast<int64_t>(count));
        if (count == 0) return;
        const size_t at = bytes.size();
        bytes.resize(at + count * sizeof(T));
        std::memcpy(bytes.data() + at, first, count * sizeof(T));
    }
    template <class T>
    void items(const std::vector<T>& all) {
        items(all.data(), all.size());
    }
    void number(int64_t value) {
        const size_t at = bytes.size();
        bytes.resize(at + sizeof value);
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    void text(std::string_view value) { items(value.data(), value.size()); }
};

class Reader {
public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    template <class T>
    std::vector<T> items() {
        static_assert(std::is_trivially_copyable_v<T>);
        const int64_t count = number();
        if (count < 0 || static_cast<uint64_t>(count) > (bytes_.size() - at_) / sizeof(T)) bad_state("length");
        std::vector<T> found(static_cast<size_t>(count));
        if (count != 0) std::memcpy(found.data(), bytes_.data() + at_, found.size() * sizeof(T));
        at_ += found.size() * sizeof(T);
        return found;
    }
    int64_t number() {
        int64_t value;
        if (bytes_.size() - at_ < sizeof value) bad_state("end");
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    // Read a number in [low, high).
    int64_t number(int64_t low, int64_t high) {
        const int64_t value = number();
        if (value < low || value >= high) bad_state("number");
        return value;
    }
    std::string text() {
        auto all = items<char>();
        return {all.begin(), all.end()};
    }
    void end() const {
        if (at_ != bytes_.size()) bad_state("end");
    }

private:
    std::span<const uint8_t> bytes_;
    size_t at_ = 0;
};

}  // namespace acep
