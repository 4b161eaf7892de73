// The FFI extension: callers register functions of their own, which programs call by stablehlo.custom_call.

#include "common.h"
#include "entries.h"
#include "xla/ffi/api/c_api.h"

namespace xla::ffi {
// Exported by the library; its own header would make this a heavy unit.
const XLA_FFI_Api* GetXlaFfiApi();
}  // namespace xla::ffi

namespace xlazy {
namespace {

absl::Status TakeFfiError(const XLA_FFI_Api& ffi, XLA_FFI_Error* error) {
  if (error == nullptr) return absl::OkStatus();
  XLA_FFI_Error_GetMessage_Args message{XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE, nullptr, error, nullptr};
  ffi.XLA_FFI_Error_GetMessage(&message);
  absl::Status status = absl::InvalidArgumentError(message.message);
  XLA_FFI_Error_Destroy_Args destroy{XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  ffi.XLA_FFI_Error_Destroy(&destroy);
  return status;
}

}  // namespace

absl::Status FFI_Type_Register(PJRT_FFI_Type_Register_Args* args) {
  XLAZY_NEED(args->type_name);
  const XLA_FFI_Api& ffi = *xla::ffi::GetXlaFfiApi();
  XLA_FFI_TypeId id{args->type_id};
  XLA_FFI_TypeInfo info{XLA_FFI_TypeInfo_STRUCT_SIZE, nullptr, args->type_info ? args->type_info->deleter : nullptr};
  XLA_FFI_Type_Register_Args type{};
  type.struct_size = PJRT_STRUCT_SIZE(XLA_FFI_Type_Register_Args, type_info);
  type.name = {args->type_name, args->type_name_size};
  type.type_id = &id;
  type.type_info = &info;
  XLAZY_TRY(TakeFfiError(ffi, ffi.XLA_FFI_Type_Register(&type)));
  args->type_id = id.type_id;
  return absl::OkStatus();
}

absl::Status FFI_Register_Handler(PJRT_FFI_Register_Handler_Args* args) {
  XLAZY_NEED(args->target_name);
  XLAZY_NEED(args->platform_name);
  XLAZY_NEED(args->handler);
  const XLA_FFI_Api& ffi = *xla::ffi::GetXlaFfiApi();
  XLA_FFI_Handler_Register_Args handler{};
  handler.struct_size = XLA_FFI_Handler_Register_Args_STRUCT_SIZE;
  handler.name = {args->target_name, args->target_name_size};
  handler.platform = {args->platform_name, args->platform_name_size};
  handler.bundle.execute = reinterpret_cast<XLA_FFI_Handler*>(args->handler);
  handler.traits = static_cast<XLA_FFI_Handler_Traits>(XLAZY_GET(args, traits, PJRT_FFI_Handler_TraitsBits{}));
  return TakeFfiError(ffi, ffi.XLA_FFI_Handler_Register(&handler));
}

}  // namespace xlazy
