// Transfer managers: buffers that exist at once and are filled piece by piece.

#include "handles.h"
#include "xla/literal.h"

namespace xlazy {
namespace {

absl::Status CheckIndex(const PJRT_AsyncHostToDeviceTransferManager& manager, int index) {
  if (index >= 0 && static_cast<size_t>(index) < manager.manager->buffer_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("buffer_index ", index, " does not exist among ", manager.manager->buffer_count(), " buffers"));
}

}  // namespace

absl::Status Client_CreateBuffersForAsyncHostToDevice(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_NEED(args->memory);
  if (args->num_shape_specs != 0) XLAZY_NEED(args->shape_specs);
  if (args->num_device_layouts != 0 && args->num_device_layouts != args->num_shape_specs) {
    return absl::InvalidArgumentError("there must be a layout for each shape, or none at all");
  }
  std::vector<xla::PjRtClient::ShapeSpec> specs;
  std::vector<std::optional<xla::Layout>> layouts;
  for (size_t i = 0; i < args->num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args->shape_specs[i];
    const PJRT_Buffer_MemoryLayout* layout = args->num_device_layouts != 0 ? args->device_layouts[i] : nullptr;
    XLAZY_ASSIGN(xla::Shape shape, MakeShape(spec.element_type, spec.dims, spec.num_dims, layout));
    specs.push_back({shape.element_type(), xla::DimensionVector(shape.dimensions().begin(), shape.dimensions().end())});
    layouts.push_back(layout != nullptr ? std::optional<xla::Layout>(shape.layout()) : std::nullopt);
  }
  std::optional<absl::Span<const std::optional<xla::Layout>>> given;
  if (args->num_device_layouts != 0) given = layouts;
  XLAZY_ASSIGN(auto manager, args->client->client->CreateBuffersForAsyncHostToDevice(specs, given, args->memory->space));
  args->transfer_manager = new PJRT_AsyncHostToDeviceTransferManager{std::move(manager), args->client};
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_Destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args* args) {
  delete args->transfer_manager;
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  XLAZY_TRY(CheckIndex(*args->transfer_manager, args->buffer_index));
  auto [promise, done] = xla::MakePromise<>();
  XLAZY_TRY(args->transfer_manager->manager->TransferRawDataToSubBuffer(
      args->buffer_index, args->data, args->offset, args->transfer_size, args->is_last_transfer,
      [promise = std::move(promise)]() mutable { promise.Set(); }));
  args->done_with_h2d_transfer = ToEvent(std::move(done));
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  XLAZY_NEED(args->data);
  XLAZY_TRY(CheckIndex(*args->transfer_manager, args->buffer_index));
  XLAZY_ASSIGN(xla::Shape shape,
               MakeShape(args->shape_element_type, args->shape_dims, args->shape_num_dims, args->shape_layout));
  auto literal = std::make_shared<xla::BorrowingLiteral>(static_cast<const char*>(args->data), shape);
  auto [promise, done] = xla::MakePromise<>();
  XLAZY_TRY(args->transfer_manager->manager->TransferLiteralToBuffer(
      args->buffer_index, *literal, [promise = std::move(promise), literal]() mutable { promise.Set(); }));
  args->done_with_h2d_transfer = ToEvent(std::move(done));
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  XLAZY_TRY(CheckIndex(*args->transfer_manager, args->buffer_index));
  auto buffer = args->transfer_manager->manager->RetrieveBuffer(args->buffer_index);
  if (buffer == nullptr) return absl::FailedPreconditionError("the buffer has been retrieved before");
  args->buffer_out = new PJRT_Buffer(std::move(buffer), args->transfer_manager->client);
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_Device(PJRT_AsyncHostToDeviceTransferManager_Device_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  args->device_out = args->transfer_manager->client->Find(args->transfer_manager->manager->device());
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_BufferCount(
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  args->buffer_count = args->transfer_manager->manager->buffer_count();
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_BufferSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  XLAZY_TRY(CheckIndex(*args->transfer_manager, args->buffer_index));
  args->buffer_size = args->transfer_manager->manager->buffer_size(args->buffer_index);
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  XLAZY_TRY(CheckIndex(*args->transfer_manager, args->buffer_index));
  absl::Status error = FromErrorCode(args->error_code, args->error_message, args->error_message_size);
  if (error.ok()) return absl::InvalidArgumentError("the error of a buffer cannot be OK");
  args->transfer_manager->manager->SetBufferError(args->buffer_index, std::move(error));
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_AddMetadata(
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args* args) {
  XLAZY_NEED(args->transfer_manager);
  if (args->num_metadata != 0) XLAZY_NEED(args->transfer_metadata);
  absl::flat_hash_map<std::string, std::string> metadata;
  for (size_t i = 0; i < args->num_metadata; ++i) {
    XLAZY_ASSIGN(metadata[NameOf(args->transfer_metadata[i])], TextOption(args->transfer_metadata[i]));
  }
  args->transfer_manager->manager->AddTransferMetadata(metadata);
  return absl::OkStatus();
}

}  // namespace xlazy
