// vLLM's all-reduce kernels in the loop of `crossover perf --one-process --mode graph`: ranks are threads that share a
// device, calls are recorded over buffers in turn, and a replay behind another is timed. It is built by `cargo xtask vllm`
// against vLLM's own header, whose host code chooses blocks and threads.
//
//   vllm RANKS [LEAST_BYTES GREATEST_BYTES [BUFFERS]]      one line of JSON for each size and algorithm
#include <custom_all_reduce.cuh>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

// The header asks the driver where a captured buffer's allocation begins, for its handle. Nobody exports one here, and so the
// program needs no driver to be linked.
extern "C" CUresult cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr) { return CUDA_ERROR_NOT_SUPPORTED; }

namespace {

using Element = nv_bfloat16;

// As perf has them.
constexpr size_t SMALL = 1 << 20;
constexpr int SLOTS = 5, LARGE_SLOTS = 3, ROUNDS = 5, SAMPLES_OF_ROUND = 8;
constexpr double BATCH_MICROSECONDS = 600;
constexpr int BATCHES[] = {5, 11, 21, 41, 101, 201, 401};
// Captured calls have a row of addresses each.
constexpr size_t ROWS = 1 << 14;
// As its allreduce has them.
constexpr int THREADS = 512;
constexpr const char* ALGORITHMS[] = {"1stage", "2stage"};

struct Plan {
  int world;
  size_t least, greatest;
  int buffers;  // 0: as perf
};

struct Slot {
  Element *input, *output;
};

// What all ranks see.
struct Shared {
  Plan plan;
  std::barrier<> step;
  std::vector<std::vector<Slot>> slots;
  std::vector<vllm::Signal*> signals;
  std::vector<double> took;
  uint32_t seed = 1;

  explicit Shared(const Plan& plan)
      : plan(plan), step(plan.world), slots(plan.world), signals(plan.world), took(plan.world) {}
};

// A whole number that sums of 8 keep exactly.
float value(uint32_t seed, int rank, size_t i) {
  uint32_t x = seed * 2654435761u + uint32_t(i) * 40503u + uint32_t(rank) * 97u;
  x ^= x >> 15;
  return float(int(x % 31) - 15);
}

// Blocks of a launch, such that those of all ranks run at a time, as they do on devices of their own.
template <int N>
int most_blocks() {
  int one, two, multiprocessors;
  CUDACHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&one, vllm::cross_device_reduce_1stage<Element, N>, THREADS, 0));
  CUDACHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&two, vllm::cross_device_reduce_2stage<Element, N>, THREADS, 0));
  CUDACHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  return std::min(vllm::defaultBlockLimit, std::min(one, two) * multiprocessors / N);
}

int most_blocks(int world) {
  return world == 2 ? most_blocks<2>() : world == 4 ? most_blocks<4>() : world == 6 ? most_blocks<6>() : most_blocks<8>();
}

class Rank {
 public:
  Rank(Shared& all, int rank) : all_(all), rank_(rank), world_(all.plan.world) {
    CUDACHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDACHECK(cudaEventCreate(&begun_));
    CUDACHECK(cudaEventCreate(&ended_));
    void* signal;
    CUDACHECK(cudaMalloc(&signal, sizeof(vllm::Signal) + all.plan.greatest));
    CUDACHECK(cudaMemset(signal, 0, sizeof(vllm::Signal)));
    all.signals[rank] = static_cast<vllm::Signal*>(signal);
    CUDACHECK(cudaMalloc(&rows_, ROWS * sizeof(vllm::RankData)));
    const int count = all.plan.buffers ? all.plan.buffers : SLOTS;
    for (int i = 0; i < count; ++i) {
      Slot slot;
      CUDACHECK(cudaMalloc(&slot.input, all.plan.greatest));
      CUDACHECK(cudaMalloc(&slot.output, all.plan.greatest));
      all.slots[rank].push_back(slot);
    }
    CUDACHECK(cudaDeviceSynchronize());
    all.step.arrive_and_wait();
    blocks_ = most_blocks(world_);
    peer_ = std::make_unique<vllm::CustomAllreduce>(all.signals.data(), rows_, ROWS * sizeof(vllm::RankData), rank, world_);
    first_row_ = peer_->d_rank_data_base_;
  }

