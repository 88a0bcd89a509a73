#pragma once

#include <string_view>

namespace windtunnel {

inline constexpr std::string_view kCollectiveManual = R"(NAME
    windtunnel collective - simulate a collective on a cluster described by a file

SYNOPSIS
    windtunnel collective OPERATION -t TOPOLOGY [OPTIONS]

DESCRIPTION
    Builds the cluster of TOPOLOGY, decides what NCCL would decide (rings, channels, algorithm, protocol, chunks), runs the collective on models of
    its GPUs, links and switches, and prints the table of nccl-tests: same columns, same meaning, so that scripts which read nccl-tests read this too.
    Times are those of one call in steady state. The gradients really move: with -c 1 every element of the result is checked.

    OPERATION is one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, alltoallv, gather, scatter, sendrecv, hypercube.

    TOPOLOGY is a file (YAML, JSON, protobuf, NCCL topology XML, `nvidia-smi topo -m` text), the name of a shipped system (hgx-h200; see
    `windtunnel topo`), or a short form: 'hgx-h100*4' is four such nodes on a non-blocking network.

OPTIONS: what nccl-tests has, with its meaning and defaults
    -b, --minbytes SIZE      smallest size (32M). One letter K, M, G after a number is binary, as nccl-tests reads it; 1GB is read as 1G
    -e, --maxbytes SIZE      largest size (32M, or -b when only that is given)
    -i, --stepbytes SIZE     add SIZE between sizes (1M)
    -f, --stepfactor N       multiply by N between sizes instead
    -g, --ngpus N            GPUs that one host thread launches in turn (1 = a process or thread per GPU): sets the launch-bound floor. All GPUs of
                             TOPOLOGY take part whatever N is; --ranks chooses among them
    -n, --iters N            iterations (20); the simulated machine repeats itself exactly, so one is computed
    -w, --warmup_iters N     warm-up iterations (1)
    -o, --op OP              sum, prod, min, max, avg, or all (sum)
    -d, --datatype TYPE      int8 uint8 int32 uint32 int64 uint64 half float double bfloat16, or all (float)
    -r, --root RANK          root of broadcast, reduce, gather, scatter; -1 or all for every rank (0)
    -c, --check 0|1          check the data (1). Real elements are moved up to 256 MiB of buffers over all ranks; above, the plan is proved with
                             symbols (each element of the result holds each rank's part exactly once)
    --check-limit SIZE       that limit; real elements need the memory (256MiB)
    -z, --blocking 0|1       accepted; calls are always timed one by one

OPTIONS: the job
    -t, --topology FILE      the cluster
    --nodes N                N such nodes on a non-blocking network
    --ranks LIST             GPUs that take part, rank 0 first: 0,2,4
    --algo NAME              ring, tree, nvls, nvlstree, pat, collnetdirect, collnetchain, or one that NCCL does not have: recursive-doubling,
                             halving-doubling, bruck, pairwise, direct, torus, hierarchical-copy, ... (what NCCL chooses)
    --torus-sides AxBxC      the ranks as a torus for --algo torus, first side fastest (as the network joins them)
    --plan FILE              a schedule of your own in place of any algorithm: MSCCL XML or an MSCCL++ execution plan (see windtunnel help msccl);
                             sizes are rounded down to whole chunks
    --proto NAME             LL, LL128, Simple (what NCCL chooses)
    --channels N             parallel rings or trees (what NCCL uses)
    --nccl-version V         rules and tables of NCCL V, 2.10.3 to 2.30.7 (2.28.9)
    --set NCCL_NAME=VALUE    an NCCL variable, over the one of the environment; repeatable. NCCL_* of the environment count too
    --fidelity LEVEL         packet (frames, credits, arbitration in SystemC), flow (max-min fair sharing), analytic (closed form)  (packet)
    --ideal-endpoints        launch, thread blocks and software cost nothing: only links count
    --symmetry auto|off      flow level, more than 64 ranks: where all ranks are proved to be alike, one is simulated for all, and --explain and
                             --json say so; times are the same to the picosecond. off runs every rank (auto)
    --rates auto|exact       flow level: rates of more than 512 flows that share wait for up to 1/32 of the time of a short message (auto), or change
                             at once, as those of fewer do (exact: 10 to 100 times slower, times differ by less than 1 %)  (auto)
    --routing POLICY         which of equally good ways through the network a connection takes: adaptive (the least used so far), ecmp (a seeded
                             hash of the connection: collisions happen), static (by destination)  (adaptive)
    --network KEY=VALUE,...  packet level: queues, pauses, marks, windows, loss, outages, NICs; repeatable; keys below
    --seed N                 of random streams (1)

OPTIONS: output
    --explain                after the table: what bound each time, its shares, the use of the busiest links, the bound of the links
    --json FILE              everything, in the form of proto/result.proto; - is stdout
    --csv FILE               the table
    --trace FILE             slices of every thread block of the last size as a Chrome trace (open it in Perfetto); at packet level also the use of
                             the ten busiest links over time
    --flows FILE             what each connection of the last size carried, its NICs, first send and last arrival, as CSV; tells flows per NIC
    --vcd FILE               occupation of every link over time (open it in GTKWave)
    --trace-limit SIZE       stop either file at SIZE (64 MiB; 1 KiB at least) with a notice
    -v, --verbose            what NCCL would log of the job: rings, trees, channels, tuning table (to stderr)

    Tables go to stdout, notes and progress to stderr.

EXAMPLES
    windtunnel collective all_reduce -t hgx-h200 -b 8 -e 8G -f 2
    windtunnel collective all_gather -t 'hgx-h100*4' -b 1M -e 1G -f 4 --fidelity flow --explain
    windtunnel collective all_reduce -t my.yaml -b 64M --algo ring --ranks 0,1,2,3 --trace out/trace.json

EXIT STATUS
    0 done, 1 the input is wrong, 2 the simulated job failed (deadlock, time-out), 3 a fault of windtunnel itself

SEE ALSO
    windtunnel help topo, docs/index.md, docs/deviations.md
)";

}  // namespace windtunnel
