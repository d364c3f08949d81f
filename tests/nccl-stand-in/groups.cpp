#include "groups.h"

#include <utility>

#include "told.h"

namespace {

struct Group {
  int depth = 0;
  Status refused = SUCCESS;
  std::vector<std::pair<std::shared_ptr<Communicator>, std::function<Status()>>> jobs;
  std::vector<std::pair<std::shared_ptr<Communicator>, std::unique_ptr<Launch>>> launches;
};

thread_local Group group;

std::unique_ptr<Launch> launch_on(const std::shared_ptr<Communicator> &communicator,
                                  Stream stream) {
  return std::unique_ptr<Launch>(new Launch{communicator, {}, stream, false, 0});
}

// One after the other would wait for one another.
Status run_jobs(Group *of) {
  Status worst = SUCCESS;
  for (auto &[communicator, job] : of->jobs) communicator->start_aside(std::move(job));
  for (auto &[communicator, job] : of->jobs) {
    if (communicator->blocking) communicator->join();
    Status status = communicator->state();
    if (worst == SUCCESS) worst = status;
  }
  return worst;
}

}  // namespace

Status begin(const std::shared_ptr<Communicator> &communicator, std::function<Status()> job) {
  if (group.depth == 0) return communicator->start(std::move(job));
  group.jobs.emplace_back(communicator, std::move(job));
  return SUCCESS;
}

Status submit(const std::shared_ptr<Communicator> &communicator, const Operation &operation,
              Stream stream) {
  if (group.depth == 0) {
    auto launch = launch_on(communicator, stream);
    launch->operations.push_back(operation);
    return communicator->launch(std::move(launch));
  }
  for (auto &[known, launch] : group.launches) {
    if (known != communicator) continue;
    if (launch->stream != stream) {
      return refuse_call(INVALID_USAGE, "the stand-in takes one stream for a group's calls");
    }
    launch->operations.push_back(operation);
    return SUCCESS;
  }
  group.launches.emplace_back(communicator, launch_on(communicator, stream));
  group.launches.back().second->operations.push_back(operation);
  return SUCCESS;
}

Status refuse_call(Status status, const std::string &why) {
  if (group.depth > 0 && group.refused == SUCCESS) group.refused = status;
  return refuse(status, why);
}

EXPORT Status ncclGroupStart() {
  ++group.depth;
  return SUCCESS;
}

EXPORT Status ncclGroupEnd() {
  if (group.depth == 0) return refuse(INVALID_USAGE, "no group was started");
  if (--group.depth > 0) return SUCCESS;
  Group ended = std::move(group);
  group = Group();
  if (ended.refused != SUCCESS) return ended.refused;
  Status worst = run_jobs(&ended);
  for (auto &[communicator, launch] : ended.launches) {
    Status status = communicator->launch(std::move(launch));
    if (worst == SUCCESS || worst == IN_PROGRESS) worst = status == SUCCESS ? worst : status;
  }
  return worst;
}
