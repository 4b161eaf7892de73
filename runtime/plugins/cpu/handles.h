// The objects behind the C API's opaque pointers, and conversions between the API's types and XLA's.
//
// Includes XLA's client headers, so only the sources of the two heavy units (unit_client.cc, unit_data.cc) include it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common.h"
#include "entries.h"
#include "event.h"
#include "xla/layout.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/pjrt_compiler.h"
#include "xla/pjrt/pjrt_executable.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_topology_description.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/pjrt/scoped_async_tracking_event.h"
#include "xla/shape.h"

namespace xlazy {

// Key-value pairs in the C API's form, with what they point to.
class NamedValues {
 public:
  NamedValues() = default;
  explicit NamedValues(const absl::flat_hash_map<std::string, xla::PjRtValueType>& values);
  NamedValues(NamedValues&&) = default;
  NamedValues& operator=(NamedValues&&) = default;

  const PJRT_NamedValue* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  // A map keeps its nodes in place, so the C values may point into it, and sorts: the same answer on every run.
  std::map<std::string, xla::PjRtValueType> owned_;
  std::vector<PJRT_NamedValue> values_;
};

// Counts what the client's buffers and temporaries take from the host's memory.
struct MemoryCounts;

}  // namespace xlazy

struct PJRT_DeviceDescription {
  explicit PJRT_DeviceDescription(const xla::PjRtDeviceDescription* d) : description(d), attributes(d->Attributes()) {}

  const xla::PjRtDeviceDescription* description;
  xlazy::NamedValues attributes;
};

struct PJRT_Device {
  PJRT_Device(xla::PjRtDevice* d, PJRT_Client* c) : device(d), description(&d->description()), client(c) {}

  xla::PjRtDevice* device;
  PJRT_DeviceDescription description;
  std::vector<PJRT_Memory*> memories;
  PJRT_Client* client;
};

struct PJRT_Memory {
  xla::PjRtMemorySpace* space;
  std::vector<PJRT_Device*> devices;
  PJRT_Client* client;
};

struct PJRT_TopologyDescription {
  // `owned` is empty for the topology of a client, which the client owns.
  explicit PJRT_TopologyDescription(std::unique_ptr<xla::PjRtTopologyDescription> owned)
      : PJRT_TopologyDescription(owned.get()) {
    this->owned = std::move(owned);
  }
  explicit PJRT_TopologyDescription(const xla::PjRtTopologyDescription* topology);

  std::unique_ptr<xla::PjRtTopologyDescription> owned;
  const xla::PjRtTopologyDescription* topology;
  std::vector<std::unique_ptr<const xla::PjRtDeviceDescription>> device_descriptions;
  std::deque<PJRT_DeviceDescription> descriptions;
  std::vector<PJRT_DeviceDescription*> description_pointers;
  xlazy::NamedValues attributes;
};

struct PJRT_Client {
  PJRT_Client(std::unique_ptr<xla::PjRtClient> client, std::shared_ptr<xlazy::MemoryCounts> memory_counts);

  PJRT_Device* Find(xla::PjRtDevice* device) const;
  PJRT_Memory* Find(xla::PjRtMemorySpace* space) const;

  // First, so that it outlives the client's buffers.
  std::shared_ptr<xlazy::MemoryCounts> memory_counts;
  std::unique_ptr<xla::PjRtClient> client;
  std::deque<PJRT_Device> owned_devices;
  std::deque<PJRT_Memory> owned_memories;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_Device*> addressable_devices;
  std::vector<PJRT_Memory*> addressable_memories;
  absl::flat_hash_map<xla::PjRtDevice*, PJRT_Device*> device_of;
  absl::flat_hash_map<xla::PjRtMemorySpace*, PJRT_Memory*> memory_of;
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology;
};

struct PJRT_Buffer {
  PJRT_Buffer(std::unique_ptr<xla::PjRtBuffer> b, PJRT_Client* c) : buffer(std::move(b)), client(c) {}

  // Answers that the API hands out by pointer. Made when first asked for: most buffers are never asked.
  struct Answers {
    std::optional<std::vector<int64_t>> unpadded_dims;
    std::optional<std::vector<size_t>> dynamic_dims;
    std::optional<std::vector<int64_t>> minor_to_major;
  };

  std::unique_ptr<xla::PjRtBuffer> buffer;
  PJRT_Client* client;
  absl::Mutex mutex;
  std::unique_ptr<Answers> answers ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<xla::PjRtBuffer::ExternalReference>> references ABSL_GUARDED_BY(mutex);
};

struct PJRT_Layouts_MemoryLayout {
  std::shared_ptr<const xla::PjRtLayout> layout;
};

