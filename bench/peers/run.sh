#!/bin/bash
# Our side of the comparison with other network simulators: one all-reduce of 64 MiB of float32 per line, start-up included. Prints the median wall
# time, the events of the queue and the messages per second of it (at flow level what happens at one instant is one event), the largest memory of the runs and the simulated time; the closed form beside it holds for rings. At flow level equal ranks are simulated
# once by default; lines marked "every rank" run with --symmetry off.
# usage: bench/peers/run.sh [PROGRAM] [RUNS]     (from the root of the checkout)
set -e
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../build/release/bin/windtunnel}
runs=${2:-5}
[ -x "$program" ] || { echo "no program at $program: build it first (cmake --preset release)" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# closed_form ENDPOINTS ALPHA_NS GIB_PER_S: 2 (n-1) (alpha + S / (n B)) in us
closed_form() {
  awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN { printf "%.1f", 2*(n-1)*(a*1e-3 + 64/1024/(n*b)*1e6) }'
}
count() {  # FIELD, of the first result
  grep -o "\"$1\": [0-9]*" "$scratch/json" | head -n 1 | grep -o '[0-9]*'
}
line() {  # NAME FIDELITY TOPOLOGY ALGORITHM CLOSED_FORM_US [SYMMETRY]
  for _ in $(seq "$runs"); do
    /usr/bin/time -f '%e %M' -o "$scratch/time" "$program" collective all_reduce -t "$here/$3" --algo "$4" \
      -b 64M -e 64M -n 1 -w 0 -c 0 --fidelity "$2" --ideal-endpoints --symmetry "${6:-auto}" --json "$scratch/json" \
      >"$scratch/out" 2>"$scratch/err" \
      || { printf '%-46s fails: %s\n' "$1" "$(tail -1 "$scratch/err")"; return; }
    cat "$scratch/time"
  done | sort -n >"$scratch/times"
  simulated=$(awk '!/^#/ && $1 == 67108864 { print $6; exit }' "$scratch/out")
  events=$(count events)
  messages=$(count messages)
  awk -v name="$1" -v sim="${simulated:--}" -v form="$5" -v events="$events" -v messages="$messages" '{ wall[NR] = $1; if ($2 > most) most = $2 }
    END { median = wall[int((NR + 1) / 2)]
      printf "%-46s %8.2f s  %10s  %10s  %8.1f MB  %14s us  %12s us\n", name, median, rate(events), rate(messages), most / 1024, sim, form }
    function rate(n) { return median < 0.05 ? "-" : sprintf("%.3f M/s", n / median / 1e6) }' "$scratch/times"
}
both() {  # NAME TOPOLOGY ALGORITHM CLOSED_FORM_US
  line "flow, $1" flow "$2" "$3" "$4"
  line "flow, $1, every rank" flow "$2" "$3" "$4" off
}
printf '%-46s %10s  %10s  %10s  %11s  %17s  %15s\n' "work" "wall" "events" "messages" "memory" "simulated" "closed form"
line "packet, switch, ring, 8"       packet switch-8.yml       ring "$(closed_form 8 936 400)"
line "packet, switch, ring, 64"      packet switch-64.yml      ring "$(closed_form 64 936 400)"
line "packet, switch, ring, 256"     packet switch-256.yml     ring "$(closed_form 256 936 400)"
line "flow, switch, ring, 64"        flow   switch-64.yml      ring "$(closed_form 64 936 400)"
both "switch, ring, 256"             switch-256.yml   ring "$(closed_form 256 936 400)"
both "switch, ring, 1024"            switch-1024.yml  ring "$(closed_form 1024 936 400)"
both "switch, ring, 4096"            switch-4096.yml  ring "$(closed_form 4096 936 400)"
line "flow, switch, ring, 65536"     flow   switch-65536.yml   ring "$(closed_form 65536 936 400)"
both "ring, ring, 1024"              ring-1024.yml    ring "$(closed_form 1024 500 50)"
both "switch, halving-doubling, 4096" switch-4096.yml halving-doubling -
both "switch, direct, 1024"          switch-1024.yml  direct -
both "torus 64 x 64, torus"          torus-64x64.yml  torus -
line "flow, torus 64 x 64, ring in rank order" flow torus-64x64.yml ring -
# Real elements: 8 ranks of 64 MiB of float32, filled, reduced along the ring and compared.
for _ in $(seq "$runs"); do
  /usr/bin/time -f '%e %M' -o "$scratch/time" "$program" collective all_reduce -t "$here/switch-8.yml" --algo ring \
    -b 64M -e 64M -n 1 -w 0 -c 1 --check-limit 2GiB --fidelity analytic --ideal-endpoints >"$scratch/out" 2>"$scratch/err" \
    || { printf 'functional fails: %s\n' "$(tail -1 "$scratch/err")"; exit 1; }
  cat "$scratch/time"
done | sort -n >"$scratch/times"
awk -v name="functional, real sums, 8" '{ wall[NR] = $1; if ($2 > most) most = $2 }
  END { printf "%-46s %8.2f s  %10s  %10s  %8.1f MB\n", name, wall[int((NR + 1) / 2)], "-", "-", most / 1024 }' "$scratch/times"
