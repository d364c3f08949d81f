/* Any MPI library. Sums of bf16 are the library's own where it has the type (MPICH and Intel MPI as
 * an extension), else a user-defined operation on 16-bit elements, as an engine would write it. */
#include "peer.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int rank, world;
static MPI_Datatype bf16;
static MPI_Op bf16_sum;

#if defined(MPIX_BFLOAT16) && !defined(PEER_OWN_BF16)
#define NATIVE_BF16
#else
static float widen(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To nearest, ties to even. */
static uint16_t narrow(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void add(void *restrict from, void *restrict onto, int *count, MPI_Datatype *type) {
  const uint16_t *a = from;
  uint16_t *b = onto;
  (void)type;
  for (int i = 0, n = *count; i < n; ++i) b[i] = narrow(widen(a[i]) + widen(b[i]));
}
#endif

int peer_start(void) {
  int status = MPI_Init(NULL, NULL);
  if (status != MPI_SUCCESS) return status;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (rank == 0) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.*s\n", (int)strcspn(version, "\n"), version);
  }
#ifdef NATIVE_BF16
  bf16 = MPIX_BFLOAT16;
  bf16_sum = MPI_SUM;
  return MPI_SUCCESS;
#else
  bf16 = MPI_UINT16_T;
  return MPI_Op_create(add, 1, &bf16_sum);
#endif
}

int peer_rank(void) { return rank; }

int peer_world(void) { return world; }

static MPI_Datatype type_of(int dtype) { return dtype == PEER_F32 ? MPI_FLOAT : bf16; }

static MPI_Op sum_of(int dtype) { return dtype == PEER_F32 ? MPI_SUM : bf16_sum; }

static int bytes_of(int dtype, size_t count) { return (int)(count * (dtype == PEER_F32 ? 4 : 2)); }

int peer_all_reduce(int dtype, size_t count, const void *input, void *output) {
  return MPI_Allreduce(input, output, (int)count, type_of(dtype), sum_of(dtype), MPI_COMM_WORLD);
}

int peer_all_gather(int dtype, size_t count, const void *input, void *output) {
  int bytes = bytes_of(dtype, count);
  return MPI_Allgather(input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

int peer_reduce_scatter(int dtype, size_t count, const void *input, void *output) {
  int part = (int)(count / (size_t)world);
  return MPI_Reduce_scatter_block(input, output, part, type_of(dtype), sum_of(dtype),
                                  MPI_COMM_WORLD);
}

int peer_broadcast(int dtype, size_t count, void *buffer) {
  return MPI_Bcast(buffer, bytes_of(dtype, count), MPI_BYTE, 0, MPI_COMM_WORLD);
}

int peer_finish(void) { return MPI_Finalize(); }
