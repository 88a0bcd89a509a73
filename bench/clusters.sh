#!/bin/bash
# Every collective on large clusters, start-up included: a three-tier fat tree of 2,048 GPUs, 1,024 GPUs on rails, hosts of 8, 8 and 4 GPUs, all at
# flow level, and 64 GPUs on rails at packet level. NCCL decides algorithm, protocol and channels. One line per collective: wall and CPU time, peak
# memory, simulated time and messages; collectives that have an in-place form are simulated twice. What cannot run says why; what takes longer than
# LIMIT seconds is cut off.
# usage: bench/clusters.sh [PROGRAM] [SIZE] [LIMIT] [DIVISOR]     (DIVISOR 8: an eighth of the hosts; needs GNU time)
set -e
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../build/release/bin/windtunnel}
size=${2:-64M}
limit=${3:-600}
divisor=${4:-1}
[ -x "$program" ] || { echo "no program at $program: build it first (cmake --preset release)" >&2; exit 1; }
[ -x /usr/bin/time ] || { echo "needs GNU time: apt-get install time" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run() {  # NAME TOPOLOGY FIDELITY
  printf '%s (%s)\n' "$1" "$3"
  for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube; do
    local rc=0
    rm -f "$scratch/json"
    timeout "$limit" /usr/bin/time -f '%e %U %M' -o "$scratch/time" "$program" collective "$collective" -t "$2" -b "$size" -c 0 --fidelity "$3" \
      --json "$scratch/json" >"$scratch/out" 2>"$scratch/err" || rc=$?
    if [ $rc = 124 ]; then
      printf '  %-15s longer than %s s\n' "$collective" "$limit"
    elif [ $rc != 0 ]; then
      printf '  %-15s exit %s: %s\n' "$collective" "$rc" "$(grep -v ': note:' "$scratch/err" | head -n 1)"
    else
      awk -v name="$collective" -v messages="$(grep -o '"messages": [0-9]*' "$scratch/json" | head -n 1 | grep -o '[0-9]*')" \
        -v us="$(awk '!/^#/ && NF > 6 { print $6; exit }' "$scratch/out")" \
        '{ printf "  %-15s %8.2f s wall %8.2f s CPU %8.1f MB %12s us %12d messages\n", name, $1, $2, $3 / 1024, us, messages }' "$scratch/time"
    fi
  done
}
run "three-tier fat tree, $((2048 / divisor)) GPUs" "hgx-h100*$((256 / divisor)):ib-ndr" flow
run "rails, $((1024 / divisor)) GPUs" "hgx-h100*$((128 / divisor)):ib-ndr-rail" flow
run "hosts of 8, 8 and 4 GPUs" "$here/clusters/unequal-8-8-4.yaml" flow
run "rails, 64 GPUs" "hgx-h100*8:ib-ndr-rail" packet
