// A rank's communicator.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "failures.h"
#include "protocol.h"

struct Operation;
struct Launch;

// For streams: a launch, when its turn comes.
void run_launch(void *launch);

// Of a thread that is in the library when the process has taken it down.
void crash_if_gone();

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(int rank, int world, bool blocking, const Failures &failures);
  ~Communicator();

  const int rank;
  const int world;
  const bool blocking;
  const Failures failures;
  Segment segment;

  // Until it is true. False if the communicator is aborted first.
  template <class Ready>
  bool wait(Ready ready) {
    for (unsigned tries = 0; !ready(); ++tries) {
      crash_if_gone();
      if (aborted_.load()) return false;
      if (tries < 100) {
        sched_yield();
      } else {
        usleep(50);
      }
    }
    return true;
  }
  // All ranks are here. What each wrote into its seat before, all may read after.
  bool meet();
  Status aborted_error() const;

  // Runs a job that waits for peers: here, or, if callers do not wait, in a thread of its own.
  Status start(std::function<Status()> job);
  // For jobs of several communicators that one thread begins.
  Status start_aside(std::function<Status()> job);
  void join();

  // What callers learn.
  Status state();
  // Ready for another call?
  Status ready();
  void fail(Status status, const std::string &why);

  // Puts the calls of a group into the stream, in the order of launches.
  Status launch(std::unique_ptr<Launch> launch);
  // What was put into streams has been done.
  bool flush();
  // Flushes and meets all ranks. A job.
  Status finalize();
  // No more calls.
  void close() { finalized_ = true; }
  void abort();

  uint64_t next_call() { return ++calls_; }

  std::mutex windows_lock;
  // From where to where, of symmetric ones.
  std::map<uintptr_t, uintptr_t> windows;

 private:
  friend void run_launch(void *);
  Status enqueue(std::unique_ptr<Launch> launch);

  std::atomic<bool> aborted_{false};
  std::atomic<int> status_{SUCCESS};
  std::atomic<bool> busy_{false};
  std::atomic<bool> finalized_{false};
  std::mutex job_lock_;
  std::thread job_;
  uint64_t meetings_ = 0;
  uint64_t calls_ = 0;

  // The launch that waits for its caller to ask twice: the first one connects, which takes time.
  std::mutex deferred_lock_;
  std::unique_ptr<Launch> deferred_;
  int asked_ = 0;
  bool connected_ = false;
  bool paired_ = false;

  std::mutex order_;
  uint64_t tickets_ = 0;
  std::atomic<uint64_t> turn_{0};
  std::mutex running_;
};

// What callers hold.
Comm publish(const std::shared_ptr<Communicator> &communicator);
std::shared_ptr<Communicator> find(Comm comm);
std::shared_ptr<Communicator> withdraw(Comm comm);
long long count_communicators();

std::string by(const Communicator &communicator);
