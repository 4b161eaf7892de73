// Counts the memory that a client's buffers and temporaries take: XLA's CPU client keeps no statistics of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_memory.h"

namespace xlazy {

// All devices of a CPU client share the host's memory, so one set of counts serves them all.
struct MemoryCounts {
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> largest{0};
};

using CpuAllocator = std::function<absl::StatusOr<std::unique_ptr<xla::CpuMemory>>(size_t size, size_t alignment)>;

// An allocator for CpuClientOptions that keeps `counts` up to date; memory it gave out keeps the counts alive.
CpuAllocator CountingAllocator(std::shared_ptr<MemoryCounts> counts);

}  // namespace xlazy
