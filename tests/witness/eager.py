"""Eager calls: on torch's default stream and on one of its own, on data that is new each time."""

import torch

import data

OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
COPIES = ("all_gather", "broadcast", "all_to_all")
# Odd ones, a decode step's (a multiple of 4096), and one beyond every stage.
COUNTS = (1, 3, 7, 63, 1023, 4096, 4097, 65_536, 65_541, 1_048_579)
QUICK = (1, 7, 1023, 4097)
FAR = 8_388_611


def divided(op, count, world):
    """The next count that the op can split."""
    return -(-count // world) * world if op in ("reduce_scatter", "all_to_all") else count


def result_count(op, count, world):
    return {"all_gather": count * world, "reduce_scatter": count // world}.get(op, count)


def kind_of(op, at):
    """Whole numbers and harder data take turns."""
    if at % 2 == 0:
        return "whole"
    return "bits" if op in COPIES else "floats"


def calls_of_all_kinds(report):
    counts = QUICK if report.options.quick else COUNTS
    for op in OPS:
        for dtype in data.DTYPES:
            if dtype == "i32" and op not in COPIES:
                continue
            for at, count in enumerate(counts):
                # Every misalignment of the input meets every one of the output.
                one_kind(report, op, dtype, count, at % 4, at // 2 % 4)
        if not report.options.quick:
            one_kind(report, op, "bf16", FAR, 1, 2)
    for dtype in ("bf16", "f16", "f32"):
        in_place(report, dtype, 4097)
    if not report.on_host:
        on_own_stream(report)


def one_kind(report, op, dtype, count, from_offset, to_offset):
    group, options = report.group, report.options
    rank, world = group.rank, group.world
    count = divided(op, count, world)
    by = report.begin("eager", op, count, dtype, "eager")
    if by is None:
        return
    results = result_count(op, count, world)
    for at in range(options.rounds):
        root = at % world if op == "broadcast" else 0
        source = report.source(dtype, count, kind_of(op, at), op, at)
        want = source.expected(op, rank, world, root)
        from_all, given = data.placed(report.device, dtype, count, from_offset)
        to_all, got = data.placed(report.device, dtype, results, to_offset)
        given.copy_(source.of(rank))
        group.run(op, given.data_ptr(), got.data_ptr(), count, dtype, root=root, stream=report.stream())
        # In stream order the output is complete, and the input may be overwritten: both at once.
        taken = data.bits(got) + 0
        given.fill_(77)
        report.same(taken.view(want.dtype), want)
        report.same(got, want)
        if not data.is_guarded(to_all, to_offset, results):
            report.fail("it wrote beside its output")
        if not data.is_guarded(from_all, from_offset, count):
            report.fail("it wrote beside its input")
    report.holds(by, options.rounds)


def in_place(report, dtype, count):
    group, options = report.group, report.options
    by = report.begin("eager in place", "all_reduce", count, dtype, "eager")
    if by is None:
        return
    for at in range(options.rounds):
        source = report.source(dtype, count, kind_of("all_reduce", at), "in place", at)
        _, both = data.placed(report.device, dtype, count, 1)
        both.copy_(source.of(group.rank))
        group.all_reduce(both.data_ptr(), both.data_ptr(), count, dtype, stream=report.stream())
        report.same((data.bits(both) + 0).view(both.dtype), source.sum(group.world))
    report.holds(by, options.rounds)


def on_own_stream(report):
    """Many calls back to back on a stream that torch made: nothing waits between them, and one rank lags."""
    group, count, calls = report.group, 8192, 24
    by = report.begin("eager back to back on a stream", "all_reduce", count, "bf16", "eager")
    if by is None:
        return
    stream = torch.cuda.Stream()
    sources = [report.source("bf16", count, kind_of("all_reduce", at), "stream", at) for at in range(calls)]
    given = [source.of(group.rank) for source in sources]
    got = [torch.empty_like(one) for one in given]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for at, (one, other) in enumerate(zip(given, got)):
            if at % group.world == group.rank:
                torch.cuda._sleep(2_000_000)
            group.all_reduce(one.data_ptr(), other.data_ptr(), count, "bf16", stream=report.stream())
            one.zero_()
    torch.cuda.current_stream().wait_stream(stream)
    for source, other in zip(sources, got):
        report.same(other, source.sum(group.world))
    report.holds(by, calls)
