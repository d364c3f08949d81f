#include "fibre.h"

#include <stdint.h>

#if defined(EMULATOR_TSAN)
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_set_fiber_name(void *fiber, const char *name);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#endif

namespace emulator {

#if defined(EMULATOR_TSAN)
// A switch is not a synchronisation.
static const unsigned NO_SYNC = 1;
#endif

#if defined(__x86_64__)
// The registers that a call keeps, and the stack. (A library's switch would make a system call for
// the signal mask each time.)
extern "C" void emulator_swap(void **save, void *load);
asm(R"(
.text
.type emulator_swap, @function
emulator_swap:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_swap, .-emulator_swap
)");
#endif

void adopt_thread(Context &context) {
#if defined(EMULATOR_TSAN)
  context.sanitizer = __tsan_get_current_fiber();
#else
  (void)context;
#endif
}

void make_fibre(Context &context, char *stack, void (*entry)()) {
#if defined(__x86_64__)
  // As if `entry` had been called: the stack is 16-byte aligned before the return address.
  void **top = reinterpret_cast<void **>(stack + STACK_BYTES - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(entry);
  for (int kept = 0; kept < 6; ++kept) *--top = nullptr;
  context.stack_pointer = top;
#else
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = stack;
  context.saved.uc_stack.ss_size = STACK_BYTES;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, entry, 0);
#endif
#if defined(EMULATOR_TSAN)
  context.sanitizer = __tsan_create_fiber(0);
#endif
}

void name_fibre(Context &context, const char *name) {
#if defined(EMULATOR_TSAN)
  __tsan_set_fiber_name(context.sanitizer, name);
#else
  (void)context;
  (void)name;
#endif
}

void end_fibre(Context &context) {
#if defined(EMULATOR_TSAN)
  __tsan_destroy_fiber(context.sanitizer);
#endif
  context.sanitizer = nullptr;
}

void switch_context(Context &from, Context &to) {
#if defined(EMULATOR_TSAN)
  __tsan_switch_to_fiber(to.sanitizer, NO_SYNC);
#endif
#if defined(__x86_64__)
  emulator_swap(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.saved, &to.saved);
#endif
}

void release(void *token) {
#if defined(EMULATOR_TSAN)
  __tsan_release(token);
#else
  (void)token;
#endif
}

void acquire(void *token) {
#if defined(EMULATOR_TSAN)
  __tsan_acquire(token);
#else
  (void)token;
#endif
}

}  // namespace emulator
