// How a communicator fails, in words: clauses between `;`, of words between spaces.
//
//   rank=1 init=hang; call=3 wrong
//
//   rank=N             the clause is for this rank alone
//   init=hang          it never comes, until it is aborted
//   init=fail          ncclSystemError; the others wait for it
//   id=hang            ncclGetUniqueId does not return (on every rank of the process)
//   finalize=hang      it does not end
//   finalize=held      it does not end while this clause stands, as if graphs with its calls were there
//   query=slow         to ask for errors takes a while
//   abort=slow         to abort takes half a second
//   abort=hang         to abort does not end
//   abort=heard        a peer's abort is an error here
//   deregister=hang    to give a window back does not return, until it is aborted
//   window=fail        its registration is refused, after all have come
//   window=null        its registration succeeds and gives no window
//   memory=fail        ncclMemAlloc is refused (on every rank of the process)
//   call=N fail        the Nth call of the communicator is refused
//   call=N inside      it does not return, until it is aborted
//   call=N hang        it is enqueued and does nothing, until it is aborted
//   call=N slow        it is enqueued, and begins when three seconds have passed
//   call=N async-error it is enqueued, and fails when the stream comes to it
//   call=N wrong       one element of its output is wrong
//   call=N die         the process is killed when the stream comes to it
//
// Calls are counted from 1, each of a group by itself; one without elements is none.
#pragma once

#include <map>
#include <string>

#include "abi.h"

enum class CallFailure { NONE, FAIL, INSIDE, HANG, SLOW, ASYNC_ERROR, WRONG, DIE };

struct Failures {
  bool init_hangs = false;
  bool init_fails = false;
  bool id_hangs = false;
  bool finalize_hangs = false;
  bool finalize_is_held = false;
  bool query_is_slow = false;
  bool abort_is_slow = false;
  bool abort_hangs = false;
  bool abort_is_heard = false;
  bool deregister_hangs = false;
  bool window_fails = false;
  bool window_is_null = false;
  bool memory_fails = false;
  std::map<uint64_t, CallFailure> calls;

  CallFailure of_call(uint64_t number) const;
};

// Those of a rank, now. False, and a sentence, if they cannot be read.
bool read_failures(int rank, Failures *failures, std::string *why);
