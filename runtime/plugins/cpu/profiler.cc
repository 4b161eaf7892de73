// The profiler extension: what XLA's CPU backend and its threads did between start and stop, as a serialized XSpace.

#include <cstring>
#include <memory>
#include <string>

#include "common.h"
#include "tsl/profiler/lib/profiler_session.h"
#include "xla/backends/profiler/plugin/profiler_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_profiler_extension.h"

struct PLUGIN_Profiler_Error {
  absl::Status status;
};

struct PLUGIN_Profiler {
  tensorflow::ProfileOptions options;
  std::unique_ptr<tsl::ProfilerSession> session;
  // Serialized when it was stopped; empty before.
  std::string data;
};

namespace xlazy {
namespace {

PLUGIN_Profiler_Error* Told(absl::Status status) {
  return status.ok() ? nullptr : new PLUGIN_Profiler_Error{std::move(status)};
}

PLUGIN_Profiler_Error* Null(const char* what) { return Told(absl::InvalidArgumentError(absl::StrCat(what, " is null"))); }

void ErrorDestroy(PLUGIN_Profiler_Error_Destroy_Args* args) { delete args->error; }

void ErrorMessage(PLUGIN_Profiler_Error_Message_Args* args) {
  absl::string_view message = args->error ? args->error->status.message() : absl::string_view();
  args->message = message.data();
  args->message_size = message.size();
}

PLUGIN_Profiler_Error* ErrorGetCode(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = args->error ? static_cast<int>(args->error->status.code()) : 0;
  return nullptr;
}

PLUGIN_Profiler_Error* Create(PLUGIN_Profiler_Create_Args* args) {
  auto profiler = std::make_unique<PLUGIN_Profiler>();
  profiler->options = tsl::ProfilerSession::DefaultOptions();
  if (args->options != nullptr && args->options_size > 0 &&
      !profiler->options.ParseFromArray(args->options, static_cast<int>(args->options_size))) {
    return Told(absl::InvalidArgumentError("the options are no tensorflow.ProfileOptions"));
  }
  args->profiler = profiler.release();
  return nullptr;
}

PLUGIN_Profiler_Error* Destroy(PLUGIN_Profiler_Destroy_Args* args) {
  delete args->profiler;
  return nullptr;
}

PLUGIN_Profiler_Error* Start(PLUGIN_Profiler_Start_Args* args) {
  if (args->profiler == nullptr) return Null("profiler");
  if (args->profiler->session) return Told(absl::FailedPreconditionError("the profiler has been started already"));
  auto session = tsl::ProfilerSession::Create(args->profiler->options);
  if (absl::Status status = session->Status(); !status.ok()) return Told(status);
  args->profiler->session = std::move(session);
  return nullptr;
}

PLUGIN_Profiler_Error* Stop(PLUGIN_Profiler_Stop_Args* args) {
  if (args->profiler == nullptr) return Null("profiler");
  if (!args->profiler->session) return Told(absl::FailedPreconditionError("the profiler was not started"));
  tensorflow::profiler::XSpace space;
  absl::Status status = args->profiler->session->CollectData(&space);
  args->profiler->session.reset();
  if (!status.ok()) return Told(status);
  if (!space.SerializeToString(&args->profiler->data)) return Told(absl::InternalError("the profile is too large"));
  return nullptr;
}

PLUGIN_Profiler_Error* CollectData(PLUGIN_Profiler_CollectData_Args* args) {
  if (args->profiler == nullptr) return Null("profiler");
  const std::string& data = args->profiler->data;
  if (args->buffer != nullptr) std::memcpy(args->buffer, data.data(), data.size());
  args->buffer_size_in_bytes = data.size();
  return nullptr;
}

}  // namespace

PJRT_Profiler_Extension MakeProfiler(PJRT_Extension_Base* next) {
  static PLUGIN_Profiler_Api api{PLUGIN_Profiler_Api_STRUCT_SIZE, nullptr,  &ErrorDestroy, &ErrorMessage, &ErrorGetCode,
                                 &Create,                         &Destroy, &Start,        &Stop,         &CollectData};
  PJRT_Profiler_Extension profiler{};
  profiler.base = {PJRT_Profiler_Extension_STRUCT_SIZE, PJRT_Extension_Type_Profiler, next};
  profiler.profiler_api = &api;
  return profiler;
}

}  // namespace xlazy
