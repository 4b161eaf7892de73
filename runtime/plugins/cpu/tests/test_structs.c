// Callers built with other headers pass shorter or longer structs. A short struct is laid against the end of a page, with a
// page after it that nothing may touch: a read or write past its end ends the test with a signal.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

static char* page_end;

// A copy of the first `size` bytes of `args`, with nothing after it.
static void* shortened(const void* args, size_t size) {
  if (page_end == NULL) {
    size_t page = sysconf(_SC_PAGESIZE);
    char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    page_end = pages + page;
  }
  // Structs are multiples of 8 bytes long, whatever their last field is.
  char* copy = page_end - (size + 7) / 8 * 8;
  memcpy(copy, args, size);
  *(size_t*)copy = size;
  return copy;
}

#define UP_TO(name, last) PJRT_STRUCT_SIZE(PJRT_##name##_Args, last)

static void test_table(void) {
  CHECK(api->struct_size == PJRT_Api_STRUCT_SIZE, "table of %zu bytes", api->struct_size);
  CHECK(api->pjrt_api_version.major_version == PJRT_API_MAJOR && api->pjrt_api_version.minor_version == PJRT_API_MINOR,
        "version %d.%d", api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version);
  void* const* entries = (void* const*)&api->PJRT_Error_Destroy;
  size_t count = (PJRT_Api_STRUCT_SIZE - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void*);
  // Any entry can be called like this one: they all take one pointer and return one, but for the first two.
  for (size_t i = 0; i < count; i++) {
    CHECK(entries[i] != NULL, "entry %zu is null", i);
    if (i < 2 || entries[i] == NULL) continue;
    PJRT_Error* (*entry)(void*) = (PJRT_Error * (*)(void*)) entries[i];
    PJRT_Error* error = entry(NULL);
    CHECK(error != NULL, "entry %zu takes a null args", i);
    destroy_error(error);
    size_t empty[2] = {0, 0};
    error = entry(shortened(empty, sizeof(size_t)));
    CHECK(error != NULL, "entry %zu takes a struct of 8 bytes", i);
    destroy_error(error);
    // Everything null or zero, in a struct longer than any: an error, or a new object, but no crash.
    size_t zeros[128] = {sizeof zeros};
    error = entry(zeros);
    if (error != NULL) destroy_error(error);
  }
  api->PJRT_Error_Destroy(NULL);
  api->PJRT_Error_Message(NULL);
  ARGS(CopyToDeviceStream_TotalBytes, stream);
  FAILS(CopyToDeviceStream_TotalBytes, &stream, UNIMPLEMENTED, "PJRT_CopyToDeviceStream_TotalBytes");
  ARGS(Buffer_Delete, deletion);
  FAILS(Buffer_Delete, &deletion, INVALID_ARGUMENT, "PJRT_Buffer_Delete: args->buffer is null");
}

static void test_creation(void) {
  PJRT_NamedValue option = int_option("cpu_device_count", 2);
  ARGS(Client_Create, args);
  args.create_options = &option;
  args.num_options = 1;
  // A caller of API 0.54 knows nothing of kv_try_get_callback.
  PJRT_Client_Create_Args* old = shortened(&args, UP_TO(Client_Create, client));
  CALL(Client_Create, old);
  destroy_client(old->client);
  FAILS(Client_Create, shortened(&args, UP_TO(Client_Create, num_options)), INVALID_ARGUMENT, "struct_size is");
  option.name = "cpu_device_kount";
  FAILS(Client_Create, &args, INVALID_ARGUMENT, "unknown create option cpu_device_kount");
  option = int_option("cpu_device_count", 0);
  FAILS(Client_Create, &args, INVALID_ARGUMENT, "cpu_device_count is 0");
  option = int_option("num_nodes", 2);
  FAILS(Client_Create, &args, INVALID_ARGUMENT, "key-value callbacks");

  ARGS(Plugin_Attributes, attributes);
  CALL(Plugin_Attributes, &attributes);
  int found = 0;
  for (size_t i = 0; i < attributes.num_attributes; i++) {
    const PJRT_NamedValue* value = &attributes.attributes[i];
    if (!strncmp(value->name, "stablehlo_current_version", value->name_size)) found += value->int64_array_value[0] == 1;
    if (!strncmp(value->name, "xlazy_plugin_version", value->name_size)) found += value->value_size > 0;
  }
  CHECK(found == 2, "attributes lack the StableHLO or the plugin version");
}

static void test_statistics(PJRT_Client* client) {
  // Every length that a header of the past or present may have given this struct.
  static const size_t ends[] = {UP_TO(Device_MemoryStats, bytes_in_use), UP_TO(Device_MemoryStats, peak_bytes_in_use),
                                UP_TO(Device_MemoryStats, peak_bytes_in_use_is_set), UP_TO(Device_MemoryStats, num_allocs),
                                UP_TO(Device_MemoryStats, largest_free_block_bytes_is_set),
                                UP_TO(Device_MemoryStats, pool_bytes), UP_TO(Device_MemoryStats, peak_pool_bytes_is_set)};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    ARGS(Device_MemoryStats, args);
    args.device = device_at(client, 0);
    PJRT_Device_MemoryStats_Args* old = shortened(&args, ends[i]);
    CALL(Device_MemoryStats, old);
    CHECK(old->bytes_in_use >= 0, "%ld bytes in use", (long)old->bytes_in_use);
  }
}

