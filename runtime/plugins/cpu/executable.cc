// What executables answer about themselves: outputs, costs, memory, serialized forms.

#include "handles.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/pjrt/proto/compile_options.pb.h"
#include "xla/service/hlo.pb.h"

PJRT_LoadedExecutable::PJRT_LoadedExecutable(std::shared_ptr<xla::PjRtLoadedExecutable> e, PJRT_Client* c)
    : executable(std::move(e)), client(c) {
  for (xla::PjRtDevice* device : executable->addressable_devices()) addressable_devices.push_back(client->Find(device));
}

namespace xlazy {

absl::Status Executable_Destroy(PJRT_Executable_Destroy_Args* args) {
  delete args->executable;
  return absl::OkStatus();
}

absl::Status Executable_Name(PJRT_Executable_Name_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_ANSWER_TEXT(args, executable_name, args->executable->executable->name());
  return absl::OkStatus();
}

absl::Status Executable_NumReplicas(PJRT_Executable_NumReplicas_Args* args) {
  XLAZY_NEED(args->executable);
  args->num_replicas = args->executable->executable->num_replicas();
  return absl::OkStatus();
}

absl::Status Executable_NumPartitions(PJRT_Executable_NumPartitions_Args* args) {
  XLAZY_NEED(args->executable);
  args->num_partitions = args->executable->executable->num_partitions();
  return absl::OkStatus();
}

namespace {

// One module a partition may have its own shapes; the API knows only one list of outputs.
template <class T>
absl::StatusOr<T> OnlyModule(absl::StatusOr<std::vector<T>> per_module) {
  if (!per_module.ok()) return per_module.status();
  if (per_module->size() != 1) {
    return absl::UnimplementedError(absl::StrCat("the executable has ", per_module->size(), " modules instead of one"));
  }
  return std::move(per_module->front());
}

}  // namespace

absl::Status Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_ASSIGN(xla::Shape shape, OnlyModule(args->executable->executable->GetOutputShapes()));
  args->num_outputs = shape.IsTuple() ? shape.tuple_shapes().size() : 1;
  return absl::OkStatus();
}

absl::Status Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args) {
  XLAZY_NEED(args->executable);
  args->size_in_bytes = args->executable->executable->SizeOfGeneratedCodeInBytes();
  return absl::OkStatus();
}

absl::Status Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.cost) {
    XLAZY_ASSIGN(auto cost, executable.executable->GetCostAnalysis());
    executable.cost.emplace(cost);
  }
  args->properties = executable.cost->data();
  args->num_properties = executable.cost->size();
  return absl::OkStatus();
}

absl::Status Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.output_types) {
    XLAZY_ASSIGN(auto types, OnlyModule(executable.executable->GetOutputElementTypes()));
    executable.output_types.emplace();
    for (xla::PrimitiveType type : types) executable.output_types->push_back(ToBufferType(type));
  }
  args->output_types = executable.output_types->data();
  args->num_output_types = executable.output_types->size();
  return absl::OkStatus();
}

absl::Status Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.output_ranks) {
    XLAZY_ASSIGN(auto outputs, OnlyModule(executable.executable->GetOutputDimensions()));
    executable.output_ranks.emplace();
    for (const auto& dims : outputs) {
      executable.output_ranks->push_back(dims.size());
      executable.output_dims.insert(executable.output_dims.end(), dims.begin(), dims.end());
    }
  }
  args->num_outputs = executable.output_ranks->size();
  args->dims = executable.output_dims.data();
  args->dim_sizes = executable.output_ranks->data();
  return absl::OkStatus();
}

absl::Status Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.output_memory_kinds) {
    XLAZY_ASSIGN(auto kinds, OnlyModule(executable.executable->GetOutputMemoryKinds()));
    executable.output_memory_kinds.emplace();
    for (absl::string_view kind : kinds) {
      executable.output_memory_kinds->push_back(kind.data());
      executable.output_memory_kind_sizes.push_back(kind.size());
    }
  }
  args->num_outputs = executable.output_memory_kinds->size();
  args->memory_kinds = executable.output_memory_kinds->data();
  args->memory_kind_sizes = executable.output_memory_kind_sizes.data();
  return absl::OkStatus();
}

absl::Status Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_NEED(args->program);
  XLAZY_ASSIGN(auto module, OnlyModule(args->executable->executable->GetHloModules()));
  xla::HloModuleProtoWithConfig proto = module->ToProtoWithConfig();
  size_t size = proto.ByteSizeLong();
  if (size > INT32_MAX) return absl::ResourceExhaustedError("the program is larger than 2 GB");
  static constexpr absl::string_view kFormat = "hlo_with_config";
  PJRT_Program& program = *args->program;
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  // Called twice: first for the size, then with room for the code.
  if (program.code == nullptr) {
    program.code_size = size;
    return absl::OkStatus();
  }
  if (program.code_size < size) {
    return absl::InvalidArgumentError(absl::StrCat("code_size is ", program.code_size, ", but the program takes ", size));
  }
  proto.SerializeToArray(program.code, static_cast<int>(size));
  program.code_size = size;
  return absl::OkStatus();
}

