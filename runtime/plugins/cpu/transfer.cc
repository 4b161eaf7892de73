// Data in and out: buffers from host memory, copies back to it, copies between devices.

#include <cstring>

#include "handles.h"
#include "xla/layout_util.h"
#include "xla/literal.h"
#include "xla/primitive_util.h"
#include "xla/shape_util.h"

namespace xlazy {
namespace {

// Up to this size a copy to the host is done by the calling thread: waking another one costs more than the copy.
constexpr size_t kInlineCopyBytes = 256 << 10;

absl::StatusOr<xla::PjRtClient::HostBufferSemantics> FromSemantics(PJRT_HostBufferSemantics semantics) {
  using Semantics = xla::PjRtClient::HostBufferSemantics;
  switch (semantics) {
    case PJRT_HostBufferSemantics_kImmutableOnlyDuringCall: return Semantics::kImmutableOnlyDuringCall;
    case PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes: return Semantics::kImmutableUntilTransferCompletes;
    case PJRT_HostBufferSemantics_kImmutableZeroCopy: return Semantics::kImmutableZeroCopy;
    case PJRT_HostBufferSemantics_kMutableZeroCopy: return Semantics::kMutableZeroCopy;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown host buffer semantics ", static_cast<int>(semantics)));
}

// An element fills whole bytes both on the device and on the host, so that equal layouts mean equal bytes.
bool IsByteSized(const xla::Shape& shape) {
  return shape.IsArray() && !xla::primitive_util::IsSubByteNonPredType(shape.element_type());
}

}  // namespace

absl::Status Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::Shape shape, MakeShape(args->type, args->dims, args->num_dims, args->device_layout));
  if (args->data == nullptr && xla::ShapeUtil::ElementsIn(shape) != 0) {
    return absl::InvalidArgumentError("PJRT_Client_BufferFromHostBuffer: args->data is null");
  }
  std::optional<absl::Span<const int64_t>> strides;
  if (args->byte_strides != nullptr) {
    if (args->num_byte_strides != args->num_dims) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", args->num_byte_strides, " strides for ", args->num_dims, " dimensions"));
    }
    strides = absl::MakeSpan(args->byte_strides, args->num_byte_strides);
  }
  XLAZY_ASSIGN(auto semantics, FromSemantics(args->host_buffer_semantics));
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, PickMemory(args->device, args->memory));
  auto [promise, done] = xla::MakePromise<>();
  XLAZY_ASSIGN(auto buffer, args->client->client->BufferFromHostBuffer(
                                args->data, shape.element_type(), shape.dimensions(), strides, semantics,
                                [promise = std::move(promise)]() mutable { promise.Set(); }, space,
                                args->device_layout != nullptr ? &shape.layout() : nullptr));
  args->buffer = new PJRT_Buffer(std::move(buffer), args->client);
  args->done_with_host_buffer = ToEvent(std::move(done));
  return absl::OkStatus();
}

absl::Status Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::Shape shape,
               MakeShape(args->shape_element_type, args->shape_dims, args->shape_num_dims, args->shape_layout));
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, PickMemory(args->device, args->memory));
  XLAZY_ASSIGN(auto buffer, args->client->client->CreateUninitializedBuffer(shape, space));
  args->buffer = new PJRT_Buffer(std::move(buffer), args->client);
  return absl::OkStatus();
}

absl::Status Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args* args) {
  XLAZY_NEED(args->client);
  if (args->error_code == PJRT_Error_Code_OK) return absl::InvalidArgumentError("an error buffer needs an error");
  XLAZY_ASSIGN(xla::Shape shape,
               MakeShape(args->shape_element_type, args->shape_dims, args->shape_num_dims, args->shape_layout));
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, PickMemory(nullptr, args->memory));
  XLAZY_ASSIGN(auto buffer, args->client->client->CreateErrorBuffer(
                                FromErrorCode(args->error_code, args->error_message, args->error_message_size), shape, space));
  args->buffer = new PJRT_Buffer(std::move(buffer), args->client);
  return absl::OkStatus();
}

