// Programs: results, donation, ahead-of-time compiles, serialization, and what executables tell.
#define _GNU_SOURCE
#include "support.h"

static PJRT_Client* client;

static float inputs_a[32], inputs_b[16], expected[8];

static void make_inputs(void) {
  for (int i = 0; i < 32; i++) inputs_a[i] = 0.01f * i;
  for (int i = 0; i < 16; i++) inputs_b[i] = 0.1f * (i - 8);
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 2; j++) {
      double sum = 0;
      for (int k = 0; k < 8; k++) sum += inputs_a[i * 8 + k] * inputs_b[k * 2 + j];
      expected[i * 2 + j] = tanh(sum);
    }
  }
}

static void check_matmul(PJRT_LoadedExecutable* executable, const char* what) {
  int64_t dims_a[2] = {4, 8}, dims_b[2] = {8, 2};
  PJRT_Buffer* inputs[2] = {put(client, 0, inputs_a, 2, dims_a), put(client, 0, inputs_b, 2, dims_b)};
  PJRT_Buffer* output[1];
  PJRT_Buffer **input_list[1] = {inputs}, **output_list[1] = {output};
  execute(executable, 1, 2, input_list, output_list, NULL);
  float got[8];
  get(output[0], got, 8);
  for (int i = 0; i < 8; i++) CHECK(fabsf(got[i] - expected[i]) < 1e-6f, "%s: %g instead of %g", what, got[i], expected[i]);
  destroy_buffer(output[0]);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
}

static void measure(PJRT_LoadedExecutable* executable) {
  int64_t dims_a[2] = {4, 8}, dims_b[2] = {8, 2};
  PJRT_Buffer* inputs[2] = {put(client, 0, inputs_a, 2, dims_a), put(client, 0, inputs_b, 2, dims_b)};
  PJRT_Buffer* output[1];
  PJRT_Buffer **input_list[1] = {inputs}, **output_list[1] = {output};
  float got[8];
  double best[2] = {1e9, 1e9};
  for (int round = 0; round < 20; round++) {
    for (int read = 0; read < 2; read++) {
      double start = now_us();
      for (int i = 0; i < 500; i++) {
        execute(executable, 1, 2, input_list, output_list, NULL);
        if (read) get(output[0], got, 8);
        destroy_buffer(output[0]);
      }
      double each = (now_us() - start) / 500;
      if (each < best[read]) best[read] = each;
    }
  }
  printf("  a cached small program takes %.2f us, with its result read back %.2f us\n", best[0], best[1]);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
}

