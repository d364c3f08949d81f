// A stream's kernels. Each queue has threads of its own: threads shared by ranks would order the
// ranks in the sanitizer's eyes.
#include <string.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "block.h"

using emulator::Launch;

// At most so many kernels of a queue are in flight.
static const size_t IN_FLIGHT = 3;
// A launch that was given up, and whose blocks do not notice, has a loop without pause().
static const uint64_t NOTICE_NS = 5'000'000'000;

namespace {

struct Worker {
  std::mutex lock;
  std::condition_variable wake;
  // The queue keeps it until all its blocks have ended.
  Launch *launch = nullptr;
  uint32_t block = 0;
  bool stop = false;
  // Read by the queue's thread alone, without the lock.
  std::atomic<bool> busy{false};
  std::thread thread;
};

void work(Worker *worker) {
  std::unique_lock<std::mutex> guard(worker->lock);
  for (;;) {
    worker->wake.wait(guard, [&] { return worker->stop || worker->launch != nullptr; });
    if (worker->stop) return;
    Launch *launch = worker->launch;
    worker->launch = nullptr;
    guard.unlock();
    emulator::run_block(*launch, worker->block);
    worker->busy.store(false);
    guard.lock();
  }
}

}  // namespace

struct EmulatorQueue {
  std::vector<std::unique_ptr<Worker>> workers;
  std::deque<std::shared_ptr<Launch>> running;
  std::string report;
  bool hung = false;
  bool stuck = false;

  Worker &idle_worker() {
    for (auto &worker : workers)
      if (!worker->busy.load()) return *worker;
    workers.push_back(std::make_unique<Worker>());
    Worker *made = workers.back().get();
    made->thread = std::thread(work, made);
    return *made;
  }

  void start(const std::shared_ptr<Launch> &launch) {
    for (uint32_t block = 0; block < launch->blocks; ++block) {
      Worker &worker = idle_worker();
      worker.busy.store(true);
      const std::lock_guard<std::mutex> guard(worker.lock);
      worker.launch = launch.get();
      worker.block = block;
      worker.wake.notify_one();
    }
    running.push_back(launch);
  }

  // Waits for the first of those that run.
  bool finish_first() {
    const std::shared_ptr<Launch> launch = running.front();
    uint64_t seen = emulator::progress.load(), since = emulator::now();
    for (unsigned looks = 0; !launch->ended.load(); ++looks) {
      // Most kernels take less than a sleep.
      if (looks < 100) sched_yield();
      else emulator::sleep_us(100);
      const uint64_t progress = emulator::progress.load(), time = emulator::now();
      if (progress != seen) {
        seen = progress;
        since = time;
      } else if (time - since > launch->hang_ms * 1'000'000ull) {
        give_up();
        return false;
      }
    }
    emulator::acquire(&launch->end_token);
    // Or a chain would keep every launch.
    launch->previous.reset();
    running.pop_front();
    return true;
  }

  void give_up() {
    hung = true;
    for (auto &launch : running) launch->given_up.store(true);
    const uint64_t since = emulator::now();
    for (auto &launch : running) {
      while (!launch->ended.load() && emulator::now() - since < NOTICE_NS) emulator::sleep_us(1000);
      const std::lock_guard<std::mutex> guard(launch->report_lock);
      report += launch->report;
      if (!launch->ended.load()) {
        stuck = true;
        report += launch->who + ": " + launch->kernel->name + " loops without pause()\n";
        new std::shared_ptr<Launch>(launch);  // its blocks still use it
      }
    }
    running.clear();
  }

  bool drain() {
    while (!running.empty())
      if (!finish_first()) return false;
    return !hung;
  }
};

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const emulator::Kernel *emulator_find(const char *name) {
  const emulator::Kernel *kernel = emulator::kernels();
  while (kernel != nullptr && strcmp(kernel->name, name) != 0) kernel = kernel->next;
  return kernel;
}

EXPORTED EmulatorQueue *emulator_queue_new() { return new EmulatorQueue; }

EXPORTED bool emulator_queue_launch(EmulatorQueue *queue, const EmulatorLaunch *asked) {
  if (queue->hung) return false;
  if (asked->programmatic == 0 && !queue->drain()) return false;
  while (queue->running.size() >= IN_FLIGHT)
    if (!queue->finish_first()) return false;
  auto launch = std::make_shared<Launch>();
  launch->kernel = asked->kernel;
  // Room for the strictest alignment that a parameter has.
  const size_t bytes = asked->kernel->parameter_bytes;
  launch->storage.resize(bytes + 64);
  uint8_t *storage = launch->storage.data();
  storage += (64 - reinterpret_cast<uintptr_t>(storage) % 64) % 64;
  memcpy(storage, asked->parameter, bytes);
  launch->parameter = storage;
  launch->who = asked->who;
  launch->seed = asked->seed;
  launch->blocks = asked->blocks;
  launch->threads = asked->threads;
  launch->delay_us = asked->delay_us;
  launch->hang_ms = asked->hang_ms;
  launch->left.store(asked->blocks);
  if (!queue->running.empty()) launch->previous = queue->running.back();
  queue->start(launch);
  return true;
}

EXPORTED bool emulator_queue_drain(EmulatorQueue *queue) { return queue->drain(); }

EXPORTED const char *emulator_queue_report(EmulatorQueue *queue) { return queue->report.c_str(); }

EXPORTED void emulator_queue_delete(EmulatorQueue *queue) {
  queue->drain();
  // What never ends cannot be joined: its threads and what they use are left.
  if (queue->stuck) {
    for (auto &worker : queue->workers) {
      worker->thread.detach();
      worker.release();
    }
  } else {
    for (auto &worker : queue->workers) {
      {
        const std::lock_guard<std::mutex> guard(worker->lock);
        worker->stop = true;
        worker->wake.notify_one();
      }
      worker->thread.join();
    }
  }
  delete queue;
}
}
