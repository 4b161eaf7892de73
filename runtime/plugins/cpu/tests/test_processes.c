// Collectives: among the devices of one process, and between two processes that find each other by files.
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static void test_one_process(void) {
  PJRT_Client* client = make_client(4);
  unsigned char options[512];
  PJRT_LoadedExecutable* executable = compile_with(client, kAllReduce, options, compile_options(options, 4, 1, 0, NULL));
  PJRT_Buffer *inputs[4][1], *outputs[4][1], **input_lists[4], **output_lists[4];
  int64_t dims[1] = {4};
  for (int r = 0; r < 4; r++) {
    float data[4] = {r, r + 0.5f, 10 * r, 1};
    inputs[r][0] = put(client, r, data, 1, dims);
    input_lists[r] = inputs[r];
    output_lists[r] = outputs[r];
  }
  execute(executable, 4, 1, input_lists, output_lists, NULL);
  for (int r = 0; r < 4; r++) {
    float got[4];
    get(outputs[r][0], got, 4);
    CHECK(got[0] == 6 && got[1] == 8 && got[2] == 60 && got[3] == 4, "device %d: %g %g %g %g", r, got[0], got[1], got[2], got[3]);
    destroy_buffer(outputs[r][0]);
    destroy_buffer(inputs[r][0]);
  }
  destroy_executable(executable);
  destroy_client(client);
}

// ---- A key-value store in a folder.

static const char* store;

static void path_of(char* out, size_t size, const char* key, size_t key_size, const char* suffix) {
  int n = snprintf(out, size, "%s/", store);
  for (size_t i = 0; i < key_size && n < (int)size - 32; i++) {
    out[n++] = strchr("/ ;,[]=", key[i]) != NULL ? '_' : key[i];
  }
  snprintf(out + n, size - n, "%s", suffix);
}

static PJRT_Error* kv_put(PJRT_KeyValuePutCallback_Args* args) {
  char path[1024], temporary[1024], suffix[32];
  snprintf(suffix, sizeof suffix, ".%d", getpid());
  path_of(path, sizeof path, args->key, args->key_size, "");
  path_of(temporary, sizeof temporary, args->key, args->key_size, suffix);
  FILE* file = fopen(temporary, "wb");
  fwrite(args->value, 1, args->value_size, file);
  fclose(file);
  rename(temporary, path);
  return NULL;
}

static void kv_free(char* value) { free(value); }

static PJRT_Error* kv_get(PJRT_KeyValueGetCallback_Args* args) {
  char path[1024];
  path_of(path, sizeof path, args->key, args->key_size, "");
  double deadline = now_us() + args->timeout_in_ms * 1e3;
  while (now_us() < deadline) {
    FILE* file = fopen(path, "rb");
    if (file != NULL) {
      args->value = malloc(256);
      args->value_size = fread(args->value, 1, 256, file);
      args->value_deleter_callback = kv_free;
      fclose(file);
      return NULL;
    }
    usleep(1000);
  }
  return (*args->callback_error)(PJRT_Error_Code_DEADLINE_EXCEEDED, "nobody set the key", 18);
}

// ---- Programs over 4 replicas: two in each of two processes.

#define LARGE 300001  // not a multiple of 4, and too much for one send

static const char kLargeReduce[] =
    "module attributes {mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%a: tensor<300001xf32>) -> tensor<300001xf32> {\n"
    "  %0 = \"stablehlo.all_reduce\"(%a) ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "    %s = stablehlo.maximum %x, %y : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<300001xf32>) -> tensor<300001xf32>\n"
    "  return %0 : tensor<300001xf32>\n}\n}\n";

// Gathers, scatters the sum of what was gathered, and passes the result on to the next replica.
static const char kThree[] =
    "module attributes {mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %g = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0 : i64,\n"
    "    replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<16xf32>\n"
    "  %s = \"stablehlo.reduce_scatter\"(%g) ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "    %t = stablehlo.add %x, %y : tensor<f32>\n"
    "    stablehlo.return %t : tensor<f32>\n"
    "  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}\n"
    "    : (tensor<16xf32>) -> tensor<4xf32>\n"
    "  %p = \"stablehlo.collective_permute\"(%s) {source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]>\n"
    "    : tensor<4x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %p : tensor<4xf32>\n}\n}\n";