absl::Status Executable_Serialize(PJRT_Executable_Serialize_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_ASSIGN(std::string bytes, args->executable->executable->SerializeExecutable());
  XLAZY_ANSWER_BYTES(args, serialized_executable, serialized_executable_deleter, PJRT_SerializedExecutable,
                     std::move(bytes));
  return absl::OkStatus();
}

absl::Status Executable_Fingerprint(PJRT_Executable_Fingerprint_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.fingerprint) {
    XLAZY_ASSIGN(executable.fingerprint, executable.executable->FingerprintExecutable());
  }
  XLAZY_ANSWER_TEXT(args, executable_fingerprint, *executable.fingerprint);
  return absl::OkStatus();
}

absl::Status Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_ASSIGN(xla::CompiledMemoryStats stats, args->executable->executable->GetCompiledMemoryStats());
  args->generated_code_size_in_bytes = stats.generated_code_size_in_bytes;
  args->argument_size_in_bytes = stats.argument_size_in_bytes;
  args->output_size_in_bytes = stats.output_size_in_bytes;
  args->alias_size_in_bytes = stats.alias_size_in_bytes;
  args->temp_size_in_bytes = stats.temp_size_in_bytes;
  XLAZY_SET(args, host_generated_code_size_in_bytes, stats.host_generated_code_size_in_bytes);
  XLAZY_SET(args, host_argument_size_in_bytes, stats.host_argument_size_in_bytes);
  XLAZY_SET(args, host_output_size_in_bytes, stats.host_output_size_in_bytes);
  XLAZY_SET(args, host_alias_size_in_bytes, stats.host_alias_size_in_bytes);
  XLAZY_SET(args, host_temp_size_in_bytes, stats.host_temp_size_in_bytes);
  XLAZY_SET(args, peak_memory_in_bytes, stats.peak_memory_in_bytes);
  XLAZY_SET(args, total_size_in_bytes, stats.total_size_in_bytes);
  return absl::OkStatus();
}

absl::Status Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_ASSIGN(xla::CompileOptions options, args->executable->executable->GetCompileOptions());
  XLAZY_ASSIGN(xla::CompileOptionsProto proto, options.ToProto());
  XLAZY_ANSWER_BYTES(args, serialized_compile_options, serialized_compile_options_deleter, PJRT_SerializedCompileOptions,
                     proto.SerializeAsString());
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  delete args->executable;
  return absl::OkStatus();
}

absl::Status LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  XLAZY_NEED(args->loaded_executable);
  // XLA's unloaded CPU executable knows no costs, the loaded one asks its client: so the answers go through a forwarder, which
  // must keep the loaded executable alive, as the caller may destroy that first.
  struct Kept {
    explicit Kept(std::shared_ptr<xla::PjRtLoadedExecutable> l) : loaded(std::move(l)), forwarder(loaded.get()) {}
    std::shared_ptr<xla::PjRtLoadedExecutable> loaded;
    xla::PjRtExecutableForwarder forwarder;
  };
  auto kept = std::make_shared<Kept>(args->loaded_executable->executable);
  args->executable = new PJRT_Executable(std::shared_ptr<xla::PjRtExecutable>(kept, &kept->forwarder));
  return absl::OkStatus();
}

absl::Status LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* args) {
  XLAZY_NEED(args->executable);
  args->addressable_devices = args->executable->addressable_devices.data();
  args->num_addressable_devices = args->executable->addressable_devices.size();
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args* args) {
  XLAZY_NEED(args->executable);
  args->executable->executable->Delete();
  return absl::OkStatus();
}

absl::Status LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args) {
  XLAZY_NEED(args->executable);
  args->is_deleted = args->executable->executable->IsDeleted();
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_LoadedExecutable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.fingerprint) {
    XLAZY_ASSIGN(executable.fingerprint, executable.executable->FingerprintExecutable());
  }
  XLAZY_ANSWER_TEXT(args, executable_fingerprint, *executable.fingerprint);
  return absl::OkStatus();
}

absl::Status LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args* args) {
  XLAZY_NEED(args->executable);
  xla::DeviceAssignmentProto proto;
  args->executable->executable->device_assignment().Serialize(&proto);
  XLAZY_ANSWER_BYTES(args, serialized_device_assignment, serialized_device_assignment_deleter,
                     PJRT_DeviceAssignmentSerialized, proto.SerializeAsString());
  return absl::OkStatus();
}

}  // namespace xlazy
