// Plays a scenario: buffers, and for each rank, on a thread of its own, what its stream does. The
// format is written by src/scenario.rs; every number is 64 bits, bytes are padded to 8.
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "emulator.h"

namespace {

constexpr uint64_t MAGIC = 0x31796c70786f7263;  // "croxply1"
constexpr size_t PAGE = 4096;
// What memory holds before anybody writes.
constexpr int POISON = 0xa5;

struct Reader {
  const uint8_t *at;
  const uint8_t *end;
  bool whole = true;

  uint64_t number() {
    uint64_t value = 0;
    if (end - at < 8) {
      whole = false;
      return 0;
    }
    memcpy(&value, at, 8);
    at += 8;
    return value;
  }
  std::vector<uint8_t> bytes() {
    const uint64_t count = number();
    if (static_cast<uint64_t>(end - at) < count) {
      whole = false;
      return {};
    }
    std::vector<uint8_t> copy(at, at + count);
    const uint64_t padded = (count + 7) / 8 * 8;
    at += padded < static_cast<uint64_t>(end - at) ? padded : static_cast<uint64_t>(end - at);
    return copy;
  }
};

// Whole pages that end in one that may not be touched.
struct Buffer {
  uint8_t *memory = nullptr;
  size_t reserved = 0;
  uint64_t bytes = 0;

  bool make(uint64_t asked) {
    bytes = asked;
    const size_t pages = (asked + PAGE - 1) / PAGE * PAGE;
    reserved = pages + PAGE;
    void *got =
        mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return false;
    memory = static_cast<uint8_t *>(got);
    memset(memory, POISON, pages);
    return mprotect(memory + pages, PAGE, PROT_NONE) == 0;
  }
  ~Buffer() {
    if (memory != nullptr) munmap(memory, reserved);
  }
  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
};

// Ranks meet; one that gave up frees the others.
struct Meeting {
  std::mutex lock;
  std::condition_variable all_here;
  uint64_t ranks = 0, here = 0, round = 0;
  bool broken = false;

  void meet() {
    std::unique_lock<std::mutex> guard(lock);
    const uint64_t mine = round;
    if (++here == ranks) {
      here = 0;
      ++round;
      all_here.notify_all();
      return;
    }
    all_here.wait(guard, [&] { return broken || round != mine; });
  }
  void leave() {
    const std::lock_guard<std::mutex> guard(lock);
    broken = true;
    all_here.notify_all();
  }
};

enum Verdict { DONE, WRONG, HUNG, MALFORMED };

struct Scene {
  std::vector<std::unique_ptr<Buffer>> buffers;
  Meeting meeting;
  uint64_t seed = 0, hang_ms = 0, delayed = 0, delay_us = 0;

  std::mutex lock;
  int verdict = DONE;
  std::string report;

  void fail(int how, const std::string &why) {
    const std::lock_guard<std::mutex> guard(lock);
    if (how > verdict) verdict = how;
    report += why + "\n";
  }

  // Replaces numbers in `bytes` by addresses of buffers.
  bool relocate(Reader &reader, std::vector<uint8_t> &bytes) {
    for (uint64_t left = reader.number(); left > 0 && reader.whole; --left) {
      const uint64_t at = reader.number(), buffer = reader.number(), offset = reader.number();
      if (buffer >= buffers.size() || at + 8 > bytes.size()) return false;
      const uint64_t address = reinterpret_cast<uint64_t>(buffers[buffer]->memory) + offset;
      memcpy(bytes.data() + at, &address, 8);
    }
    return reader.whole;
  }

