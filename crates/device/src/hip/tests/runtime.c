// A HIP runtime of one device whose memory is the host's, as strict as the real one where callers
// go wrong. VERSION is what it says it is; its oddities are of that release.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID = 1, MEMORY = 2, DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600,
       ALREADY = 704, REGISTERED = 713, CAPTURING = 900 };
enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { GRANULE = 65536, ALLOCATIONS = 64 };

static _Thread_local int last_error, mode = GLOBAL;
static int capturing, peers, busy;

static int done(int status) {
  if (status != OK) last_error = status;
  return status;
}

// What is not allowed while somebody records.
static int refused(void) { return capturing && mode != RELAXED; }

// ---- the device

int hipGetLastError(void) {
  int status = last_error;
  last_error = OK;
  return status;
}
const char* hipGetErrorString(int status) {
  return status == INVALID ? "invalid argument" : status == CAPTURING ? "stream is capturing" : "failed";
}
int hipRuntimeGetVersion(int* version) { *version = VERSION; return OK; }
int hipGetDeviceCount(int* count) { *count = 1; return OK; }
int hipGetDevice(int* device) { *device = 0; return OK; }
int hipSetDevice(int device) { return done(device == 0 ? OK : DEVICE); }
int hipDeviceSynchronize(void) { return OK; }
int hipDeviceGetName(char* to, int room, int device) {
  strncpy(to, "AMD Instinct MI300X", room);
  return done(device == 0 ? OK : DEVICE);
}
int hipDeviceGetPCIBusId(char* to, int room, int device) {
  strncpy(to, "0000:c1:00.0", room);
  return done(device == 0 ? OK : DEVICE);
}
int hipDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 63 ? 304 : attribute == 19 ? 4 << 20 : -1;
  return done(device == 0 ? OK : DEVICE);
}
int hipDeviceTotalMem(size_t* bytes, int device) {
  *bytes = 192ull << 30;
  return done(device == 0 ? OK : DEVICE);
}
int hipDeviceGetUuid(char* uuid, int device) {
  memcpy(uuid, "b3f9a1c2d4e5f601", 16);
  return done(device == 0 ? OK : DEVICE);
}
static int properties(char* to, int bytes, int arch_at) {
  memset(to, 0x5a, bytes);
  strcpy(to + arch_at, "gfx942:sramecc+:xnack-");
  return OK;
}
int hipGetDeviceProperties(void* to, int device) { (void)device; return properties(to, 792, 396); }
#if VERSION >= 60000000
int hipGetDevicePropertiesR0600(void* to, int device) { (void)device; return properties(to, 1472, 1160); }
#endif
int hipDeviceCanAccessPeer(int* can, int device, int peer) { *can = device != peer; return OK; }
int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return done(flags || peer < 0 ? INVALID : peers++ ? ALREADY : OK);
}

// ---- memory

static struct Allocation { char* base; size_t bytes; int virtual_memory, id; } allocations[ALLOCATIONS];
static int ids;

static struct Allocation* of(void* at) {
  for (int i = 0; i < ALLOCATIONS; ++i) {
    struct Allocation* a = &allocations[i];
    if (a->base && (char*)at >= a->base && (char*)at < a->base + a->bytes) return a;
  }
  return 0;
}
static int add(void* base, size_t bytes, int virtual_memory) {
  for (int i = 0; i < ALLOCATIONS; ++i) {
    if (!allocations[i].base) {
      allocations[i] = (struct Allocation){base, bytes, virtual_memory, ++ids};
      return OK;
    }
  }
  return MEMORY;
}

