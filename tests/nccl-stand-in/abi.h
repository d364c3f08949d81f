// What NCCL's binary interface is, as far as the stand-in has it. Values are NCCL's own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef VERSION
#define VERSION 23203
#endif

// The first version with each group of symbols. The macros take them away from later ones.
#if VERSION >= 21300 && !defined(WITHOUT_LAST_ERROR)
#define HAS_LAST_ERROR
#endif
#if VERSION >= 21400 && !defined(WITHOUT_CONFIG)
#define HAS_CONFIG
#endif
#if VERSION >= 21801 && !defined(WITHOUT_SPLIT)
#define HAS_SPLIT
#endif
#if VERSION >= 21903 && !defined(WITHOUT_MEM_ALLOC)
#define HAS_MEM_ALLOC
#endif
#if VERSION >= 21903 && !defined(WITHOUT_REGISTER)
#define HAS_REGISTER
#endif
#if VERSION >= 22703 && !defined(WITHOUT_WINDOWS)
#define HAS_WINDOWS
#endif
#if VERSION >= 23102 && !defined(WITHOUT_COLL_CONFIG)
#define HAS_COLL_CONFIG
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

enum Status : int {
  SUCCESS = 0,
  UNHANDLED_DEVICE_ERROR = 1,
  SYSTEM_ERROR = 2,
  INTERNAL_ERROR = 3,
  INVALID_ARGUMENT = 4,
  INVALID_USAGE = 5,
  REMOTE_ERROR = 6,
  IN_PROGRESS = 7,
};

enum Dtype : int { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, F8E4M3, F8E5M2, DTYPES };
enum ReduceOp : int { SUM, PROD, MAX, MIN, AVG, REDUCE_OPS };

struct UniqueId {
  char internal[128];
};

// A communicator is a number to callers.
typedef struct CommHandle *Comm;
typedef struct WindowHandle *Window;
typedef uint64_t Stream;

const unsigned MAGIC = 0xcafebeef;
const int UNSET = INT32_MIN;
const int NO_COLOR = -1;
const int WINDOW_SYMMETRIC = 1;
const size_t WINDOW_ALIGNMENT = 4096;

// ncclConfig_t of 2.32. Callers may know fewer fields or more.
struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;  // the first field that a caller sets: 2.14
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char *net_name;
  int split_share;  // 2.17 and 2.18
  int traffic_class;
  const char *comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;  // 2.27
  int channels_per_net_peer;
  int nvlink_centric;
  int graph_usage;
  int rma_contexts;  // 2.29
  int max_peers;
  int graph_order;
  int implicit_order;
  int rma_signals;
  int rma_eager;
  int host_cft;
  int nvls_host;  // 2.32
};

// ncclCollConfig_t, of every call since 2.31.
struct CollConfig {
  size_t size;
  unsigned magic;
  unsigned version;
  void *ext;
  int min_ctas;
  int max_ctas;
  int nvls_ctas;
  int cga_cluster_size;
  const char *algorithms;
  int force_algorithms;
  int cta_policy;
  uint64_t profiler_tag;
  void *launch_completion_event;
};
