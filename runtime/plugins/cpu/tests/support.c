// The helpers of support.h, and the order in which the tests run.
#define _GNU_SOURCE
#include "support.h"

#include <dlfcn.h>
#include <time.h>

const PJRT_Api* api;
int failures;

void destroy_error(PJRT_Error* error) {
  ARGS(Error_Destroy, args);
  args.error = error;
  api->PJRT_Error_Destroy(&args);
}

void must_succeed(const char* what, PJRT_Error* error) {
  if (error == NULL) return;
  ARGS(Error_Message, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  printf("  FAILED %s: %.*s\n", what, (int)message.message_size, message.message);
  exit(1);
}

void must_fail(const char* what, PJRT_Error* error, PJRT_Error_Code code, const char* text) {
  CHECK(error != NULL, "%s should have failed", what);
  if (error == NULL) return;
  ARGS(Error_GetCode, got);
  got.error = error;
  CALL(Error_GetCode, &got);
  ARGS(Error_Message, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  CHECK(got.code == code, "%s: code %d instead of %d: %.*s", what, got.code, code, (int)message.message_size, message.message);
  CHECK(memmem(message.message, message.message_size, text, strlen(text)) != NULL, "%s: no '%s' in: %.*s", what, text,
        (int)message.message_size, message.message);
  destroy_error(error);
}

double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

PJRT_NamedValue int_option(const char* name, int64_t value) {
  PJRT_NamedValue option;
  memset(&option, 0, sizeof option);
  option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  option.name = name;
  option.name_size = strlen(name);
  option.type = PJRT_NamedValue_kInt64;
  option.int64_value = value;
  option.value_size = 1;
  return option;
}

PJRT_Client* make_client(int devices) {
  PJRT_NamedValue option = int_option("cpu_device_count", devices);
  ARGS(Client_Create, args);
  args.create_options = &option;
  args.num_options = 1;
  CALL(Client_Create, &args);
  return args.client;
}

void destroy_client(PJRT_Client* client) {
  ARGS(Client_Destroy, args);
  args.client = client;
  CALL(Client_Destroy, &args);
}

PJRT_Device* device_at(PJRT_Client* client, size_t index) {
  ARGS(Client_AddressableDevices, args);
  args.client = client;
  CALL(Client_AddressableDevices, &args);
  return args.addressable_devices[index];
}

PJRT_Error* wait_for(PJRT_Event* event) {
  ARGS(Event_Await, wait);
  wait.event = event;
  PJRT_Error* error = api->PJRT_Event_Await(&wait);
  ARGS(Event_Destroy, destroy);
  destroy.event = event;
  CALL(Event_Destroy, &destroy);
  return error;
}

int is_ready(PJRT_Event* event) {
  ARGS(Event_IsReady, args);
  args.event = event;
  CALL(Event_IsReady, &args);
  return args.is_ready;
}

static size_t varint(unsigned char* out, unsigned long value) {
  size_t n = 0;
  for (; value >= 128; value >>= 7) out[n++] = value | 128;
  out[n++] = value;
  return n;
}

static size_t field(unsigned char* out, int number, unsigned long value) {
  size_t n = varint(out, (unsigned long)number << 3);
  return n + varint(out + n, value);
}

static size_t bytes(unsigned char* out, int number, const unsigned char* data, size_t size) {
  size_t n = varint(out, ((unsigned long)number << 3) | 2);
  n += varint(out + n, size);
  memcpy(out + n, data, size);
  return n + size;
}

size_t compile_options(unsigned char* out, int replicas, int partitions, int shardy, const int* ids) {
  unsigned char build[512], assignment[256], column[128], packed[64];
  size_t n = field(build, 1, (unsigned long)-1L);
  n += field(build + n, 4, replicas);
  n += field(build + n, 5, partitions);
  if (partitions > 1) n += field(build + n, 6, 1);
  if (ids != NULL) {
    // DeviceAssignmentProto: for each partition the devices of its replicas.
    size_t size = field(assignment, 1, replicas);
    size += field(assignment + size, 2, partitions);
    for (int p = 0; p < partitions; p++) {
      size_t length = 0;
      for (int r = 0; r < replicas; r++) length += varint(packed + length, ids[r * partitions + p]);
      length = bytes(column, 1, packed, length);
      size += bytes(assignment + size, 3, column, length);
    }
    n += bytes(build + n, 9, assignment, size);
  }
  if (shardy) n += field(build + n, 19, 1);
  return bytes(out, 3, build, n);
}

PJRT_LoadedExecutable* compile_with(PJRT_Client* client, const char* text, const unsigned char* options, size_t size) {
  PJRT_Program program = {PJRT_Program_STRUCT_SIZE, NULL, (char*)text, strlen(text), "mlir", 4};
  ARGS(Client_Compile, args);
  args.client = client;
  args.program = &program;
  args.compile_options = (const char*)options;
  args.compile_options_size = size;
  CALL(Client_Compile, &args);
  return args.executable;
}

PJRT_LoadedExecutable* compile(PJRT_Client* client, const char* program) {
  unsigned char options[512];
  return compile_with(client, program, options, compile_options(options, 1, 1, 0, NULL));
}

void destroy_executable(PJRT_LoadedExecutable* executable) {
  ARGS(LoadedExecutable_Destroy, args);
  args.executable = executable;
  CALL(LoadedExecutable_Destroy, &args);
}

PJRT_Buffer* put(PJRT_Client* client, size_t device, const float* data, size_t num_dims, const int64_t* dims) {
  ARGS(Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = num_dims;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device_at(client, device);
  CALL(Client_BufferFromHostBuffer, &args);
  must_succeed("done_with_host_buffer", wait_for(args.done_with_host_buffer));
  return args.buffer;
}

void get(PJRT_Buffer* buffer, float* data, size_t count) {
  ARGS(Buffer_ToHostBuffer, args);
  args.src = buffer;
  args.dst = data;
  args.dst_size = count * sizeof(float);
  CALL(Buffer_ToHostBuffer, &args);
  must_succeed("copy to host", wait_for(args.event));
}

void destroy_buffer(PJRT_Buffer* buffer) {
  ARGS(Buffer_Destroy, args);
  args.buffer = buffer;
  CALL(Buffer_Destroy, &args);
}

int is_deleted(PJRT_Buffer* buffer) {
  ARGS(Buffer_IsDeleted, args);
  args.buffer = buffer;
  CALL(Buffer_IsDeleted, &args);
  return args.is_deleted;
}

void* address_of(PJRT_Buffer* buffer) {
  ARGS(Buffer_UnsafePointer, args);
  args.buffer = buffer;
  CALL(Buffer_UnsafePointer, &args);
  return (void*)args.buffer_pointer;
}

void execute(PJRT_LoadedExecutable* executable, size_t devices, size_t num_args, PJRT_Buffer*** arguments,
             PJRT_Buffer*** outputs, PJRT_ExecuteOptions* options) {
  PJRT_ExecuteOptions defaults;
  memset(&defaults, 0, sizeof defaults);
  defaults.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  PJRT_Event* events[16];
  ARGS(LoadedExecutable_Execute, args);
  args.executable = executable;
  args.options = options != NULL ? options : &defaults;
  args.argument_lists = (PJRT_Buffer* const* const*)arguments;
  args.num_devices = devices;
  args.num_args = num_args;
  args.output_lists = (PJRT_Buffer** const*)outputs;
  args.device_complete_events = events;
  CALL(LoadedExecutable_Execute, &args);
  for (size_t i = 0; i < devices; i++) must_succeed("execution", wait_for(events[i]));
}

const char kMatmul[] =
    "func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {\n"
    "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]\n"
    "    : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>\n"
    "  %1 = stablehlo.tanh %0 : tensor<4x2xf32>\n"
    "  return %1 : tensor<4x2xf32>\n}\n";

const char kAllReduce[] =
    "module attributes {mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = \"stablehlo.all_reduce\"(%a) ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "    %s = stablehlo.add %x, %y : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n}\n";

static void load(const char* plugin) {
  void* library = dlopen(plugin, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    printf("  FAILED to load: %s\n", dlerror());
    exit(1);
  }
  const PJRT_Api* (*get_api)(void) = (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi");
  if (get_api == NULL) {
    printf("  FAILED: no GetPjrtApi in %s\n", plugin);
    exit(1);
  }
  api = get_api();
}

static void run(const char* name, void (*test)(void)) {
  int before = failures;
  test();
  printf("%s %s\n", failures == before ? "pass" : "FAIL", name);
}

// plugin_test PLUGIN            all tests
// plugin_test PLUGIN FOLDER N   process N of two that find each other in FOLDER
int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    printf("usage: plugin_test PLUGIN\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  load(argv[1]);
  if (argc == 4) return run_process(argv[2], atoi(argv[3]));
  run("struct sizes: shorter, longer, none; null arguments", test_structs);
  run("data: host buffer semantics, layouts, copies, transfer managers", test_data);
  run("programs: results, donation, serialization, topologies, statistics", test_programs);
  run("functions of the caller, by the FFI extension", test_ffi);
  int before = failures;
  test_processes(argv[1]);
  printf("%s collectives: 4 devices in one process, 2 x 2 devices in two\n", failures == before ? "pass" : "FAIL");
  return failures != 0;
}
