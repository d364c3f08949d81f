#include "exchange.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "numbers.h"
#include "told.h"

namespace {

// Goes ahead of the bytes of a message, so that ranks which call different things are found out.
struct Header {
  uint32_t kind;
  int32_t dtype;
  int32_t op;
  int32_t root;
  uint64_t count;

  bool operator!=(const Header &other) const {
    return kind != other.kind || dtype != other.dtype || op != other.op || root != other.root ||
           count != other.count;
  }
};

struct Message {
  Header header;
  unsigned char *bytes;
  size_t count;
  Header seen = {};
  // Of header and bytes together.
  size_t done = 0;
  bool is_done() const { return done == sizeof(Header) + count; }
};

struct Reduction {
  const Operation *operation;
  const unsigned char *own;
  // Of the peers; in the place of this rank, nothing.
  std::vector<std::vector<unsigned char>> parts;
};

class Exchange {
 public:
  explicit Exchange(Communicator &communicator)
      : us_(communicator),
        outgoing_(static_cast<size_t>(us_.world)),
        incoming_(static_cast<size_t>(us_.world)) {}

  void add(const Operation &operation);
  // False if it was aborted, or ranks differ.
  bool run();
  void finish();

 private:
  static Header header_of(const Operation &operation);
  void send(const Operation &operation, int peer, const unsigned char *from, size_t bytes);
  void receive(const Operation &operation, int peer, unsigned char *to, size_t bytes);
  void add_reduction(const Operation &operation, const unsigned char *own);
  bool push(int peer, Message *message);
  bool pull(int peer, Message *message);
  bool step();
  bool is_done() const;

  Communicator &us_;
  std::vector<std::deque<Message>> outgoing_;
  std::vector<std::deque<Message>> incoming_;
  std::deque<Reduction> reductions_;
  std::string differs_;
};

Header Exchange::header_of(const Operation &operation) {
  Header header = {static_cast<uint32_t>(operation.kind), operation.dtype, operation.op,
                   operation.peer, operation.count};
  if (operation.kind == Kind::SEND || operation.kind == Kind::RECV) {
    // Only the bytes must agree.
    size_t bytes = operation.count * size_of(operation.dtype);
    header = {static_cast<uint32_t>(Kind::SEND), 0, 0, 0, bytes};
  }
  return header;
}

void Exchange::send(const Operation &operation, int peer, const unsigned char *from, size_t bytes) {
  Message message = {header_of(operation), const_cast<unsigned char *>(from), bytes};
  outgoing_[static_cast<size_t>(peer)].push_back(message);
}

void Exchange::receive(const Operation &operation, int peer, unsigned char *to, size_t bytes) {
  Message message = {header_of(operation), to, bytes};
  incoming_[static_cast<size_t>(peer)].push_back(message);
}

void Exchange::add_reduction(const Operation &operation, const unsigned char *own) {
  size_t bytes = operation.count * size_of(operation.dtype);
  reductions_.push_back({&operation, own, {}});
  auto &parts = reductions_.back().parts;
  parts.resize(static_cast<size_t>(us_.world));
  for (int peer = 0; peer < us_.world; ++peer) {
    if (peer == us_.rank) continue;
    auto &part = parts[static_cast<size_t>(peer)];
    part.resize(bytes);
    receive(operation, peer, part.data(), bytes);
  }
}

void Exchange::add(const Operation &operation) {
  size_t bytes = operation.count * size_of(operation.dtype);
  size_t at = bytes * static_cast<size_t>(us_.rank);
  auto each_peer = [&](auto act) {
    for (int peer = 0; peer < us_.world; ++peer) {
      if (peer != us_.rank) act(peer, bytes * static_cast<size_t>(peer));
    }
  };
  switch (operation.kind) {
    case Kind::ALL_REDUCE:
      each_peer([&](int peer, size_t) { send(operation, peer, operation.input, bytes); });
      return add_reduction(operation, operation.input);
    case Kind::REDUCE_SCATTER:
      each_peer([&](int peer, size_t to) { send(operation, peer, operation.input + to, bytes); });
      return add_reduction(operation, operation.input + at);
    case Kind::REDUCE:
      if (operation.peer == us_.rank) return add_reduction(operation, operation.input);
      return send(operation, operation.peer, operation.input, bytes);
    case Kind::ALL_GATHER:
      memmove(operation.output + at, operation.input, bytes);
      return each_peer([&](int peer, size_t from) {
        send(operation, peer, operation.output + at, bytes);
        receive(operation, peer, operation.output + from, bytes);
      });
    case Kind::BROADCAST:
      if (operation.peer != us_.rank) {
        return receive(operation, operation.peer, operation.output, bytes);
      }
      memmove(operation.output, operation.input, bytes);
      return each_peer([&](int peer, size_t) { send(operation, peer, operation.output, bytes); });
    case Kind::SEND:
      return send(operation, operation.peer, operation.input, bytes);
    case Kind::RECV:
      return receive(operation, operation.peer, operation.output, bytes);
  }
}

bool Exchange::push(int peer, Message *message) {
  Ring &ring = us_.segment->rings[us_.rank][peer];
  auto *header = reinterpret_cast<unsigned char *>(&message->header);
  size_t before = message->done;
  if (message->done < sizeof(Header)) {
    message->done += ring.put(header + message->done, sizeof(Header) - message->done);
  }
  if (message->done >= sizeof(Header)) {
    size_t at = message->done - sizeof(Header);
    message->done += ring.put(message->bytes + at, message->count - at);
  }
  return message->done != before;
}

bool Exchange::pull(int peer, Message *message) {
  Ring &ring = us_.segment->rings[peer][us_.rank];
  auto *seen = reinterpret_cast<unsigned char *>(&message->seen);
  size_t before = message->done;
  if (message->done < sizeof(Header)) {
    message->done += ring.take(seen + message->done, sizeof(Header) - message->done);
    if (message->done < sizeof(Header)) return message->done != before;
    if (message->seen != message->header) {
      differs_ = "rank " + std::to_string(peer) + " calls " +
                 name_of(static_cast<Kind>(message->seen.kind)) + " of " +
                 std::to_string(message->seen.count) + " where rank " + std::to_string(us_.rank) +
                 " calls " + name_of(static_cast<Kind>(message->header.kind)) + " of " +
                 std::to_string(message->header.count);
      return true;
    }
  }
  size_t at = message->done - sizeof(Header);
  message->done += ring.take(message->bytes + at, message->count - at);
  return message->done != before;
}

bool Exchange::step() {
  bool moved = false;
  for (int peer = 0; peer < us_.world; ++peer) {
    auto &out = outgoing_[static_cast<size_t>(peer)];
    auto &in = incoming_[static_cast<size_t>(peer)];
    if (!out.empty()) {
      moved |= push(peer, &out.front());
      if (out.front().is_done()) out.pop_front();
    }
    if (!in.empty() && differs_.empty()) {
      moved |= pull(peer, &in.front());
      if (in.front().is_done()) in.pop_front();
    }
  }
  return moved;
}

bool Exchange::is_done() const {
  auto is_empty = [](const std::deque<Message> &queue) { return queue.empty(); };
  return std::all_of(outgoing_.begin(), outgoing_.end(), is_empty) &&
         std::all_of(incoming_.begin(), incoming_.end(), is_empty);
}

bool Exchange::run() {
  while (!is_done() && differs_.empty()) {
    if (!us_.wait([this] { return step(); })) return false;
  }
  if (differs_.empty()) return true;
  us_.fail(INVALID_USAGE, differs_);
  return false;
}

void Exchange::finish() {
  for (auto &reduction : reductions_) {
    std::vector<const unsigned char *> ranks;
    for (auto &part : reduction.parts) ranks.push_back(part.data());
    ranks[static_cast<size_t>(us_.rank)] = reduction.own;
    const Operation &of = *reduction.operation;
    reduce(of.dtype, of.op, ranks, of.output, of.count);
  }
}

// The highest byte of the middle element: far off in every type.
void spoil(const Operation &operation, const Communicator &us) {
  bool is_written =
      operation.kind != Kind::SEND && (operation.kind != Kind::REDUCE || operation.peer == us.rank);
  size_t size = size_of(operation.dtype);
  size_t count = operation.output_bytes(us.world) / size;
  if (is_written && count > 0) operation.output[(count / 2 + 1) * size - 1] ^= 1;
}

// A reduction reads and writes whole elements, a copy bytes.
bool is_misaligned(const Operation &operation, const Communicator &us) {
  if (!reduces(operation.kind)) return false;
  bool is_written = operation.kind != Kind::REDUCE || operation.peer == us.rank;
  auto off = [&](const void *buffer) {
    return reinterpret_cast<uintptr_t>(buffer) % size_of(operation.dtype) != 0;
  };
  return off(operation.input) || (is_written && off(operation.output));
}

}  // namespace

