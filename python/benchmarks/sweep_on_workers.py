"""What a second worker adds: `millpond.sweep` on a Dask cluster of one and of two worker processes.

    pip install './python[dask]'
    python python/benchmarks/sweep_on_workers.py [--pairs 6] [--references 4000000]

Each pair runs the same sweep on one worker and on two, in changing order, into new folders; and
without Dask, in one process and in two with a shard of it each, which is what two simulations
beside each other cost on this machine. The figures are the geometric means over the pairs with
their 95 % intervals:

- speed-up by the clock, of which 2 is all there is, with Dask and without;
- CPU time of all processes (workers, scheduler, client) on one over that on two;
- the clock with Dask over that without, on two: what distribution costs.
"""

import argparse
import math
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time

import distributed
import millpond

POLICIES = ["lru", "arc", "lirs", "s3-fifo", "sieve", "watt", "2q", "clock", "fifo", "w-tinylfu"]
SIZES = ["1%", "2%", "5%", "10%", "20%"]
#: Quantiles 0.975 of Student's t by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
     10: 2.228, 11: 2.201, 12: 2.179, 15: 2.131, 19: 2.093}


def cpu_seconds(pids):
    """What these processes have used so far."""
    used = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


def run(traces, workers, folder):
    """Seconds by the clock and of CPU time."""
    cluster = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(workers)
        # The scheduler is in this process.
        pids = [os.getpid(), *client.run(os.getpid).values()]
        client.run(lambda: __import__("millpond").__version__)
        begun, used = time.perf_counter(), cpu_seconds(pids)
        millpond.sweep(traces, POLICIES, SIZES, out=folder, on=client, progress=False)
        return time.perf_counter() - begun, cpu_seconds(pids) - used


def half(traces, folder, shard):
    """A part of the sweep, in a process of its own."""
    millpond.sweep(traces, POLICIES, SIZES, out=folder, shard=shard, threads=1, progress=False)


def run_plain(traces, processes, folder):
    """The same without Dask."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        # Until all are there, and have the module.
        pool.map(time.sleep, [0.3] * processes, chunksize=1)
        begun = time.perf_counter()
        parts = [(traces, folder, f"{at + 1}/{processes}") for at in range(processes)]
        pool.starmap(half, parts, chunksize=1)
        return time.perf_counter() - begun


def shown(logs):
    """A geometric mean and its interval."""
    mean = statistics.fmean(logs)
    half = T[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=6, choices=sorted(n + 1 for n in T))
    parser.add_argument("--references", type=int, default=4_000_000)
    options = parser.parse_args()
    by_clock, by_cpu, plain, over_plain = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        traces = []
        for seed in (1, 2):
            traces.append(folder / f"{seed}.parquet")
            params = f"pages={options.references // 5},refs={options.references},theta=0.8"
            millpond.generate("zipf-ro", params, seed=seed).write(traces[-1])
        for pair in range(options.pairs):
            times, alone = {}, {}
            for workers in (1, 2) if pair % 2 == 0 else (2, 1):
                times[workers] = run(traces, workers, folder / f"{pair}-{workers}")
                alone[workers] = run_plain(traces, workers, folder / f"{pair}-{workers}-plain")
            (one, one_cpu), (two, two_cpu) = times[1], times[2]
            by_clock.append(math.log(one / two))
            by_cpu.append(math.log(one_cpu / two_cpu))
            plain.append(math.log(alone[1] / alone[2]))
            over_plain.append(math.log(two / alone[2]))
            print(f"pair {pair + 1}: {one:.1f} s and {two:.1f} s, CPU {one_cpu:.1f} s and "
                  f"{two_cpu:.1f} s, without Dask {alone[1]:.1f} s and {alone[2]:.1f} s",
                  flush=True)
    print(f"speed-up by the clock: {shown(by_clock)}")
    print(f"CPU time of one over two: {shown(by_cpu)}")
    print(f"speed-up by the clock without Dask: {shown(plain)}")
    print(f"the clock on two, with Dask over without: {shown(over_plain)}")


if __name__ == "__main__":
    main()
