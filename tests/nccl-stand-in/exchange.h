// What a call does when its stream comes to it.
#pragma once

#include <memory>
#include <vector>

#include "communicator.h"

enum class Kind : uint32_t {
  ALL_REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  BROADCAST,
  REDUCE,
  SEND,
  RECV
};
const char *name_of(Kind kind);
bool reduces(Kind kind);

struct Operation {
  Kind kind;
  const unsigned char *input;
  unsigned char *output;
  // Of each rank's part, where it is divided.
  size_t count;
  int dtype;
  int op;
  // Root or peer.
  int peer;
  CallFailure failure;

  size_t input_bytes(int world) const;
  size_t output_bytes(int world) const;
};

// The calls of a group on one communicator.
struct Launch {
  std::weak_ptr<Communicator> communicator;
  std::vector<Operation> operations;
  Stream stream;
  // Not ordered with others: it may run never, or often.
  bool is_captured;
  uint64_t ticket;
};

// All of them at once, so that none waits for another.
void carry_out(Communicator &communicator, const std::vector<Operation> &operations);