static void test_questions(PJRT_LoadedExecutable* executable) {
  ARGS(LoadedExecutable_GetExecutable, get_executable);
  get_executable.loaded_executable = executable;
  CALL(LoadedExecutable_GetExecutable, &get_executable);
  PJRT_Executable* info = get_executable.executable;

  ARGS(Executable_NumOutputs, outputs);
  outputs.executable = info;
  CALL(Executable_NumOutputs, &outputs);
  CHECK(outputs.num_outputs == 1, "%zu outputs", outputs.num_outputs);
  ARGS(Executable_OutputElementTypes, types);
  types.executable = info;
  CALL(Executable_OutputElementTypes, &types);
  CHECK(types.num_output_types == 1 && types.output_types[0] == PJRT_Buffer_Type_F32, "wrong output types");
  ARGS(Executable_OutputDimensions, dims);
  dims.executable = info;
  CALL(Executable_OutputDimensions, &dims);
  CHECK(dims.num_outputs == 1 && dims.dim_sizes[0] == 2 && dims.dims[0] == 4 && dims.dims[1] == 2, "wrong output dims");

  ARGS(Executable_GetCostAnalysis, cost);
  cost.executable = info;
  CALL(Executable_GetCostAnalysis, &cost);
  float flops = 0;
  for (size_t i = 0; i < cost.num_properties; i++) {
    if (cost.properties[i].name_size == 5 && !memcmp(cost.properties[i].name, "flops", 5)) flops = cost.properties[i].float_value;
  }
  CHECK(flops == 128, "%g flops", flops);
  ARGS(Executable_Fingerprint, fingerprint);
  fingerprint.executable = info;
  CALL(Executable_Fingerprint, &fingerprint);
  CHECK(fingerprint.executable_fingerprint_size > 0, "no fingerprint");

  PJRT_Program program = {PJRT_Program_STRUCT_SIZE, NULL, NULL, 0, NULL, 0};
  ARGS(Executable_OptimizedProgram, optimized);
  optimized.executable = info;
  optimized.program = &program;
  CALL(Executable_OptimizedProgram, &optimized);
  program.code = malloc(program.code_size);
  CALL(Executable_OptimizedProgram, &optimized);
  CHECK(program.code_size > 100 && !memcmp(program.format, "hlo_with_config", program.format_size), "wrong program");
  free(program.code);

  ARGS(Executable_Serialize, serialized);
  serialized.executable = info;
  CALL(Executable_Serialize, &serialized);
  ARGS(Executable_DeserializeAndLoad, load);
  load.client = client;
  load.serialized_executable = serialized.serialized_bytes;
  load.serialized_executable_size = serialized.serialized_bytes_size;
  CALL(Executable_DeserializeAndLoad, &load);
  check_matmul(load.loaded_executable, "deserialized");
  destroy_executable(load.loaded_executable);
  load.serialized_executable_size = 7;
  PJRT_Error* error = api->PJRT_Executable_DeserializeAndLoad(&load);
  CHECK(error != NULL, "seven bytes were taken for an executable");
  if (error != NULL) destroy_error(error);
  serialized.serialized_executable_deleter(serialized.serialized_executable);

  ARGS(Executable_GetCompileOptions, options);
  options.executable = info;
  CALL(Executable_GetCompileOptions, &options);
  CHECK(options.serialized_bytes_size > 0, "no compile options");
  options.serialized_compile_options_deleter(options.serialized_compile_options);
  ARGS(LoadedExecutable_GetDeviceAssignment, assignment);
  assignment.executable = executable;
  CALL(LoadedExecutable_GetDeviceAssignment, &assignment);
  CHECK(assignment.serialized_bytes_size > 0, "no device assignment");
  assignment.serialized_device_assignment_deleter(assignment.serialized_device_assignment);

  for (PJRT_Extension_Base* extension = api->extension_start; extension != NULL; extension = extension->next) {
    if (extension->type != PJRT_Extension_Type_Layouts) continue;
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args_STRUCT_SIZE;
    args.executable = info;
    must_succeed("layouts", ((PJRT_Layouts_Extension*)extension)->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(&args));
    CHECK(args.num_outputs == 1, "%zu layouts", args.num_outputs);
  }
  ARGS(Executable_Destroy, destroy);
  destroy.executable = info;
  CALL(Executable_Destroy, &destroy);
}

static const char kDonating[] =
    "func.func @main(%a: tensor<64xf32> {tf.aliasing_output = 0 : i32}) -> tensor<64xf32> {\n"
    "  %0 = stablehlo.add %a, %a : tensor<64xf32>\n"
    "  return %0 : tensor<64xf32>\n}\n";

