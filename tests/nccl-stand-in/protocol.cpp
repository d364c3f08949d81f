#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace {

const uint64_t NAMED = 0x6e692d646e617473;

// What a unique id says.
struct Name {
  uint64_t magic;
  uint64_t nonce;
  int process;
  int descriptor;
};

Name read_name(const UniqueId &id) {
  Name name;
  memcpy(&name, id.internal, sizeof name);
  return name;
}

std::string failed(const char *what) { return std::string(what) + ": " + strerror(errno); }

}  // namespace

size_t Ring::put(const unsigned char *from, size_t count) {
  uint64_t at = written.load(std::memory_order_relaxed);
  size_t room = RING_BYTES - (at - read.load(std::memory_order_acquire));
  count = std::min(count, room);
  size_t first = std::min(count, RING_BYTES - at % RING_BYTES);
  memcpy(bytes + at % RING_BYTES, from, first);
  memcpy(bytes, from + first, count - first);
  written.store(at + count, std::memory_order_release);
  return count;
}

size_t Ring::take(unsigned char *to, size_t count) {
  uint64_t at = read.load(std::memory_order_relaxed);
  count = std::min<size_t>(count, written.load(std::memory_order_acquire) - at);
  size_t first = std::min(count, RING_BYTES - at % RING_BYTES);
  memcpy(to, bytes + at % RING_BYTES, first);
  memcpy(to + first, bytes, count - first);
  read.store(at + count, std::memory_order_release);
  return count;
}

Segment::~Segment() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
}

bool Segment::open(const UniqueId &id, std::string *why) {
  Name name = read_name(id);
  if (name.magic != NAMED) {
    *why = "the unique id was not made by this library";
    return false;
  }
  std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    *why = failed("the process that made the unique id has it no more");
    return false;
  }
  struct stat found;
  bool whole = fstat(descriptor, &found) == 0 && found.st_size == sizeof(Shared);
  void *mapped = MAP_FAILED;
  // Another file may have the number by now.
  if (whole) {
    mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                  descriptor, 0);
  }
  close(descriptor);
  if (!whole) {
    *why = "the unique id was used before";
    return false;
  }
  if (mapped == MAP_FAILED) {
    *why = failed("shared memory cannot be mapped");
    return false;
  }
  shared_ = static_cast<Shared *>(mapped);
  if (shared_->nonce != name.nonce) {
    *why = "the unique id was used before";
    return false;
  }
  return true;
}

void Segment::close_descriptor(const UniqueId &id) {
  Name name = read_name(id);
  if (name.process == getpid() && shared_->closed.exchange(1) == 0) close(name.descriptor);
}

bool make_segment(UniqueId *id, std::string *why) {
  Name name = {NAMED, 0, getpid(), memfd_create("nccl-stand-in", MFD_CLOEXEC)};
  void *mapped = MAP_FAILED;
  if (name.descriptor >= 0 && ftruncate(name.descriptor, sizeof(Shared)) == 0) {
    mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, name.descriptor, 0);
  }
  if (mapped == MAP_FAILED || getrandom(&name.nonce, sizeof name.nonce, 0) < 0) {
    *why = failed("shared memory cannot be made");
    return false;
  }
  static_cast<Shared *>(mapped)->nonce = name.nonce;
  munmap(mapped, 4096);
  memset(id->internal, 0, sizeof id->internal);
  memcpy(id->internal, &name, sizeof name);
  return true;
}
