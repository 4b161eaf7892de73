// Errors as the caller reads them, and what the plugin says of itself.

#include <array>
#include <cstdint>
#include <cstring>

#include "common.h"
#include "entries.h"

#ifndef XLAZY_PLUGIN_VERSION
#define XLAZY_PLUGIN_VERSION "unknown"
#endif
#ifndef XLAZY_WHEEL_VERSION
#define XLAZY_WHEEL_VERSION "unknown"
#endif
// The build reads these out of the wheel's stablehlo/dialect/Version.h, which cannot be included without LLVM's headers.
#if !defined(XLAZY_STABLEHLO_CURRENT) || !defined(XLAZY_STABLEHLO_MINIMUM)
#error "build with scripts/cpu-plugin.sh"
#endif

namespace xlazy {

void Error_Destroy(PJRT_Error_Destroy_Args* args) {
  if (args != nullptr && XLAZY_HAS(args, error)) delete args->error;
}

void Error_Message(PJRT_Error_Message_Args* args) {
  if (args == nullptr || !XLAZY_HAS(args, message_size)) return;
  absl::string_view message = args->error ? args->error->status.message() : absl::string_view("");
  args->message = message.data();
  args->message_size = message.size();
}

absl::Status Error_GetCode(PJRT_Error_GetCode_Args* args) {
  args->code = args->error ? ToErrorCode(args->error->status) : PJRT_Error_Code_OK;
  return absl::OkStatus();
}

absl::Status Plugin_Initialize(PJRT_Plugin_Initialize_Args*) { return absl::OkStatus(); }

namespace {

PJRT_NamedValue Named(const char* name, PJRT_NamedValue_Type type, size_t size) {
  PJRT_NamedValue value{};
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = std::strlen(name);
  value.type = type;
  value.value_size = size;
  return value;
}

PJRT_NamedValue Text(const char* name, const char* text) {
  PJRT_NamedValue value = Named(name, PJRT_NamedValue_kString, std::strlen(text));
  value.string_value = text;
  return value;
}

// Clients write programs for the version named here, so it must be that of the very library that parses them.
constexpr int64_t kStablehloCurrent[] = {XLAZY_STABLEHLO_CURRENT};
constexpr int64_t kStablehloMinimum[] = {XLAZY_STABLEHLO_MINIMUM};

}  // namespace

absl::Status Plugin_Attributes(PJRT_Plugin_Attributes_Args* args) {
  static const auto values = [] {
    // 2 is what XLA's own CPU and GPU plugins state: the revision of the contract between XLA and its clients.
    PJRT_NamedValue xla = Named("xla_version", PJRT_NamedValue_kInt64, 1);
    xla.int64_value = 2;
    PJRT_NamedValue newest = Named("stablehlo_current_version", PJRT_NamedValue_kInt64List, 3);
    newest.int64_array_value = kStablehloCurrent;
    PJRT_NamedValue oldest = Named("stablehlo_minimum_version", PJRT_NamedValue_kInt64List, 3);
    oldest.int64_array_value = kStablehloMinimum;
    return std::array<PJRT_NamedValue, 5>{xla, newest, oldest, Text("xlazy_plugin_version", XLAZY_PLUGIN_VERSION),
                                          Text("tensorflow_cpu_version", XLAZY_WHEEL_VERSION)};
  }();
  args->attributes = values.data();
  args->num_attributes = values.size();
  return absl::OkStatus();
}

}  // namespace xlazy
