// Calls that only ask.
#include "communicator.h"
#include "control.h"
#include "told.h"

namespace {

template <class Number>
Status answer(Comm comm, int *out, Number number) {
  auto us = find(comm);
  if (!us || out == nullptr) return refuse(INVALID_ARGUMENT, "there is no such communicator");
  *out = number(*us);
  return SUCCESS;
}

}  // namespace

EXPORT Status ncclGetVersion(int *version) {
  if (version == nullptr) return INVALID_ARGUMENT;
  *version = VERSION;
  return SUCCESS;
}

EXPORT const char *ncclGetErrorString(Status status) {
  switch (status) {
    case SUCCESS:
      return "no error";
    case UNHANDLED_DEVICE_ERROR:
      return "unhandled device error";
    case SYSTEM_ERROR:
      return "unhandled system error";
    case INTERNAL_ERROR:
      return "internal error";
    case INVALID_ARGUMENT:
      return "invalid argument";
    case INVALID_USAGE:
      return "invalid usage";
    case REMOTE_ERROR:
      return "remote process exited or there was a network error";
    case IN_PROGRESS:
      return "operation in progress";
  }
  return "unknown result code";
}

#ifdef HAS_LAST_ERROR
EXPORT const char *ncclGetLastError(Comm) {
  // Callers may keep it until they ask again.
  static thread_local std::string told;
  told = last_refusal();
  return told.c_str();
}
#endif

EXPORT Status ncclCommGetAsyncError(Comm comm, Status *status) {
  auto us = find(comm);
  if (!us || status == nullptr) return refuse(INVALID_ARGUMENT, "there is no such communicator");
  *status = us->state();
  return SUCCESS;
}

EXPORT Status ncclCommCount(Comm comm, int *count) {
  return answer(comm, count, [](Communicator &us) { return us.world; });
}

EXPORT Status ncclCommUserRank(Comm comm, int *rank) {
  return answer(comm, rank, [](Communicator &us) { return us.rank; });
}

EXPORT Status ncclCommCuDevice(Comm comm, int *device) {
#ifdef DISTINCT_DEVICES
  return answer(comm, device, [](Communicator &us) { return us.rank; });
#else
  return answer(comm, device, [](Communicator &) { return 0; });
#endif
}
