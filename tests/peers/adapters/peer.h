/* What an adapter of a library offers to the timing loop. Every function returns 0, or a code that
 * says what failed; peer_rank and peer_world return what they are named after. Reductions are sums.
 * A call is over when it returns. */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types: the numbers are the loop's. */
enum peer_dtype { PEER_F32 = 0, PEER_BF16 = 1 };

/* Collective. Before everything else, once. */
int peer_start(void);
int peer_rank(void);
int peer_world(void);

/* `count` elements of a rank's input. */
int peer_all_reduce(int dtype, size_t count, const void *input, void *output);
int peer_all_gather(int dtype, size_t count, const void *input, void *output);
/* `count` is a multiple of the ranks; the output is an equal part of it. */
int peer_reduce_scatter(int dtype, size_t count, const void *input, void *output);
/* From rank 0, in place. */
int peer_broadcast(int dtype, size_t count, void *buffer);

/* Collective. After everything else. */
int peer_finish(void);

#ifdef __cplusplus
}
#endif
