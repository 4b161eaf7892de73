// The FFI extension: a C function that a program calls, with data that the execution hands to it.
#include "support.h"
#include "xla/ffi/api/c_api.h"
#include "xla/pjrt/c/pjrt_c_api_ffi_extension.h"

static int64_t factor_type;

static XLA_FFI_Error* scale(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start != NULL && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  XLA_FFI_TypeId type = {factor_type};
  XLA_FFI_ExecutionContext_Get_Args context;
  memset(&context, 0, sizeof context);
  context.struct_size = XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE;
  context.ctx = frame->ctx;
  context.type_id = &type;
  XLA_FFI_Error* error = frame->api->XLA_FFI_ExecutionContext_Get(&context);
  if (error != NULL) return error;
  const XLA_FFI_Buffer* in = frame->args.args[0];
  const XLA_FFI_Buffer* out = frame->rets.rets[0];
  for (int64_t i = 0; i < in->dims[0]; i++) ((float*)out->data)[i] = *(float*)context.data * ((float*)in->data)[i];
  return NULL;
}

static const char kScale[] =
    "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.custom_call @xlazy_test_scale(%a) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n";

void test_ffi(void) {
  PJRT_Extension_Base* extension = api->extension_start;
  while (extension != NULL && extension->type != PJRT_Extension_Type_FFI) extension = extension->next;
  CHECK(extension != NULL, "no FFI extension");
  if (extension == NULL) return;
  PJRT_FFI_Extension* ffi = (PJRT_FFI_Extension*)extension;

  PJRT_FFI_Type_Info info = {NULL, NULL, NULL};
  ARGS(FFI_Type_Register, type);
  type.type_name = "xlazy_test_factor";
  type.type_name_size = strlen(type.type_name);
  type.type_info = &info;
  must_succeed("type_register", ffi->type_register(&type));
  factor_type = type.type_id;
  CHECK(factor_type != 0, "no type id");

  ARGS(FFI_Register_Handler, handler);
  handler.target_name = "xlazy_test_scale";
  handler.target_name_size = strlen(handler.target_name);
  handler.handler = (void*)scale;
  handler.platform_name = "Host";
  handler.platform_name_size = 4;
  must_succeed("register_handler", ffi->register_handler(&handler));

  ARGS(ExecuteContext_Create, context);
  CALL(ExecuteContext_Create, &context);
  float factor = 3;
  ARGS(FFI_UserData_Add, user);
  user.context = context.context;
  user.user_data.type_id = factor_type;
  user.user_data.data = &factor;
  must_succeed("user_data_add", ffi->user_data_add(&user));

  PJRT_Client* client = make_client(1);
  PJRT_LoadedExecutable* executable = compile(client, kScale);
  float data[4] = {1, 2, 3, 4}, got[4];
  int64_t dims[1] = {4};
  PJRT_Buffer *input[1] = {put(client, 0, data, 1, dims)}, *output[1];
  PJRT_Buffer **input_list[1] = {input}, **output_list[1] = {output};
  PJRT_ExecuteOptions options;
  memset(&options, 0, sizeof options);
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.context = context.context;
  execute(executable, 1, 1, input_list, output_list, &options);
  get(output[0], got, 4);
  CHECK(got[0] == 3 && got[3] == 12, "%g %g", got[0], got[3]);
  destroy_buffer(output[0]);
  destroy_buffer(input[0]);
  destroy_executable(executable);
  destroy_client(client);
  ARGS(ExecuteContext_Destroy, destroy);
  destroy.context = context.context;
  CALL(ExecuteContext_Destroy, &destroy);
}