struct PJRT_Executable {
  explicit PJRT_Executable(std::shared_ptr<xla::PjRtExecutable> e) : executable(std::move(e)) {}

  std::shared_ptr<xla::PjRtExecutable> executable;
  // Answers that the API hands out by pointer, computed once.
  absl::Mutex mutex;
  std::optional<std::string> fingerprint ABSL_GUARDED_BY(mutex);
  std::optional<xlazy::NamedValues> cost ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<PJRT_Buffer_Type>> output_types ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<size_t>> output_ranks ABSL_GUARDED_BY(mutex);
  std::vector<int64_t> output_dims ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<const char*>> output_memory_kinds ABSL_GUARDED_BY(mutex);
  std::vector<size_t> output_memory_kind_sizes ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<PJRT_Layouts_MemoryLayout*>> output_layouts ABSL_GUARDED_BY(mutex);
  std::deque<PJRT_Layouts_MemoryLayout> owned_output_layouts ABSL_GUARDED_BY(mutex);
};

struct PJRT_LoadedExecutable {
  PJRT_LoadedExecutable(std::shared_ptr<xla::PjRtLoadedExecutable> executable, PJRT_Client* client);

  std::shared_ptr<xla::PjRtLoadedExecutable> executable;
  PJRT_Client* client;
  std::vector<PJRT_Device*> addressable_devices;
  absl::Mutex mutex;
  std::optional<std::string> fingerprint ABSL_GUARDED_BY(mutex);
};

struct PJRT_ExecuteContext {
  xla::ExecuteContext context;
};

struct PJRT_AsyncTrackingEvent {
  std::unique_ptr<xla::ScopedAsyncTrackingEvent> event;
};

struct PJRT_AsyncHostToDeviceTransferManager {
  std::unique_ptr<xla::PjRtClient::AsyncHostToDeviceTransferManager> manager;
  PJRT_Client* client;
};

struct PJRT_FulfillAliasBufferCallback {
  xla::PjRtFulfillAliasBufferCallback callback;
};

namespace xlazy {

// PRIMITIVE_TYPE_INVALID, or PJRT_Buffer_Type_INVALID, for what the other side has no name for.
xla::PrimitiveType FromBufferType(PJRT_Buffer_Type type);
PJRT_Buffer_Type ToBufferType(xla::PrimitiveType type);

// `layout` may be null: XLA's default, most minor last.
absl::StatusOr<xla::Shape> MakeShape(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims,
                                     const PJRT_Buffer_MemoryLayout* layout);
absl::StatusOr<xla::Layout> FromMemoryLayout(const PJRT_Buffer_MemoryLayout& layout, xla::PrimitiveType type,
                                             absl::Span<const int64_t> dims);

// `memory` when given, otherwise the default memory of `device`.
absl::StatusOr<xla::PjRtMemorySpace*> PickMemory(PJRT_Device* device, PJRT_Memory* memory);

// The value of the option, or an error that names it when it has another type.
absl::StatusOr<int64_t> IntOption(const PJRT_NamedValue& option);
absl::StatusOr<bool> BoolOption(const PJRT_NamedValue& option);
absl::StatusOr<std::string> TextOption(const PJRT_NamedValue& option);

inline absl::string_view NameOf(const PJRT_NamedValue& value) { return absl::string_view(value.name, value.name_size); }

// `processes` times `devices` CPU devices of this machine's kind.
std::unique_ptr<xla::CpuTopologyDescription> MakeTopology(int processes, int devices);

absl::StatusOr<xla::CompileOptions> ParseCompileOptions(const char* bytes, size_t size);

// Hands a string to the caller together with the function that frees it, as the four-field answers of the API want it.
// `Holder` is one of the API's opaque types.
#define XLAZY_ANSWER_BYTES(args, holder_field, deleter_field, Holder, text)                    \
  do {                                                                                         \
    auto* held = new Holder{text};                                                             \
    (args)->serialized_bytes = held->serialized.data();                                        \
    (args)->serialized_bytes_size = held->serialized.size();                                   \
    (args)->holder_field = held;                                                               \
    (args)->deleter_field = +[](Holder* done) { delete done; };                                \
  } while (false)

#define XLAZY_ANSWER_TEXT(args, field, text)  \
  do {                                        \
    absl::string_view view_ = (text);         \
    (args)->field = view_.data();             \
    (args)->field##_size = view_.size();      \
  } while (false)

}  // namespace xlazy

struct PJRT_SerializedExecutable {
  std::string serialized;
};
struct PJRT_SerializedCompileOptions {
  std::string serialized;
};
struct PJRT_DeviceAssignmentSerialized {
  std::string serialized;
};
struct PJRT_SerializedTopology {
  std::string serialized;
};
struct PJRT_Layouts_SerializedLayout {
  std::string serialized;
};
