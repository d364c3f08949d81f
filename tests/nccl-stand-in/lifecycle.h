// How a communicator comes about.
#pragma once

#include "communicator.h"

// What a caller's configuration sets; null is nothing. False, and a sentence, if it is wrong.
bool read_config(const Config *given, Config *config, std::string *why);

// Makes a communicator, of a rank and world that can be.
Status form(Comm *out, int world, const UniqueId &id, int rank, const Config *config);