int hipExtMallocWithFlags(void** to, size_t bytes, unsigned flags) {
  if (refused()) return done(CAPTURING);
  unsigned known = VERSION >= 50500000 ? 3 : 1;
  if (flags != known) return done(INVALID);
  *to = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return done(add(*to, bytes, 0));
}
int hipFree(void* at) {
  struct Allocation* a = of(at);
  if (refused()) return done(CAPTURING);
  if (!a || a->base != at || a->virtual_memory) return done(INVALID);
  free(a->base);
  a->base = 0;
  return OK;
}
int hipHostRegister(void* pages, size_t bytes, unsigned flags) {
  if (refused()) return done(CAPTURING);
  return done(pages && bytes && flags == 3 ? OK : INVALID);
}
int hipHostUnregister(void* pages) { return done(pages ? OK : REGISTERED); }
int hipHostGetDevicePointer(void** to, void* pages, unsigned flags) {
  *to = pages;
  return done(flags ? INVALID : OK);
}
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  (void)stream;
  if (kind != 4) return done(INVALID);
  memmove(to, from, bytes);
  return OK;
}
int hipMemsetD32Async(void* to, int word, size_t words, void* stream) {
  (void)stream;
  for (size_t i = 0; i < words; ++i) ((int*)to)[i] = word;
  return OK;
}
int hipMemGetAddressRange(void** base, size_t* bytes, void* at) {
  struct Allocation* a = of(at);
  if (!a) return done(INVALID);
  *base = a->base;
  *bytes = a->bytes;
  return OK;
}
int hipPointerGetAttribute(void* to, int attribute, void* at) {
  struct Allocation* a = of(at);
  if (!a) return done(INVALID);
  if (attribute != 7 && attribute != 9) return done(801);
  *(uint32_t*)to = attribute == 7 ? a->id : 0;  // 32 bits, as the real one
  return OK;
}

struct Handle { char bytes[64]; };

int hipIpcGetMemHandle(struct Handle* handle, void* at) {
  struct Allocation* a = of(at);
  if (!a || a->virtual_memory) return done(INVALID);
  memset(handle, 0xa5, sizeof *handle);
  memcpy(handle, &a->base, sizeof a->base);
  return OK;
}
int hipIpcOpenMemHandle(void** base, struct Handle handle, unsigned flags) {
  if (flags != (VERSION >= 60000000) || handle.bytes[63] != (char)0xa5) return done(INVALID);
  memcpy(base, &handle, sizeof *base);
  return OK;
}
int hipIpcCloseMemHandle(void* base) { return done(of(base) ? OK : INVALID); }

// ---- virtual memory: a handle is a file

struct Location { int kind, id; };
struct What { int kind, handles; struct Location location; void* win32; unsigned char c, r; unsigned short u; };
struct Who { struct Location location; int flags; };
struct Physical { int fd, references; };

static int fits(const struct What* what) {
  return what->kind == 1 && what->handles == 1 && what->location.kind == 1 &&
         what->location.id == 0 && !what->win32;
}
int hipMemGetAllocationGranularity(size_t* bytes, const struct What* what, int option) {
  *bytes = GRANULE;
  return done(fits(what) && option == 1 ? OK : INVALID);
}
int hipMemCreate(struct Physical** handle, size_t bytes, const struct What* what, unsigned long long flags) {
  if (refused()) return done(CAPTURING);
  if (!fits(what) || flags || bytes % GRANULE) return done(INVALID);
  *handle = malloc(sizeof **handle);
  **handle = (struct Physical){memfd_create("device", 0), 1};
  return ftruncate((*handle)->fd, bytes) ? done(MEMORY) : OK;
}
int hipMemRelease(struct Physical* handle) {
  if (!handle || handle->references <= 0) return done(INVALID);
  if (--handle->references == 0) close(handle->fd);
  return OK;
}
int hipMemAddressReserve(void** at, size_t bytes, size_t alignment, void* wish, unsigned long long flags) {
  if (bytes % GRANULE || alignment || wish || flags) return done(INVALID);
  *at = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return done(*at == MAP_FAILED ? MEMORY : OK);
}
int hipMemAddressFree(void* at, size_t bytes) { return done(munmap(at, bytes) ? INVALID : OK); }
int hipMemMap(void* at, size_t bytes, size_t offset, struct Physical* handle, unsigned long long flags) {
  if (offset || flags) return done(INVALID);
  void* got = mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd, 0);
  return done(got == at ? add(at, bytes, 1) : INVALID);
}
int hipMemUnmap(void* at, size_t bytes) {
  struct Allocation* a = of(at);
  if (!a || a->base != at || a->bytes != bytes || !a->virtual_memory) return done(INVALID);
  a->base = 0;
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return OK;
}
int hipMemSetAccess(void* at, size_t bytes, const struct Who* who, size_t count) {
  if (count != 1 || who->location.kind != 1 || who->location.id != 0 || who->flags != 3) return done(INVALID);
  return done(mprotect(at, bytes, PROT_READ | PROT_WRITE) ? INVALID : OK);
}
int hipMemExportToShareableHandle(int* fd, struct Physical* handle, int kind, unsigned long long flags) {
  if (kind != 1 || flags) return done(INVALID);
  *fd = dup(handle->fd);
  return OK;
}
int hipMemImportFromShareableHandle(struct Physical** handle, void* shareable, int kind) {
  int by_value = VERSION >= 70100000;
  if (kind != 1 || by_value != ((uintptr_t)shareable < 4096)) return done(INVALID);
  int fd = dup(by_value ? (int)(uintptr_t)shareable : *(int*)shareable);
  if (fd < 0) return done(INVALID);
  *handle = malloc(sizeof **handle);
  **handle = (struct Physical){fd, 1};
  return OK;
}

