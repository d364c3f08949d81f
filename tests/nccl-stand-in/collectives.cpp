// The collectives, and sends and receives.
#include "algorithms.h"
#include "groups.h"
#include "lifecycle.h"
#include "numbers.h"
#include "told.h"

namespace {

bool has_peer(Kind kind) {
  return kind == Kind::BROADCAST || kind == Kind::REDUCE || kind == Kind::SEND ||
         kind == Kind::RECV;
}

// Why the call cannot be, or nothing.
std::string wrong_with(const Communicator &us, const Operation &call, const CollConfig *config) {
  size_t size = size_of(call.dtype);
  bool at_root = call.peer == us.rank;
  bool reads = call.kind != Kind::RECV && (call.kind != Kind::BROADCAST || at_root);
  bool writes = call.kind != Kind::SEND && (call.kind != Kind::REDUCE || at_root);
  if (size == 0) return "data type " + std::to_string(call.dtype) + " is unknown";
  if (reduces(call.kind) && (call.op < 0 || call.op >= REDUCE_OPS)) {
    return "reduction " + std::to_string(call.op) + " is unknown";
  }
  if (has_peer(call.kind) && (call.peer < 0 || call.peer >= us.world)) {
    return "there is no rank " + std::to_string(call.peer);
  }
  if (call.count > 0 && ((reads && call.input == nullptr) || (writes && call.output == nullptr))) {
    return "a buffer is null";
  }
  if (config != nullptr && config->magic != MAGIC) return "the config was not initialised";
  if (config != nullptr && config->min_ctas != UNSET && config->max_ctas != UNSET &&
      config->min_ctas > config->max_ctas) {
    return "the config wants more CTAs than it allows";
  }
  return "";
}

bool is_within(Communicator *us, const unsigned char *buffer, size_t bytes) {
  std::lock_guard<std::mutex> guard(us->windows_lock);
  auto from = reinterpret_cast<uintptr_t>(buffer);
  for (auto &[base, end] : us->windows) {
    if (from >= base && from + bytes <= end) return true;
  }
  return false;
}

bool is_symmetric(Communicator *us, const Operation &call) {
  return is_within(us, call.input, call.input_bytes(us->world)) &&
         is_within(us, call.output, call.output_bytes(us->world));
}

void tell_call(Communicator *us, const Operation &call, const CollConfig *config) {
  std::string line = by(*us) + name_of(call.kind) + " count=" + std::to_string(call.count) +
                     " dtype=" + std::to_string(call.dtype);
  if (reduces(call.kind)) line += " op=" + std::to_string(call.op);
  if (has_peer(call.kind)) line += " peer=" + std::to_string(call.peer);
  if (is_symmetric(us, call)) line += " symmetric";
  if (config != nullptr) {
    auto shown = [](int value) { return value == UNSET ? "-" : std::to_string(value); };
    line += " min_ctas=" + shown(config->min_ctas) + " max_ctas=" + shown(config->max_ctas) +
            " algorithms=" + (config->algorithms == nullptr ? "-" : config->algorithms);
  }
  tell(line);
}

Status call(Kind kind, const void *input, void *output, size_t count, int dtype, int op, int peer,
            Comm comm, Stream stream, const CollConfig *config = nullptr) {
  auto us = find(comm);
  if (!us) return refuse_call(INVALID_ARGUMENT, "there is no such communicator");
  Status status = us->ready();
  if (status != SUCCESS) return refuse_call(status, last_refusal());
  Operation operation = {kind,  static_cast<const unsigned char *>(input),
                         static_cast<unsigned char *>(output),
                         count, dtype,
                         op,    peer,
                         CallFailure::NONE};
  std::string why = wrong_with(*us, operation, config);
  if (!why.empty()) return refuse_call(INVALID_ARGUMENT, by(*us) + name_of(kind) + ": " + why);
  if (config != nullptr && config->algorithms != nullptr && config->force_algorithms != 0 &&
      !can_choose(config->algorithms, kind, is_symmetric(us.get(), operation))) {
    return refuse_call(INVALID_USAGE, by(*us) + name_of(kind) + ": no algorithm of " +
                                          config->algorithms + " can serve it");
  }
  if (count == 0 && kind != Kind::SEND && kind != Kind::RECV) return SUCCESS;
  tell_call(us.get(), operation, config);
  operation.failure = us->failures.of_call(us->next_call());
  if (operation.failure == CallFailure::FAIL) {
    return refuse_call(UNHANDLED_DEVICE_ERROR, by(*us) + "was told to fail");
  }
  if (operation.failure == CallFailure::INSIDE) {
    us->wait([] { return false; });
    return us->aborted_error();
  }
  return submit(us, operation, stream);
}

}  // namespace

