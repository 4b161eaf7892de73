// Device buffers: what they answer about themselves, their life, and references from outside.

#include "handles.h"

namespace xlazy {

absl::Status Buffer_Destroy(PJRT_Buffer_Destroy_Args* args) {
  delete args->buffer;
  return absl::OkStatus();
}

absl::Status Buffer_ElementType(PJRT_Buffer_ElementType_Args* args) {
  XLAZY_NEED(args->buffer);
  args->type = ToBufferType(args->buffer->buffer->element_type());
  return absl::OkStatus();
}

absl::Status Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* args) {
  XLAZY_NEED(args->buffer);
  absl::Span<const int64_t> dims = args->buffer->buffer->dimensions();
  args->dims = dims.data();
  args->num_dims = dims.size();
  return absl::OkStatus();
}

namespace {

// Call with the buffer's mutex held.
PJRT_Buffer::Answers& AnswersOf(PJRT_Buffer& buffer) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!buffer.answers) buffer.answers = std::make_unique<PJRT_Buffer::Answers>();
  return *buffer.answers;
}

}  // namespace

absl::Status Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args) {
  XLAZY_NEED(args->buffer);
  absl::MutexLock lock(&args->buffer->mutex);
  auto& dims = AnswersOf(*args->buffer).unpadded_dims;
  if (!dims) {
    XLAZY_ASSIGN(dims, args->buffer->buffer->logical_dimensions());
  }
  args->unpadded_dims = dims->data();
  args->num_dims = dims->size();
  return absl::OkStatus();
}

absl::Status Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  XLAZY_NEED(args->buffer);
  absl::MutexLock lock(&args->buffer->mutex);
  auto& indices = AnswersOf(*args->buffer).dynamic_dims;
  if (!indices) {
    indices.emplace();
    absl::Span<const bool> dynamic = args->buffer->buffer->is_dynamic_dimension();
    for (size_t i = 0; i < dynamic.size(); ++i) {
      if (dynamic[i]) indices->push_back(i);
    }
  }
  args->dynamic_dim_indices = indices->data();
  args->num_dynamic_dims = indices->size();
  return absl::OkStatus();
}

absl::Status Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args) {
  XLAZY_NEED(args->buffer);
  absl::MutexLock lock(&args->buffer->mutex);
  auto& order = AnswersOf(*args->buffer).minor_to_major;
  if (!order) {
    const auto layout = args->buffer->buffer->layout();
    auto minor_to_major = layout->xla_layout().minor_to_major();
    order.emplace(minor_to_major.begin(), minor_to_major.end());
  }
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = order->data();
  layout.tiled.minor_to_major_size = order->size();
  args->layout = layout;
  return absl::OkStatus();
}

absl::Status Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_ASSIGN(args->on_device_size_in_bytes, args->buffer->buffer->GetOnDeviceSizeInBytes());
  return absl::OkStatus();
}

absl::Status Buffer_Device(PJRT_Buffer_Device_Args* args) {
  XLAZY_NEED(args->buffer);
  args->device = args->buffer->client->Find(args->buffer->buffer->device());
  return absl::OkStatus();
}

absl::Status Buffer_Memory(PJRT_Buffer_Memory_Args* args) {
  XLAZY_NEED(args->buffer);
  args->memory = args->buffer->client->Find(args->buffer->buffer->memory_space());
  return absl::OkStatus();
}

absl::Status Buffer_Delete(PJRT_Buffer_Delete_Args* args) {
  XLAZY_NEED(args->buffer);
  args->buffer->buffer->Delete();
  return absl::OkStatus();
}

absl::Status Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  XLAZY_NEED(args->buffer);
  args->is_deleted = args->buffer->buffer->IsDeleted();
  return absl::OkStatus();
}

absl::Status Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* args) {
  XLAZY_NEED(args->buffer);
  args->is_on_cpu = args->buffer->buffer->IsOnCpu();
  return absl::OkStatus();
}

absl::Status Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  XLAZY_NEED(args->buffer);
  args->event = ToEvent(args->buffer->buffer->GetReadyFuture());
  return absl::OkStatus();
}

absl::Status Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_ASSIGN(args->buffer_pointer, args->buffer->client->client->UnsafeBufferPointer(args->buffer->buffer.get()));
  return absl::OkStatus();
}

absl::Status Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_ASSIGN(auto reference, args->buffer->buffer->AcquireExternalReference());
  absl::MutexLock lock(&args->buffer->mutex);
  args->buffer->references.push_back(std::move(reference));
  return absl::OkStatus();
}

absl::Status Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args* args) {
  XLAZY_NEED(args->buffer);
  std::unique_ptr<xla::PjRtBuffer::ExternalReference> released;  // dropped after the lock
  absl::MutexLock lock(&args->buffer->mutex);
  if (args->buffer->references.empty()) {
    return absl::InvalidArgumentError("PJRT_Buffer_DecreaseExternalReferenceCount: there is no reference to give back");
  }
  released = std::move(args->buffer->references.back());
  args->buffer->references.pop_back();
  return absl::OkStatus();
}

absl::Status Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args) {
  XLAZY_NEED(args->buffer);
  {
    absl::MutexLock lock(&args->buffer->mutex);
    if (!args->buffer->references.empty()) {
      args->device_memory_ptr = args->buffer->references.back()->OpaqueDeviceMemoryDataPointer();
      return absl::OkStatus();
    }
  }
  XLAZY_ASSIGN(auto reference, args->buffer->buffer->AcquireExternalReference());
  args->device_memory_ptr = reference->OpaqueDeviceMemoryDataPointer();
  return absl::OkStatus();
}

absl::Status Buffer_DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args* args) {
  XLAZY_NEED(args->buffer);
  auto [promise, future] = xla::MakePromise<>();
  XLAZY_ASSIGN(auto donated, args->buffer->buffer->DonateWithControlDependency(std::move(future)));
  args->out_buffer = new PJRT_Buffer(std::move(donated), args->buffer->client);
  args->callback_data = new xla::Promise<>(std::move(promise));
  // The caller calls this once, when the dependency is met or has failed.
  args->dependency_ready_callback = +[](PJRT_Buffer_DonateWithControlDependency_Callback_Args* ready) {
    std::unique_ptr<xla::Promise<>> promise(static_cast<xla::Promise<>*>(ready->callback_data));
    promise->Set(FromErrorCode(ready->error_code, ready->error_message, ready->error_message_size));
  };
  return absl::OkStatus();
}

}  // namespace xlazy