  void measure(size_t bytes) {
    struct Trial {
      cudaGraphExec_t graph;
      int calls;
      size_t wrong;
      std::vector<double> samples;
    };
    std::vector<Trial> trials;
    peer_->d_rank_data_base_ = first_row_;
    for (const char* algorithm : ALGORITHMS) {
      Trial t{record(algorithm, bytes, slots(bytes)), slots(bytes), 0, {}};
      t.wrong = prove(t.graph, bytes, slots(bytes));
      sample(t.graph, t.calls);
      const double each = sample(t.graph, t.calls);
      CUDACHECK(cudaGraphExecDestroy(t.graph));
      t.calls = *std::find_if(BATCHES, std::end(BATCHES) - 1, [&](int calls) { return calls * each >= BATCH_MICROSECONDS; });
      t.graph = record(algorithm, bytes, t.calls);
      trials.push_back(t);
    }
    for (int round = 0; round < ROUNDS; ++round) {
      for (Trial& t : trials) {
        for (int i = 0; i < SAMPLES_OF_ROUND; ++i) t.samples.push_back(sample(t.graph, t.calls));
      }
    }
    for (size_t i = 0; i < trials.size(); ++i) {
      Trial& t = trials[i];
      t.wrong += prove(t.graph, bytes, t.calls);
      CUDACHECK(cudaGraphExecDestroy(t.graph));
      if (rank_ != 0) continue;
      std::sort(t.samples.begin(), t.samples.end());
      printf("{\"peer\": \"vllm\", \"op\": \"all_reduce\", \"type\": \"bf16\", \"world\": %d, \"size\": %zu, \"use\": \"%s\", "
             "\"buffers\": %d, \"most_blocks\": %d, \"calls_per_iteration\": %d, \"nwrong\": %zu, \"min_us\": %.3f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n",
             world_, bytes, ALGORITHMS[i], slots(bytes), blocks_, t.calls, t.wrong, t.samples.front(),
             t.samples[t.samples.size() / 2], t.samples[t.samples.size() * 99 / 100]);
      fflush(stdout);
    }
  }

 private:
  int slots(size_t bytes) const {
    if (all_.plan.buffers) return all_.plan.buffers;
    return bytes <= SMALL ? SLOTS : LARGE_SLOTS;
  }

