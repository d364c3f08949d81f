// ncclGroupStart and ncclGroupEnd: what is called between them is begun at the end, all at once.
#pragma once

#include <functional>
#include <memory>

#include "communicator.h"
#include "exchange.h"

// Begins a job, or keeps it for the group's end.
Status begin(const std::shared_ptr<Communicator> &communicator, std::function<Status()> job);

// Launches a call, or keeps it for the group's end.
Status submit(const std::shared_ptr<Communicator> &communicator, const Operation &operation,
              Stream stream);

// A call is refused: so is the whole group, if it is in one.
Status refuse_call(Status status, const std::string &why);
