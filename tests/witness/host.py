"""An engine in Python on host memory, as a rank that a launcher started: every collective, against sums made
here; refusals; and a group that one rank ends. Ends with 1 and a sentence on the first that is not so."""

import array
import sys

from crossover import Group, CrossoverError, call, load

COUNT = 1260  # every number of ranks up to 7 divides it


def value(rank, at):
    return rank * 1000 + at % 97


held = 0


def check(is_so, what):
    global held
    held += 1
    if not is_so:
        sys.exit(f"not so: {what}")


def refused(status, words, function, *arguments, **how):
    try:
        function(*arguments, **how)
    except CrossoverError as error:
        check(error.status == status and words in str(error), f"{error.status}: {error} for {words}")
    else:
        check(False, f"{words} was not refused")


def main():
    library = load()
    refused("usage", "no setting `use_it`", Group, library, settings={"use_it": "host"})
    group = Group(library, tag="python", settings={"call_timeout": "30s"})
    rank, world = group.rank, group.world
    part = COUNT // world
    ranks = range(world)

    def run(op, code, dtype, length, **how):
        source = array.array(code, (value(rank, at) for at in range(COUNT)))
        result = array.array(code, bytes(length * source.itemsize))
        group.run(op, source.buffer_info()[0], result.buffer_info()[0], COUNT, dtype, **how)
        return list(result)

    total = [sum(value(of, at) for of in ranks) for at in range(COUNT)]
    for code, dtype in (("f", "f32"), ("i", "i32"), ("d", "f64"), ("Q", "u64")):
        check(run("all_reduce", code, dtype, COUNT) == total, f"all_reduce {dtype}")
        check(run("reduce_scatter", code, dtype, part) == total[rank * part:(rank + 1) * part],
              f"reduce_scatter {dtype}")
        check(run("all_gather", code, dtype, COUNT * world) == [value(of, at) for of in ranks for at in range(COUNT)],
              f"all_gather {dtype}")
        check(run("broadcast", code, dtype, COUNT, root=world - 1) == [value(world - 1, at) for at in range(COUNT)],
              f"broadcast {dtype}")
        check(run("all_to_all", code, dtype, COUNT)
              == [value(of, rank * part + at) for of in ranks for at in range(part)], f"all_to_all {dtype}")
    check(run("all_reduce", "i", "i32", COUNT, reduce_op="max") == [value(world - 1, at) for at in range(COUNT)],
          "all_reduce max")

    refused("usage", "`input` of all_reduce is null", group.all_reduce, 0, 0, 4, "f32")
    told = group.explain(call("all_reduce", COUNT, "f32"))
    check(told["bytes"] == 4 * COUNT and told["chosen"]["use"].startswith("host/" if world > 1 else "copy"),
          f"explain: {told}")
    check(sum(count["calls"] for count in group.counters()) == 21, f"counters: {group.counters()}")
    check(group.facts()["facts"]["tag"] == "python", "facts")

    if world > 1:
        if rank == world - 1:
            group.abort("seen enough")
        refused("peer_lost", f"rank {world - 1} aborted the group: seen enough", run, "all_reduce", "f", "f32", COUNT)
    group.close()
    group.free()
    print(f"rank {rank} of {world}: {held} checks hold")


main()
