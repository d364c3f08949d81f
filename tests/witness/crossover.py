"""Crossover for Python by ctypes alone: nothing to build, nothing to install but libcrossover.so.

    group = Group(device="cuda", tag="tp", settings={"call_timeout": "30s"})
    group.all_reduce(x.data_ptr(), y.data_ptr(), x.numel(), "bf16", stream=torch.cuda.current_stream().cuda_stream)

Pointers and streams are numbers. Who this rank is, a launcher's variables say, or `world`, `rank` and
`rendezvous` do. What fails raises CrossoverError with the library's own sentence.
"""

import ctypes
import json
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path

OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
DTYPES = ("f32", "f16", "bf16", "f64", "i8", "u8", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2")
REDUCE_OPS = ("sum", "prod", "min", "max", "avg")
MODES = ("eager", "graph")
STATUS = ("ok", "failed", "usage", "nothing_eligible", "peer_lost")
API = 1


class CrossoverError(RuntimeError):
    """A function's status, by its name in STATUS, and its sentence."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = STATUS[status]


class _Setting(Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class _Config(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tag", c_char_p),
        ("device", c_char_p),
        ("rendezvous", c_char_p),
        ("job", c_char_p),
        ("policy", c_char_p),
        ("settings", POINTER(_Setting)),
        ("setting_count", c_size_t),
        ("world", c_uint32),
        ("rank", c_uint32),
        ("local_world", c_uint32),
        ("local_rank", c_uint32),
        ("attempt", c_uint32),
        ("reserved", c_uint32),
    ]


class _Call(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_size_t),
        ("op", c_uint32),
        ("dtype", c_uint32),
        ("reduce_op", c_uint32),
        ("mode", c_uint32),
        ("root", c_uint32),
        ("reserved", c_uint32),
    ]


def call(op, count, dtype, reduce_op="sum", mode="eager", root=0):
    """A call without its buffers, for prepare() and explain()."""
    return _Call(ctypes.sizeof(_Call), count, OPS.index(op), DTYPES.index(dtype),
                 REDUCE_OPS.index(reduce_op), MODES.index(mode), root, 0)


def load(path=None):
    """The library: at `path`, where LIBCROSSOVER of the environment says, or beside this file."""
    path = path or os.environ.get("LIBCROSSOVER") or Path(__file__).parent / "libcrossover.so"
    library = ctypes.CDLL(str(path))
    if library.crossover_api_version() < API:
        raise CrossoverError(2, f"{path} has version {library.crossover_api_version()} of the API, and {API} is "
                             "needed: use a newer library")
    data = [c_void_p, c_void_p, c_void_p, c_size_t, c_uint32]
    functions = {
        "group_create": [POINTER(_Config), POINTER(c_void_p)],
        "group_close": [c_void_p],
        "group_rank": [c_void_p, POINTER(c_uint32)],
        "group_world": [c_void_p, POINTER(c_uint32)],
        "abort": [c_void_p, c_char_p],
        "all_reduce": [*data, c_uint32, c_uint32, c_void_p],
        "all_gather": [*data, c_uint32, c_void_p],
        "reduce_scatter": [*data, c_uint32, c_uint32, c_void_p],
        "broadcast": [*data, c_uint32, c_uint32, c_void_p],
        "all_to_all": [*data, c_uint32, c_void_p],
        "check": [c_void_p],
        "prepare": [c_void_p, POINTER(_Call), c_size_t],
        "commit": [c_void_p],
        "discard": [c_void_p],
        "explain": [c_void_p, POINTER(_Call), POINTER(c_void_p)],
        "counters": [c_void_p, POINTER(c_void_p)],
        "facts": [c_void_p, POINTER(c_void_p)],
    }
    for name, arguments in functions.items():
        function = getattr(library, f"crossover_{name}")
        function.argtypes, function.restype = arguments, c_int
    library.crossover_group_free.argtypes, library.crossover_group_free.restype = [c_void_p], None
    library.crossover_text_free.argtypes, library.crossover_text_free.restype = [c_void_p], None
    library.crossover_last_error.argtypes, library.crossover_last_error.restype = [], c_char_p
    library.crossover_version.argtypes, library.crossover_version.restype = [], c_char_p
    return library


class Group:
    """A group on one rank. Every rank makes the same calls in the same order."""

    def __init__(self, library=None, *, settings=None, world=0, rank=0, local_world=0, local_rank=0, attempt=0,
                 **texts):
        """`texts`: tag, device, rendezvous, job, policy, as crossover.h has them."""
        self._library = library or load()
        self._group = c_void_p()
        pairs = [_Setting(key.encode(), str(value).encode()) for key, value in (settings or {}).items()]
        config = _Config(size=ctypes.sizeof(_Config), settings=(_Setting * len(pairs))(*pairs),
                         setting_count=len(pairs), world=world, rank=rank, local_world=local_world,
                         local_rank=local_rank, attempt=attempt)
        for name, text in texts.items():
            if name not in ("tag", "device", "rendezvous", "job", "policy"):
                raise TypeError(f"a group has no {name}")
            setattr(config, name, None if text is None else text.encode())
        self._do("group_create", byref(config), byref(self._group))
        self.rank, self.world = self._number("group_rank"), self._number("group_world")

    def _do(self, name, *arguments):
        status = getattr(self._library, f"crossover_{name}")(*arguments)
        if status:
            raise CrossoverError(status, self._library.crossover_last_error().decode())

    def _number(self, name):
        number = c_uint32()
        self._do(name, self._group, byref(number))
        return number.value

    def _json(self, name, *arguments):
        text = c_void_p()
        self._do(name, self._group, *arguments, byref(text))
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            self._library.crossover_text_free(text)

    def run(self, op, input, output, count, dtype, *, reduce_op="sum", mode="eager", root=0, stream=0):
        """Any collective. `count` is of this rank's input."""
        words = [DTYPES.index(dtype)]
        if op in ("all_reduce", "reduce_scatter"):
            words.append(REDUCE_OPS.index(reduce_op))
        elif op == "broadcast":
            words.append(root)
        self._do(op, self._group, input, output, count, *words, MODES.index(mode), stream)

    def all_reduce(self, input, output, count, dtype, **how):
        self.run("all_reduce", input, output, count, dtype, **how)

    def all_gather(self, input, output, count, dtype, **how):
        self.run("all_gather", input, output, count, dtype, **how)

    def reduce_scatter(self, input, output, count, dtype, **how):
        self.run("reduce_scatter", input, output, count, dtype, **how)

    def broadcast(self, input, output, count, dtype, **how):
        self.run("broadcast", input, output, count, dtype, **how)

    def all_to_all(self, input, output, count, dtype, **how):
        self.run("all_to_all", input, output, count, dtype, **how)

    def prepare(self, calls):
        """Makes these calls ready to be captured."""
        self._do("prepare", self._group, (_Call * len(calls))(*calls), len(calls))

    def commit(self):
        """Ends a capture, on every rank."""
        self._do("commit", self._group)

    def discard(self):
        """Forgets a capture that failed."""
        self._do("discard", self._group)

    def check(self):
        """Raises if anything failed that was enqueued on a device. After the stream was synchronised."""
        self._do("check", self._group)

    def abort(self, reason):
        """Ends every wait of the group, on every rank. From any thread."""
        self._do("abort", self._group, reason.encode())

    def explain(self, one):
        """Who would run a call, and why the others would not."""
        return self._json("explain", byref(one))

    def counters(self):
        """What really ran."""
        return self._json("counters")

    def facts(self):
        """What the ranks agreed about the group."""
        return self._json("facts")

    def close(self):
        """Says goodbye to the peers. The streams' work is done before."""
        self._do("group_close", self._group)

    def free(self):
        """Frees what is local, without waiting."""
        group, self._group = self._group, c_void_p()
        self._library.crossover_group_free(group)