static void test_donation(void) {
  PJRT_LoadedExecutable* executable = compile(client, kDonating);
  float data[64], got[64];
  int64_t dims[1] = {64}, first = 0;
  for (int i = 0; i < 64; i++) data[i] = i;
  for (int refuse = 0; refuse < 2; refuse++) {
    PJRT_Buffer *input[1] = {put(client, 0, data, 1, dims)}, *output[1];
    PJRT_Buffer **input_list[1] = {input}, **output_list[1] = {output};
    void* address = address_of(input[0]);
    PJRT_ExecuteOptions options;
    memset(&options, 0, sizeof options);
    options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
    options.non_donatable_input_indices = &first;
    options.num_non_donatable_input_indices = refuse;
    execute(executable, 1, 1, input_list, output_list, &options);
    get(output[0], got, 64);
    CHECK(got[63] == 126, "%g", got[63]);
    CHECK(is_deleted(input[0]) == !refuse, "refused: %d, deleted: %d", refuse, is_deleted(input[0]));
    CHECK((address_of(output[0]) == address) == !refuse, "refused: %d, but the memory says otherwise", refuse);
    destroy_buffer(output[0]);
    destroy_buffer(input[0]);
  }
  destroy_executable(executable);
}

static void test_memory_counts(void) {
  ARGS(Device_MemoryStats, before);
  before.device = device_at(client, 0);
  CALL(Device_MemoryStats, &before);
  int64_t dims[1] = {1 << 18};
  float* data = calloc(1 << 18, sizeof(float));
  PJRT_Buffer* buffer = put(client, 0, data, 1, dims);
  ARGS(Device_MemoryStats, during);
  during.device = before.device;
  CALL(Device_MemoryStats, &during);
  destroy_buffer(buffer);
  ARGS(Device_MemoryStats, after);
  after.device = before.device;
  CALL(Device_MemoryStats, &after);
  CHECK(during.bytes_in_use - before.bytes_in_use == 1 << 20, "a megabyte counts %ld",
        (long)(during.bytes_in_use - before.bytes_in_use));
  CHECK(after.bytes_in_use == before.bytes_in_use, "%ld bytes leaked", (long)(after.bytes_in_use - before.bytes_in_use));
  CHECK(after.peak_bytes_in_use_is_set && after.peak_bytes_in_use >= during.bytes_in_use, "no peak");
  free(data);
}

static void test_ahead_of_time(void) {
  PJRT_NamedValue four = int_option("cpu_device_count", 4);
  ARGS(TopologyDescription_Create, create);
  create.create_options = &four;
  create.num_options = 1;
  CALL(TopologyDescription_Create, &create);
  ARGS(TopologyDescription_Serialize, serialized);
  serialized.topology = create.topology;
  CALL(TopologyDescription_Serialize, &serialized);
  ARGS(TopologyDescription_Deserialize, back);
  back.serialized_topology = serialized.serialized_bytes;
  back.serialized_topology_size = serialized.serialized_bytes_size;
  CALL(TopologyDescription_Deserialize, &back);
  serialized.serialized_topology_deleter(serialized.serialized_topology);
  ARGS(TopologyDescription_GetDeviceDescriptions, devices);
  devices.topology = back.topology;
  CALL(TopologyDescription_GetDeviceDescriptions, &devices);
  CHECK(devices.num_descriptions == 4, "%zu devices came back", devices.num_descriptions);

  unsigned char options[512];
  PJRT_Program program = {PJRT_Program_STRUCT_SIZE, NULL, (char*)kMatmul, strlen(kMatmul), "mlir", 4};
  ARGS(Compile, args);
  args.topology = back.topology;
  args.program = &program;
  args.compile_options = (const char*)options;
  args.compile_options_size = compile_options(options, 1, 1, 0, NULL);
  CALL(Compile, &args);
  ARGS(Executable_Serialize, executable);
  executable.executable = args.executable;
  CALL(Executable_Serialize, &executable);
  ARGS(Executable_DeserializeAndLoad, load);
  load.client = client;
  load.serialized_executable = executable.serialized_bytes;
  load.serialized_executable_size = executable.serialized_bytes_size;
  CALL(Executable_DeserializeAndLoad, &load);
  check_matmul(load.loaded_executable, "compiled ahead of time");
  destroy_executable(load.loaded_executable);
  executable.serialized_executable_deleter(executable.serialized_executable);
  ARGS(Executable_Destroy, destroy);
  destroy.executable = args.executable;
  CALL(Executable_Destroy, &destroy);

  program.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, code_size);
  FAILS(Compile, &args, INVALID_ARGUMENT, "struct_size");
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.format = "fortran";
  program.format_size = 7;
  FAILS(Compile, &args, INVALID_ARGUMENT, "unknown program format fortran");
  PJRT_TopologyDescription* both[2] = {create.topology, back.topology};
  for (int i = 0; i < 2; i++) {
    ARGS(TopologyDescription_Destroy, gone);
    gone.topology = both[i];
    CALL(TopologyDescription_Destroy, &gone);
  }
}

