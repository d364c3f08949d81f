#!/usr/bin/env bash
# Tests Crossover and measures it on this machine's GPU. It takes the GPU's driver, and neither Rust nor a toolkit.
#
#   ./run.sh [TEST ...]     the tests named, or all that are here (test-*); then the measurements
#
# Variables, with what holds without them:
#   OUT=./results           where logs and measurements go
#   DEVICE=cuda             or hip
#   OPS=all_reduce          what is measured: collectives, separated by spaces; OPS= measures nothing
#   RANKS="2 4 8"           ranks that share the one device
#   TIMEOUT=300             seconds after which a test or a measurement is ended
# It ends with 1 if anything failed, after all has run.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/results}
device=${DEVICE:-cuda}
ops=${OPS-all_reduce}
ranks=${RANKS:-2 4 8}
timeout=${TIMEOUT:-300}
mkdir -p "$out" || exit 1
failed=0

say() { echo "$*" | tee -a "$out/run.log"; }

# A daemon of our own: without one, processes that share a device take turns by time slices, and each turn is
# milliseconds long. Nobody else's daemon is touched.
private=$(mktemp -d) || exit 1
export CUDA_MPS_PIPE_DIRECTORY=$private/pipe CUDA_MPS_LOG_DIRECTORY=$private/log
mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
has_daemon=no
end() {
    if [ $has_daemon = yes ]; then
        echo quit | timeout 30 nvidia-cuda-mps-control >/dev/null 2>&1
        [ $failed = 0 ] || cp "$CUDA_MPS_LOG_DIRECTORY"/control.log "$out/mps.log" 2>/dev/null
    fi
    rm -rf "$private"
}
trap end EXIT
trap 'exit 130' INT TERM

if [ "$device" = cuda ]; then
    nvidia-smi --query-gpu=name,uuid,driver_version,memory.used --format=csv,noheader 2>&1 | tee -a "$out/run.log"
    if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d >>"$out/run.log" 2>&1; then
        has_daemon=yes
    else
        say "no MPS daemon: ranks in processes of their own take turns by time slices, and times say nothing"
    fi
fi

# A test's own threads are its ranks, so tests go one after the other.
if [ $# -gt 0 ]; then
    tests=("${@/#test-/}")
else
    tests=()
    for path in "$here"/test-*; do [ -x "$path" ] && tests+=("${path##*/test-}"); done
fi
for name in ${tests[@]+"${tests[@]}"}; do
    say "== test $name"
    (cd "$here" && timeout -k 10 "$timeout" "./test-$name" --test-threads=1) 2>&1 | tee -a "$out/tests.log"
    status=${PIPESTATUS[0]}
    if [ "$status" != 0 ]; then
        say "test $name failed ($status)"
        failed=1
    fi
done

for op in $ops; do
    for n in $ranks; do
        say "== perf $op, $n ranks on one device"
        timeout -k 10 "$timeout" "$here/crossover" perf "$op" -n "$n" --device "$device" --ranks-per-gpu "$n" \
            -d bf16 -b 1K -e 8M -f 2 --mode graph --json >"$out/$op-$n.json" 2> >(tee -a "$out/run.log" >&2)
        status=$?
        if [ $status != 0 ]; then
            say "perf $op -n $n failed ($status)"
            failed=1
        fi
    done
done
say "results are in $out"
exit $failed
