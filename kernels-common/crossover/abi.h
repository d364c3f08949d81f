// Written by crates/kernel-abi: change it there, then BLESS=1 cargo test -p crossover-kernel-abi.
#pragma once

constexpr uint32_t MAX_WORLD = 0x10;
constexpr uint32_t MAX_BLOCKS = 0x400;
constexpr uint32_t MAX_THREADS = 0x200;
constexpr uint32_t LAMPORT_EMPTY = 0x80000000;
constexpr uint32_t CODE_LATE = 0x1;
constexpr uint32_t CODE_ABORTED = 0x2;
constexpr uint32_t CODE_NOT_COMMITTED = 0x3;
constexpr uint32_t STEP_DATA = 0x0;
constexpr uint32_t STEP_SHARE = 0x1;
constexpr uint32_t STEP_BARRIER = 0x2;
constexpr uint32_t STEP_SECOND_BARRIER = 0x3;
constexpr uint32_t STEP_TOKEN = 0x4;
constexpr uint32_t STEP_LAMPORT = 0x5;
constexpr uint32_t ROW_NOT_COMMITTED = 0x0;
constexpr uint32_t ROW_STAGED = 0x1;

// What a block of a rank's kernels remembers from call to call, in device memory that no other rank writes. Each block
// that a launch may have has one of its own, and a launch advances them all: block b of B those of b, b+B, b+2B and so
// on, so that within a launch nobody but the block itself writes what it reads. Read by every thread, 16 bytes at a time.
struct State {
  uint64_t epoch;
  uint32_t flag;
  uint32_t slot;
  uint32_t share_flag;
  uint32_t share_slot;
  uint32_t poisoned;
  uint32_t reserved;
  uint32_t lamport_slot;
  uint32_t lamport_dirty[3];
  uint32_t unused[4];
};
static_assert(sizeof(State) == 64, "State");
static_assert(__builtin_offsetof(State, epoch) == 0, "State.epoch");
static_assert(__builtin_offsetof(State, flag) == 8, "State.flag");
static_assert(__builtin_offsetof(State, slot) == 12, "State.slot");
static_assert(__builtin_offsetof(State, share_flag) == 16, "State.share_flag");
static_assert(__builtin_offsetof(State, share_slot) == 20, "State.share_slot");
static_assert(__builtin_offsetof(State, poisoned) == 24, "State.poisoned");
static_assert(__builtin_offsetof(State, reserved) == 28, "State.reserved");
static_assert(__builtin_offsetof(State, lamport_slot) == 32, "State.lamport_slot");
static_assert(__builtin_offsetof(State, lamport_dirty) == 36, "State.lamport_dirty");
static_assert(__builtin_offsetof(State, unused) == 48, "State.unused");

// Where and for whom a kernel gave up, in pages of the host. One a rank; the first thread that gives up, which is
// the one that poisons the state, fills it: devices need not have atomics on the host's memory.
struct Failure {
  uint32_t code;
  uint32_t awaited;
  uint32_t step;
  uint32_t block;
  uint32_t thread;
  uint32_t flag;
  uint32_t reserved[2];
  uint64_t epoch;
  uint64_t observed;
  uint64_t waiting;
  uint64_t unused;
};
static_assert(sizeof(Failure) == 64, "Failure");
static_assert(__builtin_offsetof(Failure, code) == 0, "Failure.code");
static_assert(__builtin_offsetof(Failure, awaited) == 4, "Failure.awaited");
static_assert(__builtin_offsetof(Failure, step) == 8, "Failure.step");
static_assert(__builtin_offsetof(Failure, block) == 12, "Failure.block");
static_assert(__builtin_offsetof(Failure, thread) == 16, "Failure.thread");
static_assert(__builtin_offsetof(Failure, flag) == 20, "Failure.flag");
static_assert(__builtin_offsetof(Failure, reserved) == 24, "Failure.reserved");
static_assert(__builtin_offsetof(Failure, epoch) == 32, "Failure.epoch");
static_assert(__builtin_offsetof(Failure, observed) == 40, "Failure.observed");
static_assert(__builtin_offsetof(Failure, waiting) == 48, "Failure.waiting");
static_assert(__builtin_offsetof(Failure, unused) == 56, "Failure.unused");

