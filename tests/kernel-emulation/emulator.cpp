// Blocks and their fibres: whose turn it is, who waits at the barrier, who has ended.
#include "emulator.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "block.h"

namespace emulator {

static std::atomic<const Kernel *> known{nullptr};
// Grows when any kernel of the process gets ahead.
std::atomic<uint64_t> progress{0};

static thread_local Block *current = nullptr;

Kernel::Kernel(const char *name, Body body, uint32_t max_threads, uint32_t parameter_bytes)
    : name(name), body(body), max_threads(max_threads), parameter_bytes(parameter_bytes) {
  next = known.exchange(this);
}

const Kernel *kernels() { return known.load(); }

uint32_t thread() { return current->turn; }
uint32_t block() { return current->index; }
uint32_t threads() { return current->launch->threads; }
uint32_t blocks() { return current->launch->blocks; }

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void sleep_us(uint64_t microseconds) {
  const timespec time{static_cast<time_t>(microseconds / 1'000'000),
                      static_cast<long>(microseconds % 1'000'000 * 1000)};
  nanosleep(&time, nullptr);
}

// SplitMix64: neighbouring seeds give unlike sequences.
static uint64_t draw(uint64_t &state) {
  uint64_t mixed = state += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

static uint32_t below(uint64_t &state, uint32_t limit) {
  return static_cast<uint32_t>((draw(state) >> 32) * limit >> 32);
}

uint32_t random(uint32_t limit) { return below(current->random, limit); }

static void leave(Block &block) {
  switch_context(block.fibres[block.turn].context, block.scheduler);
}

void spin(const char *where) {
  Block &block = *current;
  block.fibres[block.turn].where = where;
  leave(block);
}

void barrier(const char *where) {
  Block &block = *current;
  Fibre &fibre = block.fibres[block.turn];
  fibre.where = where;
  fibre.state = State::Barrier;
  // Two tokens by turns: a fibre that is already at the next barrier must not be ordered before one
  // that has yet to leave this one.
  char *token = &block.barrier_tokens[block.phase % 2];
  release(token);
  leave(block);
  acquire(token);
}

void access() {
  Block &block = *current;
  if (below(block.random, ACCESSES_A_TURN) != 0) return;
  if (block.launch->delay_us != 0 && below(block.random, TURNS_A_DELAY) == 0)
    block.oversleep = true;
  leave(block);
}

void stored() { ++current->steps; }

void await_previous(const char *where) {
  Launch *previous = current->launch->previous.get();
  if (previous == nullptr) return;
  while (!previous->ended.load()) spin(where);
  acquire(&previous->end_token);
}

void let_next_start() {
  if (current->let_next) return;
  current->let_next = true;
  current->launch->let_next.fetch_add(1);
}

static void fibre_entry() {
  Block *block = current;
  acquire(&block->start_token);
  block->launch->kernel->body(block->launch->parameter);
  release(&block->end_token);
  block->fibres[block->turn].state = State::Done;
  leave(*block);
  __builtin_trap();
}

// A fibre that came close to the end of its stack has perhaps written into its neighbour's.
static void check_stack(const Block &block, const Fibre &fibre) {
#if defined(__x86_64__)
  const char *lowest = block.stacks + block.turn * STACK_BYTES;
  if (static_cast<char *>(fibre.context.stack_pointer) < lowest + STACK_BYTES / 8) abort();
#else
  (void)block;
  (void)fibre;
#endif
}

// After a round of looks in vain other blocks have the processor.
static void rest(size_t idle, size_t fibres) {
  if (idle % fibres != 0) return;
  const size_t rounds = idle / fibres;
  if (rounds <= YIELD_ROUNDS) sched_yield();
  // Not longer: a kernel looks at the clock and for an abort after thousands of rounds.
  else sleep_us(20 * (rounds < 5 ? rounds : 5));
}

// Runs the fibres of a block until all have ended, or the launch is given up.
static void schedule(Block &block) {
  std::vector<uint32_t> ready(block.launch->threads), waiting;
  for (uint32_t at = 0; at < ready.size(); ++at) ready[at] = at;
  // In some blocks some fibres hardly get a turn while others get ahead: what relies on a neighbour being about as
  // fast is found so, and an even choice would seldom find it.
  if (below(block.random, 8) == 0)
    for (Fibre &fibre : block.fibres) fibre.slow = below(block.random, 4) == 0;
  uint64_t seen = 0;
  size_t idle = 0;
  while (!ready.empty() && !block.launch->given_up.load(std::memory_order_relaxed)) {
    const uint32_t pick = below(block.random, static_cast<uint32_t>(ready.size()));
    block.turn = ready[pick];
    Fibre &fibre = block.fibres[block.turn];
    if (fibre.slow && idle < SLOW_ROUNDS * ready.size()) {
      rest(++idle, ready.size());
      continue;
    }
    switch_context(block.scheduler, fibre.context);
    check_stack(block, fibre);
    if (fibre.state != State::Ready) {
      if (fibre.state == State::Barrier) waiting.push_back(block.turn);
      ready[pick] = ready.back();
      ready.pop_back();
      ++block.steps;
    }
    if (ready.empty() && !waiting.empty()) {
      for (const uint32_t at : waiting) block.fibres[at].state = State::Ready;
      ready.swap(waiting);
      waiting.clear();
      ++block.phase;
    }
    if (block.steps != seen) {
      seen = block.steps;
      idle = 0;
      progress.fetch_add(1, std::memory_order_relaxed);
    } else if (!ready.empty()) {
      rest(++idle, ready.size());
    }
    if (block.oversleep) {
      block.oversleep = false;
      sleep_us(below(block.random, block.launch->delay_us));
    }
  }
}

// A line for every place at which fibres of the block are.
static std::string describe(const Block &block) {
  std::string lines;
  std::vector<bool> told(block.fibres.size());
  for (size_t at = 0; at < block.fibres.size(); ++at) {
    const Fibre &first = block.fibres[at];
    if (first.state == State::Done || told[at]) continue;
    size_t alike = 0;
    for (size_t other = at; other < block.fibres.size(); ++other) {
      const Fibre &fibre = block.fibres[other];
      if (fibre.state != first.state || strcmp(fibre.where, first.where) != 0) continue;
      told[other] = true;
      ++alike;
    }
    lines += block.launch->who + ": " + block.launch->kernel->name + " block " +
             std::to_string(block.index) + ": thread " + std::to_string(at) +
             (alike > 1 ? " and " + std::to_string(alike - 1) + " more" : "") +
             (first.state == State::Barrier ? " at the barrier of " : " in the wait of ") +
             first.where + "\n";
  }
  return lines;
}

// A thread's stacks for fibres, kept from kernel to kernel.
struct Stacks {
  char *memory = nullptr;
  size_t bytes = 0;

  char *of(size_t fibres) {
    if (fibres * STACK_BYTES > bytes) {
      drop();
      bytes = fibres * STACK_BYTES;
      void *got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (got == MAP_FAILED) abort();
      memory = static_cast<char *>(got);
    }
    return memory;
  }
  void drop() {
    if (memory != nullptr) munmap(memory, bytes);
  }
  ~Stacks() { drop(); }
};

void run_block(Launch &launch, uint32_t index) {
  // Let in early, it still starts after every block of the kernel ahead has said so.
  if (Launch *previous = launch.previous.get())
    for (size_t looks = 0; previous->let_next.load() < previous->blocks && !launch.given_up.load();)
      rest(++looks, 1);
  Block block;
  block.launch = &launch;
  block.index = index;
  block.random = launch.seed ^ static_cast<uint64_t>(index) << 40;
  draw(block.random);
  current = &block;
  if (launch.delay_us != 0) sleep_us(below(block.random, launch.delay_us));

  thread_local Stacks stacks;
  block.stacks = stacks.of(launch.threads);
  adopt_thread(block.scheduler);
  block.fibres.resize(launch.threads);
  for (uint32_t at = 0; at < launch.threads; ++at) {
    make_fibre(block.fibres[at].context, block.stacks + at * STACK_BYTES, fibre_entry);
    const std::string name = launch.who + " block " + std::to_string(index) + " thread " +
                             std::to_string(at) + " of " + launch.kernel->name;
    name_fibre(block.fibres[at].context, name.c_str());
  }

  release(&block.start_token);
  schedule(block);
  acquire(&block.end_token);
  if (launch.given_up.load()) launch.tell(describe(block));
  let_next_start();
  for (Fibre &fibre : block.fibres) end_fibre(fibre.context);
  current = nullptr;
  release(&launch.end_token);
  if (launch.left.fetch_sub(1) == 1) launch.ended.store(true);
}

}  // namespace emulator
