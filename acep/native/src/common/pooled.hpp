// A pool that reuses the memory of large output columns, and the bytes that containers hold. The first access to a page
// costs more than filling it, and Python mostly drops its columns batch by batch.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace acep {

// Large blocks of memory that were freed, kept for others of the same size, so that pages need not be touched first
// again.
class Pool {
public:
    static constexpr size_t least = size_t{1} << 16;  // bytes: smaller blocks are not pooled
    static constexpr size_t most = size_t{1} << 26;  // bytes pooled in all

    // Return the pool of the process.
    static Pool& shared() {
        static Pool* pool = new Pool;  // never destroyed: arrays may outlive everything else
        return *pool;
    }
    // Return a block of at least so many bytes.
    void* take(size_t bytes) {
        if (bytes < least) return ::operator new(bytes);
        const size_t size = std::bit_ceil(bytes);
        {
            std::lock_guard lock(mutex_);
            auto& free = free_[static_cast<size_t>(std::countr_zero(size))];
            if (!free.empty()) {
                void* block = free.back();
                free.pop_back();
                kept_ -= size;
                return block;
            }
        }
        return fresh(size);
    }
    // Free a block that was taken with the same number of bytes.
    void give(void* block, size_t bytes) noexcept {
        if (bytes < least) return ::operator delete(block);
        const size_t size = std::bit_ceil(bytes);
        if (keeps) {
            std::lock_guard lock(mutex_);
            auto& free = free_[static_cast<size_t>(std::countr_zero(size))];
            if (kept_ + size <= most && free.size() < free.capacity()) {
                free.push_back(block);
                kept_ += size;
                return;
            }
        }
        if (size >= huge) return ::operator delete(block, std::align_val_t{page});
        ::operator delete(block);
    }

private:
    static constexpr size_t page = size_t{1} << 21;  // bytes of a large page: 512 times fewer first touches
    static constexpr size_t huge = size_t{1} << 22;  // bytes: from here on blocks use large pages if there are any
    // Return a new block of a power of two of bytes, in large pages if it is huge.
    static void* fresh(size_t size) {
        if (size < huge) return ::operator new(size);
        void* block = ::operator new(size, std::align_val_t{page});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(block, size, MADV_HUGEPAGE);  // only advice: failure is harmless
#endif
        return block;
    }

#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool keeps = false;  // so that the sanitizer detects use after free
#else
    static constexpr bool keeps = true;
#endif
    Pool() {
        for (auto& free : free_) free.reserve(64);
    }
    std::mutex mutex_;
    std::vector<void*> free_[64];  // by binary logarithm of the size
    size_t kept_ = 0;
};

// Allocator for vectors of numbers; elements without a given value stay uninitialised.
template <class T>
struct Pooled {
    using value_type = T;
    Pooled() = default;
    template <class U>
    Pooled(const Pooled<U>&) {}
    // Return room for `n` elements, which are not initialised.
    T* allocate(size_t n) {
        if (n > static_cast<size_t>(-1) / 4 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(Pool::shared().take(n * sizeof(T)));
    }
    // Free the room of `n` elements.
    void deallocate(T* block, size_t n) noexcept { Pool::shared().give(block, n * sizeof(T)); }
    // Leave an element uninitialised if no value is given.
    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    // Make an element from a value.
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
    friend bool operator==(const Pooled&, const Pooled&) { return true; }
};

template <class T>
using Numbers = std::vector<T, Pooled<T>>;

// Return the bytes that containers hold, at their capacity.
int64_t heap_bytes(const auto&... all) { return static_cast<int64_t>((... + (all.capacity() * sizeof(all[0])))); }

}  // namespace acep
