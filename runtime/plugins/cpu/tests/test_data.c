// Data in and out of buffers.
#define _GNU_SOURCE
#include "support.h"

static PJRT_Client* client;

typedef struct {
  PJRT_Buffer* buffer;
  PJRT_Event* done;
} Put;

static Put put_with(PJRT_HostBufferSemantics semantics, const float* data, size_t count) {
  int64_t dims[1] = {(int64_t)count};
  ARGS(Client_BufferFromHostBuffer, args);
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 1;
  args.host_buffer_semantics = semantics;
  args.device = device_at(client, 0);
  CALL(Client_BufferFromHostBuffer, &args);
  return (Put){args.buffer, args.done_with_host_buffer};
}

static float* aligned_floats(size_t count) {
  float* data = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  for (size_t i = 0; i < count; i++) data[i] = (float)i;
  return data;
}

static void test_semantics(void) {
  size_t sizes[] = {16, 1 << 20};  // copied by the calling thread, and by another one
  for (int s = 0; s < 2; s++) {
    size_t count = sizes[s];
    float *data = aligned_floats(count), *got = malloc(count * sizeof(float));

    Put during = put_with(PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, data, count);
    data[3] = -1;  // allowed as soon as the call is over
    get(during.buffer, got, count);
    CHECK(got[3] == 3, "%zu floats, only during the call: %g", count, got[3]);
    CHECK(address_of(during.buffer) != data, "the buffer aliases what may change");
    must_succeed("done", wait_for(during.done));
    destroy_buffer(during.buffer);
    data[3] = 3;

    Put until = put_with(PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes, data, count);
    must_succeed("done", wait_for(until.done));
    data[3] = -1;
    get(until.buffer, got, count);
    CHECK(got[3] == 3, "%zu floats, until the transfer completes: %g", count, got[3]);
    destroy_buffer(until.buffer);
    data[3] = 3;

    PJRT_HostBufferSemantics zero_copy[] = {PJRT_HostBufferSemantics_kImmutableZeroCopy,
                                            PJRT_HostBufferSemantics_kMutableZeroCopy};
    for (int z = 0; z < 2; z++) {
      Put aliased = put_with(zero_copy[z], data, count);
      CHECK(address_of(aliased.buffer) == data, "zero copy made a copy");
      CHECK(!is_ready(aliased.done), "the host's memory was given back while the buffer lives");
      get(aliased.buffer, got, count);
      CHECK(got[count - 1] == (float)(count - 1), "%g", got[count - 1]);
      destroy_buffer(aliased.buffer);
      must_succeed("done", wait_for(aliased.done));
    }
    free(data);
    free(got);
  }
}

