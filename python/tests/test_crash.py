"""The guide's crash test as a Python program: a writer is killed, and every commit that it
acknowledged is looked for."""

import os
import random
import signal
import subprocess
import sys
import time

import millpond

from conftest import DEEP

#: Commits numbers, one after the other, and says each once its commit has returned.
WRITER = """
import sys, millpond
store = millpond.open(sys.argv[1], "8MiB", log_gap="1MiB")
numbers, pairs = store.tree("numbers", int, bytes), store.tree("pairs", int, int)
n = numbers.last()[0] + 1 if len(numbers) else 0
print("ready", flush=True)
while True:
    with store.begin() as tx:
        tx[numbers][n] = b"x" * (n % 2000)
        tx[pairs][n] = n * n
    print(n, flush=True)
    n += 1
"""


def test_every_acknowledged_commit_survives_kill_9(path):
    rounds, draw = (100 if DEEP else 5), random.Random(9)
    acknowledged = -1
    for number in range(rounds):
        command = [sys.executable, "-c", WRITER, os.fspath(path)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout.readline() == "ready\n"
        # At least one commit is seen, then the writer dies somewhere among the next ones.
        acknowledged = int(writer.stdout.readline())
        time.sleep(draw.random() * 0.3)
        writer.send_signal(signal.SIGKILL)
        lines = writer.stdout.read().split("\n")
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        # A last line without an end was not acknowledged.
        for line in lines[:-1]:
            assert int(line) == acknowledged + 1
            acknowledged += 1
        with millpond.open(path, "8MiB", create=False) as store:
            numbers, pairs = store.tree("numbers"), store.tree("pairs")
            there = len(numbers)
            assert acknowledged < there <= acknowledged + 2, f"round {number}"
            assert list(pairs.items()) == [(n, n * n) for n in range(there)]
            for n, value in numbers.items():
                assert value == b"x" * (n % 2000)
            assert all(row["faults"] == [] for row in store.check())
