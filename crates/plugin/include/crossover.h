// Crossover's C API: the collectives of an inference engine, each served by the fastest backend that is
// right for the call. Written by cbindgen from crates/plugin; do not edit.

#ifndef CROSSOVER_H
#define CROSSOVER_H

#include <stddef.h>
#include <stdint.h>

// What every function returns: the code that the program `crossover` would end with.
typedef enum crossover_status {
    // Done, or enqueued.
    CROSSOVER_STATUS_OK = 0,
    // It started and failed: the group is no longer usable. Of `crossover_prepare`, it could not be
    // made ready, and the group is as usable as before.
    CROSSOVER_STATUS_FAILED = 1,
    // Bad arguments, settings or files. Nothing was started.
    CROSSOVER_STATUS_USAGE = 2,
    // No backend takes the call, on any rank; or a forced one cannot be had. Nothing was started.
    CROSSOVER_STATUS_NOTHING_ELIGIBLE = 3,
    // A peer was lost, a deadline passed, or some rank aborted. The group is no longer usable.
    CROSSOVER_STATUS_PEER_LOST = 4,
} crossover_status;

// Which collective.
typedef enum crossover_op {
    // Every rank receives the reduction of all inputs.
    CROSSOVER_OP_ALL_REDUCE = 0,
    // Every rank receives all inputs, in rank order.
    CROSSOVER_OP_ALL_GATHER = 1,
    // Rank r receives part r of the reduction of all inputs.
    CROSSOVER_OP_REDUCE_SCATTER = 2,
    // Every rank receives the root's input.
    CROSSOVER_OP_BROADCAST = 3,
    // Part p of the input goes to rank p.
    CROSSOVER_OP_ALL_TO_ALL = 4,
} crossover_op;

// Element type.
typedef enum crossover_dtype {
    // IEEE 754 binary32.
    CROSSOVER_DTYPE_F32 = 0,
    // IEEE 754 binary16; reduced in f32.
    CROSSOVER_DTYPE_F16 = 1,
    // bfloat16; reduced in f32.
    CROSSOVER_DTYPE_BF16 = 2,
    // IEEE 754 binary64.
    CROSSOVER_DTYPE_F64 = 3,
    // Signed 8 bits, wrapping.
    CROSSOVER_DTYPE_I8 = 4,
    // Unsigned 8 bits, wrapping.
    CROSSOVER_DTYPE_U8 = 5,
    // Signed 32 bits, wrapping.
    CROSSOVER_DTYPE_I32 = 6,
    // Unsigned 32 bits, wrapping.
    CROSSOVER_DTYPE_U32 = 7,
    // Signed 64 bits, wrapping.
    CROSSOVER_DTYPE_I64 = 8,
    // Unsigned 64 bits, wrapping.
    CROSSOVER_DTYPE_U64 = 9,
    // OCP FP8 E4M3; reduced in f32, saturating.
    CROSSOVER_DTYPE_F8E4M3 = 10,
    // OCP FP8 E5M2; reduced in f32, saturating.
    CROSSOVER_DTYPE_F8E5M2 = 11,
} crossover_dtype;

// How contributions are combined: over ranks 0, 1, ..., N-1, or as the algorithm states.
typedef enum crossover_reduce_op {
    // Sum.
    CROSSOVER_REDUCE_OP_SUM = 0,
    // Product.
    CROSSOVER_REDUCE_OP_PROD = 1,
    // Minimum; a NaN in any contribution gives NaN.
    CROSSOVER_REDUCE_OP_MIN = 2,
    // Maximum; a NaN in any contribution gives NaN.
    CROSSOVER_REDUCE_OP_MAX = 3,
    // The sum divided by the number of ranks.
    CROSSOVER_REDUCE_OP_AVG = 4,
} crossover_reduce_op;

// Whether a call runs now or is recorded into a device graph. The engine declares it; no stream is
// asked.
typedef enum crossover_mode {
    // Runs now.
    CROSSOVER_MODE_EAGER = 0,
    // Recorded, and replayed later any number of times.
    CROSSOVER_MODE_GRAPH = 1,
} crossover_mode;

// A group on one rank. Every rank makes the same calls in the same order.
//
// Threads may share it; calls of several threads run one after the other. A forked child does not use
// its parent's groups.
typedef struct crossover_group crossover_group;

// A setting, such as `use` = `ipc/one_shot_push` or `call_timeout` = `30s`; the same names as
// `CROSSOVER_*` variables have, and stronger than they.
typedef struct crossover_setting {
    // Its name, such as `allow_shared_device` or `host.chunk`.
    const char *key;
    // Its value.
    const char *value;
} crossover_setting;

