// A PJRT plugin that computes nothing and lies on request, to see what the crate makes of bad answers.
//
// The client option "lie" names one lie (`fake.rs` lists them); a plugin compiled with TABLE_SIZE, MINOR, MAJOR, NO_TABLE or NO_AWAIT lies
// about its table. `fake_live` counts what was made and not destroyed, errors included.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "xla/pjrt/c/pjrt_c_api.h"

#ifndef MAJOR
#define MAJOR PJRT_API_MAJOR
#endif
#ifndef MINOR
#define MINOR PJRT_API_MINOR
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE PJRT_Api_STRUCT_SIZE
#endif

static atomic_long live;
long fake_live(void) { return live; }

static void* make(size_t size) {
  live++;
  return calloc(1, size);
}
static void destroy(void* object) {
  live--;
  free(object);
}

struct PJRT_Error {
  int code;
  const char* message;
  size_t size;
  bool mute;
};
struct PJRT_Client {
  char lie[64];
};
struct PJRT_Event {
  char lie[64];
};
struct PJRT_Buffer {
  PJRT_Client* client;
};
struct PJRT_LoadedExecutable {
  PJRT_Client* client;
};
struct PJRT_Executable {
  PJRT_Client* client;
};
struct PJRT_TopologyDescription {
  int unused;
};
struct PJRT_Device {
  int unused;
};
struct PJRT_DeviceDescription {
  int unused;
};
static PJRT_Device device, stranger;
static PJRT_DeviceDescription description;
static PJRT_Device* const devices[] = {&device};
static PJRT_Device* const strangers[] = {&stranger};
static PJRT_Device* const nulls[] = {NULL};

static PJRT_Error* error(int code, const char* message, size_t size) {
  PJRT_Error* e = make(sizeof *e);
  e->code = code, e->message = message, e->size = size;
  return e;
}
static PJRT_Error* say(const char* message) { return error(3, message, strlen(message)); }

#define IS(object, name) (strcmp((object)->lie, name) == 0)
#define LIE(name) IS(a->client, name)
#define CALL(name) static PJRT_Error* name(PJRT_##name##_Args* a)

static void Error_Destroy(PJRT_Error_Destroy_Args* a) { destroy(a->error); }
static void Error_Message(PJRT_Error_Message_Args* a) { a->message = a->error->message, a->message_size = a->error->size; }
CALL(Error_GetCode) {
  a->code = a->error->code;
  return a->error->mute ? say("no code") : NULL;
}
CALL(Plugin_Initialize) { return NULL; }

static PJRT_NamedValue named[2];
CALL(Plugin_Attributes) {
  named[0] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE, .name = "a", .name_size = 1, .type = PJRT_NamedValue_kInt64, .int64_value = 7, .value_size = 1};
  a->attributes = named, a->num_attributes = 1;
  return NULL;
}

CALL(Event_Destroy) {
  destroy(a->event);
  return NULL;
}
CALL(Event_IsReady) {
  // Not a bool by C's rules, which a plugin in another language may not know.
  memset(&a->is_ready, IS(a->event, "odd_bool") ? 0xff : IS(a->event, "refuse_callback") ? 0 : 1, 1);
  return NULL;
}
CALL(Event_Await) { return IS(a->event, "event_error") ? error(13, "the \xff end", 9) : NULL; }
CALL(Event_OnReady) {
  if (IS(a->event, "refuse_callback")) return say("no callbacks here");
  a->callback(IS(a->event, "event_error") ? error(13, "the \xff end", 9) : NULL, a->user_arg);
  return NULL;
}
static PJRT_Event* event(PJRT_Client* client, const char* null) {
  if (IS(client, null)) return NULL;
  PJRT_Event* e = make(sizeof *e);
  memcpy(e->lie, client->lie, sizeof e->lie);
  return e;
}