// What every kernel is told that waits. It has the abort word and the budget, so that no such kernel can forget them.
struct Common {
  uint64_t arenas[16];
  uint64_t states;
  uint64_t abort;
  uint64_t failure;
  uint64_t budget;
  uint32_t rank;
  uint32_t world;
  uint32_t early;
  uint32_t reduce_op;
  uint32_t blocks;
  uint32_t reserved;
};
static_assert(sizeof(Common) == 184, "Common");
static_assert(__builtin_offsetof(Common, arenas) == 0, "Common.arenas");
static_assert(__builtin_offsetof(Common, states) == 128, "Common.states");
static_assert(__builtin_offsetof(Common, abort) == 136, "Common.abort");
static_assert(__builtin_offsetof(Common, failure) == 144, "Common.failure");
static_assert(__builtin_offsetof(Common, budget) == 152, "Common.budget");
static_assert(__builtin_offsetof(Common, rank) == 160, "Common.rank");
static_assert(__builtin_offsetof(Common, world) == 164, "Common.world");
static_assert(__builtin_offsetof(Common, early) == 168, "Common.early");
static_assert(__builtin_offsetof(Common, reduce_op) == 172, "Common.reduce_op");
static_assert(__builtin_offsetof(Common, blocks) == 176, "Common.blocks");
static_assert(__builtin_offsetof(Common, reserved) == 180, "Common.reserved");

// A mark that every rank leaves with every other, for the owner to find.
struct ProbeArgs {
  Common common;
  uint64_t barrier;
  uint64_t mark;
};
static_assert(sizeof(ProbeArgs) == 200, "ProbeArgs");
static_assert(__builtin_offsetof(ProbeArgs, common) == 0, "ProbeArgs.common");
static_assert(__builtin_offsetof(ProbeArgs, barrier) == 184, "ProbeArgs.barrier");
static_assert(__builtin_offsetof(ProbeArgs, mark) == 192, "ProbeArgs.mark");

// A kernel that does nothing.
struct EmptyArgs {
  uint64_t early;
};
static_assert(sizeof(EmptyArgs) == 8, "EmptyArgs");
static_assert(__builtin_offsetof(EmptyArgs, early) == 0, "EmptyArgs.early");

// A word that goes to and fro between ranks 0 and 1.
struct TripArgs {
  Common common;
  uint64_t rounds;
  uint64_t first;
  uint64_t took;
};
static_assert(sizeof(TripArgs) == 208, "TripArgs");
static_assert(__builtin_offsetof(TripArgs, common) == 0, "TripArgs.common");
static_assert(__builtin_offsetof(TripArgs, rounds) == 184, "TripArgs.rounds");
static_assert(__builtin_offsetof(TripArgs, first) == 192, "TripArgs.first");
static_assert(__builtin_offsetof(TripArgs, took) == 200, "TripArgs.took");

// A copy, whatever its alignment.
struct CopyArgs {
  uint64_t from;
  uint64_t to;
  uint64_t bytes;
  uint64_t early;
};
static_assert(sizeof(CopyArgs) == 32, "CopyArgs");
static_assert(__builtin_offsetof(CopyArgs, from) == 0, "CopyArgs.from");
static_assert(__builtin_offsetof(CopyArgs, to) == 8, "CopyArgs.to");
static_assert(__builtin_offsetof(CopyArgs, bytes) == 16, "CopyArgs.bytes");
static_assert(__builtin_offsetof(CopyArgs, early) == 24, "CopyArgs.early");

