#!/usr/bin/env python3
"""Turns folders of measured runs (one JSON file a run) into the compact sets of validate/data.

usage: convert_runs.py SET=FOLDER [SET=FOLDER ...] OUT

Writes OUT/SET-GPU.json: {"set", "runs"}, one run a line, rows as [bytes, out-of-place us, in-place us(, repeats)].
Figures, hardware, software and source carry over; free text does not, but for two facts read out of it: who launches, and which
fault a misconfigured run has.
"""
import glob
import json
import os
import re
import sys

CLASSES = ('GB300', 'GB200', 'GH200', 'B200', 'H200', 'H100', 'H20', 'A100', 'L40S', 'V100', 'P100', 'RTX', 'T4')
# What the owners of a run say is wrong with it, as a label.
FAULTS = (
    (r'simple protocol takes over', 'simple-path-collapse'),
    (r'no topology hints|without gpu/nic topology hints', 'no-topology-hints'),
    (r'mid-size stalls', 'stalls'),
    (r'expectation error', 'one-gpu-limit'),
    (r'mtu lowered', 'small-mtu'),
    (r'not under the same pcie|not matched by locality', 'far-nic'),
    (r'p2p channel', 'few-peer-channels'),
    (r'socket|libfabric hook|libfabric plugin', 'tcp-fallback'),
    (r'pcie', 'slow-pcie'),
)


def gpu_class(run):
    name = str(run['hardware'].get('gpu'))
    if 'sm_103' in name:
        return 'gb300'
    if 'sm_90' in name:
        return 'h100'
    return next((c.lower() for c in CLASSES if c in name), 'other')


def time_from_rate(run, row):
    """Time where a source prints rates alone (two decimals): only rates of which half a digit is less than 1 %."""
    n = run['ranks']
    factor = {'all_reduce': 2 * (n - 1) / n, 'broadcast': 1, 'reduce': 1, 'sendrecv': 1}.get(run['collective'], (n - 1) / n)
    for rate, share in ((row.get('algbw_GBps'), 1), (row.get('busbw_GBps'), factor)):
        if rate and rate >= 0.5:
            return round(row['bytes'] * share / rate / 1000, 4)
    return None


def rows(run):
    table = {}
    for row in run['rows']:
        if not isinstance(row.get('bytes'), (int, float)):
            continue
        entry = table.setdefault(int(row['bytes']), [None, None, None])
        entry[1 if row.get('in_place') else 0] = row.get('time_us') or time_from_rate(run, row)
        entry[2] = row.get('repeats_us') or entry[2]
    out = []
    for size in sorted(table):
        place, inside, repeats = table[size]
        out.append([size, place] + ([inside, repeats] if repeats else [inside] if inside is not None else []))
    return out


def convert(run):
    notes = str(run.get('notes') or '')
    hardware = {k: v for k, v in run['hardware'].items() if v is not None and k in (
        'gpu', 'gpus_per_node', 'nodes', 'interconnect', 'links_per_gpu', 'nic', 'cpu', 'pcie_gen')}
    software = {k: v for k, v in run['software'].items() if v and k in ('nccl', 'cuda', 'env', 'cmd', 'harness')}
    result = {'id': run['id'], 'source': re.sub(r' *\((?:text )?public text[^)]*\)', '', run['source'].split('; ')[0]), 'date': run.get('date'), 'hardware': hardware,
              'software': software, 'collective': run['collective'], 'dtype': run.get('dtype'), 'ranks': run['ranks']}
    driven = re.search(r'-g (\d+)', notes)
    if run.get('launch'):
        result['launch'] = run['launch']
    elif re.search('single process', notes, re.I) or driven and int(driven[1]) > 1:
        result['launch'] = 'single_process'
        if driven and 'cmd' not in software:
            software['cmd'] = '-g ' + driven[1]
    if 'Azure ND A100 v4' in str(run['hardware'].get('note')):
        result['topology'] = 'azure-ndv4'
    result['quality'] = run.get('quality', 'healthy')
    if result['quality'] == 'misconfigured':
        text = notes + ' ' + str(run['hardware'].get('interconnect'))
        result['fault'] = next((label for pattern, label in FAULTS if re.search(pattern, text, re.I)), 'not-stated')
    result['rows'] = rows(run)
    return {k: v for k, v in result.items() if v is not None}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = sys.argv[-1]
    for argument in sys.argv[1:-1]:
        name, folder = argument.split('=', 1)
        groups = {}
        for path in sorted(glob.glob(os.path.join(folder, '*.json'))):
            with open(path, encoding='utf-8') as file:
                run = json.load(file)
            groups.setdefault(gpu_class(run), []).append(convert(run))
        for gpu, runs in sorted(groups.items()):
            with open(os.path.join(out, f'{name}-{gpu}.json'), 'w', encoding='utf-8') as file:
                file.write('{"set": %s, "runs": [\n' % json.dumps(name))
                file.write(',\n'.join(json.dumps(run, separators=(',', ':')) for run in runs))
                file.write('\n]}\n')


if __name__ == '__main__':
    main()
