// ncclGetUniqueId, ncclCommInitRank and what ends a communicator.
#include "lifecycle.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "groups.h"
#include "told.h"

namespace {

bool may_share_devices() {
#ifdef DISTINCT_DEVICES
  return true;
#else
  const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return allowed != nullptr && strcmp(allowed, "1") == 0;
#endif
}

// Do all ranks want the same, and can they have it?
Status compare(const Communicator &us) {
  for (int peer = 0; peer < us.world; ++peer) {
    const Seat &seat = us.segment->seats[peer];
    std::string who = by(us) + "rank " + std::to_string(peer);
    if (seat.world != us.world) {
      return refuse(INVALID_ARGUMENT, who + " is one of " + std::to_string(seat.world));
    }
    if (seat.version != VERSION) {
      return refuse(INVALID_USAGE, who + " has version " + std::to_string(seat.version) + ", not " +
                                       std::to_string(VERSION));
    }
  }
  if (us.world > 1 && !may_share_devices()) {
    return refuse(INVALID_USAGE, by(us) + "duplicate device: ranks 0 and 1 are both on device 0");
  }
  return SUCCESS;
}

Status connect(Communicator *us, const UniqueId &id) {
  if (us->failures.init_fails) return refuse(SYSTEM_ERROR, by(*us) + "was told to fail");
  if (us->failures.init_hangs) {
    us->wait([] { return false; });
    return us->aborted_error();
  }
  std::string why;
  if (!us->segment.open(id, &why)) return refuse(SYSTEM_ERROR, by(*us) + why);
  Seat &seat = us->segment->seats[us->rank];
  if (seat.taken.exchange(1) != 0) return refuse(INVALID_ARGUMENT, by(*us) + "the rank is taken");
  seat.world = us->world;
  seat.version = VERSION;
  if (!us->meet()) return us->aborted_error();
  us->segment.close_descriptor(id);
  return compare(*us);
}

std::string shown(int value) { return value == UNSET ? "-" : std::to_string(value); }

void tell_init(const Communicator &us, const Config &config) {
  tell(by(us) + "init blocking=" + shown(config.blocking) + " cga_cluster_size=" +
       shown(config.cga_cluster_size) + " min_ctas=" + shown(config.min_ctas) + " max_ctas=" +
       shown(config.max_ctas) + " cta_policy=" + shown(config.cta_policy) + " nvls_ctas=" +
       shown(config.nvls_ctas) + " graph_usage=" + shown(config.graph_usage) + " nvls_host=" +
       shown(config.nvls_host));
}

}  // namespace

bool read_config(const Config *given, Config *config, std::string *why) {
  *config = {};
  config->size = sizeof(Config);
  config->magic = MAGIC;
  config->version = VERSION;
  config->blocking = config->cga_cluster_size = config->min_ctas = config->max_ctas = UNSET;
  config->cta_policy = config->nvls_ctas = config->graph_usage = config->nvls_host = UNSET;
  if (given == nullptr) return true;
  Config read = *config;
  memcpy(&read, given, std::min(given->size, sizeof read));
  if (read.magic != MAGIC) {
    *why = "the config was not initialised";
    return false;
  }
  // Fields that came after the caller's version are not looked at, whatever is in them.
  unsigned version = std::min<unsigned>(read.version, VERSION);
  config->blocking = read.blocking;
  if (version >= 21700) {
    config->cga_cluster_size = read.cga_cluster_size;
    config->min_ctas = read.min_ctas;
    config->max_ctas = read.max_ctas;
  }
  if (version >= 22700) {
    config->cta_policy = read.cta_policy;
    config->nvls_ctas = read.nvls_ctas;
  }
  if (version >= 22900) config->graph_usage = read.graph_usage;
  if (version >= 23200) config->nvls_host = read.nvls_host;
  auto within = [](int value, int least, int most) {
    return value == UNSET || (value >= least && value <= most);
  };
  int most = INT32_MAX;
  bool ordered = config->min_ctas == UNSET || config->min_ctas <= config->max_ctas ||
                 config->max_ctas == UNSET;
  if (within(config->blocking, 0, 1) && within(config->cga_cluster_size, 0, 8) &&
      within(config->min_ctas, 1, most) && within(config->max_ctas, 1, most) && ordered) {
    return true;
  }
  *why = "the config has a value out of its range";
  return false;
}

