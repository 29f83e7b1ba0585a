"""Simulations of the same arrays by this package and by libCacheSim's wheel.

    pip install ./python numpy libcachesim==0.3.5
    python python/benchmarks/beside_libcachesim.py [--pairs 12] [--references 1000000] \\
        [--pages 100000]

Both sides get the same NumPy array, and one core. Built-in policies: ours by `simulate`, the
array's way into the simulator included; theirs by `process_trace` over a file in their binary
format, whose writing is not counted, which is the fastest way that the wheel has; with a hash table
of twice the frames, and with its default one. Then a sweep: all policies at
five sizes, ours in one call, theirs one after the other. A policy written in Python: the same
least-recently-used queue, with the callbacks hit, miss and evict, on both sides; theirs by
`PluginCache`, over the same file.

Runs alternate (ours, theirs, theirs, ours …); the ratio of each pair is of CPU times, and the
figure their geometric mean with its 95 % interval (Student's t of the logarithms). Misses are
compared, too.
"""

import argparse
import collections
import math
import os
import statistics
import tempfile
import time

import libcachesim as lcs
import millpond
import numpy

#: Ours and theirs. Policies whose misses differ are different algorithms of one name.
POLICIES = {"lru": "LRU", "fifo": "FIFO", "arc": "ARC", "s3-fifo": "S3FIFO", "sieve": "Sieve",
            "lirs": "LIRS", "clock": "Clock"}
#: Two-sided 97.5 % quantiles of Student's t, by degrees of freedom.
STUDENT = {4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093, 29: 2.045}


def interval(ratios):
    """The geometric mean and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    freedom = max(d for d in STUDENT if d <= len(logs) - 1)
    half = STUDENT[freedom] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def power(size):
    """Their hash table: the power of two from twice the frames on, in place of 2 to the 24th."""
    return (2 * size - 1).bit_length()


def write_for_them(pages, path):
    record = [("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")]
    records = numpy.zeros(len(pages), dtype=record)
    records["time"], records["id"], records["size"], records["next"] = 1, pages, 1, -1
    records.tofile(path)


def reader(path):
    parameters = lcs.ReaderInitParam(ignore_obj_size=True)
    return lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE, parameters)


class Lru:
    """Ours: the least recently used page leaves."""

    def __init__(self, frames):
        self.pages = collections.OrderedDict()

    def hit(self, page):
        self.pages.move_to_end(page)

    def miss(self, page):
        self.pages[page] = None

    def evict(self):
        return self.pages.popitem(last=False)[0]


def their_lru(size):
    """Theirs: the same."""

    def init(parameters):
        return collections.OrderedDict()

    def hit(pages, request):
        pages.move_to_end(request.obj_id)

    def miss(pages, request):
        pages[request.obj_id] = None

    def evict(pages, request):
        return pages.popitem(last=False)[0]

    def remove(pages, page):
        pages.pop(page, None)

    def free(pages):
        pages.clear()

    return lcs.PluginCache(size, init, hit, miss, evict, remove, free, hashpower=power(size))


def timed(work):
    """Seconds of CPU time, and misses."""
    begun = time.process_time()
    misses = work()
    return time.process_time() - begun, misses


def alone(make, size, hashpower):
    """A list with one of their caches."""
    if hashpower is None:
        return lambda: [make(size)]
    return lambda: [make(size, hashpower=hashpower)]


def theirs(caches, path, references):
    """One after the other; the last readers and caches are dropped outside of the time."""
    misses, seconds = 0, 0.0
    for cache in caches:
        source = reader(path)
        passed, ratio = timed(lambda: cache.process_trace(source)[0])
        misses, seconds = misses + round(ratio * references), seconds + passed
    return seconds, misses


def measure(name, ours, their_cache, path, references, pairs):
    ratios, own, other = [], [], []
    for pair in range(pairs + 1):
        sides = [lambda: timed(ours), lambda: theirs(their_cache(), path, references)]
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        found = {}
        for side in order:
            found[side] = sides[side]()
        if pair == 0:
            continue  # Caches and pages of memory are warm from here on.
        ratios.append(found[1][0] / found[0][0])
        own.append(found[0][0])
        other.append(found[1][0])
    mean, low, high = interval(ratios)
    per = 1e9 / references
    print(f"{name:20} ours {statistics.median(own) * per:7.1f} ns  theirs "
          f"{statistics.median(other) * per:7.1f} ns  {mean:5.2f} x [{low:.2f}, {high:.2f}]  "
          f"misses {found[0][1]} and {found[1][1]}", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=12)
    options.add_argument("--references", type=int, default=1_000_000)
    options.add_argument("--pages", type=int, default=100_000)
    options = options.parse_args()
    pairs = options.pairs
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    shape = f"pages={options.pages},refs={options.references},theta=0.8"
    trace = millpond.generate("zipf-ro", shape)
    pages = trace.pages.copy()
    distinct = len(numpy.unique(pages))
    size = distinct // 10
    print(f"{len(pages)} references, {distinct} pages, {size} frames, {pairs} pairs; "
          "a factor above 1: ours is faster")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.oracleGeneral.bin")
        write_for_them(pages, path)

        def simulated(policy):
            return lambda: millpond.simulate(pages, policy, size, threads=1)["misses"][0]

        for ours, their in POLICIES.items():
            make = getattr(lcs, their)
            measure(ours, simulated(ours), alone(make, size, power(size)), path, len(pages), pairs)
        for ours, their in POLICIES.items():
            make = getattr(lcs, their)
            default = alone(make, size, None)
            measure(f"{ours}, its default", simulated(ours), default, path, len(pages), pairs)
        sizes = [max(distinct * percent // 100, 1) for percent in (2, 5, 10, 20, 40)]

        def sweep():
            return sum(millpond.simulate(pages, POLICIES, sizes, threads=1)["misses"])

        def their_sweep():
            return [getattr(lcs, name)(size, hashpower=power(size))
                    for name in POLICIES.values() for size in sizes]

        measure("sweep, 35 runs", sweep, their_sweep, path, len(pages), max(pairs // 2, 5))
        part = pages[: len(pages) // 5]
        write_for_them(part, path)

        def own():
            return millpond.simulate(part, Lru, size)["misses"][0]

        measure("lru in Python", own, lambda: [their_lru(size)], path, len(part), pairs)


if __name__ == "__main__":
    main()
