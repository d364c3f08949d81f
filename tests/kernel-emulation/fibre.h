// Stacks and the switch between them. Under ThreadSanitizer the fibres of a block count as concurrent
// (switches do not synchronise), which is how a missing barrier is found.
#pragma once

#include <stddef.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

// Somewhere to switch to: a fibre, or the thread that runs fibres.
struct Context {
#if defined(__x86_64__)
  void *stack_pointer = nullptr;
#else
  ucontext_t saved;
#endif
  void *sanitizer = nullptr;
};

// Bytes of a fibre's stack. size: kernels have small frames; the sanitizer's are some times larger
constexpr size_t STACK_BYTES = 64 * 1024;

// The context of the calling thread itself.
void adopt_thread(Context &context);
// A fibre that begins with `entry`, which never returns, on `stack` (its lowest byte).
void make_fibre(Context &context, char *stack, void (*entry)());
// For the sanitizer's reports.
void name_fibre(Context &context, const char *name);
// For the next kernel on the same stack.
void end_fibre(Context &context);
// Leaves `from` for `to`; returns when somebody leaves for `from`.
void switch_context(Context &from, Context &to);

// Edges that the sanitizer is told of: what came before `release` is seen after `acquire`.
void release(void *token);
void acquire(void *token);

}  // namespace emulator
