#!/usr/bin/env python3
"""NCCL, through PyTorch, timed as `crossover perf --mode graph` times this project: one process a
rank and device, calls captured into a CUDA graph, the period of a call, the median of replays on the
slowest rank. Prints one JSON line a size.

    torchrun --nproc-per-node 2 tests/peers/devices/nccl.py --op all_reduce --sizes 1024,65536 > nccl.jsonl

It needs as many GPUs as ranks. NVLS is switched off unless NCCL_NVLS_ENABLE says otherwise.
"""
import argparse
import json
import os
import statistics

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
import torch
import torch.distributed as dist


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--op", default="all_reduce", choices=["all_reduce", "all_gather"])
    options.add_argument("--sizes", default="1024,4096,16384,65536,262144,1048576,8388608")
    options.add_argument("--calls", type=int, default=100)
    options.add_argument("--replays", type=int, default=21)
    options = options.parse_args()
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    for size in map(int, options.sizes.split(",")):
        calls = options.calls if size < 1 << 20 else 10
        period = measure(options.op, size, calls, options.replays, rank, world)
        if rank == 0:
            version = ".".join(map(str, torch.cuda.nccl.version()))
            print(json.dumps({"peer": f"nccl {version}", "op": options.op, "bytes": size, "world": world,
                              "us": period}), flush=True)
    dist.destroy_process_group()


def measure(op, size, calls, replays, rank, world):
    count = size // 2
    inputs = [torch.randint(-8, 8, (count,), device="cuda").to(torch.bfloat16) for _ in range(4)]
    outputs = [torch.empty(count * (world if op == "all_gather" else 1), dtype=torch.bfloat16, device="cuda")
               for _ in range(4)]

    def call(nth):
        if op == "all_gather":
            dist.all_gather_into_tensor(outputs[nth % 4], inputs[nth % 4])
        else:
            dist.all_reduce(outputs[nth % 4])

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for nth in range(4):
            if op == "all_reduce":
                outputs[nth].copy_(inputs[nth])
            call(nth)
        stream.synchronize()
        check(op, inputs[0], outputs[0], world)
        for output in outputs:
            output.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for nth in range(calls):
                call(nth)
        for _ in range(3):
            graph.replay()
        times = []
        for _ in range(replays):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / calls)
    slowest = torch.tensor([statistics.median(times)], device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return round(slowest.item(), 3)


def check(op, own, output, world):
    """Integers of this size have exact sums, so every element is compared."""
    every = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(every, own)
    want = torch.cat(every) if op == "all_gather" else sum(t.float() for t in every).to(torch.bfloat16)
    assert torch.equal(output, want), "NCCL's result is wrong"


if __name__ == "__main__":
    main()