// A reduction of one tensor that every rank receives whole.
struct AllReduceArgs {
  Common common;
  uint64_t input;
  uint64_t output;
  uint64_t bytes;
  uint64_t region;
  uint64_t place;
  uint64_t second;
  uint64_t second_place;
  uint64_t barrier;
  uint64_t row;
  uint64_t output_row;
};
static_assert(sizeof(AllReduceArgs) == 264, "AllReduceArgs");
static_assert(__builtin_offsetof(AllReduceArgs, common) == 0, "AllReduceArgs.common");
static_assert(__builtin_offsetof(AllReduceArgs, input) == 184, "AllReduceArgs.input");
static_assert(__builtin_offsetof(AllReduceArgs, output) == 192, "AllReduceArgs.output");
static_assert(__builtin_offsetof(AllReduceArgs, bytes) == 200, "AllReduceArgs.bytes");
static_assert(__builtin_offsetof(AllReduceArgs, region) == 208, "AllReduceArgs.region");
static_assert(__builtin_offsetof(AllReduceArgs, place) == 216, "AllReduceArgs.place");
static_assert(__builtin_offsetof(AllReduceArgs, second) == 224, "AllReduceArgs.second");
static_assert(__builtin_offsetof(AllReduceArgs, second_place) == 232, "AllReduceArgs.second_place");
static_assert(__builtin_offsetof(AllReduceArgs, barrier) == 240, "AllReduceArgs.barrier");
static_assert(__builtin_offsetof(AllReduceArgs, row) == 248, "AllReduceArgs.row");
static_assert(__builtin_offsetof(AllReduceArgs, output_row) == 256, "AllReduceArgs.output_row");

// A collective in which each rank sends one part to each rank, of which some may be equal or empty.
struct PartsArgs {
  Common common;
  uint64_t input;
  uint64_t output;
  uint64_t region;
  uint64_t place;
  uint64_t barrier;
  uint64_t tokens;
  uint64_t row;
  uint64_t piece;
  uint64_t pieces;
  uint64_t send_at[16];
  uint64_t send_bytes[16];
  uint64_t receive_at[16];
  uint64_t receive_bytes[16];
  uint64_t stage_at[16];
  uint64_t fetch_at[16];
};
static_assert(sizeof(PartsArgs) == 1024, "PartsArgs");
static_assert(__builtin_offsetof(PartsArgs, common) == 0, "PartsArgs.common");
static_assert(__builtin_offsetof(PartsArgs, input) == 184, "PartsArgs.input");
static_assert(__builtin_offsetof(PartsArgs, output) == 192, "PartsArgs.output");
static_assert(__builtin_offsetof(PartsArgs, region) == 200, "PartsArgs.region");
static_assert(__builtin_offsetof(PartsArgs, place) == 208, "PartsArgs.place");
static_assert(__builtin_offsetof(PartsArgs, barrier) == 216, "PartsArgs.barrier");
static_assert(__builtin_offsetof(PartsArgs, tokens) == 224, "PartsArgs.tokens");
static_assert(__builtin_offsetof(PartsArgs, row) == 232, "PartsArgs.row");
static_assert(__builtin_offsetof(PartsArgs, piece) == 240, "PartsArgs.piece");
static_assert(__builtin_offsetof(PartsArgs, pieces) == 248, "PartsArgs.pieces");
static_assert(__builtin_offsetof(PartsArgs, send_at) == 256, "PartsArgs.send_at");
static_assert(__builtin_offsetof(PartsArgs, send_bytes) == 384, "PartsArgs.send_bytes");
static_assert(__builtin_offsetof(PartsArgs, receive_at) == 512, "PartsArgs.receive_at");
static_assert(__builtin_offsetof(PartsArgs, receive_bytes) == 640, "PartsArgs.receive_bytes");
static_assert(__builtin_offsetof(PartsArgs, stage_at) == 768, "PartsArgs.stage_at");
static_assert(__builtin_offsetof(PartsArgs, fetch_at) == 896, "PartsArgs.fetch_at");