absl::Status Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::Shape shape, MakeShape(args->element_type, args->dims, args->num_dims, args->layout));
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, PickMemory(args->device, XLAZY_GET(args, memory, nullptr)));
  std::function<void()> on_delete = [] {};
  if (args->on_delete_callback != nullptr) {
    on_delete = [callback = args->on_delete_callback, data = args->device_buffer_ptr, user = args->on_delete_callback_arg] {
      callback(data, user);
    };
  }
  std::optional<std::intptr_t> stream;
  if (args->stream != 0) stream = args->stream;
  XLAZY_ASSIGN(auto buffer, args->client->client->CreateViewOfDeviceBuffer(args->device_buffer_ptr, shape, space,
                                                                           std::move(on_delete), stream));
  args->buffer = new PJRT_Buffer(std::move(buffer), args->client);
  return absl::OkStatus();
}

absl::Status Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::Shape shape,
               MakeShape(args->shape_element_type, args->shape_dims, args->shape_num_dims, args->shape_layout));
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, PickMemory(nullptr, args->memory));
  XLAZY_ASSIGN(auto made, args->client->client->CreateAliasBuffer(shape, space));
  args->alias_buffer = new PJRT_Buffer(std::move(made.first), args->client);
  args->fulfill_alias_buffer_cb = new PJRT_FulfillAliasBufferCallback{std::move(made.second)};
  return absl::OkStatus();
}

absl::Status Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args* args) {
  XLAZY_NEED(args->fulfill_alias_buffer_cb);
  bool failed = args->status_code != PJRT_Error_Code_OK;
  if (!failed) XLAZY_NEED(args->buffer);
  // The callback can be used once, so this call also frees it.
  std::unique_ptr<PJRT_FulfillAliasBufferCallback> owned(args->fulfill_alias_buffer_cb);
  if (!failed) return owned->callback(args->buffer->buffer.get());
  // XLA hands the error that it was given straight back. It is the alias's now, and telling it worked.
  owned->callback(FromErrorCode(args->status_code, args->error_message, args->error_message_size)).IgnoreError();
  return absl::OkStatus();
}

namespace {

bool SameOrder(const xla::Shape& a, const xla::Shape& b) {
  return a.layout().minor_to_major() == b.layout().minor_to_major();
}

// Copies at once when the data is there and small, and its bytes are already those that the host wants.
// Returns false when XLA has to do the copy.
absl::StatusOr<bool> CopyInline(xla::PjRtBuffer& buffer, const xla::Shape& host, size_t size, void* to) {
  if (size > kInlineCopyBytes || !IsByteSized(host) || !SameOrder(host, buffer.on_device_shape())) return false;
  xla::Future<> ready = buffer.GetReadyFuture();
  if (!ready.IsReady()) return false;
  XLAZY_TRY(ready.Await());
  XLAZY_ASSIGN(auto reference, buffer.AcquireExternalReference());
  if (size != 0) std::memcpy(to, reference->OpaqueDeviceMemoryDataPointer(), size);
  return true;
}

// Lets XLA copy into `to`, which is kept alive until that is done.
xla::Future<> CopyByXla(xla::PjRtBuffer& buffer, std::shared_ptr<xla::MutableBorrowingLiteral> to) {
  if (SameOrder(to->shape(), buffer.on_device_shape())) {
    xla::Future<> done = buffer.ToLiteral(to.get());
    done.OnReady([to](const absl::Status&) {});
    return done;
  }
  // XLA's CPU client copies bytes as they lie, whatever layout the literal has, so another order takes a second step.
  xla::Shape shape = to->shape();
  *shape.mutable_layout() = buffer.on_device_shape().layout();
  auto between = std::make_shared<xla::Literal>(shape);
  auto [promise, done] = xla::MakePromise<>();
  buffer.ToLiteral(between.get())
      .OnReady([to, between, promise = std::move(promise)](const absl::Status& status) mutable {
        promise.Set(status.ok() ? to->CopyFrom(*between) : status);
      });
  return std::move(done);
}

}  // namespace

