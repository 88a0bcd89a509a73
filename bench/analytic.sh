#!/bin/bash
# What a closed form costs on 4,096 GPUs (512 hosts): CPU time of 128 sizes from 1 MiB to 1 GiB less that of one size, per size, both placements where a
# collective has two; median of RUNS. Start-up (topology, NCCL's search, tables) stands beside it.
# usage: bench/analytic.sh [PROGRAM] [RUNS]     (needs GNU time)
set -e
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../build/release/bin/windtunnel}
runs=${2:-5}
[ -x "$program" ] || { echo "no program at $program: build it first (cmake --preset release)" >&2; exit 1; }
[ -x /usr/bin/time ] || { echo "needs GNU time: apt-get install time" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

median() {  # COLLECTIVE SIZES...: CPU seconds
  local collective=$1
  shift
  for _ in $(seq "$runs"); do
    /usr/bin/time -f '%U %S' -o "$scratch/time" "$program" collective "$collective" -t 'hgx-h100*512:ib-ndr' -n 1 -c 0 --fidelity analytic "$@" \
      >/dev/null 2>"$scratch/err" || { tail -1 "$scratch/err" >&2; exit 1; }
    awk '{ print $1 + $2 }' "$scratch/time"
  done | sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}
printf '%-15s %12s %12s\n' collective "start-up" "per size"
for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube; do
  one=$(median "$collective" -b 1M -e 1M)
  all=$(median "$collective" -b 1M -e 1024M -i 8M)
  awk -v name="$collective" -v one="$one" -v all="$all" 'BEGIN { printf "%-15s %10.2f s %9.2f ms\n", name, one, (all - one) / 127 * 1000 }'
done