EXPORT Status ncclAllReduce(const void *input, void *output, size_t count, int dtype, int op,
                            Comm comm, Stream stream) {
  return call(Kind::ALL_REDUCE, input, output, count, dtype, op, 0, comm, stream);
}

EXPORT Status ncclAllGather(const void *input, void *output, size_t count, int dtype, Comm comm,
                            Stream stream) {
  return call(Kind::ALL_GATHER, input, output, count, dtype, 0, 0, comm, stream);
}

EXPORT Status ncclReduceScatter(const void *input, void *output, size_t count, int dtype, int op,
                                Comm comm, Stream stream) {
  return call(Kind::REDUCE_SCATTER, input, output, count, dtype, op, 0, comm, stream);
}

EXPORT Status ncclBroadcast(const void *input, void *output, size_t count, int dtype, int root,
                            Comm comm, Stream stream) {
  return call(Kind::BROADCAST, input, output, count, dtype, 0, root, comm, stream);
}

EXPORT Status ncclReduce(const void *input, void *output, size_t count, int dtype, int op, int root,
                         Comm comm, Stream stream) {
  return call(Kind::REDUCE, input, output, count, dtype, op, root, comm, stream);
}

EXPORT Status ncclSend(const void *input, size_t count, int dtype, int peer, Comm comm,
                       Stream stream) {
  return call(Kind::SEND, input, nullptr, count, dtype, 0, peer, comm, stream);
}

EXPORT Status ncclRecv(void *output, size_t count, int dtype, int peer, Comm comm, Stream stream) {
  return call(Kind::RECV, nullptr, output, count, dtype, 0, peer, comm, stream);
}

#ifdef HAS_COLL_CONFIG
EXPORT Status ncclAllReduceConfig(const void *input, void *output, size_t count, int dtype, int op,
                                  Comm comm, Stream stream, const CollConfig *config) {
  return call(Kind::ALL_REDUCE, input, output, count, dtype, op, 0, comm, stream, config);
}

EXPORT Status ncclAllGatherConfig(const void *input, void *output, size_t count, int dtype,
                                  Comm comm, Stream stream, const CollConfig *config) {
  return call(Kind::ALL_GATHER, input, output, count, dtype, 0, 0, comm, stream, config);
}

EXPORT Status ncclReduceScatterConfig(const void *input, void *output, size_t count, int dtype,
                                      int op, Comm comm, Stream stream, const CollConfig *config) {
  return call(Kind::REDUCE_SCATTER, input, output, count, dtype, op, 0, comm, stream, config);
}

EXPORT Status ncclBroadcastConfig(const void *input, void *output, size_t count, int dtype,
                                  int root, Comm comm, Stream stream, const CollConfig *config) {
  return call(Kind::BROADCAST, input, output, count, dtype, 0, root, comm, stream, config);
}

EXPORT Status ncclReduceConfig(const void *input, void *output, size_t count, int dtype, int op,
                               int root, Comm comm, Stream stream, const CollConfig *config) {
  return call(Kind::REDUCE, input, output, count, dtype, op, root, comm, stream, config);
}
#endif
