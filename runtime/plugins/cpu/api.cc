// The plugin's only export, GetPjrtApi: fills the C table from entries.h and keeps C++ exceptions and bad structs out of it.

#include <exception>
#include <new>

#include "absl/base/optimization.h"
#include "common.h"
#include "entries.h"
#include "xla/backends/profiler/plugin/profiler_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_profiler_extension.h"

namespace xlazy {
// profiler.cc
PJRT_Profiler_Extension MakeProfiler(PJRT_Extension_Base* next);

namespace {

// Everything that every call has in common: the struct must reach to the last field that the entry needs, and nothing may be
// thrown into the caller, which may be C or Rust.
template <class Args>
inline PJRT_Error* Guard(const char* name, size_t needed, absl::Status (*entry)(Args*), Args* args) noexcept {
  try {
    if (ABSL_PREDICT_FALSE(args == nullptr)) {
      return ToError(absl::InvalidArgumentError(absl::StrCat(name, ": args is null")));
    }
    if (ABSL_PREDICT_FALSE(args->struct_size < needed)) {
      return ToError(absl::InvalidArgumentError(
          absl::StrCat(name, ": struct_size is ", args->struct_size, ", but the fields that this call needs take ", needed)));
    }
    absl::Status status = entry(args);
    return ABSL_PREDICT_TRUE(status.ok()) ? nullptr : ToError(std::move(status));
  } catch (const std::bad_alloc&) {
    return ToError(absl::ResourceExhaustedError(absl::StrCat(name, ": out of memory")));
  } catch (const std::exception& e) {
    return ToError(absl::InternalError(absl::StrCat(name, ": C++ exception: ", e.what())));
  } catch (...) {
    return ToError(absl::InternalError(absl::StrCat(name, ": unknown C++ exception")));
  }
}

#define XLAZY_WRAP(name, last)                                                                                \
  +[](PJRT_##name##_Args* args) -> PJRT_Error* {                                                              \
    return Guard<PJRT_##name##_Args>("PJRT_" #name, PJRT_STRUCT_SIZE(PJRT_##name##_Args, last), &name, args); \
  }

constexpr size_t kEntries = 0
#define XLAZY_COUNT(...) +1
    XLAZY_ENTRIES(XLAZY_COUNT) XLAZY_UNIMPLEMENTED(XLAZY_COUNT);
#undef XLAZY_COUNT
constexpr size_t kVoidEntries = 2;
static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) + (kEntries + kVoidEntries) * sizeof(void*) == PJRT_Api_STRUCT_SIZE,
              "entries.h must name every entry of the C table once");

PJRT_FFI_Extension MakeFfi() {
  PJRT_FFI_Extension ffi{};
  ffi.base = {PJRT_FFI_Extension_STRUCT_SIZE, PJRT_Extension_Type_FFI, nullptr};
#define XLAZY_FILL(name, last, field) ffi.field = XLAZY_WRAP(name, last);
  XLAZY_FFI_ENTRIES(XLAZY_FILL)
#undef XLAZY_FILL
  return ffi;
}

PJRT_Layouts_Extension MakeLayouts(PJRT_Extension_Base* next) {
  PJRT_Layouts_Extension layouts{};
  layouts.base = {PJRT_Layouts_Extension_STRUCT_SIZE, PJRT_Extension_Type_Layouts, next};
#define XLAZY_FILL(name, last) layouts.PJRT_##name = XLAZY_WRAP(name, last);
  XLAZY_LAYOUT_ENTRIES(XLAZY_FILL)
#undef XLAZY_FILL
  return layouts;
}

PJRT_Api MakeApi(PJRT_Extension_Base* extensions) {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.extension_start = extensions;
  api.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
  api.PJRT_Error_Destroy = &Error_Destroy;
  api.PJRT_Error_Message = &Error_Message;
#define XLAZY_FILL(name, last) api.PJRT_##name = XLAZY_WRAP(name, last);
  XLAZY_ENTRIES(XLAZY_FILL)
#undef XLAZY_FILL
#define XLAZY_FILL(name)                                                                                           \
  api.PJRT_##name = +[](PJRT_##name##_Args*) -> PJRT_Error* {                                                      \
    return ToError(absl::UnimplementedError("PJRT_" #name " is not implemented by the xlazy CPU plugin"));         \
  };
  XLAZY_UNIMPLEMENTED(XLAZY_FILL)
#undef XLAZY_FILL
  return api;
}

}  // namespace
}  // namespace xlazy

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static PJRT_FFI_Extension ffi = xlazy::MakeFfi();
  static PJRT_Layouts_Extension layouts = xlazy::MakeLayouts(&ffi.base);
  static PJRT_Profiler_Extension profiler = xlazy::MakeProfiler(&layouts.base);
  static const PJRT_Api api = xlazy::MakeApi(&profiler.base);
  return &api;
}
