"""PyTorch as a witness: Crossover's results on torch tensors and torch streams, eager and inside torch's CUDA
graphs, against torch's own sums, bit for bit. On every rank, of one GPU or of several:

    crossover launch -n 4 -- python3 witness.py                   (or torchrun --nproc-per-node 4 witness.py)

Prints a line for each check and JSON at the end. Ends with 1 on the first wrong bit, with 4 where a rank or a
deadline is lost, with 3 where a call has nobody to serve it that `--require` names.
"""

import argparse
import faulthandler
import json
import os
import sys
import time
import traceback

import torch

import checks
from crossover import CrossoverError, Group, load


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libcrossover.so [default: beside this file, or $LIBCROSSOVER]")
    parser.add_argument("--device", default="cuda", help="where tensors are: cuda, cuda:0, hip or host [cuda]")
    parser.add_argument("--use", help="force a backend or an algorithm, such as ipc/one_shot_push")
    parser.add_argument("--require", help="who must serve every call, such as ipc: its name, or the name's start")
    parser.add_argument("--accept", default=os.environ.get("CROSSOVER_ACCEPT"),
                        help="deviations that are accepted, such as signed_zero_flush [$CROSSOVER_ACCEPT]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    parser.add_argument("--seed", default="0", help="of all data; any text")
    parser.add_argument("--rounds", type=int, default=3, help="times that each eager check runs, on new data [3]")
    parser.add_argument("--replays", type=int, default=7, help="times that each graph is replayed [7]")
    parser.add_argument("--quick", action="store_true", help="small tensors only")
    parser.add_argument("--timeout", type=float, default=480, help="seconds after which a rank gives up [480]")
    return parser.parse_args()


def settings(options):
    pairs = [pair.partition("=")[::2] for pair in options.set]
    stated = {"allow_shared_device": "true", "call_timeout": "60s", "form_timeout": "120s", **dict(pairs)}
    for key in ("use", "accept"):
        if getattr(options, key):
            stated[key] = getattr(options, key)
    return stated


def main():
    options = arguments()
    # A rank that hangs where no error can be raised says where, and ends.
    faulthandler.dump_traceback_later(options.timeout, exit=True)
    began = time.monotonic()
    group = Group(load(options.library), tag="witness", device=options.device, settings=settings(options))
    on_host = options.device == "host"
    facts = group.facts()["facts"]
    # The library has chosen this rank's device by its number on the node; torch takes the same.
    if on_host:
        device = torch.device("cpu")
    else:
        local = int(os.environ.get("CROSSOVER_LOCAL_RANK") or os.environ.get("LOCAL_RANK") or group.rank)
        _, _, stated = options.device.partition(":")
        device = torch.device("cuda", int(stated) if stated else local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    report = checks.Report(group, options, device)
    if group.rank == 0:
        name = "host" if on_host else torch.cuda.get_device_name(device)
        print(f"torch {torch.__version__} on {name}, {group.world} ranks, arch {facts['arch']}, "
              f"topology {facts['topology']}", flush=True)
    wrong = False
    try:
        checks.everything(report)
        code = 0
    except checks.Wrong as why:
        code, wrong = why.code, why.code == 1
        group.abort(str(why))
    except CrossoverError as error:
        code = 4 if error.status == "peer_lost" else 1
        report.say(f"FAILED {report.now}: {error.status}: {error}", on_all=True)
    except Exception:
        code = 1
        report.say(f"FAILED {report.now}: {traceback.format_exc()}", on_all=True)
        group.abort(f"the witness failed in {report.now}")
    document = {
        "torch": torch.__version__,
        "device": "host" if on_host else torch.cuda.get_device_name(device),
        "rank": group.rank,
        "world": group.world,
        "facts": facts,
        "settings": settings(options),
        "seed": options.seed,
        "checks": report.held,
        "results": report.results,
        "skipped": report.skipped,
        "wrong": int(wrong),
        "seconds": round(time.monotonic() - began, 1),
        "counters": group.counters(),
        "exit": code,
    }
    if group.rank == 0 or code:
        print(json.dumps(document), flush=True)
    if code == 0:
        if not on_host:
            torch.cuda.synchronize()
        group.close()
        group.free()
    # After a failure, a kernel that waits for a peer may run until its deadline: nothing waits for it here.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