static void test_host_layouts(void) {
  float data[6] = {0, 1, 2, 3, 4, 5}, got[6];
  int64_t dims[2] = {2, 3};
  PJRT_Buffer* buffer = put(client, 0, data, 2, dims);
  ARGS(Buffer_ToHostBuffer, args);
  args.src = buffer;
  CALL(Buffer_ToHostBuffer, &args);
  CHECK(args.dst_size == 24, "asked for a size of %zu", args.dst_size);

  int64_t columns[2] = {0, 1}, strides[2] = {4, 8}, gaps[2] = {4, 16};
  PJRT_Buffer_MemoryLayout layout;
  memset(&layout, 0, sizeof layout);
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = columns;
  layout.tiled.minor_to_major_size = 2;
  args.host_layout = &layout;
  args.dst = got;
  CALL(Buffer_ToHostBuffer, &args);
  must_succeed("copy by columns", wait_for(args.event));
  CHECK(got[0] == 0 && got[1] == 3 && got[2] == 1 && got[5] == 5, "by columns: %g %g %g", got[0], got[1], got[2]);

  memset(got, 0, sizeof got);
  memset(&layout, 0, sizeof layout);
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  layout.strides.struct_size = PJRT_Buffer_MemoryLayout_Strides_STRUCT_SIZE;
  layout.strides.byte_strides = strides;
  layout.strides.num_byte_strides = 2;
  CALL(Buffer_ToHostBuffer, &args);
  must_succeed("copy by strides", wait_for(args.event));
  CHECK(got[1] == 3 && got[2] == 1, "by strides: %g %g", got[1], got[2]);
  layout.strides.byte_strides = gaps;
  FAILS(Buffer_ToHostBuffer, &args, UNIMPLEMENTED, "gaps");

  args.host_layout = NULL;
  args.dst_size = 23;
  FAILS(Buffer_ToHostBuffer, &args, INVALID_ARGUMENT, "dst_size is 23");

  ARGS(Buffer_GetMemoryLayout, where);
  where.buffer = buffer;
  CALL(Buffer_GetMemoryLayout, &where);
  CHECK(where.layout.tiled.minor_to_major_size == 2 && where.layout.tiled.minor_to_major[0] == 1, "wrong layout");
  destroy_buffer(buffer);

  // From the host by columns.
  ARGS(Client_BufferFromHostBuffer, from);
  from.client = client;
  from.data = data;
  from.type = PJRT_Buffer_Type_F32;
  from.dims = dims;
  from.num_dims = 2;
  from.byte_strides = strides;
  from.num_byte_strides = 2;
  from.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  from.device = device_at(client, 0);
  CALL(Client_BufferFromHostBuffer, &from);
  must_succeed("done", wait_for(from.done_with_host_buffer));
  get(from.buffer, got, 6);
  CHECK(got[1] == 2 && got[3] == 1, "from columns: %g %g", got[1], got[3]);
  destroy_buffer(from.buffer);
  from.type = (PJRT_Buffer_Type)99;
  FAILS(Client_BufferFromHostBuffer, &from, INVALID_ARGUMENT, "element type 99");
}

static void test_errors_in_data(void) {
  int64_t dims[1] = {4};
  ARGS(Device_DefaultMemory, memory);
  memory.device = device_at(client, 0);
  CALL(Device_DefaultMemory, &memory);
  ARGS(Client_CreateErrorBuffer, args);
  args.client = client;
  args.error_code = PJRT_Error_Code_DATA_LOSS;
  args.error_message = "the dog ate it";
  args.error_message_size = 14;
  args.shape_dims = dims;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.memory = memory.memory;
  CALL(Client_CreateErrorBuffer, &args);
  float got[4];
  ARGS(Buffer_ToHostBuffer, copy);
  copy.src = args.buffer;
  copy.dst = got;
  copy.dst_size = sizeof got;
  CALL(Buffer_ToHostBuffer, &copy);
  must_fail("copy of an error", wait_for(copy.event), PJRT_Error_Code_DATA_LOSS, "the dog ate it");
  destroy_buffer(args.buffer);

  float data[4] = {1, 2, 3, 4};
  PJRT_Buffer* buffer = put(client, 0, data, 1, dims);
  ARGS(Buffer_Delete, deletion);
  deletion.buffer = buffer;
  CALL(Buffer_Delete, &deletion);
  CHECK(is_deleted(buffer), "a deleted buffer says it is not");
  copy.src = buffer;
  PJRT_Error* error = api->PJRT_Buffer_ToHostBuffer(&copy);
  if (error == NULL) error = wait_for(copy.event);
  CHECK(error != NULL, "a deleted buffer can be read");
  if (error != NULL) destroy_error(error);
  destroy_buffer(buffer);
}

static int callbacks;
static void on_ready(PJRT_Error* error, void* user) {
  callbacks += error == NULL ? *(int*)user : 100;
  if (error != NULL) destroy_error(error);
}

static void test_events(void) {
  int step = 1;
  for (int code = 0; code < 2; code++) {
    ARGS(Event_Create, created);
    CALL(Event_Create, &created);
    CHECK(!is_ready(created.event), "a new event is ready");
    ARGS(Event_OnReady, listen);
    listen.event = created.event;
    listen.callback = on_ready;
    listen.user_arg = &step;
    CALL(Event_OnReady, &listen);
    ARGS(Event_Set, set);
    set.event = created.event;
    set.error_code = code ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK;
    set.error_message = "enough";
    set.error_message_size = 6;
    CALL(Event_Set, &set);
    FAILS(Event_Set, &set, FAILED_PRECONDITION, "already set");
    CHECK(callbacks == (code ? 101 : 1), "callbacks made %d", callbacks);
    PJRT_Error* error = wait_for(created.event);
    if (code) {
      must_fail("event", error, PJRT_Error_Code_ABORTED, "enough");
    } else {
      must_succeed("event", error);
    }
  }
}

