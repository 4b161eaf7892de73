// Running an executable: the hot path, about 2 µs for a small program, so it allocates little and looks nothing up.

#include "absl/container/inlined_vector.h"
#include "handles.h"

namespace xlazy {
namespace {

absl::Status ReadOptions(const PJRT_ExecuteOptions& c, xla::ExecuteOptions& options) {
  if (!XLAZY_HAS(&c, launch_id)) return absl::InvalidArgumentError("the struct_size of the execute options is too small");
  if (c.num_send_ops != 0 || c.num_recv_ops != 0) {
    return absl::UnimplementedError("send and receive callbacks do not exist on the CPU");
  }
  options.launch_id = c.launch_id;
  if (XLAZY_HAS(&c, num_non_donatable_input_indices)) {
    for (size_t i = 0; i < c.num_non_donatable_input_indices; ++i) {
      options.non_donatable_input_indices.insert(static_cast<int>(c.non_donatable_input_indices[i]));
    }
  }
  if (PJRT_ExecuteContext* context = XLAZY_GET(&c, context, nullptr)) options.context = &context->context;
  if (const char* location = XLAZY_GET(&c, call_location, nullptr)) options.call_location = location;
  if (XLAZY_HAS(&c, incarnation_ids) && c.task_ids != nullptr && c.incarnation_ids != nullptr) {
    for (size_t i = 0; i < c.num_tasks; ++i) {
      options.incarnations.emplace(c.task_ids[i], xla::IncarnationId(c.incarnation_ids[i]));
    }
  }
  return absl::OkStatus();
}

using Buffers = std::vector<std::unique_ptr<xla::PjRtBuffer>>;

void Answer(Buffers& outputs, PJRT_Client* client, PJRT_Buffer** list) {
  for (size_t i = 0; i < outputs.size(); ++i) list[i] = new PJRT_Buffer(std::move(outputs[i]), client);
}

// Runs on one device: the argument list can live on the stack, and XLA fills one future at most.
absl::Status ExecuteOnOne(PJRT_LoadedExecutable_Execute_Args& args, const xla::ExecuteOptions& options,
                          xla::PjRtDevice* device, bool portable) {
  absl::InlinedVector<xla::PjRtBuffer*, 32> arguments(args.num_args);
  for (size_t i = 0; i < args.num_args; ++i) {
    PJRT_Buffer* argument = args.argument_lists[0][i];
    if (argument == nullptr) return absl::InvalidArgumentError(absl::StrCat("argument ", i, " is null"));
    arguments[i] = argument->buffer.get();
  }
  const xla::PjRtLoadedExecutable& executable = *args.executable->executable;
  std::optional<xla::Future<>> done;
  bool wants_done = args.device_complete_events != nullptr;
  absl::StatusOr<Buffers> outputs =
      portable ? executable.ExecutePortable(arguments, device, options, done, wants_done)
               : executable.ExecuteSharded(arguments, device, options, done, wants_done);
  if (!outputs.ok()) return outputs.status();
  Answer(*outputs, args.executable->client, args.output_lists[0]);
  if (wants_done) {
    args.device_complete_events[0] = ToEvent(done ? *std::move(done) : xla::Future<>(absl::OkStatus()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* args) {
  XLAZY_NEED(args->executable);
  XLAZY_NEED(args->output_lists);
  if (args->num_args != 0) XLAZY_NEED(args->argument_lists);
  xla::ExecuteOptions options;
  if (args->options != nullptr) XLAZY_TRY(ReadOptions(*args->options, options));
  const auto& devices = args->executable->addressable_devices;
  if (PJRT_Device* device = XLAZY_GET(args, execute_device, nullptr)) {
    if (args->num_devices != 1) return absl::InvalidArgumentError("execute_device needs num_devices to be 1");
    // A program of one device may have been compiled portable, that is, for no device in particular.
    const auto& executable = *args->executable->executable;
    return ExecuteOnOne(*args, options, device->device, executable.num_replicas() * executable.num_partitions() == 1);
  }
  if (args->num_devices == 1 && devices.size() == 1) return ExecuteOnOne(*args, options, devices[0]->device, false);

  std::vector<std::vector<xla::PjRtBuffer*>> arguments(args->num_devices);
  for (size_t d = 0; d < args->num_devices; ++d) {
    arguments[d].reserve(args->num_args);
    for (size_t i = 0; i < args->num_args; ++i) {
      PJRT_Buffer* argument = args->argument_lists[d][i];
      if (argument == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("argument ", i, " of device ", d, " is null"));
      }
      arguments[d].push_back(argument->buffer.get());
    }
  }
  std::optional<std::vector<xla::Future<>>> done;
  if (args->device_complete_events != nullptr) done.emplace();
  XLAZY_ASSIGN(std::vector<Buffers> outputs, args->executable->executable->Execute(arguments, options, done));
  for (size_t d = 0; d < outputs.size(); ++d) {
    Answer(outputs[d], args->executable->client, args->output_lists[d]);
    if (done) args->device_complete_events[d] = ToEvent(std::move((*done)[d]));
  }
  return absl::OkStatus();
}

absl::Status ExecuteContext_Create(PJRT_ExecuteContext_Create_Args* args) {
  args->context = new PJRT_ExecuteContext();
  return absl::OkStatus();
}

absl::Status FFI_UserData_Add(PJRT_FFI_UserData_Add_Args* args) {
  XLAZY_NEED(args->context);
  return args->context->context.ffi_context().Insert(
      xla::ffi::ExecutionContext::TypeId(args->user_data.type_id), args->user_data.data);
}

absl::Status ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args* args) {
  delete args->context;
  return absl::OkStatus();
}

}  // namespace xlazy
