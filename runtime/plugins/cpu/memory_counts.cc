// The counting allocator behind PJRT_Device_MemoryStats.

#include "memory_counts.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace xlazy {
namespace {

void RaiseTo(std::atomic<int64_t>& highest, int64_t value) {
  int64_t seen = highest.load(std::memory_order_relaxed);
  while (value > seen && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

class CountedMemory final : public xla::CpuMemory {
 public:
  CountedMemory(void* base, size_t size, std::shared_ptr<MemoryCounts> counts)
      : base_(base), size_(size), counts_(std::move(counts)) {
    int64_t bytes = static_cast<int64_t>(size);
    RaiseTo(counts_->peak, counts_->in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    RaiseTo(counts_->largest, bytes);
    counts_->allocations.fetch_add(1, std::memory_order_relaxed);
  }
  ~CountedMemory() override {
    std::free(base_);
    counts_->in_use.fetch_sub(static_cast<int64_t>(size_), std::memory_order_relaxed);
  }

  void* base() const override { return base_; }
  size_t size_bytes() const override { return size_; }

 private:
  void* base_;
  size_t size_;
  std::shared_ptr<MemoryCounts> counts_;
};

}  // namespace

CpuAllocator CountingAllocator(std::shared_ptr<MemoryCounts> counts) {
  return [counts = std::move(counts)](size_t size,
                                      size_t alignment) -> absl::StatusOr<std::unique_ptr<xla::CpuMemory>> {
    // An empty buffer still needs an address of its own.
    size_t wanted = std::max<size_t>(size, 1);
    void* base = nullptr;
    if (posix_memalign(&base, std::max(alignment, sizeof(void*)), wanted) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("Out of memory allocating ", size, " bytes; ",
                                                       counts->in_use.load(), " bytes are in use."));
    }
    return std::make_unique<CountedMemory>(base, size, counts);
  };
}

}  // namespace xlazy
