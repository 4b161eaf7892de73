// PJRT_Event: a future of XLA's, with its promise when the caller made the event.
#pragma once

#include <atomic>
#include <memory>

#include "xla/future.h"
#include "xla/pjrt/c/pjrt_c_api.h"

struct PJRT_Event {
  explicit PJRT_Event(xla::Future<> f) : future(std::move(f)) {}

  xla::Future<> future;
  // Only for events of PJRT_Event_Create. `set` is taken before the promise is used, as setting one twice aborts the process.
  std::unique_ptr<xla::Promise<>> promise;
  std::atomic<bool> set{false};
};

namespace xlazy {

inline PJRT_Event* ToEvent(xla::Future<> future) { return new PJRT_Event(std::move(future)); }

}  // namespace xlazy
