// Conversions between the C API's types and XLA's: element types, layouts, shapes, named values, options.

#include <algorithm>
#include <numeric>
#include <variant>

#include "absl/strings/numbers.h"
#include "handles.h"
#include "xla/layout_util.h"
#include "xla/pjrt/proto/compile_options.pb.h"
#include "xla/primitive_util.h"
#include "xla/shape_util.h"

namespace xlazy {
namespace {

struct TypePair {
  PJRT_Buffer_Type c;
  xla::PrimitiveType xla;
};

constexpr TypePair kTypes[] = {
    {PJRT_Buffer_Type_PRED, xla::PRED},
    {PJRT_Buffer_Type_S2, xla::S2},
    {PJRT_Buffer_Type_S4, xla::S4},
    {PJRT_Buffer_Type_S8, xla::S8},
    {PJRT_Buffer_Type_S16, xla::S16},
    {PJRT_Buffer_Type_S32, xla::S32},
    {PJRT_Buffer_Type_S64, xla::S64},
    {PJRT_Buffer_Type_U2, xla::U2},
    {PJRT_Buffer_Type_U4, xla::U4},
    {PJRT_Buffer_Type_U8, xla::U8},
    {PJRT_Buffer_Type_U16, xla::U16},
    {PJRT_Buffer_Type_U32, xla::U32},
    {PJRT_Buffer_Type_U64, xla::U64},
    {PJRT_Buffer_Type_F16, xla::F16},
    {PJRT_Buffer_Type_F32, xla::F32},
    {PJRT_Buffer_Type_F64, xla::F64},
    {PJRT_Buffer_Type_BF16, xla::BF16},
    {PJRT_Buffer_Type_C64, xla::C64},
    {PJRT_Buffer_Type_C128, xla::C128},
    {PJRT_Buffer_Type_F4E2M1FN, xla::F4E2M1FN},
    {PJRT_Buffer_Type_F8E3M4, xla::F8E3M4},
    {PJRT_Buffer_Type_F8E4M3, xla::F8E4M3},
    {PJRT_Buffer_Type_F8E4M3FN, xla::F8E4M3FN},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, xla::F8E4M3B11FNUZ},
    {PJRT_Buffer_Type_F8E4M3FNUZ, xla::F8E4M3FNUZ},
    {PJRT_Buffer_Type_F8E5M2, xla::F8E5M2},
    {PJRT_Buffer_Type_F8E5M2FNUZ, xla::F8E5M2FNUZ},
    {PJRT_Buffer_Type_F8E8M0FNU, xla::F8E8M0FNU},
    {PJRT_Buffer_Type_TOKEN, xla::TOKEN},
};

}  // namespace

xla::PrimitiveType FromBufferType(PJRT_Buffer_Type type) {
  static constexpr auto table = [] {
    struct { xla::PrimitiveType of[PJRT_Buffer_Type_F4E2M1FN + 1]; } t{};
    for (auto& entry : t.of) entry = xla::PRIMITIVE_TYPE_INVALID;
    for (const TypePair& pair : kTypes) t.of[pair.c] = pair.xla;
    return t;
  }();
  auto index = static_cast<size_t>(type);
  return index <= PJRT_Buffer_Type_F4E2M1FN ? table.of[index] : xla::PRIMITIVE_TYPE_INVALID;
}

PJRT_Buffer_Type ToBufferType(xla::PrimitiveType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.xla == type) return pair.c;
  }
  return PJRT_Buffer_Type_INVALID;
}

absl::StatusOr<xla::Layout> FromMemoryLayout(const PJRT_Buffer_MemoryLayout& layout, xla::PrimitiveType type,
                                             absl::Span<const int64_t> dims) {
  if (layout.type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    if (layout.tiled.num_tiles != 0) return absl::UnimplementedError("tiled layouts do not exist on the CPU");
    if (layout.tiled.minor_to_major_size != dims.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the layout orders ", layout.tiled.minor_to_major_size,
                                                     " dimensions, the shape has ", dims.size()));
    }
    return xla::LayoutUtil::MakeLayout(absl::MakeSpan(layout.tiled.minor_to_major, layout.tiled.minor_to_major_size));
  }
  if (layout.type != PJRT_Buffer_MemoryLayout_Type_Strides) return absl::InvalidArgumentError("unknown kind of layout");
  if (layout.strides.num_byte_strides != dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", layout.strides.num_byte_strides, " strides for ", dims.size(), " dimensions"));
  }
  // XLA's layouts are dense permutations of the dimensions, so the strides must be those of one.
  const int64_t* strides = layout.strides.byte_strides;
  std::vector<int64_t> order(dims.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t dense = xla::primitive_util::ByteWidth(type);
  for (int64_t dim : order) {
    if (dims[dim] != 1 && strides[dim] != dense) {
      return absl::UnimplementedError(absl::StrCat("stride ", strides[dim], " of dimension ", dim, " leaves gaps"));
    }
    dense *= dims[dim];
  }
  return xla::LayoutUtil::MakeLayout(order);
}