  uint8_t *range(uint64_t buffer, uint64_t offset, uint64_t count) {
    if (buffer >= buffers.size() || !buffers[buffer]->holds(offset, count)) return nullptr;
    return buffers[buffer]->memory + offset;
  }
};

std::string hex(const uint8_t *from, size_t count) {
  std::string text;
  for (size_t at = 0; at < count; ++at) {
    text += "0123456789abcdef"[from[at] >> 4];
    text += "0123456789abcdef"[from[at] & 15];
  }
  return text;
}

void check(Scene &scene, const std::string &who, uint64_t number, const uint8_t *found,
           const std::vector<uint8_t> &expected) {
  if (memcmp(found, expected.data(), expected.size()) == 0) return;
  size_t at = 0, wrong = 0;
  for (size_t i = expected.size(); i-- > 0;)
    if (found[i] != expected[i]) {
      at = i;
      ++wrong;
    }
  const size_t shown = expected.size() - at < 16 ? expected.size() - at : 16;
  scene.fail(WRONG, who + ": check " + std::to_string(number) + ": " + std::to_string(wrong) +
                        " of " + std::to_string(expected.size()) + " bytes wrong, the first at " +
                        std::to_string(at) + ": " + hex(found + at, shown) + " instead of " +
                        hex(expected.data() + at, shown));
}

// One rank's steps. Host copies come in stream order: after the kernels ahead have ended.
int play_rank(Scene &scene, uint64_t rank, Reader reader, EmulatorQueue *queue) {
  const std::string who = "rank " + std::to_string(rank);
  uint64_t launches = 0, checks = 0;
  for (uint64_t left = reader.number(); left > 0; --left) {
    const uint64_t kind = reader.number();
    if (kind != 2 && !emulator_queue_drain(queue)) return HUNG;
    if (kind == 1) {
      const uint64_t buffer = reader.number(), offset = reader.number();
      std::vector<uint8_t> data = reader.bytes();
      uint8_t *to = scene.range(buffer, offset, data.size());
      if (!scene.relocate(reader, data) || to == nullptr) return MALFORMED;
      memcpy(to, data.data(), data.size());
    } else if (kind == 2) {
      const std::vector<uint8_t> name = reader.bytes();
      const std::string text(name.begin(), name.end());
      EmulatorLaunch launch{};
      launch.kernel = emulator_find(text.c_str());
      launch.blocks = static_cast<uint32_t>(reader.number());
      launch.threads = static_cast<uint32_t>(reader.number());
      launch.programmatic = static_cast<uint32_t>(reader.number());
      std::vector<uint8_t> parameter = reader.bytes();
      if (!scene.relocate(reader, parameter)) return MALFORMED;
      if (launch.kernel == nullptr || launch.kernel->parameter_bytes != parameter.size() ||
          launch.threads == 0 || launch.threads > launch.kernel->max_threads) {
        scene.fail(MALFORMED, who + ": no kernel " + text + " takes this launch");
        return MALFORMED;
      }
      launch.parameter = parameter.data();
      launch.who = who.c_str();
      launch.seed = scene.seed * 1'000'003 + rank * 8191 + ++launches;
      launch.delay_us = rank == scene.delayed ? static_cast<uint32_t>(scene.delay_us) : 0;
      launch.hang_ms = static_cast<uint32_t>(scene.hang_ms);
      if (!emulator_queue_launch(queue, &launch)) return HUNG;
    } else if (kind == 3) {
      const uint64_t buffer = reader.number(), offset = reader.number();
      const std::vector<uint8_t> expected = reader.bytes();
      const uint8_t *found = scene.range(buffer, offset, expected.size());
      if (found == nullptr) return MALFORMED;
      check(scene, who, checks++, found, expected);
    } else if (kind == 4) {
      scene.meeting.meet();
    } else {
      return MALFORMED;
    }
    if (!reader.whole) return MALFORMED;
  }
  return emulator_queue_drain(queue) ? DONE : HUNG;
}

void play_thread(Scene *scene, uint64_t rank, Reader reader) {
  EmulatorQueue *queue = emulator_queue_new();
  const int how = play_rank(*scene, rank, reader, queue);
  if (how == HUNG) scene->fail(HUNG, emulator_queue_report(queue));
  if (how == MALFORMED) scene->fail(MALFORMED, "malformed at rank " + std::to_string(rank));
  if (how != DONE) scene->meeting.leave();
  emulator_queue_delete(queue);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t emulator_play(const uint8_t *scenario,
                                                                        size_t bytes, char *report,
                                                                        size_t capacity) {
  Reader reader{scenario, scenario + bytes};
  auto scene = std::make_unique<Scene>();
  const bool ours = reader.number() == MAGIC;
  const uint64_t ranks = reader.number(), buffers = reader.number();
  scene->meeting.ranks = ranks;
  scene->seed = reader.number();
  scene->hang_ms = reader.number();
  scene->delayed = reader.number();
  scene->delay_us = reader.number();
  bool good = ours && reader.whole;
  for (uint64_t at = 0; good && at < buffers; ++at) {
    scene->buffers.push_back(std::make_unique<Buffer>());
    good = scene->buffers.back()->make(reader.number()) && reader.whole;
  }
  if (good) {
    std::vector<std::thread> threads;
    std::vector<std::vector<uint8_t>> parts;
    for (uint64_t rank = 0; rank < ranks; ++rank) parts.push_back(reader.bytes());
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const uint8_t *start = parts[rank].data();
      threads.emplace_back(play_thread, scene.get(), rank,
                           Reader{start, start + parts[rank].size()});
    }
    for (std::thread &thread : threads) thread.join();
  } else {
    scene->fail(MALFORMED, "this is no scenario");
  }
  if (capacity > 0) {
    const size_t told = scene->report.copy(report, capacity - 1);
    report[told] = 0;
  }
  const int verdict = scene->verdict;
  // Kernels that never end still use the buffers.
  if (verdict == HUNG) scene.release();
  return verdict;
}
