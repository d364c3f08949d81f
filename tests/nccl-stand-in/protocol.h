// The memory that the ranks of a communicator share. It has no name: the process that made the
// unique id keeps its descriptor until all have it, so that nothing is left behind however a rank
// ends.
#pragma once

#include <atomic>
#include <string>

#include "abi.h"

const int MAX_RANKS = 64;
const size_t RING_BYTES = 16384;

// Bytes from one rank to another. Each counter has one writer.
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) unsigned char bytes[RING_BYTES];

  // As many of `count` bytes as there is room for, or as have come.
  size_t put(const unsigned char *from, size_t count);
  size_t take(unsigned char *to, size_t count);
};

// What a rank says to all. Plain fields are read behind a barrier.
struct Seat {
  alignas(64) std::atomic<uint64_t> arrived;
  std::atomic<uint32_t> taken;
  std::atomic<uint32_t> aborted;
  int world;
  int version;
  int color;
  int key;
  uint64_t window_bytes;
  UniqueId child;
};

struct Shared {
  uint64_t nonce;
  std::atomic<uint32_t> closed;
  Seat seats[MAX_RANKS];
  Ring rings[MAX_RANKS][MAX_RANKS];
};

class Segment {
 public:
  Segment() = default;
  Segment(const Segment &) = delete;
  ~Segment();

  // Maps what the id names; false and a sentence if it is not there.
  bool open(const UniqueId &id, std::string *why);
  // All ranks have it: it can do without its descriptor.
  void close_descriptor(const UniqueId &id);

  bool is_open() const { return shared_ != nullptr; }
  Shared *operator->() const { return shared_; }

 private:
  Shared *shared_ = nullptr;
};

// Makes the memory of a communicator, and the id that names it.
bool make_segment(UniqueId *id, std::string *why);