absl::StatusOr<xla::Shape> MakeShape(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims,
                                     const PJRT_Buffer_MemoryLayout* layout) {
  xla::PrimitiveType element = FromBufferType(type);
  if (element == xla::PRIMITIVE_TYPE_INVALID) {
    return absl::InvalidArgumentError(absl::StrCat("unknown element type ", static_cast<int>(type)));
  }
  if (num_dims != 0 && dims == nullptr) return absl::InvalidArgumentError("dims is null");
  absl::Span<const int64_t> span(dims, num_dims);
  XLAZY_ASSIGN(xla::Shape shape, xla::ShapeUtil::MakeValidatedShape(element, span));
  if (layout != nullptr) {
    XLAZY_ASSIGN(*shape.mutable_layout(), FromMemoryLayout(*layout, element, span));
  }
  return shape;
}

absl::StatusOr<xla::PjRtMemorySpace*> PickMemory(PJRT_Device* device, PJRT_Memory* memory) {
  if (memory != nullptr) return memory->space;
  if (device != nullptr) return device->device->default_memory_space();
  return absl::InvalidArgumentError("neither a device nor a memory is given");
}

namespace {

absl::Status CheckType(const PJRT_NamedValue& option, PJRT_NamedValue_Type type, absl::string_view wanted) {
  if (option.type == type) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("option ", NameOf(option), " must be ", wanted));
}

}  // namespace

absl::StatusOr<int64_t> IntOption(const PJRT_NamedValue& option) {
  // Options that reach JAX by its environment arrive as text.
  int64_t parsed = 0;
  if (option.type == PJRT_NamedValue_kString &&
      absl::SimpleAtoi(absl::string_view(option.string_value, option.value_size), &parsed)) {
    return parsed;
  }
  XLAZY_TRY(CheckType(option, PJRT_NamedValue_kInt64, "an integer"));
  return option.int64_value;
}

absl::StatusOr<bool> BoolOption(const PJRT_NamedValue& option) {
  bool parsed = false;
  if (option.type == PJRT_NamedValue_kString &&
      absl::SimpleAtob(absl::string_view(option.string_value, option.value_size), &parsed)) {
    return parsed;
  }
  XLAZY_TRY(CheckType(option, PJRT_NamedValue_kBool, "a boolean"));
  return option.bool_value;
}

absl::StatusOr<std::string> TextOption(const PJRT_NamedValue& option) {
  XLAZY_TRY(CheckType(option, PJRT_NamedValue_kString, "a string"));
  return std::string(option.string_value, option.value_size);
}

NamedValues::NamedValues(const absl::flat_hash_map<std::string, xla::PjRtValueType>& values)
    : owned_(values.begin(), values.end()) {
  values_.reserve(owned_.size());
  for (const auto& [name, value] : owned_) {
    PJRT_NamedValue c{};
    c.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    c.name = name.data();
    c.name_size = name.size();
    c.value_size = 1;
    if (auto* text = std::get_if<std::string>(&value)) {
      c.type = PJRT_NamedValue_kString;
      c.string_value = text->data();
      c.value_size = text->size();
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      c.type = PJRT_NamedValue_kInt64List;
      c.int64_array_value = list->data();
      c.value_size = list->size();
    } else if (auto* flag = std::get_if<bool>(&value)) {
      c.type = PJRT_NamedValue_kBool;
      c.bool_value = *flag;
    } else if (auto* integer = std::get_if<int64_t>(&value)) {
      c.type = PJRT_NamedValue_kInt64;
      c.int64_value = *integer;
    } else {
      c.type = PJRT_NamedValue_kFloat;
      c.float_value = std::get<float>(value);
    }
    values_.push_back(c);
  }
}

absl::StatusOr<xla::CompileOptions> ParseCompileOptions(const char* bytes, size_t size) {
  xla::CompileOptionsProto proto;
  if (size > INT32_MAX || !proto.ParseFromArray(bytes, static_cast<int>(size))) {
    return absl::InvalidArgumentError("the compile options are not a CompileOptionsProto");
  }
  return xla::CompileOptions::FromProto(proto);
}

}  // namespace xlazy
