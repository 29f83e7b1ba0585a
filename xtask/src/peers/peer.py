"""The Python half of `cargo xtask peers`: makes traces and times one run of one side.

    peer.py expand SOURCE OUT LIMIT      ids or extents, plain or gzip, to oracleGeneral
    peer.py theirs TRACE CLASS SIZE HASHPOWER
    peer.py ours COMMAND...

Each call times one run in a process of its own, so that no run inherits another's memory. Both
sides are pinned to the same core. The answer is one line of JSON on standard output.
"""

import gzip
import json
import os
import resource
import subprocess
import sys
import time


def expand(source, out, limit):
    import numpy as np

    opener = gzip.open if source.endswith(".gz") else open
    with opener(source, "rb") as file:
        text = file.read()
    columns = len(text[: text.index(b"\n")].split())
    words = np.array(text.split(), dtype=np.int64 if columns > 1 else np.uint64)
    if ".extents." in os.path.basename(source):
        start, count = words.reshape(-1, 2).T
        before = np.cumsum(count) - count
        ids = np.repeat(start - before, count) + np.arange(count.sum())
    else:
        ids = words
    if limit > 0:
        ids = ids[:limit]
    record = [("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")]
    records = np.zeros(len(ids), dtype=record)
    records["time"] = 1
    records["id"] = ids
    records["size"] = 1
    records["next"] = -1
    records.tofile(out + ".part")
    os.replace(out + ".part", out)
    return {"references": len(ids), "pages": len(np.unique(ids))}


def reader(lcs, trace, sampler=None):
    if sampler is None:
        parameters = lcs.ReaderInitParam(ignore_obj_size=True)
    else:
        parameters = lcs.ReaderInitParam(ignore_obj_size=True, sampler=sampler)
    return lcs.TraceReader(trace, lcs.TraceType.ORACLE_GENERAL_TRACE, parameters)


def read_pass(lcs, trace):
    """Seconds of CPU time to read the trace without a cache.

    The wheel has no cache over memory. A temporal sampler that keeps one request in a million
    makes its C reader go through all of them in one loop, which is the reading alone.
    """
    from libcachesim.libcachesim_python import Sampler

    source = reader(lcs, trace, Sampler(1e-6, lcs.SamplerType.TEMPORAL_SAMPLER))
    request = lcs.Request()
    start = time.process_time()
    while source._reader.read_one_req(request) == 0:
        pass
    return time.process_time() - start


def theirs(trace, policy, size, hashpower):
    import libcachesim as lcs

    read = min(read_pass(lcs, trace) for _ in range(2))
    source = reader(lcs, trace)
    references = len(source)
    cache = getattr(lcs, policy)(size, hashpower=hashpower)
    start, start_cpu = time.perf_counter(), time.process_time()
    ratio, _ = cache.process_trace(source)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return {
        "references": references,
        "misses": round(ratio * references),
        "seconds": seconds,
        "cpu": cpu,
        "read": read,
    }


def ours(command):
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Small outputs only: a few lines of CSV and the last words of a failure.
    output, errors = child.communicate()
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "status": child.returncode,
        "output": output.decode(),
        "errors": errors.decode(errors="replace")[-2000:],
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
    }


def main(arguments):
    mode, rest = arguments[0], arguments[1:]
    if mode == "expand":
        answer = expand(rest[0], rest[1], int(rest[2]))
    else:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        if mode == "theirs":
            answer = theirs(rest[0], rest[1], int(rest[2]), int(rest[3]))
        else:
            answer = ours(rest)
    print(json.dumps(answer))


main(sys.argv[1:])