  // Its algorithm is read from the environment at every call.
  cudaGraphExec_t record(const char* algorithm, size_t bytes, int calls) {
    all_.step.arrive_and_wait();
    if (rank_ == 0) setenv("VLLM_CUSTOM_ALLREDUCE_ALGO", algorithm, 1);
    all_.step.arrive_and_wait();
    const int count = slots(bytes);
    cudaGraph_t graph;
    CUDACHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) {
      const Slot& slot = all_.slots[rank_][i % count];
      peer_->allreduce<Element>(stream_, slot.input, slot.output, int(bytes / sizeof(Element)), THREADS, blocks_);
    }
    CUDACHECK(cudaStreamEndCapture(stream_, &graph));
    cudaGraphExec_t exec;
    CUDACHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDACHECK(cudaGraphDestroy(graph));
    // What its ranks exchange as IPC handles after a capture is known within a process.
    std::vector<vllm::RankData> rows(calls);
    for (int i = 0; i < calls; ++i) {
      for (int rank = 0; rank < world_; ++rank) rows[i].ptrs[rank] = all_.slots[rank][i % count].input;
    }
    peer_->check_rank_data_capacity(calls);
    CUDACHECK(cudaMemcpy(peer_->d_rank_data_base_, rows.data(), calls * sizeof(vllm::RankData), cudaMemcpyHostToDevice));
    peer_->d_rank_data_base_ += calls;
    peer_->graph_unreg_buffers_.clear();
    all_.step.arrive_and_wait();
    return exec;
  }

  // Wrong elements of a replay with new data, over all slots that it writes.
  size_t prove(cudaGraphExec_t graph, size_t bytes, int calls) {
    all_.step.arrive_and_wait();
    if (rank_ == 0) ++all_.seed;
    all_.step.arrive_and_wait();
    const size_t count = bytes / sizeof(Element);
    const int written = std::min(calls, slots(bytes));
    std::vector<Element> host(count);
    for (int s = 0; s < written; ++s) {
      for (size_t i = 0; i < count; ++i) host[i] = __float2bfloat16(value(all_.seed + s, rank_, i));
      CUDACHECK(cudaMemcpy(all_.slots[rank_][s].input, host.data(), bytes, cudaMemcpyHostToDevice));
      CUDACHECK(cudaMemset(all_.slots[rank_][s].output, 0xFF, bytes));
    }
    CUDACHECK(cudaDeviceSynchronize());
    all_.step.arrive_and_wait();
    CUDACHECK(cudaGraphLaunch(graph, stream_));
    CUDACHECK(cudaStreamSynchronize(stream_));
    size_t wrong = 0;
    for (int s = 0; s < written; ++s) {
      CUDACHECK(cudaMemcpy(host.data(), all_.slots[rank_][s].output, bytes, cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int rank = 0; rank < world_; ++rank) sum += value(all_.seed + s, rank, i);
        wrong += !(__bfloat162float(host[i]) == sum);
      }
    }
    return size_t(sum(double(wrong)));
  }

  // Microseconds of a call, of the slowest rank.
  double sample(cudaGraphExec_t graph, int calls) {
    all_.step.arrive_and_wait();
    CUDACHECK(cudaGraphLaunch(graph, stream_));
    CUDACHECK(cudaEventRecord(begun_, stream_));
    CUDACHECK(cudaGraphLaunch(graph, stream_));
    CUDACHECK(cudaEventRecord(ended_, stream_));
    CUDACHECK(cudaStreamSynchronize(stream_));
    float milliseconds;
    CUDACHECK(cudaEventElapsedTime(&milliseconds, begun_, ended_));
    const std::vector<double> took = exchange(milliseconds * 1e3 / calls);
    return *std::max_element(took.begin(), took.end());
  }

  double sum(double mine) {
    double total = 0;
    for (double of : exchange(mine)) total += of;
    return total;
  }

  std::vector<double> exchange(double mine) {
    all_.took[rank_] = mine;
    all_.step.arrive_and_wait();
    const std::vector<double> took = all_.took;
    all_.step.arrive_and_wait();
    return took;
  }

  Shared& all_;
  int rank_, world_, blocks_;
  cudaStream_t stream_;
  cudaEvent_t begun_, ended_;
  vllm::RankData *rows_, *first_row_;
  std::unique_ptr<vllm::CustomAllreduce> peer_;
};

}  // namespace

int main(int count, char** words) {
  const auto number = [&](int at, long otherwise) { return count > at ? atol(words[at]) : otherwise; };
  const Plan plan{int(number(1, 0)), size_t(number(2, 1 << 10)), size_t(number(3, 8 << 20)), int(number(4, 0))};
  const bool takes = plan.world == 2 || plan.world == 4 || plan.world == 6 || plan.world == 8;
  if (count > 5 || !takes || plan.least < 16 || plan.least % 16 || plan.greatest < plan.least) {
    fprintf(stderr, "usage: vllm RANKS [LEAST_BYTES GREATEST_BYTES [BUFFERS]]: 2, 4, 6 or 8 ranks, multiples of 16 bytes\n");
    return 2;
  }
  Shared all(plan);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < plan.world; ++rank) {
    ranks.emplace_back([&all, rank] {
      CUDACHECK(cudaSetDevice(0));
      Rank me(all, rank);
      for (size_t bytes = all.plan.least; bytes < all.plan.greatest; bytes *= 4) me.measure(bytes);
      me.measure(all.plan.greatest);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}
