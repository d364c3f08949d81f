// How a communicator fails, in words: clauses between `;`, of words between spaces.
//
//   rank=1 init=hang; call=3 wrong
//
//   rank=N             the clause is for this rank alone
//   init=hang          it never comes, until it is aborted
//   init=fail          ncclSystemError; the others wait for it
//   finalize=hang      it does not end
//   abort=slow         to abort takes half a second
//   abort=hang         to abort does not end
//   window=fail        its registration is refused, after all have come
//   window=null        its registration succeeds and gives no window
//   memory=fail        ncclMemAlloc is refused (on every rank of the process)
//   call=N fail        the Nth call of the communicator is refused
//   call=N hang        it is enqueued and does nothing, until it is aborted
//   call=N async-error it is enqueued, and fails when the stream comes to it
//   call=N wrong       one element of its output is wrong
//   call=N die         the process is killed when the stream comes to it
//
// Calls are counted from 1, each of a group by itself; one without elements is none.
#pragma once

#include <map>
#include <string>

#include "abi.h"

enum class CallFailure { NONE, FAIL, HANG, ASYNC_ERROR, WRONG, DIE };

struct Failures {
  bool init_hangs = false;
  bool init_fails = false;
  bool finalize_hangs = false;
  bool abort_is_slow = false;
  bool abort_hangs = false;
  bool window_fails = false;
  bool window_is_null = false;
  bool memory_fails = false;
  std::map<uint64_t, CallFailure> calls;

  CallFailure of_call(uint64_t number) const;
};

// Those of a rank, now. False, and a sentence, if they cannot be read.
bool read_failures(int rank, Failures *failures, std::string *why);
