#pragma once

#include <cstdint>
#include <functional>

namespace tensorlint::runtime {

/// The threads that share the work of an operator: how many, this one among them. They start with the first work.
/// Before any work, from one thread.
void set_thread_count(int count);

/// As many as the machine has, at most 8: beyond that, most operators wait for memory.
int default_thread_count();

/// Calls task(0) ... task(count - 1), each once, on any thread and in any order, and returns after the last. Tasks must
/// not depend on each other; what they are follows from shapes alone, so that results do not depend on the number of
/// threads. The first exception ends the work and is thrown on. Within a task, further tasks run one after the other.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task);

/// The same for ranges [first, end) of `size` elements, which are cut every `part`; few elements are one range.
void parallel_ranges(std::int64_t size, std::int64_t part, const std::function<void(std::int64_t, std::int64_t)>& task);

}  // namespace tensorlint::runtime
