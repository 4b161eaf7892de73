// The key-value store that the caller of PJRT_Client_Create may lend: how processes of one job find each other.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace xlazy {

class KvStore {
 public:
  // Keeps the callbacks of `args`; the caller must keep their user arguments alive as long as the client.
  explicit KvStore(const PJRT_Client_Create_Args& args);

  // True when both callbacks that a store needs are there.
  bool IsUsable() const { return get_ != nullptr && put_ != nullptr; }

  absl::Status Set(absl::string_view key, absl::string_view value);
  // Waits for another process to set `key`.
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout);

 private:
  PJRT_KeyValueGetCallback get_;
  void* get_arg_;
  PJRT_KeyValuePutCallback put_;
  void* put_arg_;
};

}  // namespace xlazy
