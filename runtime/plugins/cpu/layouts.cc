// The layouts extension: on-device layouts as opaque objects, which JAX asks for before it compiles.

#include "handles.h"

namespace xlazy {
namespace {

// Default layouts, of a client or of a topology: both take a type and dimensions.
template <class Source, class Args>
absl::StatusOr<PJRT_Layouts_MemoryLayout*> DefaultLayout(Source& source, const Args& args) {
  xla::PrimitiveType type = FromBufferType(args.type);
  if (type == xla::PRIMITIVE_TYPE_INVALID) return absl::InvalidArgumentError("unknown element type");
  XLAZY_ASSIGN(xla::Layout layout, source.GetDefaultLayout(type, absl::MakeSpan(args.dims, args.num_dims)));
  return new PJRT_Layouts_MemoryLayout{std::make_shared<xla::PjRtLayout>(std::move(layout))};
}

}  // namespace

absl::Status Layouts_MemoryLayout_Destroy(PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  delete args->layout;
  return absl::OkStatus();
}

absl::Status Layouts_MemoryLayout_Serialize(PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  XLAZY_NEED(args->layout);
  XLAZY_ANSWER_BYTES(args, serialized_layout, serialized_layout_deleter, PJRT_Layouts_SerializedLayout,
                     args->layout->layout->Serialize());
  return absl::OkStatus();
}

absl::Status Layouts_PJRT_Client_GetDefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(args->layout, DefaultLayout(*args->client->client, *args));
  return absl::OkStatus();
}

absl::Status Layouts_PJRT_Topology_GetDefaultLayout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  XLAZY_NEED(args->topology_description);
  XLAZY_ASSIGN(args->layout, DefaultLayout(*args->topology_description->topology, *args));
  return absl::OkStatus();
}

absl::Status Layouts_PJRT_Buffer_MemoryLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  XLAZY_NEED(args->buffer);
  args->layout = new PJRT_Layouts_MemoryLayout{args->buffer->buffer->layout()};
  return absl::OkStatus();
}

absl::Status Layouts_PJRT_Executable_GetOutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  XLAZY_NEED(args->executable);
  PJRT_Executable& executable = *args->executable;
  absl::MutexLock lock(&executable.mutex);
  if (!executable.output_layouts) {
    XLAZY_ASSIGN(auto layouts, executable.executable->GetOutputLayouts());
    std::vector<PJRT_Layouts_MemoryLayout*> pointers;
    for (auto& layout : layouts) {
      pointers.push_back(&executable.owned_output_layouts.emplace_back(PJRT_Layouts_MemoryLayout{std::move(layout)}));
    }
    executable.output_layouts = std::move(pointers);
  }
  args->num_outputs = executable.output_layouts->size();
  args->layouts = executable.output_layouts->data();
  return absl::OkStatus();
}

}  // namespace xlazy
