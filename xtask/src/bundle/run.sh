#!/usr/bin/env bash
# Tests Crossover and measures it on this machine's GPU. It takes the GPU's driver, and neither Rust nor a toolkit.
#
#   ./run.sh [TEST ...]     the tests named, or all that are here (test-*); then the witness, and the measurements
#
# Variables, with what holds without them:
#   OUT=./results           where logs and measurements go: run.log, tests.log, witness-<ranks>.log, <op>-<mode>-<ranks>.json, table.txt
#   DEVICE=cuda             or hip
#   TESTS=1                 TESTS= tests nothing
#   WITNESS="2 4"           ranks in which PyTorch checks libcrossover.so; WITNESS= checks nothing
#   OPS="all_reduce all_gather"   what is measured: collectives, separated by spaces; OPS= measures nothing
#   MODES="graph eager"     how calls are made
#   RANKS="2 4 8"           ranks that share the one device
#   WAYS="processes one-process"   ranks as processes, and as threads of one process, as other libraries' figures are made
#   NCCL=                   a file of NCCL instead of the one that the loader finds; several ranks on a device take 2.30 or later
#   USE=all                 every algorithm in turn; or auto, which is the policy's choice, or a backend or an algorithm
#   SIZES="1K 8M 2"         the least, the greatest, and how many times the one before each is: in graphs
#   EAGER_SIZES="1K 8M 8"   the same for eager calls
#   CROSSOVER_ACCEPT=signed_zero_flush   what results may deviate by: the fastest protocols make a -0.0 a 0.0
#   DTYPE=bf16              elements
#   TIMEOUT=120             seconds after which a measurement, or the witness, is ended
#   TEST_TIMEOUT=1800       the same of a test program
#   CROSSOVER_TEST_WORLDS="2 3 4 5 8"   numbers of ranks in tests
# It ends with 1 if anything failed, after all has run, and says what.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/results}
device=${DEVICE:-cuda}
ops=${OPS-all_reduce all_gather}
witness=${WITNESS-2 4}
modes=${MODES:-graph eager}
ranks=${RANKS:-2 4 8}
ways=${WAYS:-processes one-process}
use=${USE:-all}
dtype=${DTYPE:-bf16}
timeout=${TIMEOUT:-120}
export CROSSOVER_ACCEPT=${CROSSOVER_ACCEPT-signed_zero_flush}
mkdir -p "$out" || exit 1
# NCCL takes several ranks on one device only so.
export NCCL_MULTI_RANK_GPU_ENABLE=${NCCL_MULTI_RANK_GPU_ENABLE-1} NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE-0}
[ -z "${NCCL-}" ] || export CROSSOVER_NCCL__LIBRARY=$NCCL
failed=()

# Wherever a step's own output goes.
exec 3>&1
say() { echo "$*" | tee -a "$out/run.log" >&3; }

# Runs a step: its name, its limit in seconds, then the command. What it prints goes where the caller says.
step() {
    local name=$1 limit=$2 status start=$SECONDS
    shift 2
    timeout -k 10 "$limit" "$@"
    status=$?
    if [ $status = 0 ]; then
        say "   $name took $((SECONDS - start)) s"
    else
        [ $status != 124 ] || status="not done in $limit s"
        say "   $name failed ($status)"
        failed+=("$name")
    fi
}