static void test_transfer_manager(void) {
  ARGS(Device_DefaultMemory, memory);
  memory.device = device_at(client, 0);
  CALL(Device_DefaultMemory, &memory);
  int64_t dims[1] = {8};
  PJRT_ShapeSpec specs[2];
  memset(specs, 0, sizeof specs);
  for (int i = 0; i < 2; i++) {
    specs[i].struct_size = PJRT_ShapeSpec_STRUCT_SIZE;
    specs[i].dims = dims;
    specs[i].num_dims = 1;
    specs[i].element_type = PJRT_Buffer_Type_F32;
  }
  ARGS(Client_CreateBuffersForAsyncHostToDevice, create);
  create.client = client;
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.memory = memory.memory;
  CALL(Client_CreateBuffersForAsyncHostToDevice, &create);
  ARGS(AsyncHostToDeviceTransferManager_BufferCount, count);
  count.transfer_manager = create.transfer_manager;
  CALL(AsyncHostToDeviceTransferManager_BufferCount, &count);
  CHECK(count.buffer_count == 2, "%zu buffers", count.buffer_count);

  PJRT_Buffer* buffers[2];
  for (int i = 0; i < 2; i++) {
    ARGS(AsyncHostToDeviceTransferManager_RetrieveBuffer, retrieve);
    retrieve.transfer_manager = create.transfer_manager;
    retrieve.buffer_index = i;
    CALL(AsyncHostToDeviceTransferManager_RetrieveBuffer, &retrieve);
    buffers[i] = retrieve.buffer_out;
  }
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7}, got[8];
  for (int half = 0; half < 2; half++) {
    ARGS(AsyncHostToDeviceTransferManager_TransferData, transfer);
    transfer.transfer_manager = create.transfer_manager;
    transfer.data = data + 4 * half;
    transfer.offset = 16 * half;
    transfer.transfer_size = 16;
    transfer.is_last_transfer = half == 1;
    CALL(AsyncHostToDeviceTransferManager_TransferData, &transfer);
    must_succeed("transfer", wait_for(transfer.done_with_h2d_transfer));
    transfer.buffer_index = 7;
    FAILS(AsyncHostToDeviceTransferManager_TransferData, &transfer, INVALID_ARGUMENT, "buffer_index 7");
  }
  get(buffers[0], got, 8);
  CHECK(!memcmp(got, data, sizeof data), "piecewise: %g %g", got[0], got[7]);
  ARGS(AsyncHostToDeviceTransferManager_SetBufferError, failure);
  failure.transfer_manager = create.transfer_manager;
  failure.buffer_index = 1;
  failure.error_code = PJRT_Error_Code_CANCELLED;
  failure.error_message = "no more";
  failure.error_message_size = 7;
  CALL(AsyncHostToDeviceTransferManager_SetBufferError, &failure);
  ARGS(Buffer_ReadyEvent, ready);
  ready.buffer = buffers[1];
  CALL(Buffer_ReadyEvent, &ready);
  must_fail("cancelled buffer", wait_for(ready.event), PJRT_Error_Code_CANCELLED, "no more");
  ARGS(AsyncHostToDeviceTransferManager_Destroy, destroy);
  destroy.transfer_manager = create.transfer_manager;
  CALL(AsyncHostToDeviceTransferManager_Destroy, &destroy);
  for (int i = 0; i < 2; i++) destroy_buffer(buffers[i]);
}

