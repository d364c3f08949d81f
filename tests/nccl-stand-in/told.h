// What the stand-in was asked, for tests to read; and why it last refused, for ncclGetLastError.
#pragma once

#include <string>

#include "abi.h"

void tell(const std::string &line);

// Remembers the sentence and returns the status.
Status refuse(Status status, const std::string &why);

// Of this process, whichever communicator and thread it was.
std::string last_refusal();
