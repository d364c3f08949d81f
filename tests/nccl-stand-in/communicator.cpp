#include "communicator.h"

#include <signal.h>

#include <utility>

#include "control.h"
#include "exchange.h"
#include "told.h"

namespace {

std::atomic<HostFunction> host_function{nullptr};

std::mutex published_lock;
// Never destroyed: threads may outlive main.
auto &published = *new std::map<Comm, std::shared_ptr<Communicator>>;
// Of the next handle. None is used twice, so that one that was given back is known as such.
uintptr_t next_handle = 0x10000;

// Has the process taken the library's state down?
std::atomic<bool> is_gone{false};
// Threads in an abort, whose communicators are withdrawn.
std::atomic<int> aborting{0};
// Is this thread the stream's? On a device it would be none.
thread_local bool is_stream = false;

// Like a library whose threads and tables end with the process: whoever is in it then, or comes
// later, crashes. Not with any luck: while there are communicators they are waited for.
struct End {
  ~End() {
    is_gone = true;
    if (aborting > 0 || count_communicators() > 0) usleep(100000);
  }
} end;

}  // namespace

void crash_if_gone() {
  if (is_gone && !is_stream) raise(SIGSEGV);
}

EXPORT void crossover_stand_in_streams(HostFunction f) { host_function = f; }

Communicator::Communicator(int rank, int world, bool blocking, const Failures &failures)
    : rank(rank), world(world), blocking(blocking), failures(failures) {}

Communicator::~Communicator() { join(); }

std::string by(const Communicator &communicator) {
  return "rank " + std::to_string(communicator.rank) + " of " + std::to_string(communicator.world) +
         ": ";
}

bool Communicator::meet() {
  ++meetings_;
  segment->seats[rank].arrived.store(meetings_, std::memory_order_release);
  return wait([this] {
    for (int peer = 0; peer < world; ++peer) {
      if (segment->seats[peer].arrived.load(std::memory_order_acquire) < meetings_) return false;
    }
    return true;
  });
}

Status Communicator::aborted_error() const {
  return refuse(INTERNAL_ERROR, by(*this) + "it was aborted");
}

Status Communicator::start(std::function<Status()> job) {
  if (!blocking) return start_aside(std::move(job));
  Status status = job();
  if (status != SUCCESS) status_ = status;
  return status;
}

Status Communicator::start_aside(std::function<Status()> job) {
  join();
  std::lock_guard<std::mutex> guard(job_lock_);
  busy_ = true;
  job_ = std::thread([this, job = std::move(job)] {
    Status status = job();
    if (status != SUCCESS) status_ = status;
    busy_ = false;
  });
  return IN_PROGRESS;
}

void Communicator::join() {
  std::lock_guard<std::mutex> guard(job_lock_);
  if (job_.joinable()) job_.join();
}

Status Communicator::state() {
  if (busy_) return IN_PROGRESS;
  if (failures.query_is_slow) usleep(300000);
  if (failures.abort_is_heard) {
    for (int peer = 0; peer < world; ++peer) {
      if (segment->seats[peer].aborted == 0) continue;
      return refuse(REMOTE_ERROR, by(*this) + "rank " + std::to_string(peer) + " aborted");
    }
  }
  std::lock_guard<std::mutex> guard(deferred_lock_);
  if (deferred_) {
    if (++asked_ < 2) return IN_PROGRESS;
    Status status = enqueue(std::move(deferred_));
    if (status != SUCCESS) status_ = status;
  }
  return static_cast<Status>(status_.load());
}

Status Communicator::ready() {
  {
    std::lock_guard<std::mutex> guard(deferred_lock_);
    if (busy_ || deferred_) {
      return refuse(INVALID_ARGUMENT, by(*this) + "what was called before is still in progress");
    }
  }
  if (finalized_) return refuse(INVALID_ARGUMENT, by(*this) + "it was finalized");
  return static_cast<Status>(status_.load());
}

void Communicator::fail(Status status, const std::string &why) {
  int healthy = SUCCESS;
  if (status_.compare_exchange_strong(healthy, status)) refuse(status, why);
}

