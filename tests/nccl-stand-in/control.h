// What the stand-in exports for tests beside NCCL's symbols.
#pragma once

#include "abi.h"

// Puts a function into a stream. 0: it is in. 1: the stream is being captured, the function runs at
// every replay. Anything else: it is refused.
typedef int (*HostFunction)(unsigned long long stream, void (*f)(void *), void *argument);

// Gives the streams to work in. Before, no collective can be called.
EXPORT void crossover_stand_in_streams(HostFunction host_function);

// From now on communicators fail so (failures.h), whatever the environment says. Null: the
// environment says.
EXPORT void crossover_stand_in_failures(const char *text);

// What was asked since the last time, a line each, with a closing zero; cut, and kept, if there is
// less room. Returns the whole length.
EXPORT size_t crossover_stand_in_told(char *text, size_t room);

// Communicators, windows and blocks of memory that were not given back.
EXPORT void crossover_stand_in_alive(long long counts[3]);
