// A full mesh of TCP connections between the ranks of one clique, and one primitive on it: everybody sends and receives at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kv_store.h"

namespace xlazy {

class Mesh {
 public:
  // A rank's bytes to send to a peer, or the room for those of a peer. Empty pieces take no message.
  struct Out {
    const char* data = nullptr;
    size_t size = 0;
  };
  struct In {
    char* data = nullptr;
    size_t size = 0;
  };

  // Connects the ranks of `mine`, all of this process, with the other `size - mine.size()` ranks. The result is in the order
  // of `mine`. `name` must be the same in all processes and new in `store`.
  static absl::StatusOr<std::vector<std::unique_ptr<Mesh>>> Connect(KvStore& store, const std::string& name,
                                                                    const std::string& address, size_t size,
                                                                    const std::vector<size_t>& mine);
  ~Mesh();

  size_t rank() const { return rank_; }
  size_t size() const { return sockets_.size(); }

  // Sends out[i] to rank i and receives in[i] from it, for all ranks at once, so no order of calls can deadlock. What a rank
  // sends to itself is copied. Sizes must agree with those of the peers.
  absl::Status Exchange(std::vector<Out> out, std::vector<In> in);

 private:
  Mesh(size_t rank, size_t size) : rank_(rank), sockets_(size, -1) {}

  size_t rank_;
  std::vector<int> sockets_;  // one for each rank; -1 for this one
  absl::Mutex mutex_;         // one exchange at a time: messages carry no tags
};

}  // namespace xlazy
