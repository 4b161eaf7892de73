// What the plugin's C tests share: checks that count, calls that must succeed or fail, and short ways to make clients, buffers
// and executables.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"

extern const PJRT_Api* api;
extern int failures;

#define CHECK(condition, ...)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      failures++;                                                 \
      printf("  FAILED %s:%d: %s: ", __FILE__, __LINE__, #condition); \
      printf(__VA_ARGS__);                                        \
      printf("\n");                                               \
    }                                                             \
  } while (0)

// A zeroed args struct of full size.
#define ARGS(name, variable)               \
  PJRT_##name##_Args variable;             \
  memset(&variable, 0, sizeof variable);   \
  variable.struct_size = PJRT_##name##_Args_STRUCT_SIZE

// Calls that must succeed: a failure ends the program, as nothing after it makes sense.
#define CALL(name, args) must_succeed("PJRT_" #name, api->PJRT_##name(args))
// Calls that must fail with `code`; `text` must occur in the message.
#define FAILS(name, args, code, text) must_fail("PJRT_" #name, api->PJRT_##name(args), PJRT_Error_Code_##code, text)

void must_succeed(const char* what, PJRT_Error* error);
void must_fail(const char* what, PJRT_Error* error, PJRT_Error_Code code, const char* text);
void destroy_error(PJRT_Error* error);

double now_us(void);

PJRT_NamedValue int_option(const char* name, int64_t value);
PJRT_Client* make_client(int devices);
void destroy_client(PJRT_Client* client);
PJRT_Device* device_at(PJRT_Client* client, size_t index);

// Waits, destroys the event, and returns its error, which may be null.
PJRT_Error* wait_for(PJRT_Event* event);
int is_ready(PJRT_Event* event);

// CompileOptionsProto bytes; `ids` is the device assignment, replica by replica, or null for the default one.
size_t compile_options(unsigned char* out, int replicas, int partitions, int shardy, const int* ids);
PJRT_LoadedExecutable* compile_with(PJRT_Client* client, const char* program, const unsigned char* options, size_t size);
PJRT_LoadedExecutable* compile(PJRT_Client* client, const char* program);
void destroy_executable(PJRT_LoadedExecutable* executable);

PJRT_Buffer* put(PJRT_Client* client, size_t device, const float* data, size_t num_dims, const int64_t* dims);
void get(PJRT_Buffer* buffer, float* data, size_t count);
void destroy_buffer(PJRT_Buffer* buffer);
int is_deleted(PJRT_Buffer* buffer);
void* address_of(PJRT_Buffer* buffer);

// Runs on `devices` devices with `num_args` arguments each and waits for all of them.
void execute(PJRT_LoadedExecutable* executable, size_t devices, size_t num_args, PJRT_Buffer*** arguments,
             PJRT_Buffer*** outputs, PJRT_ExecuteOptions* options);

// tanh(a . b) for a: 4x8, b: 8x2.
extern const char kMatmul[];
// The sum over 4 replicas of vectors of 4.
extern const char kAllReduce[];

void test_structs(void);
void test_data(void);
void test_programs(void);
void test_ffi(void);
void test_processes(const char* plugin);
int run_process(const char* folder, int node);
