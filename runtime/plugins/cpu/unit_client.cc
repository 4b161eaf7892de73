// The first of the two heavy translation units. XLA's client headers take 20 s and 1.4 GB to read, so the sources that need
// them are compiled as two units, one for each of the build's two jobs, and not one by one.

#include "convert.cc"
#include "client.cc"
#include "collectives.cc"
#include "device.cc"
#include "memory_counts.cc"
#include "topology.cc"
#include "layouts.cc"