static void test_bad_program(void) {
  const char* text = "func.func @main( nonsense";
  unsigned char options[512];
  PJRT_Program program = {PJRT_Program_STRUCT_SIZE, NULL, (char*)text, strlen(text), "mlir", 4};
  ARGS(Client_Compile, args);
  args.client = client;
  args.program = &program;
  args.compile_options = (const char*)options;
  args.compile_options_size = compile_options(options, 1, 1, 0, NULL);
  PJRT_Error* error = api->PJRT_Client_Compile(&args);
  CHECK(error != NULL, "nonsense was compiled");
  if (error != NULL) destroy_error(error);
  args.compile_options = "\xff\xff\xff";
  args.compile_options_size = 3;
  FAILS(Client_Compile, &args, INVALID_ARGUMENT, "CompileOptionsProto");
}

static void test_bad_arguments(PJRT_LoadedExecutable* executable) {
  int64_t dims_a[2] = {4, 8}, dims_b[2] = {8, 2};
  PJRT_Buffer *a = put(client, 0, inputs_a, 2, dims_a), *b = put(client, 0, inputs_b, 2, dims_b), *output[1];
  PJRT_Buffer *right[2] = {a, b}, *swapped[2] = {b, a}, *twice[2] = {a, a};
  PJRT_Buffer **right_list[1] = {right}, **swapped_list[1] = {swapped}, **twice_list[1] = {twice}, **output_list[1] = {output};
  ARGS(LoadedExecutable_Execute, args);
  args.executable = executable;
  args.num_devices = 1;
  args.output_lists = (PJRT_Buffer** const*)output_list;
  args.argument_lists = (PJRT_Buffer* const* const*)right_list;
  args.num_args = 1;
  FAILS(LoadedExecutable_Execute, &args, INVALID_ARGUMENT, "1");
  args.num_args = 2;
  args.argument_lists = (PJRT_Buffer* const* const*)swapped_list;
  FAILS(LoadedExecutable_Execute, &args, INVALID_ARGUMENT, "size");
  args.argument_lists = (PJRT_Buffer* const* const*)twice_list;
  FAILS(LoadedExecutable_Execute, &args, INVALID_ARGUMENT, "size");
  args.argument_lists = (PJRT_Buffer* const* const*)right_list;
  args.num_devices = 2;
  PJRT_Error* error = api->PJRT_LoadedExecutable_Execute(&args);
  CHECK(error != NULL, "a program of one device ran on two");
  if (error != NULL) destroy_error(error);
  ARGS(Buffer_Delete, deletion);
  deletion.buffer = b;
  CALL(Buffer_Delete, &deletion);
  args.num_devices = 1;
  FAILS(LoadedExecutable_Execute, &args, INVALID_ARGUMENT, "deleted");
  destroy_buffer(a);
  destroy_buffer(b);
}

void test_programs(void) {
  make_inputs();
  client = make_client(1);
  PJRT_LoadedExecutable* executable = compile(client, kMatmul);
  check_matmul(executable, "compiled");
  test_questions(executable);
  test_bad_arguments(executable);
  measure(executable);
  test_donation();
  test_memory_counts();
  test_ahead_of_time();
  test_bad_program();
  destroy_executable(executable);
  destroy_client(client);
}
