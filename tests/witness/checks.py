"""The checks. All ranks make the same ones in the same order; each compares its own result with what torch says."""

import torch

import data
from crossover import call
from eager import calls_of_all_kinds
from graphs import graphs_of_all_kinds


class Wrong(Exception):
    """A check that does not hold, and the exit code that says so."""

    def __init__(self, what, code=1):
        super().__init__(what)
        self.code = code


class Report:
    """What was checked on this rank, and by whom calls are served."""

    def __init__(self, group, options, device):
        self.group, self.options, self.device = group, options, device
        self.on_host = device.type == "cpu"
        self.now = "the start"
        self.held, self.results, self.skipped = 0, [], []
        self.kept = []  # graphs and what they read, for as long as the group lives: peers have it mapped

    def say(self, line, on_all=False):
        if on_all or self.group.rank == 0:
            print(f"[{self.group.rank}] {line}", flush=True)

    def begin(self, what, op, count, dtype, mode):
        """Who serves the call; None where nobody does, which is said and is the same on every rank."""
        self.now = f"{what}: {op} {count} x {dtype} {mode}"
        told = self.group.explain(call(op, count, dtype, mode=mode))
        chosen = told["chosen"] and told["chosen"]["use"]
        required = self.options.require
        if required and not (chosen or "").startswith(required):
            why = f"{self.now} is served by {chosen or 'nobody'}, and not by {required}"
            self.say(f"FAILED {why}", on_all=True)
            raise Wrong(why, 3)
        if chosen is None:
            self.skipped.append(self.now)
            self.say(f"skipped {self.now}: nobody serves it")
        return chosen

    def source(self, dtype, count, kind, *facts):
        """One call's inputs on all ranks."""
        flushes = "signed_zero_flush" in (self.options.accept or "")
        return data.Source(self.device, dtype, count, kind, flushes, self.options.seed, *facts)

    def same(self, got, want):
        """Ends everything on the first wrong bit."""
        wrong = data.first_wrong(got, want)
        if wrong:
            self.group.check()  # a kernel that ended for want of a peer says so, and that is the cause
            self.fail(wrong)

    def fail(self, what):
        self.say(f"FAILED {self.now}: {what}", on_all=True)
        raise Wrong(f"{self.now}: {what}")

    def holds(self, by, times):
        self.settle()
        self.group.check()
        self.held += times
        self.results.append({"check": self.now, "use": by, "times": times})
        self.say(f"ok {self.now}, {times} times, by {by}")

    def stream(self):
        """The number of torch's current stream."""
        return 0 if self.on_host else torch.cuda.current_stream().cuda_stream

    def settle(self):
        """Waits for all work of this rank's device."""
        if not self.on_host:
            torch.cuda.synchronize()


def everything(report):
    calls_of_all_kinds(report)
    if report.on_host:
        report.say("skipped graphs: they take a device")
    else:
        graphs_of_all_kinds(report)