// ---- streams, events, graphs

int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  *stream = malloc(8);
  return done(flags == 1 ? OK : INVALID);
}
int hipStreamDestroy(void* stream) { free(stream); return OK; }
int hipStreamSynchronize(void* stream) { (void)stream; busy = 0; return OK; }
int hipStreamQuery(void* stream) { (void)stream; return done(busy ? NOT_READY : OK); }
int hipStreamWaitEvent(void* stream, void* event, unsigned flags) { (void)stream; return done(event && !flags ? OK : INVALID); }
int hipEventCreateWithFlags(void** event, unsigned flags) { *event = malloc(8); return done(flags ? INVALID : OK); }
int hipEventDestroy(void* event) { free(event); return OK; }
int hipEventRecord(void* event, void* stream) { (void)stream; return done(event ? OK : INVALID); }
int hipEventElapsedTime(float* ms, void* from, void* to) { *ms = 0.25f; return done(from && to ? OK : INVALID); }

struct Call { uint64_t* to; uint64_t value; };
static struct Graph { struct Call calls[8]; int count, destroyed; } recorded;

int hipStreamIsCapturing(void* stream, int* state) { (void)stream; *state = capturing; return OK; }
int hipThreadExchangeStreamCaptureMode(int* other) {
  int before = mode;
  mode = *other;
  *other = before;
  return OK;
}
int hipStreamBeginCapture(void* stream, int how) {
  if (!stream || how != THREAD_LOCAL || capturing) return done(INVALID);
  recorded.count = 0;
  capturing = 1;
  return OK;
}
int hipStreamEndCapture(void* stream, struct Graph** graph) {
  (void)stream;
  if (!capturing) return done(INVALID);
  capturing = 0;
  *graph = malloc(sizeof recorded);
  **graph = recorded;
  return OK;
}
int hipGraphInstantiate(struct Graph** to, struct Graph* graph, void* node, char* log, size_t room) {
  if (node || log || room) return done(INVALID);
  *to = malloc(sizeof **to);
  **to = *graph;
  return OK;
}
int hipGraphDestroy(struct Graph* graph) { memset(graph, 0xff, sizeof *graph); free(graph); return OK; }
static void run(const struct Call* call) { *call->to = call->value; busy = 1; }
int hipGraphLaunch(struct Graph* graph, void* stream) {
  (void)stream;
  for (int i = 0; i < graph->count; ++i) run(&graph->calls[i]);
  return OK;
}
int hipGraphExecDestroy(struct Graph* graph) { free(graph); return OK; }

// ---- modules: the image is read when a kernel is looked up

int hipModuleLoadData(const char*** module, const char* image) {
  if (refused()) return done(CAPTURING);
  *module = malloc(sizeof **module);
  **module = image;
  return OK;
}
int hipModuleUnload(const char** module) { free(module); return OK; }
int hipModuleGetFunction(void** function, const char** module, const char* name) {
  *function = 0;
  if (strcmp(*module + 4, name)) return done(NOT_FOUND);
  *function = malloc(8);
  return OK;
}
int hipFuncGetAttribute(int* value, int attribute, void* function) {
  static const int values[] = {512, 64, -1, 0, 37};
  *value = values[attribute];
  return done(function ? OK : INVALID);
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  *blocks = 2048 / threads;
  return done(function && !shared ? OK : INVALID);
}
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
  (void)stream;
  if (!function || gy * gz * by * bz != 1 || shared || extra) return done(INVALID);
  struct Call call;
  memcpy(&call, parameters[0], sizeof call);
  call.value *= gx * bx;
  if (capturing) recorded.calls[recorded.count++] = call;
  else run(&call);
  return OK;
}
