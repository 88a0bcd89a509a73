#!/bin/bash
# Whole runs of the packet level, start-up included: an all-reduce on 8 and 16 GPUs at three sizes. Runs are interleaved (size by size, five rounds);
# prints median wall time, spread, peak memory, events and events per second of the run.
# usage: bench/whole_runs.sh [PROGRAM] [ROUNDS] [FIDELITY]     (needs GNU time)
set -e
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../build/release/bin/windtunnel}
rounds=${2:-5}
fidelity=${3:-packet}
[ -x "$program" ] || { echo "no program at $program: build it first (cmake --preset release)" >&2; exit 1; }
[ -x /usr/bin/time ] || { echo "needs GNU time: apt-get install time" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
systems="hgx-h200 dgx2-v100 2x-azure-ndv5"
for _ in $(seq "$rounds"); do
  for system in $systems; do
    for size in 1M 64M 1G; do
      /usr/bin/time -f '%e %M' -o "$scratch/time" "$program" collective all_reduce -t "$system" -b $size -c 0 --fidelity "$fidelity" \
        --json "$scratch/json" >/dev/null 2>&1
      events=$(grep -o '"events": [0-9]*' "$scratch/json" | head -n 1 | grep -o '[0-9]*')
      echo "$(cat "$scratch/time") $events" >>"$scratch/$system-$size"
    done
  done
done
printf '%-16s %5s %9s %17s %9s %10s %12s\n' system size "wall s" "least to most" "peak MB" events "events/s"
for system in $systems; do
  for size in 1M 64M 1G; do
    sort -n "$scratch/$system-$size" | awk -v name="$system" -v size=$size '
      { wall[NR] = $1; if ($2 > peak) peak = $2; events = $3 }
      END { median = wall[int((NR + 1) / 2)]; printf "%-16s %5s %9.2f %8.2f to %5.2f %9.1f %10d %12.0f\n", name, size, median, wall[1], wall[NR], peak / 1024, events, events / median }'
  done
done
