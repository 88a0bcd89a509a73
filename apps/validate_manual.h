#pragma once

#include <string_view>

namespace windtunnel {

inline constexpr std::string_view kValidateManual = R"(NAME
  windtunnel validate - hold simulated times against real runs

SYNOPSIS
  windtunnel validate [SET] [OPTIONS]
  windtunnel validate --data DIR [OPTIONS]
  windtunnel validate --log FILE [-t TOPOLOGY] [OPTIONS]
  windtunnel validate ... --diagnose

DESCRIPTION
  Maps every run of the set to a machine, lets NCCL's rules decide each call, computes its time and
  compares. Errors are simulated/measured - 1: median, 90th percentile, worst, and the signed
  median, per group, platform, collective and size band (up to 4 KiB, 256 KiB, 8 MiB, 256 MiB,
  above). Every run has the same weight in each band it reaches. Beside them stand NCCL's own
  estimate, a plain alpha-beta model with data-sheet numbers, and the noise floor: how far two real
  runs of one platform are apart.
  Runs marked misconfigured or in doubt are listed, not counted. Runs whose hardware cannot be
  mapped are listed with the reason. Nothing is dropped.

  SET is one of the shipped sets, "public" or "nvidia"; without it, both.

  At the end, for the whole shipped set or with --leave-out: platforms left out. Whole classes (a GPU
  generation, a transport) get the constants of others of their kind, platforms of known classes those
  of the class; both are searched again without the runs left out, and these are scored: what you may
  expect on a platform that is not in the set.

  With --log, one log of your own: the kind is told from the text. Tables of nccl-tests and
  rccl-tests in every layout, and their JSON, are compared size by size. Other kinds (NCCL_DEBUG
  logs, nvidia-smi topo, p2pBandwidthLatencyTest, nvbandwidth, ib_write_bw and ib_write_lat, OSU,
  XLA tables, throughput) are read and what they hold is printed. A log without a usable row is
  refused with its line.

  With --diagnose, which fault explains the curve: TCP in place of RDMA, a container without its
  network plugin, a slow or missing NIC, a narrow slot, a small MTU, no GPUDirect, a far NIC, shared
  memory in place of peer access, NVLinks down, NVLS off, a forced algorithm or protocol, too few
  channels, hidden topology, a broken path of Simple, one launching thread, stalls. Each is a change
  of the facts that the model reads; the curves that come out are compared with the measured one and
  ranked, "healthy" among them. With --log: evidence, ranking, curve, what to check. Over a set: a
  line for each run with a known fault, and how many healthy runs would raise a false alarm.

OPTIONS
  --data DIR       run files of a folder instead of the shipped sets (docs/validation.md)
  --log FILE       a log of your own
  -t TOPOLOGY      the machine it ran on: a file, a shipped name, "hgx-h100*2"; else what the log
                   says of GPUs and hosts, with the usual NICs
  --op NAME        the collective, where the log does not say
  --nccl VERSION   NCCL's version, where the log does not say
  --diagnose       rank the causes that explain the curves
  --json FILE      every pair (measured, simulated) with its decision; with --diagnose every cause
                   with its curve; "-" is stdout
  --csv FILE       the pairs, one line each
  --html FILE      one page that stands by itself: errors by band, residuals by size, measured and
                   simulated curves by platform; with --diagnose the curves of the causes
  --markdown       the tables of docs/validation.md in place of the report
  --runs           one line a run; with --diagnose the ranking and the curve of each
  --leave-out, --no-leave-out
                   with or without the tables of platforms left out
  --repeats        list min, average, p99 and max of every size that was repeated; stalls are listed
                   without it
  --ulp N          units in the last place by which sums in a switch may differ from run to run (4);
                   for the values of --log. Rings and trees add in a fixed order
  --steps          list steps of measured curves that the model does not have
  --search-topology
                   decide on what NCCL's search finds on each run's topology instead of the usual
                   graph of its board
  --fidelity LEVEL analytic (closed forms, the default), flow or packet: the plans of the counted
                   runs move over simulated links of their topologies; against measured times, the
                   closed form and, at packet level, flow level. Runs of one machine and job share a
                   simulation; simulations are spread over processes (-j)
  --max-ranks N    with --fidelity: larger runs are left out and listed (64)
  --sizes N        with --fidelity: so many sizes of each run and band (1); 0: all
  --gpu-constants FILE, --fabric-constants FILE
                   other constants than catalogue/timing/*.yaml
  -j, --threads N  threads or processes; the answer does not depend on it (0: one per core)

 For continuous integration; each makes the exit status 2 when it does not hold:
  --require-goals  every goal of the project is met
  --write-baseline FILE
                   record the signed median error of every run and band
  --baseline FILE  no run has moved from the record by more than --tolerance, and none is missing
  --tolerance PCT  points of per cent (3)
  --require-plateau PCT
                   above 256 MiB the signed median error of every platform is within PCT per cent:
                   needs no record, and notices links or NICs of the wrong rate

EXAMPLES
  windtunnel validate
  windtunnel validate public --runs
  windtunnel validate --data my-runs --json pairs.json
  windtunnel validate --data my-runs --write-baseline known.json
  windtunnel validate --data my-runs --baseline known.json
  windtunnel validate --log all_reduce.log -t 'hgx-h100*2' --diagnose

EXIT STATUS
  0 done; 1 the input is wrong; 2 a check of --require-goals, --baseline or --require-plateau does
  not hold; 3 a fault of windtunnel

SEE ALSO
  docs/validation.md, docs/timing-model.md
)";

}  // namespace windtunnel
