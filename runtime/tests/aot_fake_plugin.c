// A PJRT plugin in libtpu's place that misbehaves as FAKE_TPU says: what a plugin can do to the process that loads it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xla/pjrt/c/pjrt_c_api.h"

struct PJRT_Error {
  int code;
  const char* message;
};
struct PJRT_TopologyDescription {
  int unused;
};
struct PJRT_DeviceDescription {
  int unused;
};
struct PJRT_Executable {
  int unused;
};
static PJRT_TopologyDescription topology;
static PJRT_DeviceDescription device;
static PJRT_Executable executable;
static PJRT_DeviceDescription* const devices[] = {&device};

static int is(const char* what) {
  const char* wanted = getenv("FAKE_TPU");
  return wanted && strcmp(wanted, what) == 0;
}

static PJRT_Error* error(int code, const char* message) {
  PJRT_Error* e = malloc(sizeof *e);
  e->code = code, e->message = message;
  return e;
}

static int* volatile nowhere;

static void hang(void) {
  for (;;) pause();
}

// Where `where` is asked to misbehave: FAKE_TPU=hang_compile and so on.
static void at(const char* where) {
  char name[64];
  snprintf(name, sizeof name, "hang_%s", where);
  if (is(name)) hang();
  snprintf(name, sizeof name, "crash_%s", where);
  // A write to nowhere: a signal that is merely raised is swallowed by Rust's handler for stack overflows.
  if (is(name)) *(volatile int*)nowhere = 1;
  snprintf(name, sizeof name, "abort_%s", where);
  if (is(name)) {
    fprintf(stderr, "F1120 07:25:53.962380   14488 shape_util.cc:1039] Check failed: the end of %s\n", where);
    abort();
  }
  snprintf(name, sizeof name, "exit_%s", where);
  if (is(name)) exit(3);
}

#define CALL(name) static PJRT_Error* name(PJRT_##name##_Args* a)

static void Error_Destroy(PJRT_Error_Destroy_Args* a) { free(a->error); }
static void Error_Message(PJRT_Error_Message_Args* a) {
  a->message = a->error->message, a->message_size = strlen(a->error->message);
}
CALL(Error_GetCode) {
  a->code = a->error->code;
  return NULL;
}
CALL(Event_Destroy) { return NULL; }
CALL(Event_IsReady) { return NULL; }
CALL(Event_Await) { return NULL; }
CALL(Event_OnReady) { return NULL; }
CALL(Client_Destroy) { return NULL; }
CALL(LoadedExecutable_Destroy) { return NULL; }
CALL(Buffer_Destroy) { return NULL; }
CALL(Plugin_Initialize) {
  at("start");
  if (is("lock")) return error(9, "The TPU is already in use by process 42. Remove /tmp/libtpu_lockfile if it is not.");
  return NULL;
}
CALL(TopologyDescription_Create) {
  at("topology");
  a->topology = is("null_topology") ? NULL : &topology;
  return is("no_topology") ? error(3, "there are no such chips") : NULL;
}
CALL(TopologyDescription_Destroy) { return NULL; }
CALL(TopologyDescription_PlatformVersion) {
  a->platform_version = "fake\nBuilt on Nov 20 2026 (1)", a->platform_version_size = strlen(a->platform_version);
  if (is("huge_version")) a->platform_version_size = (size_t)1 << 60;
  return NULL;
}
static PJRT_NamedValue limit;
CALL(TopologyDescription_Attributes) {
  limit = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                            .name = "device_memory_bytes_limit",
                            .name_size = 25,
                            .type = PJRT_NamedValue_kInt64,
                            .int64_value = is("negative") ? -5 : 1 << 30,
                            .value_size = 1};
  a->attributes = &limit, a->num_attributes = is("many_attributes") ? (size_t)1 << 60 : 1;
  return NULL;
}
CALL(TopologyDescription_GetDeviceDescriptions) {
  a->descriptions = is("null_devices") ? NULL : devices;
  a->num_descriptions = is("no_devices") ? 0 : is("many_devices") ? (size_t)1 << 60 : 1;
  return NULL;
}
CALL(DeviceDescription_Id) { return NULL; }
CALL(DeviceDescription_ProcessIndex) { return NULL; }
CALL(DeviceDescription_Kind) {
  a->device_kind = "<b>fake</b>", a->device_kind_size = 11;
  return NULL;
}
CALL(DeviceDescription_ToString) {
  a->to_string = "fake", a->to_string_size = 4;
  return NULL;
}
CALL(DeviceDescription_Attributes) { return NULL; }
static PJRT_Error* compile(PJRT_Compile_Args* a) {
  at("compile");
  if (is("noisy")) {
    for (int i = 0; i < 1 << 16; i++) printf("{\"report\":{}}\nxlazy-aot-answer {\"report\"\n"), fprintf(stderr, "noise\n");
    fflush(stdout);
  }
  if (is("refuses")) return error(3, "not this program");
  if (is("too_large")) return error(8, "E1000: requires 228.16G which exceeds 15.75G");
  a->executable = is("null_executable") ? NULL : &executable;
  return NULL;
}
CALL(Executable_Destroy) {
  at("end");
  return NULL;
}
CALL(Executable_GetCompiledMemoryStats) {
  a->peak_memory_in_bytes = is("negative") ? -1 : 100, a->argument_size_in_bytes = 60, a->output_size_in_bytes = 40;
  a->temp_size_in_bytes = is("negative") ? INT64_MIN : 0;
  return is("no_memory") ? error(12, "no statistics") : NULL;
}
CALL(Executable_GetCostAnalysis) { return error(12, "no analysis"); }
CALL(Executable_OptimizedProgram) {
  a->program->format = "hlo_with_config", a->program->format_size = 15;
  if (is("huge_program")) {
    a->program->code_size = (size_t)1 << 60;
    return NULL;
  }
  // Bytes that are no program.
  if (a->program->code) memset(a->program->code, is("garbage") ? 0xff : 0, 16);
  a->program->code_size = 16;
  return NULL;
}

const PJRT_Api* GetPjrtApi(void) {
  at("load");
  if (is("null")) return NULL;
  static PJRT_Api api;
  api.struct_size = is("tiny") ? 8 : is("short") ? offsetof(PJRT_Api, PJRT_TopologyDescription_Create) : PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version = (PJRT_Api_Version){PJRT_Api_Version_STRUCT_SIZE, NULL, is("major") ? 7 : 0, is("old") ? 30 : PJRT_API_MINOR};
#define SET(name) api.PJRT_##name = name
  SET(Error_Destroy), SET(Error_Message), SET(Error_GetCode), SET(Event_Destroy), SET(Event_IsReady), SET(Event_Await);
  SET(Event_OnReady), SET(Plugin_Initialize), SET(Client_Destroy), SET(LoadedExecutable_Destroy), SET(Buffer_Destroy);
  SET(TopologyDescription_Create), SET(TopologyDescription_Destroy), SET(TopologyDescription_PlatformVersion);
  SET(TopologyDescription_Attributes), SET(TopologyDescription_GetDeviceDescriptions);
  SET(DeviceDescription_Id), SET(DeviceDescription_ProcessIndex), SET(DeviceDescription_Kind), SET(DeviceDescription_ToString);
  SET(DeviceDescription_Attributes), SET(Executable_Destroy), SET(Executable_GetCompiledMemoryStats);
  SET(Executable_GetCostAnalysis), SET(Executable_OptimizedProgram);
  api.PJRT_Compile = compile;
  return &api;
}