static void test_execution(PJRT_Client* client) {
  PJRT_LoadedExecutable* executable = compile(client, kMatmul);
  float a[32] = {1}, b[16] = {0.5f};
  int64_t dims_a[2] = {4, 8}, dims_b[2] = {8, 2};
  PJRT_Buffer* inputs[2] = {put(client, 0, a, 2, dims_a), put(client, 0, b, 2, dims_b)};
  PJRT_Buffer* output[1];
  PJRT_Buffer **input_list[1] = {inputs}, **output_list[1] = {output};
  PJRT_ExecuteOptions options;
  memset(&options, 0, sizeof options);
  // From before donation could be refused, from before contexts, and from before call locations.
  size_t ends[] = {PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, launch_id),
                   PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, num_non_donatable_input_indices),
                   PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, context), PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, call_location),
                   PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, incarnation_ids)};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    execute(executable, 1, 2, input_list, output_list, shortened(&options, ends[i]));
    float result[8];
    get(output[0], result, 8);
    CHECK(fabsf(result[0] - tanhf(0.5f)) < 1e-6f, "%g", result[0]);
    destroy_buffer(output[0]);
  }

  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  ARGS(LoadedExecutable_Execute, args);
  args.executable = executable;
  args.options = &options;
  args.argument_lists = (PJRT_Buffer* const* const*)input_list;
  args.num_devices = 1;
  args.num_args = 2;
  args.output_lists = (PJRT_Buffer** const*)output_list;
  CALL(LoadedExecutable_Execute, shortened(&args, UP_TO(LoadedExecutable_Execute, device_complete_events)));
  destroy_buffer(output[0]);
  inputs[1] = NULL;
  FAILS(LoadedExecutable_Execute, &args, INVALID_ARGUMENT, "argument 1 is null");

  ARGS(LoadedExecutable_GetExecutable, info);
  info.loaded_executable = executable;
  CALL(LoadedExecutable_GetExecutable, &info);
  size_t stat_ends[] = {UP_TO(Executable_GetCompiledMemoryStats, temp_size_in_bytes),
                        UP_TO(Executable_GetCompiledMemoryStats, host_temp_size_in_bytes),
                        UP_TO(Executable_GetCompiledMemoryStats, peak_memory_in_bytes),
                        UP_TO(Executable_GetCompiledMemoryStats, total_size_in_bytes)};
  for (size_t i = 0; i < sizeof stat_ends / sizeof *stat_ends; i++) {
    ARGS(Executable_GetCompiledMemoryStats, stats);
    stats.executable = info.executable;
    PJRT_Executable_GetCompiledMemoryStats_Args* old = shortened(&stats, stat_ends[i]);
    CALL(Executable_GetCompiledMemoryStats, old);
    CHECK(old->argument_size_in_bytes == 192 && old->output_size_in_bytes == 32, "arguments %ld, outputs %ld",
          (long)old->argument_size_in_bytes, (long)old->output_size_in_bytes);
  }

  ARGS(Executable_Serialize, serialized);
  serialized.executable = info.executable;
  CALL(Executable_Serialize, &serialized);
  ARGS(Executable_DeserializeAndLoad, load);
  load.client = client;
  load.serialized_executable = serialized.serialized_bytes;
  load.serialized_executable_size = serialized.serialized_bytes_size;
  PJRT_Executable_DeserializeAndLoad_Args* old = shortened(&load, UP_TO(Executable_DeserializeAndLoad, loaded_executable));
  CALL(Executable_DeserializeAndLoad, old);
  destroy_executable(old->loaded_executable);
  serialized.serialized_executable_deleter(serialized.serialized_executable);

  ARGS(Executable_Destroy, destroy);
  destroy.executable = info.executable;
  CALL(Executable_Destroy, &destroy);
  destroy_buffer(inputs[0]);
  destroy_executable(executable);
}

static void test_longer(PJRT_Client* client) {
  // A caller of a newer header: what lies after the fields known here stays as it was.
  struct {
    PJRT_Client_PlatformName_Args known;
    char newer[64];
  } args;
  memset(&args, 0x5a, sizeof args);
  args.known.struct_size = sizeof args;
  args.known.extension_start = NULL;
  args.known.client = client;
  CALL(Client_PlatformName, &args.known);
  CHECK(args.known.platform_name_size == 3 && !memcmp(args.known.platform_name, "cpu", 3), "wrong platform name");
  for (size_t i = 0; i < sizeof args.newer; i++) CHECK(args.newer[i] == 0x5a, "byte %zu after the struct changed", i);
}

static void test_view(PJRT_Client* client) {
  static float data[16] __attribute__((aligned(64)));
  data[5] = 42;
  int64_t dims[1] = {16};
  ARGS(Client_CreateViewOfDeviceBuffer, args);
  args.client = client;
  args.device_buffer_ptr = data;
  args.dims = dims;
  args.num_dims = 1;
  args.element_type = PJRT_Buffer_Type_F32;
  args.device = device_at(client, 0);
  PJRT_Client_CreateViewOfDeviceBuffer_Args* old = shortened(&args, UP_TO(Client_CreateViewOfDeviceBuffer, buffer));
  CALL(Client_CreateViewOfDeviceBuffer, old);
  float got[16];
  PJRT_Buffer* view = old->buffer;
  get(view, got, 16);
  CHECK(got[5] == 42 && address_of(view) == data, "the view shows %g", got[5]);
  destroy_buffer(view);
}

void test_structs(void) {
  test_table();
  test_creation();
  PJRT_Client* client = make_client(1);
  test_statistics(client);
  test_execution(client);
  test_longer(client);
  test_view(client);
  destroy_client(client);
}
