// What every source of the plugin shares: errors as the C API carries them, guards for fields that the caller's header may
// not have, and the checks that turn a bad argument into an error message.
//
// Light on purpose: nothing here includes XLA's client headers, which cost 20 s and 1.4 GB per translation unit.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla/pjrt/c/pjrt_c_api.h"

struct PJRT_Error {
  absl::Status status;
};

namespace xlazy {

// absl's canonical codes and PJRT's are the same numbers; anything else cannot be told to a C caller.
inline PJRT_Error_Code ToErrorCode(const absl::Status& status) {
  int code = static_cast<int>(status.code());
  return code <= PJRT_Error_Code_UNAUTHENTICATED ? static_cast<PJRT_Error_Code>(code) : PJRT_Error_Code_UNKNOWN;
}

inline absl::Status FromErrorCode(PJRT_Error_Code code, const char* message, size_t size) {
  return absl::Status(static_cast<absl::StatusCode>(code), message ? absl::string_view(message, size) : absl::string_view());
}

inline PJRT_Error* ToError(absl::Status status) {
  return status.ok() ? nullptr : new PJRT_Error{std::move(status)};
}

}  // namespace xlazy

// A caller built with an older header passes a shorter struct: a field may be read or written only when the caller's struct
// reaches past its end. `XLAZY_GET` reads or falls back, `XLAZY_SET` writes or leaves it.
#define XLAZY_HAS(args, field)                                                                                   \
  ((args)->struct_size >=                                                                                        \
   offsetof(std::remove_cv_t<std::remove_pointer_t<std::decay_t<decltype(args)>>>, field) + sizeof((args)->field))
#define XLAZY_GET(args, field, fallback) (XLAZY_HAS(args, field) ? (args)->field : (fallback))
#define XLAZY_SET(args, field, value)                    \
  do {                                                   \
    if (XLAZY_HAS(args, field)) (args)->field = (value); \
  } while (false)

// Fails the surrounding entry, naming it and the argument, when a pointer that it needs is null.
#define XLAZY_NEED(pointer)                                                                                      \
  do {                                                                                                           \
    if ((pointer) == nullptr)                                                                                    \
      return absl::InvalidArgumentError(absl::StrCat("PJRT_", __func__, ": ", #pointer, " is null"));             \
  } while (false)

#define XLAZY_TRY(expression)                                    \
  do {                                                           \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define XLAZY_CONCAT_(a, b) a##b
#define XLAZY_CONCAT(a, b) XLAZY_CONCAT_(a, b)
#define XLAZY_ASSIGN_(holder, target, expression) \
  auto holder = (expression);                     \
  if (!holder.ok()) return holder.status();       \
  target = *std::move(holder)
#define XLAZY_ASSIGN(target, expression) XLAZY_ASSIGN_(XLAZY_CONCAT(or_, __COUNTER__), target, expression)