# A daemon of our own: without one, processes that share a device take turns by time slices, and each turn is
# milliseconds long. Nobody else's daemon is touched.
private=$(mktemp -d) || exit 1
export CUDA_MPS_PIPE_DIRECTORY=$private/pipe CUDA_MPS_LOG_DIRECTORY=$private/log
mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
has_daemon=no
end() {
    if [ $has_daemon = yes ]; then
        echo quit | timeout 30 nvidia-cuda-mps-control >/dev/null 2>&1
        [ ${#failed[@]} = 0 ] || cp "$CUDA_MPS_LOG_DIRECTORY"/control.log "$out/mps.log" 2>/dev/null
    fi
    rm -rf "$private"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

if [ "$device" = cuda ]; then
    nvidia-smi --query-gpu=name,uuid,driver_version,memory.used --format=csv,noheader 2>&1 | tee -a "$out/run.log"
    if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d >>"$out/run.log" 2>&1; then
        has_daemon=yes
    else
        say "no MPS daemon: ranks in processes of their own take turns by time slices, and times say nothing"
    fi
fi

tests=()
if [ $# -gt 0 ]; then
    tests=("${@/#test-/}")
elif [ -n "${TESTS-1}" ]; then
    for path in "$here"/test-*; do [ -x "$path" ] && tests+=("${path##*/test-}"); done
fi
cd "$here" || exit 1
# All of a test's ranks are on the device, so tests go one after the other.
try() {
    local name=$1
    shift
    say "== test $name"
    step "test $name" "${TEST_TIMEOUT:-1800}" env -u CROSSOVER_NCCL__LIBRARY ${NCCL:+CROSSOVER_TEST_NCCL="$NCCL"} CROSSOVER_TEST_DEVICE="$device:0" "$@" > >(tee -a "$out/tests.log") 2>&1
}
for name in ${tests[@]+"${tests[@]}"}; do
    if [ "$name" = hangs ]; then
        # Not under the daemon: a client that is killed takes all of its clients down.
        for use in ipc ${NCCL:+nccl}; do
            try "hangs, $use" CUDA_MPS_PIPE_DIRECTORY="$private/none" CROSSOVER_TEST_USE="$use" "./test-hangs" --test-threads=3
        done
    else
        try "$name" "./test-$name" --test-threads=1
    fi
done

if [ -n "$witness" ] && ! python3 -c 'import torch' 2>/dev/null; then
    say "== witness skipped: python3 has no torch here"
    witness=
fi
# What is exact without leave is checked without it, too.
for n in $witness; do for accept in "" ${CROSSOVER_ACCEPT:+"$CROSSOVER_ACCEPT"}; do
    say "== witness, $n ranks, accepting ${accept:-nothing}"
    step "witness $n${accept:+ $accept}" "$timeout" env LIBCROSSOVER="$here/libcrossover.so" CROSSOVER_ACCEPT="$accept" \
        ./crossover launch -n "$n" -- python3 witness/witness.py --device "$device" --require ipc --quick \
        > >(tee -a "$out/witness-$n.log") 2>&1
done; done

# The lines of a measurement that people read, from JSON with one key a line.
table() {
    awk -v mode="$1" -v ranks="$2" '
        { key = $1; gsub(/[":]/, "", key); value = $2; gsub(/[",]/, "", value) }
        key == "size" { size = value; place = "" }
        key == "out_of_place" || key == "in_place" { place = key }
        place != "" { of[place, key] = value }
        key == "calls_per_iteration" { calls = value; place = "" }
        key == "op" { op = value }
        key == "use" { use = value }
        key == "policy_pick" { pick = value == "true" ? "*" : "" }
        key == "fastest" { best = value == "true" ? "<" : "" }
        key == "astray" {
            host = of["out_of_place", "host_us"]
            printf "%-12s %-6s %5s %9s %-24s %9.2f %9.2f %9.2f %9s %6d %3s%s\n", op, mode, ranks, size, use, \
                of["out_of_place", "p50_us"], of["out_of_place", "p99_us"], of["in_place", "p50_us"], \
                host == "null" ? "-" : sprintf("%.2f", host), \
                of["out_of_place", "nwrong"] + of["in_place", "nwrong"], pick, best
        }
    ' "$3"
}

if [ -n "$ops" ]; then
    printf "%-12s %-6s %5s %9s %-24s %9s %9s %9s %9s %6s  %s\n" \
        "# op" mode ranks bytes algorithm "p50 us" "p99 us" "in place" "host us" wrong "* policy < fastest" >"$out/table.txt"
fi
for op in $ops; do
    for mode in $modes; do
        for n in $ranks; do for way in $ways; do
            name=$op-$mode-$n
            how=
            [ "$way" = processes ] || { name=$name-$way how=--$way; }
            case $mode in
            eager) read -r first last factor <<<"${EAGER_SIZES:-1K 8M 8}" ;;
            *) read -r first last factor <<<"${SIZES:-1K 8M 2}" ;;
            esac
            say "== perf $op, $mode, $n ranks on one device, $way"
            step "perf $name" "$timeout" ./crossover perf "$op" -n "$n" --device "$device" --ranks-per-gpu "$n" $how --mode "$mode" \
                -d "$dtype" -b "$first" -e "$last" -f "$factor" --use "$use" --json \
                >"$out/$name.json" 2> >(tee -a "$out/run.log" >&2)
            table "$mode" "$n" "$out/$name.json" | tee -a "$out/table.txt"
        done; done
    done
done
# vLLM's kernels, as its ranks' kernels cannot be measured beside ours by perf: the same loop, and the same buffers.
for n in $ranks; do
    [ -x "$here/vllm" ] && [[ " $ops " == *" all_reduce "* ]] || break
    [[ " 2 4 6 8 " == *" $n "* ]] || continue # its kernels are for these
    read -r first last _ <<<"${SIZES:-1K 8M 2}"
    say "== vLLM's all_reduce, $n ranks on one device, as threads of one process"
    step "vllm $n" "$timeout" env CUDA_DEVICE_MAX_CONNECTIONS=32 ./vllm "$n" "$(numfmt --from=iec "$first")" "$(numfmt --from=iec "$last")" \
        >"$out/vllm-$n.jsonl" 2> >(tee -a "$out/run.log" >&2)
done
say "results are in $out"
if [ ${#failed[@]} != 0 ]; then
    say "FAILED: $(printf '%s; ' "${failed[@]}")"
    exit 1
fi
