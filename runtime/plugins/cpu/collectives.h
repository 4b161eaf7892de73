// Collectives between processes. The wheel has none of its own for that (no Gloo), so this plugin brings them.
#pragma once

#include <memory>
#include <string>

#include "kv_store.h"
#include "xla/backends/cpu/collectives/cpu_collectives.h"

namespace xlazy {

// Collectives over TCP: each clique of devices is a full mesh of connections, whose ends find each other through `store`.
// `address` is the IPv4 address under which the other processes reach this one.
std::shared_ptr<xla::cpu::CpuCollectives> MakeTcpCollectives(std::shared_ptr<KvStore> store, std::string address);

}  // namespace xlazy