// Runs `program` on this process's two replicas; `data` and `got` hold `count` floats for each.
static void run_two(PJRT_Client* client, const char* program, const int* ids, size_t count, float* data, float* got) {
  unsigned char options[512];
  PJRT_LoadedExecutable* executable = compile_with(client, program, options, compile_options(options, 4, 1, 0, ids));
  PJRT_Buffer *inputs[2][1], *outputs[2][1], **input_lists[2], **output_lists[2];
  int64_t dims[1] = {(int64_t)count};
  for (int i = 0; i < 2; i++) {
    inputs[i][0] = put(client, i, data + i * count, 1, dims);
    input_lists[i] = inputs[i];
    output_lists[i] = outputs[i];
  }
  // Twice: the second time the connections are there already.
  for (int round = 0; round < 2; round++) {
    execute(executable, 2, 1, input_lists, output_lists, NULL);
    for (int i = 0; i < 2; i++) {
      get(outputs[i][0], got + i * count, count);
      destroy_buffer(outputs[i][0]);
    }
  }
  for (int i = 0; i < 2; i++) destroy_buffer(inputs[i][0]);
  destroy_executable(executable);
}

int run_process(const char* folder, int node) {
  store = folder;
  PJRT_NamedValue options[3] = {int_option("cpu_device_count", 2), int_option("num_nodes", 2), int_option("node_id", node)};
  ARGS(Client_Create, args);
  args.create_options = options;
  args.num_options = 3;
  args.kv_get_callback = kv_get;
  args.kv_put_callback = kv_put;
  CALL(Client_Create, &args);
  ARGS(Client_Devices, devices);
  devices.client = args.client;
  CALL(Client_Devices, &devices);
  CHECK(devices.num_devices == 4, "%zu devices", devices.num_devices);
  int ids[4];
  for (int i = 0; i < 4; i++) {
    ARGS(Device_GetDescription, description);
    description.device = devices.devices[i];
    CALL(Device_GetDescription, &description);
    ARGS(DeviceDescription_Id, id);
    id.device_description = description.device_description;
    CALL(DeviceDescription_Id, &id);
    ids[i] = id.id;
  }

  float data[8], got[8];
  for (int i = 0; i < 8; i++) data[i] = 2 * node + i / 4 + 0.5f * (i % 4);  // replica number + half the index
  run_two(args.client, kAllReduce, ids, 4, data, got);
  for (int i = 0; i < 8; i++) CHECK(got[i] == 6 + 2.0f * (i % 4), "node %d: sum[%d] is %g", node, i, got[i]);

  run_two(args.client, kThree, ids, 4, data, got);
  for (int i = 0; i < 8; i++) {
    int from = (2 * node + i / 4 + 3) % 4;  // the replica before this one, whose slice is what replica `from` gave in
    CHECK(got[i] == 4 * (from + 0.5f * (i % 4)), "node %d: passed on [%d] is %g", node, i, got[i]);
  }

  float *large = malloc(2 * LARGE * sizeof(float)), *most = malloc(2 * LARGE * sizeof(float));
  for (int i = 0; i < 2 * LARGE; i++) large[i] = (2 * node + i / LARGE == i % LARGE % 4) ? i % LARGE : -1;
  run_two(args.client, kLargeReduce, ids, LARGE, large, most);
  int wrong = 0;
  for (int i = 0; i < 2 * LARGE; i++) wrong += most[i] != i % LARGE;
  CHECK(wrong == 0, "node %d: %d of %d maxima are wrong", node, wrong, 2 * LARGE);
  destroy_client(args.client);
  return failures != 0;
}

void test_processes(const char* plugin) {
  test_one_process();
  char folder[] = "/tmp/plugin_test.XXXXXX", self[1024];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (mkdtemp(folder) == NULL || length < 0) {
    CHECK(0, "cannot make a folder");
    return;
  }
  self[length] = 0;
  pid_t children[2];
  for (int node = 0; node < 2; node++) {
    children[node] = fork();
    if (children[node] == 0) {
      execl(self, self, plugin, folder, node ? "1" : "0", (char*)NULL);
      _exit(127);
    }
  }
  for (int node = 0; node < 2; node++) {
    int status = -1;
    waitpid(children[node], &status, 0);
    CHECK(status == 0, "process %d ended with status %d", node, status);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) printf("  %s stays behind\n", folder);
}