absl::Status Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* args) {
  XLAZY_NEED(args->src);
  xla::PjRtBuffer& buffer = *args->src->buffer;
  if (!buffer.on_device_shape().IsArray()) return absl::InvalidArgumentError("only arrays can be copied to the host");
  xla::Shape host = buffer.on_device_shape();
  bool is_static = host.is_static();
  if (!is_static) {
    XLAZY_ASSIGN(host, buffer.logical_on_device_shape());
  }
  if (args->host_layout != nullptr) {
    XLAZY_ASSIGN(*host.mutable_layout(), FromMemoryLayout(*args->host_layout, host.element_type(), host.dimensions()));
  } else {
    host = xla::ShapeUtil::DeviceShapeToHostShape(host);
  }
  size_t size = xla::ShapeUtil::ByteSizeOf(host);
  if (args->dst == nullptr) {
    args->dst_size = size;
    args->event = nullptr;
    return absl::OkStatus();
  }
  if (args->dst_size < size) {
    return absl::InvalidArgumentError(absl::StrCat("dst_size is ", args->dst_size, ", but the data takes ", size, " bytes"));
  }
  if (is_static) {
    absl::StatusOr<bool> copied = CopyInline(buffer, host, size, args->dst);
    // An error of the data belongs to the event: the call itself was right.
    if (!copied.ok() || *copied) {
      args->event = ToEvent(xla::Future<>(copied.status()));
      return absl::OkStatus();
    }
  }
  auto literal = std::make_shared<xla::MutableBorrowingLiteral>(static_cast<char*>(args->dst), host);
  args->event = ToEvent(CopyByXla(buffer, std::move(literal)));
  return absl::OkStatus();
}

absl::Status Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_NEED(args->dst);
  args->event = ToEvent(args->buffer->buffer->CopyRawToHost(args->dst, args->offset, args->transfer_size));
  return absl::OkStatus();
}

absl::Status Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args* args) {
  XLAZY_NEED(args->buffer);
  auto [promise, where] = xla::MakePromise<void*>();
  args->event = ToEvent(args->buffer->buffer->CopyRawToHostFuture(std::move(where), args->offset, args->transfer_size));
  args->callback_data = new xla::Promise<void*>(std::move(promise));
  // The caller calls this once, when it has the memory or has failed to get it.
  args->future_ready_callback = +[](PJRT_Buffer_CopyRawToHostFuture_Callback_Args* ready) {
    std::unique_ptr<xla::Promise<void*>> promise(static_cast<xla::Promise<void*>*>(ready->callback_data));
    if (ready->error_code == PJRT_Error_Code_OK) {
      promise->Set(ready->dst);
    } else {
      promise->Set(FromErrorCode(ready->error_code, ready->error_message, ready->error_message_size));
    }
  };
  return absl::OkStatus();
}

absl::Status Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_NEED(args->dst_device);
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, args->dst_device->device->default_memory_space());
  XLAZY_ASSIGN(auto copy, args->buffer->buffer->CopyToMemorySpace(space));
  args->dst_buffer = new PJRT_Buffer(std::move(copy), args->dst_device->client);
  return absl::OkStatus();
}

absl::Status Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args* args) {
  XLAZY_NEED(args->buffer);
  XLAZY_NEED(args->dst_memory);
  XLAZY_ASSIGN(auto copy, args->buffer->buffer->CopyToMemorySpace(args->dst_memory->space));
  args->dst_buffer = new PJRT_Buffer(std::move(copy), args->dst_memory->client);
  return absl::OkStatus();
}

}  // namespace xlazy