CALL(Client_Create) {
  const char* lie = "";
  for (size_t i = 0; i < a->num_options; i++)
    if (a->create_options[i].type == PJRT_NamedValue_kString) lie = a->create_options[i].string_value;
  size_t size = a->num_options ? a->create_options[0].value_size : 0;
  PJRT_Client named = {.lie = ""};
  memcpy(named.lie, lie, size);
  PJRT_Client* client = &named;
  if (IS(client, "null_client")) return NULL;
  if (IS(client, "error_null_message")) return error(5, NULL, 1000);
  if (IS(client, "error_huge_message")) return error(5, "x", SIZE_MAX);
  if (IS(client, "error_not_utf8")) return error(5, "caf\xe9", 4);
  if (IS(client, "error_odd_code")) return error(-7, "odd", 3);
  if (IS(client, "error_without_code")) {
    PJRT_Error* e = say("mute");
    e->mute = true;
    return e;
  }
  a->client = make(sizeof *client);
  *a->client = named;
  return NULL;
}
CALL(Client_Destroy) {
  destroy(a->client);
  return NULL;
}
CALL(Client_PlatformName) {
  a->platform_name = LIE("null_name") ? NULL : LIE("name_not_utf8") ? "f\xff" "ke" : "fake";
  a->platform_name_size = LIE("huge_name") ? SIZE_MAX : LIE("terabyte_name") ? (size_t)1 << 40 : 4;
  return NULL;
}
CALL(Client_PlatformVersion) {
  a->platform_version = NULL, a->platform_version_size = 0;
  return NULL;
}
CALL(Client_ProcessIndex) { return NULL; }
CALL(Client_Devices) {
  a->devices = LIE("null_device") ? nulls : LIE("null_devices") ? NULL : LIE("odd_devices") ? (PJRT_Device* const*)3 : devices;
  a->num_devices = LIE("many_devices") ? (size_t)1 << 60 : 1;
  return NULL;
}
CALL(Client_AddressableDevices) {
  a->addressable_devices = LIE("strange_device") ? strangers : devices, a->num_addressable_devices = 1;
  return NULL;
}
CALL(Device_GetDescription) {
  a->device_description = &description;
  return NULL;
}
CALL(Device_IsAddressable) {
  a->is_addressable = true;
  return NULL;
}
CALL(Device_LocalHardwareId) { return say("only the owner knows"); }
CALL(DeviceDescription_Id) { return NULL; }
CALL(DeviceDescription_ProcessIndex) { return NULL; }
CALL(DeviceDescription_Kind) {
  a->device_kind = "none", a->device_kind_size = 4;
  return NULL;
}
CALL(DeviceDescription_ToString) {
  a->to_string = "none", a->to_string_size = 4;
  return NULL;
}
static int attributes_asked;
CALL(DeviceDescription_Attributes) {
  named[1] = named[0];
  named[1].struct_size = PJRT_NamedValue_STRUCT_SIZE, named[1].name = "b", named[1].name_size = 1;
  a->attributes = &named[1], a->num_attributes = 1;
  switch (attributes_asked++) {
    case 0: named[1].type = 99; break;
    case 1: named[1].struct_size = 4096; break;
    case 2: named[1].type = PJRT_NamedValue_kString, named[1].string_value = "\xff", named[1].value_size = 1; break;
    case 3: named[1].type = PJRT_NamedValue_kInt64List, named[1].int64_array_value = NULL, named[1].value_size = 9; break;
    case 4: named[1].name = NULL; break;
    case 5: a->attributes = NULL; break;
    default: a->num_attributes = SIZE_MAX;
  }
  return NULL;
}

