// Sockets: setting the mesh up, and the exchange loop.

#include "mesh.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "common.h"

namespace xlazy {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Minutes(2);
// A peer may compile for long before it joins a collective; one that died closes its socket, which is noticed at once.
constexpr int kSilenceMs = 30 * 60 * 1000;

absl::Status Failure(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("collectives: ", what, ": ", std::strerror(errno)));
}

// A listening or connected socket until it is handed over.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) : fd_(other.Release()) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

absl::Status WaitFor(int fd, short events, absl::Duration timeout) {
  pollfd wait{fd, events, 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return Failure("poll");
  if (ready == 0) return absl::DeadlineExceededError("collectives: a peer did not connect in time");
  return absl::OkStatus();
}

absl::StatusOr<sockaddr_in> ParseAddress(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("collectives_address must be an IPv4 address, not ", host));
  }
  return address;
}

struct Listener {
  Socket socket;
  int port;
};

absl::StatusOr<Listener> Listen(const std::string& host, size_t backlog) {
  XLAZY_ASSIGN(sockaddr_in address, ParseAddress(host, 0));
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return Failure("socket");
  socklen_t size = sizeof(address);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return Failure(absl::StrCat("bind ", host));
  if (listen(socket.get(), static_cast<int>(backlog)) != 0) return Failure("listen");
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return Failure("getsockname");
  return Listener{std::move(socket), ntohs(address.sin_port)};
}

absl::StatusOr<Socket> Dial(const std::string& host_and_port) {
  size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos) return absl::InternalError(absl::StrCat("collectives: bad address ", host_and_port));
  XLAZY_ASSIGN(sockaddr_in address,
               ParseAddress(host_and_port.substr(0, colon), std::atoi(host_and_port.c_str() + colon + 1)));
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return Failure("socket");
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return Failure(absl::StrCat("connect to ", host_and_port));
  }
  return socket;
}

// The dialling side says who it is: the listening side cannot tell from the connection.
absl::Status SendRank(int fd, uint32_t rank) {
  if (send(fd, &rank, sizeof(rank), MSG_NOSIGNAL) != sizeof(rank)) return Failure("send");
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ReceiveRank(int fd) {
  uint32_t rank = 0;
  XLAZY_TRY(WaitFor(fd, POLLIN, kConnectTimeout));
  if (recv(fd, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank)) return Failure("recv");
  return rank;
}

void Tune(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Sends what the socket takes now and moves `out` on.
absl::Status SendSome(int fd, Mesh::Out& out) {
  while (out.size != 0) {
    ssize_t sent = send(fd, out.data, out.size, MSG_NOSIGNAL);
    if (sent < 0) return WouldBlock() ? absl::OkStatus() : Failure("send");
    out.data += sent;
    out.size -= sent;
  }
  return absl::OkStatus();
}

absl::Status ReceiveSome(int fd, Mesh::In& in) {
  while (in.size != 0) {
    ssize_t got = recv(fd, in.data, in.size, 0);
    if (got == 0) return absl::UnavailableError("collectives: a peer closed its connection");
    if (got < 0) return WouldBlock() ? absl::OkStatus() : Failure("recv");
    in.data += got;
    in.size -= got;
  }
  return absl::OkStatus();
}

}  // namespace

Mesh::~Mesh() {
  for (int socket : sockets_) {
    if (socket >= 0) close(socket);
  }
}

absl::StatusOr<std::vector<std::unique_ptr<Mesh>>> Mesh::Connect(KvStore& store, const std::string& name,
                                                                 const std::string& address, size_t size,
                                                                 const std::vector<size_t>& mine) {
  auto key = [&](size_t rank) { return absl::StrCat("xlazy/collectives/", name, "/", rank); };
  std::vector<std::unique_ptr<Mesh>> meshes;
  std::vector<Listener> listeners;
  // All ranks listen before any of them dials: a dial succeeds against the backlog, so ranks of one process cannot wait for
  // each other here.
  for (size_t rank : mine) {
    meshes.push_back(std::unique_ptr<Mesh>(new Mesh(rank, size)));
    XLAZY_ASSIGN(Listener listener, Listen(address, size));
    XLAZY_TRY(store.Set(key(rank), absl::StrCat(address, ":", listener.port)));
    listeners.push_back(std::move(listener));
  }
  for (auto& mesh : meshes) {
    for (size_t peer = 0; peer < mesh->rank_; ++peer) {
      XLAZY_ASSIGN(std::string where, store.Get(key(peer), kConnectTimeout));
      XLAZY_ASSIGN(Socket socket, Dial(where));
      XLAZY_TRY(SendRank(socket.get(), static_cast<uint32_t>(mesh->rank_)));
      mesh->sockets_[peer] = socket.Release();
    }
  }
  for (size_t i = 0; i < meshes.size(); ++i) {
    Mesh& mesh = *meshes[i];
    for (size_t missing = size - 1 - mesh.rank_; missing > 0; --missing) {
      XLAZY_TRY(WaitFor(listeners[i].socket.get(), POLLIN, kConnectTimeout));
      Socket socket(accept4(listeners[i].socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.get() < 0) return Failure("accept");
      XLAZY_ASSIGN(uint32_t peer, ReceiveRank(socket.get()));
      if (peer <= mesh.rank_ || peer >= size || mesh.sockets_[peer] >= 0) {
        return absl::InternalError(absl::StrCat("collectives: unexpected rank ", peer, " connected"));
      }
      mesh.sockets_[peer] = socket.Release();
    }
    for (int socket : mesh.sockets_) {
      if (socket >= 0) Tune(socket);
    }
  }
  return meshes;
}

absl::Status Mesh::Exchange(std::vector<Out> out, std::vector<In> in) {
  absl::MutexLock lock(&mutex_);
  out.resize(size());
  in.resize(size());
  if (out[rank_].size != in[rank_].size) return absl::InternalError("collectives: a rank's own pieces differ in size");
  if (in[rank_].size != 0 && in[rank_].data != out[rank_].data) std::memmove(in[rank_].data, out[rank_].data, in[rank_].size);
  out[rank_] = {};
  in[rank_] = {};
  std::vector<pollfd> polls;
  while (true) {
    // Try first: small messages mostly go through without a single poll.
    for (size_t peer = 0; peer < size(); ++peer) XLAZY_TRY(SendSome(sockets_[peer], out[peer]));
    for (size_t peer = 0; peer < size(); ++peer) XLAZY_TRY(ReceiveSome(sockets_[peer], in[peer]));
    polls.clear();
    for (size_t peer = 0; peer < size(); ++peer) {
      short events = (out[peer].size != 0 ? POLLOUT : 0) | (in[peer].size != 0 ? POLLIN : 0);
      if (events != 0) polls.push_back({sockets_[peer], events, 0});
    }
    if (polls.empty()) return absl::OkStatus();
    int ready = poll(polls.data(), polls.size(), kSilenceMs);
    if (ready < 0 && errno != EINTR) return Failure("poll");
    if (ready == 0) return absl::DeadlineExceededError("collectives: no word from a peer for 30 minutes");
  }
}

}  // namespace xlazy