static void test_copies(void) {
  float data[4] = {1, 2, 3, 4}, got[4] = {0};
  int64_t dims[1] = {4};
  PJRT_Buffer* buffer = put(client, 0, data, 1, dims);
  ARGS(Buffer_CopyToDevice, copy);
  copy.buffer = buffer;
  copy.dst_device = device_at(client, 1);
  CALL(Buffer_CopyToDevice, &copy);
  get(copy.dst_buffer, got, 4);
  CHECK(!memcmp(got, data, sizeof data), "a copy on another device differs");
  ARGS(Buffer_Device, where);
  where.buffer = copy.dst_buffer;
  CALL(Buffer_Device, &where);
  CHECK(where.device == device_at(client, 1), "the copy is on another device than asked");
  destroy_buffer(copy.dst_buffer);

  ARGS(Buffer_CopyRawToHost, raw);
  raw.buffer = buffer;
  raw.dst = got;
  raw.offset = 4;
  raw.transfer_size = 8;
  CALL(Buffer_CopyRawToHost, &raw);
  must_succeed("raw copy", wait_for(raw.event));
  CHECK(got[0] == 2 && got[1] == 3, "raw copy: %g %g", got[0], got[1]);

  ARGS(Buffer_CopyRawToHostFuture, later);
  later.buffer = buffer;
  later.offset = 8;
  later.transfer_size = 8;
  CALL(Buffer_CopyRawToHostFuture, &later);
  CHECK(!is_ready(later.event), "copied to nowhere");
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args there;
  memset(&there, 0, sizeof there);
  there.struct_size = PJRT_Buffer_CopyRawToHostFuture_Callback_Args_STRUCT_SIZE;
  there.callback_data = later.callback_data;
  there.dst = got;
  later.future_ready_callback(&there);
  must_succeed("late copy", wait_for(later.event));
  CHECK(got[0] == 3 && got[1] == 4, "late copy: %g %g", got[0], got[1]);

  ARGS(Buffer_IncreaseExternalReferenceCount, hold);
  hold.buffer = buffer;
  CALL(Buffer_IncreaseExternalReferenceCount, &hold);
  ARGS(Buffer_OpaqueDeviceMemoryDataPointer, opaque);
  opaque.buffer = buffer;
  CALL(Buffer_OpaqueDeviceMemoryDataPointer, &opaque);
  CHECK(((float*)opaque.device_memory_ptr)[3] == 4, "the memory shows something else");
  ARGS(Buffer_DecreaseExternalReferenceCount, release);
  release.buffer = buffer;
  CALL(Buffer_DecreaseExternalReferenceCount, &release);
  FAILS(Buffer_DecreaseExternalReferenceCount, &release, INVALID_ARGUMENT, "no reference");
  destroy_buffer(buffer);
}

// A buffer that stands for another one which does not exist yet.
static void test_alias(void) {
  float data[4] = {1, 2, 3, 4}, got[4] = {0};
  int64_t dims[1] = {4};
  ARGS(Device_DefaultMemory, memory);
  memory.device = device_at(client, 0);
  CALL(Device_DefaultMemory, &memory);
  for (int fail = 0; fail < 2; fail++) {
    ARGS(Client_CreateAliasBuffer, create);
    create.client = client;
    create.memory = memory.memory;
    create.shape_dims = dims;
    create.shape_num_dims = 1;
    create.shape_element_type = PJRT_Buffer_Type_F32;
    CALL(Client_CreateAliasBuffer, &create);
    PJRT_Buffer* real = put(client, 0, data, 1, dims);
    ARGS(Client_FulfillAliasBuffer, fulfill);
    fulfill.client = client;
    fulfill.buffer = real;
    fulfill.fulfill_alias_buffer_cb = create.fulfill_alias_buffer_cb;
    fulfill.status_code = fail ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK;
    fulfill.error_message = "never mind";
    fulfill.error_message_size = 10;
    CALL(Client_FulfillAliasBuffer, &fulfill);
    if (fail) {
      ARGS(Buffer_ReadyEvent, ready);
      ready.buffer = create.alias_buffer;
      CALL(Buffer_ReadyEvent, &ready);
      must_fail("alias", wait_for(ready.event), PJRT_Error_Code_ABORTED, "never mind");
    } else {
      get(create.alias_buffer, got, 4);
      CHECK(got[3] == 4, "the alias shows %g", got[3]);
    }
    destroy_buffer(create.alias_buffer);
    destroy_buffer(real);
  }
}

void test_data(void) {
  client = make_client(2);
  test_semantics();
  test_host_layouts();
  test_errors_in_data();
  test_events();
  test_transfer_manager();
  test_copies();
  test_alias();
  destroy_client(client);
}