Status Communicator::launch(std::unique_ptr<Launch> launch) {
  bool pairs = false;
  for (auto &operation : launch->operations) {
    pairs |= operation.kind == Kind::SEND || operation.kind == Kind::RECV;
  }
  bool connects = !connected_ || (pairs && !paired_);
  connected_ = true;
  paired_ |= pairs;
  if (blocking || !connects) return enqueue(std::move(launch));
  std::lock_guard<std::mutex> guard(deferred_lock_);
  deferred_ = std::move(launch);
  asked_ = 0;
  return IN_PROGRESS;
}

Status Communicator::enqueue(std::unique_ptr<Launch> launch) {
  HostFunction put = host_function;
  if (put == nullptr) {
    return refuse(INTERNAL_ERROR, "no streams: crossover_stand_in_streams was not called");
  }
  // It may run before it is known whether it is captured; then it waits for the lock.
  std::lock_guard<std::mutex> guard(order_);
  int outcome = put(launch->stream, run_launch, launch.get());
  if (outcome != 0 && outcome != 1) {
    return refuse(UNHANDLED_DEVICE_ERROR, by(*this) + "the stream refuses a function");
  }
  Launch *in_stream = launch.release();
  in_stream->is_captured = outcome == 1;
  if (!in_stream->is_captured) in_stream->ticket = tickets_++;
  return SUCCESS;
}

// Whoever replays a graph after its communicator was given back replays nothing.
void run_launch(void *argument) {
  is_stream = true;
  auto *launch = static_cast<Launch *>(argument);
  std::shared_ptr<Communicator> us = launch->communicator.lock();
  if (!us) return;
  { std::lock_guard<std::mutex> guard(us->order_); }
  bool ours = true;
  if (!launch->is_captured) ours = us->wait([&] { return us->turn_ == launch->ticket; });
  if (ours) {
    std::lock_guard<std::mutex> guard(us->running_);
    if (us->status_ == SUCCESS && !us->aborted_) carry_out(*us, launch->operations);
  }
  // What was captured belongs to graphs, of whose end nobody tells.
  if (launch->is_captured) return;
  if (ours) ++us->turn_;
  delete launch;
}

bool Communicator::flush() {
  return wait([this] {
    std::lock_guard<std::mutex> guard(order_);
    return turn_ == tickets_;
  });
}

Status Communicator::finalize() {
  bool done = flush();
  if (done && failures.finalize_hangs) done = wait([] { return false; });
  if (done && failures.finalize_is_held) {
    done = wait([this] {
      Failures now;
      std::string why;
      return read_failures(rank, &now, &why) && !now.finalize_is_held;
    });
  }
  return done && meet() ? SUCCESS : aborted_error();
}

void Communicator::abort() {
  aborted_ = true;
  if (segment.is_open()) segment->seats[rank].aborted = 1;
  ++aborting;
  if (failures.abort_is_slow || failures.abort_hangs) {
    for (int tries = 0; tries < 5000 || failures.abort_hangs; ++tries) {
      crash_if_gone();
      usleep(100);
    }
  }
  join();
  {
    // A function in a stream has seen it.
    std::lock_guard<std::mutex> guard(running_);
  }
  --aborting;
}

Comm publish(const std::shared_ptr<Communicator> &communicator) {
  crash_if_gone();
  std::lock_guard<std::mutex> guard(published_lock);
  next_handle += 16;
  auto handle = reinterpret_cast<Comm>(next_handle);
  published[handle] = communicator;
  return handle;
}

std::shared_ptr<Communicator> find(Comm comm) {
  crash_if_gone();
  std::lock_guard<std::mutex> guard(published_lock);
  auto found = published.find(comm);
  if (found == published.end()) return nullptr;
  return found->second;
}

std::shared_ptr<Communicator> withdraw(Comm comm) {
  crash_if_gone();
  std::lock_guard<std::mutex> guard(published_lock);
  auto found = published.find(comm);
  if (found == published.end()) return nullptr;
  std::shared_ptr<Communicator> communicator = found->second;
  published.erase(found);
  return communicator;
}

long long count_communicators() {
  std::lock_guard<std::mutex> guard(published_lock);
  return static_cast<long long>(published.size());
}
