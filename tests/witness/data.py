"""What ranks give, from seeds that every rank knows, and what torch says that comes of it."""

import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32}

# The largest whole number that ranks give: sums of 16 ranks are exact in each type (bf16 has 8 bits).
_WHOLE = {"bf16": 15, "f16": 127, "f32": 1_000_000, "i32": 100_000_000}
GUARD = 64  # elements before and behind a result, which nobody may touch
_MARK = 0x5A


def _seed(*facts):
    """A number of its own for each call and rank; Python's hash differs between processes."""
    seed = 0xCBF29CE484222325
    for fact in facts:
        for byte in str(fact).encode() + b"/":
            seed = (seed ^ byte) * 0x100000001B3 % (1 << 64)
    return seed % (1 << 63)


class Source:
    """One call's inputs on all ranks, from a seed. They are, by `kind`:

    - `whole`: numbers whose sums are exact;
    - `floats`: of many magnitudes, so that another order or another rounding is another result, and some -0.0;
    - `bits`: anything, NaNs of every payload as well; for ops that only copy.

    Where `flushes`, -0.0 is not among them: the caller accepts that it becomes 0.0.
    """

    def __init__(self, device, dtype, count, kind, flushes, *facts):
        self.device, self.dtype, self.count = device, dtype, count
        self.kind, self.flushes = kind, flushes
        self.facts = (dtype, count, kind, *facts)

    def of(self, rank):
        generator = torch.Generator(self.device).manual_seed(_seed(rank, *self.facts))

        def whole(low, high, dtype=torch.int32):
            return torch.randint(low, high, (self.count,), generator=generator, device=self.device, dtype=dtype)

        if self.kind == "whole":
            most = _WHOLE[self.dtype]
            return whole(-most, most + 1).to(DTYPES[self.dtype])
        if self.kind == "bits":
            wide = DTYPES[self.dtype].itemsize == 4
            values = whole(-2**31, 2**31, torch.int64).to(torch.int32) if wide else whole(-2**15, 2**15, torch.int16)
            values = values.view(DTYPES[self.dtype])
        else:
            values = torch.randn(self.count, generator=generator, device=self.device, dtype=torch.float32)
            values = torch.ldexp(values, whole(-8, 5)).to(DTYPES[self.dtype])
            values[::13] = -0.0  # on all ranks: so is their sum
            values[::7] *= whole(0, 2).to(values.dtype)[::7]  # here and there
        return values.masked_fill_(values == 0, 0) if self.flushes else values

    def sum(self, world):
        """Whole numbers: torch's own sum in float64, which is exact. Any floats: over ranks 0, 1, ... in
        float32, rounded once."""
        if self.kind == "whole":
            return torch.stack([self.of(rank).to(torch.float64) for rank in range(world)]).sum(0).to(
                DTYPES[self.dtype])
        total = self.of(0).to(torch.float32)
        for rank in range(1, world):
            total = total + self.of(rank).to(torch.float32)
        return total.to(DTYPES[self.dtype])

    def expected(self, op, rank, world, root=0):
        """This rank's result."""
        part = self.count // world
        if op == "all_reduce":
            return self.sum(world)
        if op == "reduce_scatter":
            return self.sum(world)[rank * part:(rank + 1) * part].clone()
        if op == "all_gather":
            return torch.cat([self.of(peer) for peer in range(world)])
        if op == "broadcast":
            return self.of(root)
        return torch.cat([self.of(peer)[rank * part:(rank + 1) * part] for peer in range(world)])


def placed(device, dtype, count, offset):
    """`count` elements, `offset` elements past what the allocator aligns, with a guard before and behind: the
    whole, and the view."""
    whole = torch.empty(GUARD + offset + count + GUARD, dtype=DTYPES[dtype], device=device)
    whole.view(torch.uint8).fill_(_MARK)
    return whole, whole[GUARD + offset:GUARD + offset + count]


def is_guarded(whole, offset, count):
    """Has nobody written before or behind the view?"""
    before, behind = whole[:GUARD + offset], whole[GUARD + offset + count:]
    return all(bool((side.view(torch.uint8) == _MARK).all()) for side in (before, behind))


def bits(tensor):
    """The same memory as whole numbers: a NaN is equal to itself, and -0.0 is not 0.0."""
    return tensor.view({2: torch.int16, 4: torch.int32}[tensor.element_size()])


def first_wrong(got, want):
    """How many elements differ in their bits, and the first of them in words; None if none does."""
    differs = bits(got) != bits(want)
    wrong = int(differs.sum())
    if not wrong:
        return None
    at = int(differs.nonzero()[0])
    return f"{wrong} of {got.numel()} are wrong, the first at {at}: {_told(got[at])}, not {_told(want[at])}"


def _told(one):
    size = 2 * one.element_size()
    return f"{one.item()!r} (0x{int(bits(one)) % (1 << 4 * size):0{size}x})"
