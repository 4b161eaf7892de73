// Events: waiting, callbacks, and events that the caller completes.

#include "event.h"

#include "common.h"
#include "entries.h"

namespace xlazy {

absl::Status Event_Destroy(PJRT_Event_Destroy_Args* args) {
  delete args->event;
  return absl::OkStatus();
}

absl::Status Event_IsReady(PJRT_Event_IsReady_Args* args) {
  XLAZY_NEED(args->event);
  args->is_ready = args->event->future.IsReady();
  return absl::OkStatus();
}

absl::Status Event_Error(PJRT_Event_Error_Args* args) {
  XLAZY_NEED(args->event);
  // The contract says to ask only after the event is ready; waiting is the kind answer to a caller that did not.
  return args->event->future.Await();
}

absl::Status Event_Await(PJRT_Event_Await_Args* args) {
  XLAZY_NEED(args->event);
  return args->event->future.Await();
}

absl::Status Event_OnReady(PJRT_Event_OnReady_Args* args) {
  XLAZY_NEED(args->event);
  XLAZY_NEED(args->callback);
  args->event->future.OnReady(
      [callback = args->callback, user = args->user_arg](const absl::Status& status) { callback(ToError(status), user); });
  return absl::OkStatus();
}

absl::Status Event_Create(PJRT_Event_Create_Args* args) {
  auto [promise, future] = xla::MakePromise<>();
  auto event = std::make_unique<PJRT_Event>(std::move(future));
  event->promise = std::make_unique<xla::Promise<>>(std::move(promise));
  args->event = event.release();
  return absl::OkStatus();
}

absl::Status Event_Set(PJRT_Event_Set_Args* args) {
  XLAZY_NEED(args->event);
  if (!args->event->promise) {
    return absl::FailedPreconditionError("PJRT_Event_Set: the event was not made by PJRT_Event_Create");
  }
  if (args->event->set.exchange(true)) return absl::FailedPreconditionError("PJRT_Event_Set: the event is already set");
  args->event->promise->Set(FromErrorCode(args->error_code, args->error_message, args->error_message_size));
  return absl::OkStatus();
}

}  // namespace xlazy
