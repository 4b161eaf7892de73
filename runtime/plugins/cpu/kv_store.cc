// Calls the caller's key-value callbacks and takes their errors over.

#include "kv_store.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "common.h"

namespace xlazy {
namespace {

// What a callback calls to report a failure: it may not make a PJRT_Error itself.
PJRT_Error* MakeCallbackError(PJRT_Error_Code code, const char* message, size_t size) {
  return new PJRT_Error{FromErrorCode(code, message, size)};
}

absl::Status TakeError(PJRT_Error* error) {
  if (error == nullptr) return absl::OkStatus();
  std::unique_ptr<PJRT_Error> owned(error);
  return std::move(owned->status);
}

}  // namespace

KvStore::KvStore(const PJRT_Client_Create_Args& args)
    : get_(args.kv_get_callback),
      get_arg_(args.kv_get_user_arg),
      put_(args.kv_put_callback),
      put_arg_(args.kv_put_user_arg) {}

absl::Status KvStore::Set(absl::string_view key, absl::string_view value) {
  PJRT_CallbackError on_error = &MakeCallbackError;
  PJRT_KeyValuePutCallback_Args args{};
  args.struct_size = PJRT_KeyValuePutCallback_Args_STRUCT_SIZE;
  args.key = key.data();
  args.key_size = key.size();
  args.value = value.data();
  args.value_size = value.size();
  args.callback_error = &on_error;
  args.user_arg = put_arg_;
  return TakeError(put_(&args));
}

absl::StatusOr<std::string> KvStore::Get(absl::string_view key, absl::Duration timeout) {
  PJRT_CallbackError on_error = &MakeCallbackError;
  PJRT_KeyValueGetCallback_Args args{};
  args.struct_size = PJRT_KeyValueGetCallback_Args_STRUCT_SIZE;
  args.key = key.data();
  args.key_size = key.size();
  args.timeout_in_ms = static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(timeout), INT32_MAX));
  args.callback_error = &on_error;
  args.user_arg = get_arg_;
  XLAZY_TRY(TakeError(get_(&args)));
  std::string value(args.value ? absl::string_view(args.value, args.value_size) : absl::string_view());
  if (args.value_deleter_callback != nullptr) args.value_deleter_callback(args.value);
  return value;
}

}  // namespace xlazy
