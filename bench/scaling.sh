#!/bin/bash
# How the cost of a flow-level run grows with its messages: all-reduces of 64 MiB on 64 to 4,096 endpoints in powers of two, every rank simulated
# (--symmetry off), endpoints that cost nothing. Prints messages, median CPU time less that of a call without bytes, nanoseconds per message, and
# for each algorithm the exponent of a fit time = a messages^b over the runs above 5 ms.
# usage: bench/scaling.sh [PROGRAM] [RUNS] [LARGEST]     (needs GNU time)
set -e
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../build/release/bin/windtunnel}
runs=${2:-5}
largest=${3:-4096}
[ -x "$program" ] || { echo "no program at $program: build it first (cmake --preset release)" >&2; exit 1; }
[ -x /usr/bin/time ] || { echo "needs GNU time: apt-get install time" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

network() {  # KINDS COUNTS RATES LATENCIES
  printf 'topology: [ %s ]\nnpus_count: [ %s ]\nbandwidth: [ %s ]\nlatency: [ %s ]\n' "$@" >"$scratch/net.yml"
}
# Median CPU milliseconds, messages and peak memory in KB of an algorithm on the network that was written last.
measure() {  # ALGORITHM SIZE
  local TIMEFORMAT='%3U %3S'
  for _ in $(seq "$runs"); do
    { time /usr/bin/time -f '%M' -o "$scratch/peak" "$program" collective all_reduce -t "$scratch/net.yml" --algo "$1" -b "$2" -c 0 \
      --fidelity flow --ideal-endpoints --symmetry off --json "$scratch/json" >/dev/null 2>"$scratch/err"; } 2>"$scratch/time" \
      || { tail -1 "$scratch/err" >&2; exit 1; }
    echo "$(cat "$scratch/time") $(cat "$scratch/peak")"
  done | awk '{ print ($1 + $2) * 1000, $3 }' | sort -n >"$scratch/times"
  awk -v messages="$(grep -o '"messages": [0-9]*' "$scratch/json" | head -n 1 | grep -o '[0-9]*')" \
    '{ ms[NR] = $1; if ($2 > peak) peak = $2 } END { print ms[int((NR + 1) / 2)], messages + 0, peak }' "$scratch/times"
}
printf '%-18s %9s %12s %10s %12s %10s\n' algorithm endpoints messages "CPU ms" "ns/message" "peak MB"
for algorithm in ring tree halving-doubling direct torus; do
  : >"$scratch/fit"
  for ((n = 64; n <= largest; n *= 2)); do
    # Direct at 4,096 holds 33 million flows at once: 10 GB.
    if [ "$algorithm" = direct ] && [ "$n" -gt 1024 ]; then continue; fi
    if [ "$algorithm" = torus ]; then
      side=1
      while ((side * side * 4 <= n)); do side=$((side * 2)); done
      network "Ring, Ring" "$side, $((n / side))" "50, 50" "500, 500"
    else
      network Switch "$n" 400 468
    fi
    read -r idle _ _ <<<"$(measure "$algorithm" 0)"
    read -r ms messages peak <<<"$(measure "$algorithm" 64M)"
    awk -v ms="$ms" -v idle="$idle" -v messages="$messages" 'BEGIN { if (ms - idle > 5) print messages, ms - idle }' >>"$scratch/fit"
    awk -v name="$algorithm" -v n="$n" -v ms="$ms" -v idle="$idle" -v messages="$messages" -v peak="$peak" 'BEGIN {
      own = ms - idle; if (own < 0) own = 0
      printf "%-18s %9d %12d %10.1f %12.0f %10.1f\n", name, n, messages, own, own / messages * 1e6, peak / 1024 }'
  done
  awk -v name="$algorithm" '{ x = log($1); y = log($2); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
    END { if (n > 2) printf "%-18s exponent %.2f\n", name, (n * sxy - sx * sy) / (n * sxx - sx * sx); else printf "%-18s too quick to fit\n", name }' "$scratch/fit"
done