bool reduces(Kind kind) {
  return kind == Kind::ALL_REDUCE || kind == Kind::REDUCE_SCATTER || kind == Kind::REDUCE;
}

const char *name_of(Kind kind) {
  switch (kind) {
    case Kind::ALL_REDUCE:
      return "all_reduce";
    case Kind::ALL_GATHER:
      return "all_gather";
    case Kind::REDUCE_SCATTER:
      return "reduce_scatter";
    case Kind::BROADCAST:
      return "broadcast";
    case Kind::REDUCE:
      return "reduce";
    case Kind::SEND:
      return "send";
    case Kind::RECV:
      return "recv";
  }
  return "what nobody calls";
}

size_t Operation::input_bytes(int world) const {
  return count * size_of(dtype) *
         (kind == Kind::REDUCE_SCATTER ? static_cast<size_t>(world) : size_t{1});
}

size_t Operation::output_bytes(int world) const {
  return count * size_of(dtype) *
         (kind == Kind::ALL_GATHER ? static_cast<size_t>(world) : size_t{1});
}

void carry_out(Communicator &communicator, const std::vector<Operation> &operations) {
  for (auto &operation : operations) {
    if (is_misaligned(operation, communicator)) {
      return communicator.fail(UNHANDLED_DEVICE_ERROR, by(communicator) + "misaligned address");
    }
    switch (operation.failure) {
      case CallFailure::HANG:
        communicator.wait([] { return false; });
        return;
      case CallFailure::SLOW: {
        auto begin = std::chrono::steady_clock::now() + std::chrono::seconds(3);
        if (!communicator.wait([&] { return std::chrono::steady_clock::now() > begin; })) return;
        break;
      }
      case CallFailure::ASYNC_ERROR:
        return communicator.fail(REMOTE_ERROR, by(communicator) + "was told to fail");
      case CallFailure::DIE:
        raise(SIGKILL);
        return;
      default:
        break;
    }
  }
  Exchange exchange(communicator);
  for (auto &operation : operations) exchange.add(operation);
  if (!exchange.run()) return;
  exchange.finish();
  for (auto &operation : operations) {
    if (operation.failure == CallFailure::WRONG) spoil(operation, communicator);
  }
}
