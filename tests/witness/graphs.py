"""Calls inside torch's CUDA graphs: captured once, committed on every rank, replayed on new data."""

import time

import torch

import data
from crossover import call
from eager import COPIES, OPS, divided, kind_of, result_count

COUNTS = (3, 1023, 8192, 65_541, 1_048_576)
QUICK = (3, 8192)


def graphs_of_all_kinds(report):
    counts = QUICK if report.options.quick else COUNTS
    for op in OPS:
        for dtype in ("bf16", "f32", "i32") if op in COPIES else ("bf16", "f16", "f32"):
            for at, count in enumerate(counts):
                replayed(report, op, dtype, count, offset=at % 3)
    interleaved(report)
    layers(report)
    forgotten(report)


def prepared(report, op, count, dtype):
    """Who serves the call in a graph, made ready to be captured; None where nobody does."""
    by = report.begin("graph", op, count, dtype, "graph")
    if by is not None:
        report.group.prepare([call(op, count, dtype, mode="graph")])
    return by


def captured(report, body):
    """A graph of what `body` enqueues on torch's current stream; the caller commits."""
    report.settle()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        body()
    return graph


def lag(report, at):
    """Ranks take turns in being late: half of the time on the host, half on the device."""
    if at % report.group.world == report.group.rank:
        if at % 2:
            time.sleep(0.005)
        else:
            torch.cuda._sleep(3_000_000)


class Captured:
    """One collective between static tensors, and a kernel of torch's behind it that reads the result at once."""

    def __init__(self, report, op, dtype, count, offset):
        self.report, self.op, self.dtype = report, op, dtype
        self.count = count = divided(op, count, report.group.world)
        self.results = result_count(op, count, report.group.world)
        self.offset = offset
        self.by = prepared(report, op, count, dtype)
        if self.by is None:
            return
        _, self.given = data.placed(report.device, dtype, count, offset)
        self.whole, self.got = data.placed(report.device, dtype, self.results, 2 * offset)
        self.taken = torch.zeros_like(data.bits(self.got))
        self.graph = captured(report, self._body)
        report.kept.append(self)

    def _body(self):
        group, stream = self.report.group, self.report.stream()
        group.run(self.op, self.given.data_ptr(), self.got.data_ptr(), self.count, self.dtype, mode="graph",
                  stream=stream)
        torch.add(data.bits(self.got), 0, out=self.taken)
        self.given.fill_(77)

    def replay(self, what, at):
        """Replays on new data, and compares."""
        report, group = self.report, self.report.group
        source = report.source(self.dtype, self.count, kind_of(self.op, at), self.op, what, at)
        want = source.expected(self.op, group.rank, group.world)
        self.given.copy_(source.of(group.rank))
        lag(report, at)
        self.graph.replay()
        report.same(self.taken.view(want.dtype), want)
        report.same(self.got, want)
        if not data.is_guarded(self.whole, 2 * self.offset, self.results):
            report.fail("it wrote beside its output")


def replayed(report, op, dtype, count, offset):
    one = Captured(report, op, dtype, count, offset)
    if one.by is None:
        return
    report.group.commit()
    for at in range(report.options.replays):
        one.replay("replay", at)
    report.holds(one.by, report.options.replays)


def interleaved(report):
    """Replays and eager calls of the same group in turn, of several sizes, an odd number of calls in all."""
    group = report.group
    graphs = [Captured(report, "all_reduce", "bf16", count, 0) for count in (512, 8192, 65_536)]
    if any(one.by is None for one in graphs):
        return
    group.commit()  # once for all three
    report.now = "eager between replays: all_reduce bf16"
    turns = 2 * report.options.replays + 1
    for at in range(turns):
        graphs[at % 3].replay("interleaved", at)
        if at % 2 == 0:
            continue
        source = report.source("bf16", 4099, "floats", "between", at)
        given = source.of(group.rank)
        got = torch.empty_like(given)
        group.all_reduce(given.data_ptr(), got.data_ptr(), given.numel(), "bf16", stream=report.stream())
        report.same(got, source.sum(group.world))
    report.holds(graphs[0].by, turns)


def layers(report):
    """A step of a model: in one graph, many layers, each reduced in memory that the graph's own pool gave."""
    group, count, depth = report.group, 16_384, 9
    by = prepared(report, "all_reduce", count, "f32")
    if by is None:
        return
    report.now = f"graph of {depth} layers: all_reduce {count} x f32"
    given = torch.zeros(count, device=report.device)
    results = []

    def body():
        hidden = given
        for _ in range(depth):
            partial = hidden * 0.5
            hidden = torch.empty_like(partial)
            group.all_reduce(partial.data_ptr(), hidden.data_ptr(), count, "f32", mode="graph",
                             stream=report.stream())
        results.append(hidden)

    graph = captured(report, body)
    report.kept += [graph, given, *results]
    group.commit()
    for at in range(report.options.replays):
        # After the first layer ranks agree; each further one is the same tensor, added up rank by rank.
        source = report.source("f32", count, "floats", "layers", at)
        halves = [source.of(rank) * 0.5 for rank in range(group.world)]
        for layer in range(depth):
            total = halves[0].clone()
            for half in halves[1:]:
                total = total + half
            halves = [total * 0.5] * group.world
        given.copy_(source.of(group.rank))
        lag(report, at)
        graph.replay()
        report.same(results[-1], total)
    report.holds(by, report.options.replays)


def forgotten(report):
    """A capture that fails in the engine is discarded on every rank, and the group goes on."""
    group, count = report.group, 2048
    by = prepared(report, "all_reduce", count, "f16")
    if by is None:
        return
    report.now = f"a capture that failed: all_reduce {count} x f16"
    given = torch.zeros(count, device=report.device, dtype=torch.float16)
    got = torch.empty_like(given)

    def body():
        group.all_reduce(given.data_ptr(), got.data_ptr(), count, "f16", mode="graph", stream=report.stream())
        raise KeyError("the engine's own")

    try:
        captured(report, body)
        report.fail("the engine's own error was lost")
    except KeyError:
        group.discard()
    one = Captured(report, "all_reduce", "f16", count, 1)
    group.commit()
    one.replay("after a capture that failed", 0)
    report.holds(by, 1)
