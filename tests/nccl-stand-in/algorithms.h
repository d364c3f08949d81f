// The names of algorithms that a call can be told to choose among.
#pragma once

#include "exchange.h"

// Can one of `words`, names between commas, serve a call of this kind? A name stands for all that
// begin with it, `^` for all others; those of symmetric kernels need windows.
bool can_choose(const std::string &words, Kind kind, bool symmetric);
