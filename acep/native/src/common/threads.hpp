// Run tasks on several threads, which live as long as the call: there is nothing to end, and nothing that a fork
// breaks.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace acep {

// Run task(0) to task(count - 1), each once, on up to `threads` threads. That of the caller is one of them; it calls
// `wait`, which must not throw, every few milliseconds while only others work. `stop` is set when a task throws: then
// no other one is begun, and running ones should end early. Once all have ended, what the first of these tasks threw is
// thrown. If the system gives fewer threads, these do all tasks.
void run_tasks(size_t count, size_t threads, std::atomic<bool>& stop, const std::function<void(size_t)>& task,
               const std::function<void()>& wait);

}  // namespace acep