CALL(Client_Compile) {
  if (LIE("null_executable")) return NULL;
  a->executable = make(sizeof *a->executable);
  a->executable->client = a->client;
  return NULL;
}
CALL(LoadedExecutable_Destroy) {
  destroy(a->executable);
  return NULL;
}
CALL(LoadedExecutable_GetExecutable) {
  if (IS(a->loaded_executable->client, "null_inside")) return NULL;
  a->executable = make(sizeof *a->executable);
  a->executable->client = a->loaded_executable->client;
  return NULL;
}
CALL(LoadedExecutable_AddressableDevices) {
  a->addressable_devices = devices;
  a->num_addressable_devices = IS(a->executable->client, "many_executable_devices") ? SIZE_MAX : 1;
  return NULL;
}
CALL(Executable_Destroy) {
  destroy(a->executable);
  return NULL;
}
#define EXE_LIE(name) IS(a->executable->client, name)
CALL(Executable_Name) {
  a->executable_name = EXE_LIE("executable") ? "\xc3" : "x", a->executable_name_size = 1;
  return NULL;
}
CALL(Executable_NumOutputs) {
  a->num_outputs = EXE_LIE("many_outputs") ? SIZE_MAX : 2;
  return NULL;
}
CALL(Executable_SizeOfGeneratedCodeInBytes) {
  a->size_in_bytes = -1;
  return NULL;
}
CALL(Executable_OutputElementTypes) {
  static PJRT_Buffer_Type types[] = {PJRT_Buffer_Type_F32, PJRT_Buffer_Type_U8}, odd[] = {PJRT_Buffer_Type_F32, 4711};
  a->output_types = EXE_LIE("executable") ? odd : types, a->num_output_types = 2;
  return EXE_LIE("no_shapes") || EXE_LIE("buffer_rank") || EXE_LIE("buffer_type") || EXE_LIE("buffer_dims") ? say("no types") : NULL;
}
CALL(Executable_OutputDimensions) {
  static const int64_t dims[] = {2, 3, 5}, negative[] = {2, -3, 5};
  static const size_t ranks[] = {2, 1}, huge[] = {SIZE_MAX, 5};
  a->dims = EXE_LIE("executable") ? negative : dims, a->dim_sizes = EXE_LIE("huge_rank") ? huge : ranks, a->num_outputs = 2;
  return NULL;
}
CALL(Executable_GetCostAnalysis) {
  a->properties = (PJRT_NamedValue*)1, a->num_properties = 1;
  return NULL;
}
CALL(Executable_OptimizedProgram) {
  a->program->format = EXE_LIE("executable") ? NULL : "hlo", a->program->format_size = 3;
  if (EXE_LIE("huge_program")) {
    a->program->code_size = SIZE_MAX;
    return NULL;
  }
  // Writes less than it said.
  if (a->program->code) strcpy(a->program->code, "code");
  a->program->code_size = a->program->code ? 4 : 10;
  return NULL;
}
CALL(Executable_Serialize) {
  a->serialized_bytes = EXE_LIE("executable") ? NULL : "bytes", a->serialized_bytes_size = 5;
  return NULL;
}
static PJRT_Buffer* buffer(PJRT_Client* client) {
  PJRT_Buffer* b = make(sizeof *b);
  b->client = client;
  return b;
}
CALL(LoadedExecutable_Execute) {
  for (size_t i = 0; i < a->num_devices; i++) {
    if (!IS(a->executable->client, "null_output")) a->output_lists[i][0] = buffer(a->executable->client);
    a->output_lists[i][1] = buffer(a->executable->client);
  }
  return NULL;
}