// How a group is formed. Zero everything, then set `size`: what is null or 0 is as the environment
// says. Strings are UTF-8 and copied.
typedef struct crossover_config {
    // sizeof(crossover_config).
    size_t size;
    // The group's name in policies, such as `tp`; null for `world`.
    const char *tag;
    // Where this rank's data is: `host`, `cuda`, `cuda:0`, `hip:1` or `auto`. Null: as settings say,
    // and `host` if they do not.
    const char *device;
    // Where the ranks meet: `unix:/abs/path`, `file:/abs/path` or `tcp://host:port`. Only with
    // `world`.
    const char *rendezvous;
    // The job's name: ranks of another are refused. Only with `world`.
    const char *job;
    // A policy of the engine's own, as TOML text: stronger than every file.
    const char *policy;
    // `setting_count` settings, or null.
    const struct crossover_setting *settings;
    // How many there are.
    size_t setting_count;
    // Number of ranks, at most 65536. 0: the variables of a launcher (`crossover launch`, torchrun,
    // mpirun, srun) say who this rank is, and without a launcher the group has one rank.
    uint32_t world;
    // This rank. Only with `world`.
    uint32_t rank;
    // Number of ranks on this node; 0 for all of them. Only with `world`.
    uint32_t local_world;
    // This rank's number among them, by which `device` = `cuda` chooses. Only with `local_world`.
    uint32_t local_rank;
    // How often the job was restarted: ranks of another attempt are refused. Only with `world`.
    uint32_t attempt;
    // 0.
    uint32_t reserved;
} crossover_config;

// A call without its buffers. Zero it, then set `size`.
typedef struct crossover_call {
    // sizeof(crossover_call).
    size_t size;
    // Elements of one rank's input, as the function of the op takes it.
    size_t count;
    // Of crossover_op.
    uint32_t op;
    // Of crossover_dtype.
    uint32_t dtype;
    // Of crossover_reduce_op; not read where the op only copies.
    uint32_t reduce_op;
    // Of crossover_mode.
    uint32_t mode;
    // The rank whose input a broadcast sends; 0 for other ops.
    uint32_t root;
    // 0.
    uint32_t reserved;
} crossover_call;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Why the last function that failed on this thread did: one sentence, UTF-8; empty if none has. It is
// valid until the next one fails on this thread.
const char *crossover_last_error(void);

// Forms a group. Collective: it succeeds on every rank, or fails on every rank, within the setting
// `form_timeout` (60s if nobody says). `config` null: all is as the environment says. The environment is
// read now and never again; no other thread may change it meanwhile.
//
// `*group` is the group, or null where the status is not 0. End it by crossover_group_close and
// crossover_group_free.
//
// Safety: `config` is null or valid with all that it points to, and `group` may be written.
enum crossover_status crossover_group_create(const struct crossover_config *config,
                                             struct crossover_group **group);

// Says goodbye to the peers, within the setting `call_timeout`. The stream's work is done before: wait
// for it. Later calls fail.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_group_close(const struct crossover_group *group);

// Frees a group, closed or not; null is none. Neither waits nor communicates. No other thread uses the
// group, no stream has work of it, and no graph that holds its calls is replayed any more.
//
// Safety: `group` is null, or a group that was not freed.
void crossover_group_free(struct crossover_group *group);

// Ends every wait of the group, on every rank that can be reached. From any thread, while another is
// in a call; never blocks. Calls that wait, and all later ones, fail with this rank and reason.
//
// Safety: `group` is a group that was not freed, `reason` null or a text.
enum crossover_status crossover_abort(const struct crossover_group *group,
                                      const char *reason);

// Has anything failed that was enqueued on a device? What a stream holds after it was synchronised is
// right only if this returns 0. Never waits for work. A failure is the end of the group.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_check(const struct crossover_group *group);

// This rank.
//
// Safety: `group` is a group that was not freed, and `rank` may be written.
enum crossover_status crossover_group_rank(const struct crossover_group *group, uint32_t *rank);

// Number of ranks.
//
// Safety: `group` is a group that was not freed, and `world` may be written.
enum crossover_status crossover_group_world(const struct crossover_group *group, uint32_t *world);

// Every rank's `output` receives the reduction of all `input`s, `count` elements each.
//
// Of this and all collectives: pointers are of the memory that the group's device names, of any
// alignment. `dtype`, `reduce_op` and `mode` are numbers of the enums here, and like `count` the same on
// every rank. On a device the call is enqueued on `stream` (a cudaStream_t or hipStream_t; null is the
// default one) and returns; in stream order the output is complete and the input may be overwritten. On host
// memory, where `stream` is null, that is so when the call returns.
//
// `output` may be `input` itself; they overlap in no other way.
//
// Safety: `group` is a group that was not freed; the buffers hold what the call says until the work is done.
enum crossover_status crossover_all_reduce(const struct crossover_group *group,
                                           const void *input,
                                           void *output,
                                           size_t count,
                                           uint32_t dtype,
                                           uint32_t reduce_op,
                                           uint32_t mode,
                                           void *stream);

// Every rank's `output` receives all `input`s in rank order: `count` elements of each. `input` may be this
// rank's part of `output`.
//
// Safety: As for `crossover_all_reduce`.
enum crossover_status crossover_all_gather(const struct crossover_group *group,
                                           const void *input,
                                           void *output,
                                           size_t count,
                                           uint32_t dtype,
                                           uint32_t mode,
                                           void *stream);

