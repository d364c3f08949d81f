// ncclCommSplit: ranks of one color find each other through the parent.
#include "lifecycle.h"
#include "told.h"

#ifdef HAS_SPLIT

#include <algorithm>

namespace {

// Where a rank comes to be.
struct Part {
  std::vector<int> members;
  int rank = -1;
};

Part part_of(const Communicator &parent) {
  const Seat *seats = parent.segment->seats;
  Part part;
  for (int peer = 0; peer < parent.world; ++peer) {
    if (seats[peer].color == seats[parent.rank].color) part.members.push_back(peer);
  }
  std::stable_sort(part.members.begin(), part.members.end(),
                   [&](int a, int b) { return seats[a].key < seats[b].key; });
  auto own = std::find(part.members.begin(), part.members.end(), parent.rank);
  part.rank = static_cast<int>(own - part.members.begin());
  return part;
}

// The first of each part makes its id. All ranks of the parent take part, whatever their color.
Status share_ids(Communicator *parent, const Part &part, UniqueId *id) {
  std::string why;
  Seat &own = parent->segment->seats[parent->rank];
  if (part.rank == 0 && !make_segment(&own.child, &why)) return refuse(SYSTEM_ERROR, why);
  if (!parent->meet()) return parent->aborted_error();
  *id = parent->segment->seats[part.members[0]].child;
  return parent->meet() ? SUCCESS : parent->aborted_error();
}

}  // namespace

EXPORT Status ncclCommSplit(Comm comm, int color, int key, Comm *out, Config *config) {
  auto parent = find(comm);
  if (!parent || out == nullptr) return refuse(INVALID_ARGUMENT, "there is no such communicator");
  *out = nullptr;
  Status status = parent->ready();
  if (status != SUCCESS) return status;
  if (color < NO_COLOR) return refuse(INVALID_ARGUMENT, "a color is not negative");
  Seat &seat = parent->segment->seats[parent->rank];
  seat.color = color;
  seat.key = key;
  // Who is where must be known before a communicator can be made: here callers do wait.
  if (!parent->meet()) return parent->aborted_error();
  Part part = part_of(*parent);
  UniqueId id = {};
  status = share_ids(parent.get(), part, &id);
  if (status != SUCCESS || color == NO_COLOR) return status;
  Config inherited = {};
  if (config == nullptr) {
    std::string why;
    read_config(nullptr, &inherited, &why);
    inherited.blocking = parent->blocking ? 1 : 0;
    config = &inherited;
  }
  return form(out, static_cast<int>(part.members.size()), id, part.rank, config);
}

#endif