CALL(Client_BufferFromHostBuffer) {
  a->done_with_host_buffer = event(a->client, "null_done");
  a->buffer = LIE("null_buffer") ? NULL : buffer(a->client);
  return NULL;
}
#undef LIE
#define LIE(name) IS(a->buffer->client, name)
CALL(Buffer_Destroy) {
  PJRT_Error* e = LIE("buffer_destroy") ? say("not today") : NULL;
  destroy(a->buffer);
  return e;
}
CALL(Buffer_ElementType) {
  a->type = LIE("buffer_type") ? 4711 : PJRT_Buffer_Type_U8;
  return NULL;
}
CALL(Buffer_Dimensions) {
  static const int64_t dims[] = {-1}, good[] = {3};
  a->dims = LIE("buffer_dims") ? dims : good, a->num_dims = LIE("buffer_rank") ? SIZE_MAX : 1;
  return NULL;
}
CALL(Buffer_GetMemoryLayout) {
  static const int64_t orders[] = {7, -7, 0, 0, 0};
  a->layout.type = LIE("odd_layout") ? 77 : PJRT_Buffer_MemoryLayout_Type_Tiled;
  a->layout.tiled.minor_to_major = LIE("null_layout") ? NULL : orders;
  a->layout.tiled.minor_to_major_size = LIE("long_layout") ? SIZE_MAX : 2;
  return NULL;
}
CALL(Buffer_ToHostBuffer) {
  memset(a->dst, 1, a->dst_size);
  a->event = event(a->src->client, "null_copy_event");
  return NULL;
}
CALL(Buffer_ReadyEvent) {
  a->event = event(a->buffer->client, "null_ready_event");
  return NULL;
}
CALL(Buffer_Device) {
  a->device = LIE("strange_buffer_device") ? &stranger : NULL;
  return NULL;
}
CALL(Buffer_IsDeleted) {
  memset(&a->is_deleted, LIE("odd_bool") ? 0xff : 0, 1);
  return NULL;
}
CALL(Buffer_CopyToDevice) { return NULL; }
CALL(TopologyDescription_Create) { return NULL; }
CALL(TopologyDescription_Destroy) { return NULL; }
static PJRT_Error* missing(void* a) { return error(12, "missing", 7); }

const PJRT_Api* GetPjrtApi(void) {
#ifdef NO_TABLE
  return NULL;
#endif
  static PJRT_Api api = {.struct_size = TABLE_SIZE, .pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, NULL, MAJOR, MINOR}};
#define SET(name) api.PJRT_##name = name
  SET(Error_Destroy), SET(Error_Message), SET(Error_GetCode), SET(Plugin_Initialize), SET(Plugin_Attributes);
  SET(Event_Destroy), SET(Event_IsReady), SET(Event_OnReady);
#ifndef NO_AWAIT
  SET(Event_Await);
#endif
  SET(Client_Create), SET(Client_Destroy), SET(Client_PlatformName), SET(Client_PlatformVersion), SET(Client_ProcessIndex);
  SET(Client_Devices), SET(Client_AddressableDevices), SET(Client_Compile), SET(Client_BufferFromHostBuffer);
  SET(Device_GetDescription), SET(Device_IsAddressable), SET(Device_LocalHardwareId), SET(DeviceDescription_Id);
  SET(DeviceDescription_ProcessIndex), SET(DeviceDescription_Kind), SET(DeviceDescription_ToString), SET(DeviceDescription_Attributes);
  SET(Executable_Destroy), SET(Executable_Name), SET(Executable_NumOutputs), SET(Executable_SizeOfGeneratedCodeInBytes);
  SET(Executable_GetCostAnalysis), SET(Executable_OptimizedProgram), SET(Executable_Serialize), SET(Executable_OutputElementTypes);
  SET(Executable_OutputDimensions), SET(LoadedExecutable_Destroy), SET(LoadedExecutable_GetExecutable);
  SET(LoadedExecutable_AddressableDevices), SET(LoadedExecutable_Execute);
  SET(Buffer_Destroy), SET(Buffer_ElementType), SET(Buffer_Dimensions), SET(Buffer_GetMemoryLayout), SET(Buffer_ToHostBuffer);
  SET(Buffer_ReadyEvent), SET(Buffer_Device), SET(Buffer_IsDeleted), SET(Buffer_CopyToDevice);
  SET(TopologyDescription_Create), SET(TopologyDescription_Destroy);
  api.PJRT_Device_MemoryStats = (PJRT_Device_MemoryStats*)missing;
  return &api;
}
