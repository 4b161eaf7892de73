// XLA's CPU plugin (XLAZY_TEST_PLUGIN), but for one thing: while the file XLAZY_TEST_ABORT exists, a compilation ends the
// process as XLA's own CHECKs do.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "xla/pjrt/c/pjrt_c_api.h"

static const PJRT_Api* real;
static PJRT_Api table;

static PJRT_Error* compile(PJRT_Client_Compile_Args* args) {
    if (access(getenv("XLAZY_TEST_ABORT"), F_OK) == 0) {
        fprintf(stderr, "F0000 compiler.cc:1] Check failed: the plugin gives up\n");
        abort();
    }
    return real->PJRT_Client_Compile(args);
}

const PJRT_Api* GetPjrtApi(void) {
    void* library = dlopen(getenv("XLAZY_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    if (!library) return NULL;
    real = ((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
    memcpy(&table, real, real->struct_size < sizeof table ? real->struct_size : sizeof table);
    table.PJRT_Client_Compile = compile;
    return &table;
}
