// The second of the two heavy translation units: see unit_client.cc.

#include "buffer.cc"
#include "transfer.cc"
#include "async_transfer.cc"
#include "compile.cc"
#include "executable.cc"
#include "execute.cc"
