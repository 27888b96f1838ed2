// Tasks on several threads (threads.hpp).
#include "common/threads.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace acep {

void run_tasks(size_t count, size_t threads, std::atomic<bool>& stop, const std::function<void(size_t)>& task,
               const std::function<void()>& wait) {
    constexpr std::chrono::milliseconds interval{10};
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    size_t working = 0;              // other threads
    size_t failed = count;           // the first task that threw, and what
    std::exception_ptr error;
    const auto work = [&] {
        for (size_t number = next++; number < count && !stop; number = next++) {
            try {
                task(number);
            } catch (...) {
                stop = true;
                const std::lock_guard lock(mutex);
                if (number > failed) continue;
                failed = number;
                error = std::current_exception();
            }
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(count);
    for (size_t number = 1; number < std::min(count, threads); ++number) {
        {
            const std::lock_guard lock(mutex);
            ++working;
        }
        try {
            helpers.emplace_back([&] {
                work();
                const std::lock_guard lock(mutex);
                --working;
                ended.notify_one();
            });
        } catch (const std::system_error&) {
            const std::lock_guard lock(mutex);
            --working;
            break;
        }
    }
    work();
    for (std::unique_lock lock(mutex); working != 0;) {
        if (ended.wait_for(lock, interval) != std::cv_status::timeout) continue;
        lock.unlock();
        wait();
        lock.lock();
    }
    for (std::thread& helper : helpers) helper.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace acep
