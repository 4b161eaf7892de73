// Programs to executables: compiling for a client, ahead of time for a topology, and loading what was serialized.

#include "handles.h"
#include "mlir/IR/BuiltinOps.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/service/hlo.pb.h"

namespace xla {
// Exported by the library; its own header needs LLVM's headers, which the wheel does not ship.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> ParseMlirModuleString(absl::string_view, mlir::MLIRContext&);
}  // namespace xla

namespace xlazy {
namespace {

absl::StatusOr<xla::HloModuleProto> ParseHlo(absl::string_view format, absl::string_view code) {
  if (code.size() > INT32_MAX) return absl::InvalidArgumentError("the program is larger than 2 GB");
  int size = static_cast<int>(code.size());
  if (format == "hlo") {
    xla::HloModuleProto module;
    if (module.ParseFromArray(code.data(), size)) return module;
  } else if (format == "hlo_with_config") {
    xla::HloModuleProtoWithConfig module;
    if (module.ParseFromArray(code.data(), size)) return std::move(*module.mutable_hlo_module());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown program format ", format, "; known are mlir, hlo, hlo_with_config"));
  }
  return absl::InvalidArgumentError(absl::StrCat("the program is not valid ", format));
}

// Calls `compile` with the program as an mlir::ModuleOp or an XlaComputation, whichever it is.
template <class Compile>
auto WithProgram(const PJRT_Program& program, Compile compile) -> decltype(compile(mlir::ModuleOp())) {
  if (!XLAZY_HAS(&program, format_size) || program.format == nullptr || program.code == nullptr) {
    return absl::InvalidArgumentError("the program has no code, no format, or a struct_size that is too small");
  }
  absl::string_view format(program.format, program.format_size), code(program.code, program.code_size);
  if (format == "mlir") {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);  // XLA's compiler has its own threads
    XLAZY_ASSIGN(mlir::OwningOpRef<mlir::ModuleOp> module, xla::ParseMlirModuleString(code, context));
    return compile(module.get());
  }
  XLAZY_ASSIGN(xla::HloModuleProto module, ParseHlo(format, code));
  return compile(xla::XlaComputation(std::move(module)));
}

}  // namespace

absl::Status Client_Compile(PJRT_Client_Compile_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_NEED(args->program);
  XLAZY_ASSIGN(xla::CompileOptions options, ParseCompileOptions(args->compile_options, args->compile_options_size));
  XLAZY_ASSIGN(std::unique_ptr<xla::PjRtLoadedExecutable> loaded, WithProgram(*args->program, [&](const auto& program) {
                 return args->client->client->CompileAndLoad(program, std::move(options));
               }));
  args->executable = new PJRT_LoadedExecutable(std::move(loaded), args->client);
  return absl::OkStatus();
}

absl::Status Compile(PJRT_Compile_Args* args) {
  XLAZY_NEED(args->topology);
  XLAZY_NEED(args->program);
  XLAZY_ASSIGN(xla::CompileOptions options, ParseCompileOptions(args->compile_options, args->compile_options_size));
  // Only a client can compile for the CPU. Without one, a client of the topology's size is made and kept with the executable.
  struct Kept {
    std::unique_ptr<xla::PjRtClient> client;
    std::unique_ptr<xla::PjRtExecutable> executable;
  };
  auto kept = std::make_shared<Kept>();
  xla::PjRtClient* client = args->client != nullptr ? args->client->client.get() : nullptr;
  if (client == nullptr) {
    xla::CpuClientOptions cpu;
    cpu.cpu_device_count = static_cast<int>(args->topology->description_pointers.size());
    XLAZY_ASSIGN(kept->client, xla::GetXlaPjrtCpuClient(std::move(cpu)));
    client = kept->client.get();
  }
  XLAZY_ASSIGN(kept->executable, WithProgram(*args->program, [&](const auto& program) {
                 return client->Compile(program, std::move(options));
               }));
  args->executable = new PJRT_Executable(std::shared_ptr<xla::PjRtExecutable>(kept, kept->executable.get()));
  return absl::OkStatus();
}

absl::Status Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_NEED(args->serialized_executable);
  std::optional<xla::CompileOptions> options;
  const char* overridden = XLAZY_GET(args, overridden_serialized_compile_options, nullptr);
  size_t overridden_size = XLAZY_GET(args, overridden_serialized_compile_options_size, size_t{0});
  if (overridden != nullptr && overridden_size != 0) {
    XLAZY_ASSIGN(options, ParseCompileOptions(overridden, overridden_size));
  }
  absl::string_view bytes(args->serialized_executable, args->serialized_executable_size);
  XLAZY_ASSIGN(std::unique_ptr<xla::PjRtLoadedExecutable> loaded,
               args->client->client->LoadSerializedExecutable(bytes, std::move(options), xla::LoadOptions()));
  args->loaded_executable = new PJRT_LoadedExecutable(std::move(loaded), args->client);
  return absl::OkStatus();
}

}  // namespace xlazy
