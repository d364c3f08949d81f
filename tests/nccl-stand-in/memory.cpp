// Memory, and what of it communicators know.
#include <sys/mman.h>

#include "control.h"
#include "groups.h"
#include "told.h"

namespace {

std::mutex memory_lock;
// Never destroyed: threads may outlive main.
auto &blocks = *new std::map<uintptr_t, size_t>;
struct Registered {
  Comm comm;
  uintptr_t base;
};
auto &registered = *new std::map<uintptr_t, Registered>;
uintptr_t next_registration = 0x1000;

// Versions differ in which of these they need.
[[maybe_unused]] bool is_allocated(uintptr_t base, size_t bytes) {
  auto after = blocks.upper_bound(base);
  if (after == blocks.begin()) return false;
  auto &[from, size] = *std::prev(after);
  return base + bytes <= from + size;
}

[[maybe_unused]] uintptr_t remember(Comm comm, uintptr_t base) {
  std::lock_guard<std::mutex> guard(memory_lock);
  next_registration += 16;
  registered[next_registration] = {comm, base};
  return next_registration;
}

[[maybe_unused]] bool forget(Comm comm, uintptr_t handle, uintptr_t *base) {
  std::lock_guard<std::mutex> guard(memory_lock);
  auto found = registered.find(handle);
  if (found == registered.end() || found->second.comm != comm) return false;
  *base = found->second.base;
  registered.erase(found);
  return true;
}

}  // namespace

EXPORT void crossover_stand_in_alive(long long counts[3]) {
  counts[0] = count_communicators();
  std::lock_guard<std::mutex> guard(memory_lock);
  counts[1] = static_cast<long long>(registered.size());
  counts[2] = static_cast<long long>(blocks.size());
}

#ifdef HAS_MEM_ALLOC
EXPORT Status ncclMemAlloc(void **pointer, size_t bytes) {
  Failures failures;
  std::string why;
  if (pointer == nullptr || bytes == 0) return refuse(INVALID_ARGUMENT, "no memory is asked for");
  if (!read_failures(-1, &failures, &why)) return refuse(INVALID_ARGUMENT, why);
  if (failures.memory_fails) return refuse(UNHANDLED_DEVICE_ERROR, "was told to have no memory");
  size_t pages = (bytes + WINDOW_ALIGNMENT - 1) / WINDOW_ALIGNMENT * WINDOW_ALIGNMENT;
  void *mapped = mmap(nullptr, pages, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return refuse(UNHANDLED_DEVICE_ERROR, "there is no memory");
  std::lock_guard<std::mutex> guard(memory_lock);
  blocks[reinterpret_cast<uintptr_t>(mapped)] = pages;
  *pointer = mapped;
  return SUCCESS;
}

EXPORT Status ncclMemFree(void *pointer) {
  std::lock_guard<std::mutex> guard(memory_lock);
  auto found = blocks.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == blocks.end()) return refuse(INVALID_ARGUMENT, "the memory is not of ncclMemAlloc");
  for (auto &[handle, one] : registered) {
    if (one.base >= found->first && one.base < found->first + found->second) {
      return refuse(INVALID_USAGE, "the memory is still registered");
    }
  }
  munmap(pointer, found->second);
  blocks.erase(found);
  return SUCCESS;
}
#endif

#ifdef HAS_WINDOWS
namespace {

// All ranks register memory of one size, or none does.
Status register_window(Communicator *us, Comm comm, void *buffer, size_t bytes, Window *window,
                       bool symmetric) {
  us->segment->seats[us->rank].window_bytes = bytes;
  if (!us->meet()) return us->aborted_error();
  bool alike = true;
  for (int peer = 0; peer < us->world; ++peer) {
    alike &= us->segment->seats[peer].window_bytes == bytes;
  }
  // Nobody writes the next one's size before all have read this one's.
  if (!us->meet()) return us->aborted_error();
  if (!alike) return refuse(INVALID_ARGUMENT, by(*us) + "windows have different sizes");
  if (us->failures.window_fails) {
    return refuse(UNHANDLED_DEVICE_ERROR, by(*us) + "was told to refuse a window");
  }
  if (us->failures.window_is_null) return SUCCESS;
  auto base = reinterpret_cast<uintptr_t>(buffer);
  if (symmetric) {
    std::lock_guard<std::mutex> guard(us->windows_lock);
    us->windows[base] = base + bytes;
  }
  *window = reinterpret_cast<Window>(remember(comm, base));
  tell(by(*us) + "window bytes=" + std::to_string(bytes) + (symmetric ? " symmetric" : ""));
  return SUCCESS;
}

}  // namespace

EXPORT Status ncclCommWindowRegister(Comm comm, void *buffer, size_t bytes, Window *window,
                                     int flags) {
  auto us = find(comm);
  if (!us || window == nullptr) {
    return refuse_call(INVALID_ARGUMENT, "there is no such communicator");
  }
  Status status = us->ready();
  if (status != SUCCESS) return refuse_call(status, last_refusal());
  auto base = reinterpret_cast<uintptr_t>(buffer);
  {
    std::lock_guard<std::mutex> guard(memory_lock);
    if (bytes == 0 || base % WINDOW_ALIGNMENT != 0 || !is_allocated(base, bytes)) {
      return refuse_call(INVALID_ARGUMENT,
                         by(*us) + "a window is of whole pages of ncclMemAlloc's memory");
    }
  }
  *window = nullptr;
  return begin(us, [job_of = us.get(), comm, buffer, bytes, window, flags] {
    bool symmetric = (flags & WINDOW_SYMMETRIC) != 0;
    return register_window(job_of, comm, buffer, bytes, window, symmetric);
  });
}

EXPORT Status ncclCommWindowDeregister(Comm comm, Window window) {
  auto us = find(comm);
  uintptr_t base;
  if (!us || !forget(comm, reinterpret_cast<uintptr_t>(window), &base)) {
    return refuse_call(INVALID_ARGUMENT, "there is no such window");
  }
  if (us->failures.deregister_hangs) {
    us->wait([] { return false; });
    return us->aborted_error();
  }
  std::lock_guard<std::mutex> guard(us->windows_lock);
  us->windows.erase(base);
  return SUCCESS;
}
#endif

#ifdef HAS_REGISTER
EXPORT Status ncclCommRegister(Comm comm, void *buffer, size_t bytes, void **handle) {
  auto us = find(comm);
  if (!us || handle == nullptr || bytes == 0) {
    return refuse_call(INVALID_ARGUMENT, "nothing can be registered");
  }
  *handle = reinterpret_cast<void *>(remember(comm, reinterpret_cast<uintptr_t>(buffer)));
  return SUCCESS;
}

EXPORT Status ncclCommDeregister(Comm comm, void *handle) {
  uintptr_t base;
  if (forget(comm, reinterpret_cast<uintptr_t>(handle), &base)) return SUCCESS;
  return refuse_call(INVALID_ARGUMENT, "nothing is registered so");
}
#endif
