"""Signals end long calls: each is made when a signal has come that Python has not handled yet."""

import os
import subprocess
import sys

import pytest
from test_progress import run

#: `under_a_signal` makes a call without a step of the interpreter between the signal and the call,
#: or between the end of the call and the note of it. So no moment has to be met.
SIGNAL = """
import collections, ctypes, functools, operator, os
os.fsdecode = os.fspath  # Not a function of Python, where the signal would be heard.
send = functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGINT)
def under_a_signal(call, *arguments):
    ended = []
    steps = [send, functools.partial(call, *arguments), functools.partial(ended.append, True)]
    try:
        collections.deque(map(operator.call, steps), maxlen=0)
        return "not interrupted"
    except KeyboardInterrupt:
        return "after its end" if ended else "interrupted"
"""
#: A tree of some thousand rows.
ROWS = """
store = millpond.in_memory("16MiB")
tree = store.tree("t", int, int)
tree.update((n, n) for n in range(5000))
"""


def lines(*parts, arguments=()):
    return run("\n".join([SIGNAL, *parts]), *arguments).split("\n")[:-1]


#: Calls that walk a tree or a store.
WALKS = {
    "check": "store.check",
    "a count": "tree.count, 3, 4000",
    "clear": "tree.clear",
    "a range that is removed": "tree.remove_range, 3",
    "a count in a transaction": "tx[tree].count, 3, 4000",
    "clear in a transaction": "tx[tree].clear",
    "a count in a snapshot": "snapshot[tree].count, 3, 4000",
}


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_over_a_tree_is_interrupted_by_a_signal(walk):
    printed = lines(
        ROWS,
        f"tx, snapshot = store.begin(), store.snapshot()\nprint(under_a_signal({WALKS[walk]}))",
        "tx.abort()\nsnapshot.close()",
        "print(len(tree), store.check()[0]['faults'], tree.count(3, 4000), tree.clear(), len(tree))",
    )
    assert printed == ["interrupted", "5000 [] 3997 5000 0"]


def test_a_handler_that_does_not_raise_ends_no_walk():
    printed = lines(
        ROWS,
        "signal.signal(signal.SIGINT, lambda *_: print('heard'))",
        "print(under_a_signal(tree.count, 3, 4000), under_a_signal(store.check))",
        "print(under_a_signal(tree.clear), len(tree))",
    )
    assert printed == ["heard"] * 2 + ["not interrupted not interrupted", "heard", "not interrupted 0"]


def test_a_recovery_is_interrupted_by_a_signal_and_the_next_one_does_all(path):
    script = """
import os, sys
import millpond
store = millpond.open(sys.argv[1], "16MiB")
tree = store.tree("t", int, int)
with store.begin() as tx:
    tx[tree].update((n, n) for n in range(5000))
loser = store.begin()
loser[tree].update((n, 0) for n in range(5000))
store.flush()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    printed = lines(
        "print(under_a_signal(millpond.open, sys.argv[1], '16MiB'))",
        "with millpond.open(sys.argv[1], '16MiB') as store:",
        "    tree = store.tree('t')",
        "    print(len(tree), sum(tree.values()), store.check()[0]['faults'])",
        arguments=[path],
    )
    assert printed == ["interrupted", f"5000 {sum(range(5000))} []"]


def test_a_trace_that_is_written_is_interrupted_by_a_signal_and_leaves_no_file(tmp_path):
    pytest.importorskip("numpy")
    printed = lines(
        "trace = millpond.generate('zipf-ro', 'pages=1000,refs=200k,theta=0.8')",
        "print(under_a_signal(trace._inner.write, sys.argv[1]))",
        arguments=[tmp_path / "t.parquet"],
    )
    assert printed == ["interrupted"] and os.listdir(tmp_path) == []


def test_a_failed_allocation_of_bytes_is_a_memory_error(path):
    """The engine has the value once, and Python's copy of it does not fit beside it."""
    printed = run(
        """
        import resource
        size = 256 << 20
        store = millpond.open(sys.argv[1], "32MiB")
        tree = store.tree("t", str, bytes)
        tree["large"] = bytes(size)
        tree.get("none")
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + size * 3 // 2, -1))
        for _ in range(2):
            try:
                tree["large"]
                print("there is room")
            except MemoryError:
                print("no memory")
        resource.setrlimit(resource.RLIMIT_AS, (used + size // 2, -1))
        try:
            tree["large"]
            print("there is room")
        except millpond.Memory:
            print("no memory in the engine")
        """,
        path,
    )
    assert printed == "no memory\n" * 2 + "no memory in the engine\n"
