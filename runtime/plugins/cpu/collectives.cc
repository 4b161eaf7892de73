// XLA's collectives on top of the mesh: reductions, gathers, permutations, and messages between two ranks.

#include "collectives.h"

#include <atomic>
#include <complex>
#include <cstring>
#include <optional>
#include <vector>

#include "common.h"
#include "mesh.h"
#include "xla/core/collectives/clique_key.h"
#include "xla/core/collectives/communicator.h"
#include "xla/primitive_util.h"
#include "xla/stream_executor/device_address.h"
#include "xla/types.h"

namespace xlazy {
namespace {

using Address = stream_executor::DeviceAddressBase;
using xla::Future;
using xla::PrimitiveType;
using xla::ReductionKind;

const char* Read(const Address& address) { return static_cast<const char*>(address.opaque()); }
char* Write(const Address& address) { return static_cast<char*>(const_cast<void*>(address.opaque())); }

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

// XLA's minimum and maximum: a NaN on either side is the result.
template <class T>
T Smaller(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
T Larger(T a, T b) {
  return a != a || b < a ? a : b;
}

template <class T>
absl::Status ReduceInto(char* into, const char* from, size_t count, ReductionKind kind) {
  T* a = reinterpret_cast<T*>(into);
  const T* b = reinterpret_cast<const T*>(from);
  if constexpr (std::is_same_v<T, bool>) {
    // XLA names "or" SUM or MAX and "and" PRODUCT or MIN for predicates.
    bool any = kind == ReductionKind::SUM || kind == ReductionKind::MAX;
    for (size_t i = 0; i < count; ++i) a[i] = any ? (a[i] || b[i]) : (a[i] && b[i]);
    return absl::OkStatus();
  } else {
    switch (kind) {
      case ReductionKind::SUM:
        for (size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] + b[i]);
        return absl::OkStatus();
      case ReductionKind::PRODUCT:
        for (size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] * b[i]);
        return absl::OkStatus();
      default:
        break;
    }
    if constexpr (IsComplex<T>::value) {
      return absl::InvalidArgumentError("collectives: complex numbers have no order");
    } else {
      if (kind == ReductionKind::MIN) {
        for (size_t i = 0; i < count; ++i) a[i] = Smaller(b[i], a[i]);
      } else {
        for (size_t i = 0; i < count; ++i) a[i] = Larger(b[i], a[i]);
      }
      return absl::OkStatus();
    }
  }
}

absl::Status Reduce(char* into, const char* from, size_t count, PrimitiveType type, ReductionKind kind) {
  switch (type) {
    case xla::PRED: return ReduceInto<bool>(into, from, count, kind);
    case xla::S8: return ReduceInto<int8_t>(into, from, count, kind);
    case xla::S16: return ReduceInto<int16_t>(into, from, count, kind);
    case xla::S32: return ReduceInto<int32_t>(into, from, count, kind);
    case xla::S64: return ReduceInto<int64_t>(into, from, count, kind);
    case xla::U8: return ReduceInto<uint8_t>(into, from, count, kind);
    case xla::U16: return ReduceInto<uint16_t>(into, from, count, kind);
    case xla::U32: return ReduceInto<uint32_t>(into, from, count, kind);
    case xla::U64: return ReduceInto<uint64_t>(into, from, count, kind);
    case xla::F16: return ReduceInto<xla::half>(into, from, count, kind);
    case xla::BF16: return ReduceInto<xla::bfloat16>(into, from, count, kind);
    case xla::F32: return ReduceInto<float>(into, from, count, kind);
    case xla::F64: return ReduceInto<double>(into, from, count, kind);
    case xla::C64: return ReduceInto<std::complex<float>>(into, from, count, kind);
    case xla::C128: return ReduceInto<std::complex<double>>(into, from, count, kind);
    default:
      return absl::UnimplementedError(
          absl::StrCat("collectives: reduction of ", xla::primitive_util::LowercasePrimitiveTypeName(type)));
  }
}

class TcpCommunicator final : public xla::Communicator {
 public:
  explicit TcpCommunicator(std::unique_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  Future<> AllReduce(Address send, Address recv, PrimitiveType type, size_t count, ReductionKind kind,
                     const Executor&) override {
    // Each rank reduces one slice and hands it to the others: every byte crosses the wire twice however many ranks there are,
    // and all ranks get the same bits, as one rank alone decides the order of each sum.
    size_t width = xla::primitive_util::ByteWidth(type), n = mesh_->size(), rank = mesh_->rank();
    auto begin = [&](size_t rank) { return count * rank / n * width; };
    auto length = [&](size_t rank) { return begin(rank + 1) - begin(rank); };
    std::vector<Mesh::Out> out(n);
    for (size_t i = 0; i < n; ++i) out[i] = {Read(send) + begin(i), length(i)};
    char* own = Write(recv) + begin(rank);
    if (absl::Status s = ReduceSlices(std::move(out), own, length(rank) / width, type, kind); !s.ok()) return s;
    std::vector<Mesh::In> in(n);
    for (size_t i = 0; i < n; ++i) in[i] = {Write(recv) + begin(i), length(i)};
    return Future<>(mesh_->Exchange(std::vector<Mesh::Out>(n, {own, length(rank)}), std::move(in)));
  }

  Future<> ReduceScatter(Address send, Address recv, PrimitiveType type, size_t count, ReductionKind kind,
                         const Executor&) override {
    size_t bytes = count * xla::primitive_util::ByteWidth(type);
    std::vector<Mesh::Out> out(mesh_->size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = {Read(send) + i * bytes, bytes};
    return Future<>(ReduceSlices(std::move(out), Write(recv), count, type, kind));
  }

  Future<> AllGather(Address send, Address recv, PrimitiveType type, size_t count, const Executor&) override {
    size_t bytes = count * xla::primitive_util::ByteWidth(type);
    std::vector<Mesh::In> in(mesh_->size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = {Write(recv) + i * bytes, bytes};
    return Future<>(mesh_->Exchange(std::vector<Mesh::Out>(mesh_->size(), {Read(send), bytes}), std::move(in)));
  }

  Future<> AllToAll(absl::InlinedVector<Address, 4> send, absl::InlinedVector<Address, 4> recv, PrimitiveType type,
                    size_t count, const Executor&) override {
    size_t bytes = count * xla::primitive_util::ByteWidth(type), n = mesh_->size();
    if (send.size() != n || recv.size() != n) return Future<>(absl::InternalError("collectives: wrong number of pieces"));
    std::vector<Mesh::Out> out(n);
    std::vector<Mesh::In> in(n);
    for (size_t i = 0; i < n; ++i) {
      out[i] = {Read(send[i]), bytes};
      in[i] = {Write(recv[i]), bytes};
    }
    return Future<>(mesh_->Exchange(std::move(out), std::move(in)));
  }

  Future<> CollectivePermute(Address send, Address recv, PrimitiveType type, size_t count,
                             std::optional<xla::RankId> source, absl::Span<const xla::RankId> targets,
                             const Executor&) override {
    size_t bytes = count * xla::primitive_util::ByteWidth(type);
    std::vector<Mesh::Out> out(mesh_->size());
    std::vector<Mesh::In> in(mesh_->size());
    for (xla::RankId target : targets) out[target.value()] = {Read(send), bytes};
    if (source.has_value()) {
      in[source->value()] = {Write(recv), bytes};
    } else {
      std::memset(Write(recv), 0, bytes);
    }
    return Future<>(mesh_->Exchange(std::move(out), std::move(in)));
  }

  Future<> Broadcast(Address send, Address recv, PrimitiveType type, size_t count, xla::RankId root,
                     const Executor&) override {
    size_t bytes = count * xla::primitive_util::ByteWidth(type);
    std::vector<Mesh::Out> out(mesh_->size());
    std::vector<Mesh::In> in(mesh_->size());
    if (static_cast<size_t>(root.value()) == mesh_->rank()) out.assign(mesh_->size(), {Read(send), bytes});
    in[root.value()] = {Write(recv), bytes};
    return Future<>(mesh_->Exchange(std::move(out), std::move(in)));
  }

  Future<> Send(Address send, PrimitiveType type, size_t count, xla::RankId peer, const Executor&) override {
    std::vector<Mesh::Out> out(mesh_->size());
    out[peer.value()] = {Read(send), count * xla::primitive_util::ByteWidth(type)};
    return Future<>(mesh_->Exchange(std::move(out), {}));
  }

  Future<> Recv(Address recv, PrimitiveType type, size_t count, xla::RankId peer, const Executor&) override {
    std::vector<Mesh::In> in(mesh_->size());
    in[peer.value()] = {Write(recv), count * xla::primitive_util::ByteWidth(type)};
    return Future<>(mesh_->Exchange({}, std::move(in)));
  }

  absl::StatusOr<size_t> NumRanks() const override { return mesh_->size(); }
  absl::StatusOr<size_t> CurrentRank() override { return mesh_->rank(); }
  std::string ToString() const override { return absl::StrCat("tcp rank ", mesh_->rank(), " of ", mesh_->size()); }

 private:
  // Sends out[i] to rank i and reduces into `result` what the ranks sent here, `count` elements each: this rank's own first,
  // then the others' in their order.
  absl::Status ReduceSlices(std::vector<Mesh::Out> out, char* result, size_t count, PrimitiveType type, ReductionKind kind) {
    size_t bytes = count * xla::primitive_util::ByteWidth(type), n = mesh_->size();
    absl::MutexLock lock(&mutex_);
    // Pages that are touched for the first time cost as much as the wire: they are kept for the next time.
    if (room_ < bytes * (n - 1)) {
      room_ = bytes * (n - 1);
      pieces_.reset(new char[room_]);
    }
    std::vector<Mesh::In> in(n);
    char* piece = pieces_.get();
    for (size_t i = 0; i < n; ++i) {
      in[i] = {i == mesh_->rank() ? result : piece, bytes};
      if (i != mesh_->rank()) piece += bytes;
    }
    std::vector<Mesh::In> came = in;
    XLAZY_TRY(mesh_->Exchange(std::move(out), std::move(in)));
    for (const Mesh::In& from : came) {
      if (from.data != result) XLAZY_TRY(Reduce(result, from.data, count, type, kind));
    }
    return absl::OkStatus();
  }

  absl::Mutex mutex_;
  std::unique_ptr<char[]> pieces_;
  size_t room_ = 0;
  std::unique_ptr<Mesh> mesh_;
};

class TcpCollectives final : public xla::cpu::CpuCollectives {
 public:
  TcpCollectives(std::shared_ptr<KvStore> store, std::string address)
      : store_(std::move(store)), address_(std::move(address)), instance_(instances_.fetch_add(1)) {}

  absl::StatusOr<std::vector<std::unique_ptr<xla::Communicator>>> CreateCommunicators(
      const xla::CliqueKey& clique, const std::optional<xla::CliqueIds>&, absl::Span<const DeviceRank> ranks,
      const Config&) override {
    std::vector<size_t> mine;
    for (const DeviceRank& rank : ranks) mine.push_back(rank.rank.value());
    XLAZY_ASSIGN(auto meshes, Mesh::Connect(*store_, absl::StrCat(instance_, "/", clique.ToString()), address_,
                                            clique.num_devices(), mine));
    std::vector<std::unique_ptr<xla::Communicator>> communicators;
    for (auto& mesh : meshes) communicators.push_back(std::make_unique<TcpCommunicator>(std::move(mesh)));
    return communicators;
  }

 private:
  // Keeps the keys of a process's second client apart from those of its first; processes make their clients in one order.
  static std::atomic<int> instances_;

  std::shared_ptr<KvStore> store_;
  std::string address_;
  int instance_;
};

std::atomic<int> TcpCollectives::instances_{0};

}  // namespace

std::shared_ptr<xla::cpu::CpuCollectives> MakeTcpCollectives(std::shared_ptr<KvStore> store, std::string address) {
  return std::make_shared<TcpCollectives>(std::move(store), std::move(address));
}

}  // namespace xlazy