// Rank r's `output` receives part r of the reduction of all `input`s. `count` is of the input, a multiple
// of the number of ranks. `output` may be this rank's part of `input`.
//
// Safety: As for `crossover_all_reduce`.
enum crossover_status crossover_reduce_scatter(const struct crossover_group *group,
                                               const void *input,
                                               void *output,
                                               size_t count,
                                               uint32_t dtype,
                                               uint32_t reduce_op,
                                               uint32_t mode,
                                               void *stream);

// Every rank's `output` receives the `input` of rank `root`. `output` may be `input` itself.
//
// Safety: As for `crossover_all_reduce`.
enum crossover_status crossover_broadcast(const struct crossover_group *group,
                                          const void *input,
                                          void *output,
                                          size_t count,
                                          uint32_t dtype,
                                          uint32_t root,
                                          uint32_t mode,
                                          void *stream);

// Part p of `input` goes to rank p; part p of `output` comes from rank p. `count` is of the input, a
// multiple of the number of ranks. `output` may be `input` itself.
//
// Safety: As for `crossover_all_reduce`.
enum crossover_status crossover_all_to_all(const struct crossover_group *group,
                                           const void *input,
                                           void *output,
                                           size_t count,
                                           uint32_t dtype,
                                           uint32_t mode,
                                           void *stream);

// Makes ready what `count` calls need and what cannot be made ready while a stream is captured: code is
// loaded, memory allocated. Every rank prepares the calls that it will capture; none waits for another. A
// failure leaves the group as usable as before.
//
// Safety: `group` is a group that was not freed; `calls` is valid for `count` structures of the size that the first
// one states.
enum crossover_status crossover_prepare(const struct crossover_group *group,
                                        const struct crossover_call *calls,
                                        size_t count);

// Ends a capture, or several, on every rank: compares what ranks have captured, and lets backends exchange
// what the captured calls registered. Collective. Graphs are not replayed before. Peers may read inputs and
// write outputs of captured calls where they are: both stay allocated until no rank replays its graph any
// more. A failure is the same on every rank, and the end of the group.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_commit(const struct crossover_group *group);

// Forgets what was captured since the last crossover_commit: the capture failed. Waits for nobody; peers
// that captured the same calls must forget them too.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_discard(const struct crossover_group *group);

// To be called before a stream is destroyed in which calls were made, unless calls in another one have been
// made since or the group is closed first.
//
// Safety: `group` is a group that was not freed, and `stream` was not destroyed.
enum crossover_status crossover_leave_stream(const struct crossover_group *group,
                                             uint64_t stream);

// Who would run a call, and why the others would not, by the path that runs it. `*text` is a JSON object as
// `crossover explain --json` has for each size; free it by crossover_text_free.
//
// Safety: `group` is a group that was not freed, `call` is valid, and `text` may be written.
enum crossover_status crossover_explain(const struct crossover_group *group,
                                        const struct crossover_call *call,
                                        char **text);

// Notes the engine's state: `digest` is of all that must be equal on every rank in this step, such as
// the requests of the batch, their lengths and what was accepted. Where ranks' states part, reports
// name the first step in which they do. Every rank notes in the same steps. Compares nothing by itself.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_note_state(const struct crossover_group *group,
                                           uint32_t step,
                                           uint64_t digest);

// Says what the engine calls the place of the calls to come, such as `L31.o_proj`, by which reports name
// them; null or an empty text for none. It holds until it is called again.
//
// Safety: `group` is a group that was not freed, `site` null or a text.
enum crossover_status crossover_note_site(const struct crossover_group *group,
                                          const char *site);

// To be called before the engine replays a graph that holds calls of this group; `graph` is what the
// engine knows it by, equal on all ranks, such as the batch size it was captured for. Takes a number as a
// call does. Ranks that replay different graphs are told so, where backends can see it, instead of
// waiting for one another inside the graphs.
//
// Safety: `group` is a group that was not freed.
enum crossover_status crossover_note_replay(const struct crossover_group *group,
                                            uint64_t graph);

// What really ran so far, from any thread. `*text` is a JSON array of
// `{"op","use","at_least","calls","bytes"}`: calls that were handed to a target, by the power of two of their
// input bytes per rank. Free it by crossover_text_free.
//
// Safety: `group` is a group that was not freed, and `text` may be written.
enum crossover_status crossover_counters(const struct crossover_group *group,
                                         char **text);

// What the ranks agreed about the group. `*text` is a JSON object
// `{"rank","facts","policy_digest"}`; free it by crossover_text_free.
//
// Safety: `group` is a group that was not freed, and `text` may be written.
enum crossover_status crossover_facts(const struct crossover_group *group, char **text);

// Frees a text that a function here has handed over; null is none.
//
// Safety: `text` is null, or was handed over and not freed.
void crossover_text_free(char *text);

// The version of this API: 1.
uint32_t crossover_api_version(void);

// The version of the library, such as `0.1.0`. Never freed.
const char *crossover_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CROSSOVER_H */