Status form(Comm *out, int world, const UniqueId &id, int rank, const Config *config) {
  if (out == nullptr) return refuse_call(INVALID_ARGUMENT, "no place for the communicator");
  *out = nullptr;
  Failures failures;
  Config settled;
  std::string why;
  if (!read_config(config, &settled, &why) || !read_failures(rank, &failures, &why)) {
    return refuse_call(INVALID_ARGUMENT, why);
  }
  auto us = std::make_shared<Communicator>(rank, world, settled.blocking != 0, failures);
  tell_init(*us, settled);
  *out = publish(us);
  Status status = begin(us, [job_of = us.get(), id] { return connect(job_of, id); });
  if (status != SUCCESS && status != IN_PROGRESS) {
    withdraw(*out);
    *out = nullptr;
  }
  return status;
}

static Status init(Comm *out, int world, const UniqueId &id, int rank, const Config *config) {
  if (world < 1 || world > MAX_RANKS || rank < 0 || rank >= world) {
    return refuse_call(INVALID_ARGUMENT, "there is no rank " + std::to_string(rank) + " of " +
                                             std::to_string(world));
  }
  return form(out, world, id, rank, config);
}

#ifndef WITHOUT_UNIQUE_ID
EXPORT Status ncclGetUniqueId(UniqueId *id) {
  if (id == nullptr) return refuse(INVALID_ARGUMENT, "no place for the id");
  Failures failures;
  std::string why;
  // Words that nobody knows are refused by the ranks' init.
  const bool known = read_failures(-1, &failures, &why);
  while (known && failures.id_hangs) {
    crash_if_gone();
    usleep(1000);
  }
  return make_segment(id, &why) ? SUCCESS : refuse(SYSTEM_ERROR, why);
}
#endif

EXPORT Status ncclCommInitRank(Comm *out, int world, UniqueId id, int rank) {
  return init(out, world, id, rank, nullptr);
}

#ifdef HAS_CONFIG
EXPORT Status ncclCommInitRankConfig(Comm *out, int world, UniqueId id, int rank, Config *config) {
  return init(out, world, id, rank, config);
}

EXPORT Status ncclCommFinalize(Comm comm) {
  auto us = find(comm);
  if (!us) {
    tell("finalize of no communicator");
    return refuse_call(INVALID_ARGUMENT, "there is no such communicator");
  }
  Status status = us->ready();
  if (status != SUCCESS) return status;
  us->close();
  tell(by(*us) + "finalize");
  return begin(us, [job_of = us.get()] { return job_of->finalize(); });
}
#endif

EXPORT Status ncclCommDestroy(Comm comm) {
  auto us = find(comm);
  if (!us) return refuse(INVALID_ARGUMENT, "there is no such communicator");
  if (us->state() == IN_PROGRESS) {
    return refuse(INVALID_ARGUMENT, by(*us) + "what was called before is still in progress");
  }
  // Without an end that all agreed on, what is in streams is waited for; an abort frees this wait.
  bool done = us->state() != SUCCESS || us->flush();
  if (!withdraw(comm)) return us->aborted_error();
  us->join();
  tell(by(*us) + "destroy");
  return done ? SUCCESS : us->aborted_error();
}

EXPORT Status ncclCommAbort(Comm comm) {
  auto us = withdraw(comm);
  if (!us) return refuse(INVALID_ARGUMENT, "there is no such communicator");
  us->abort();
  tell(by(*us) + "abort");
  return SUCCESS;
}
