"""Crash tests: a writer is killed, and every commit that it acknowledged is looked for. The first
is the guide's program."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import millpond
import pytest

from conftest import DEEP

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"

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


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not beside an installation")
def test_the_program_of_the_guide(tmp_path):
    found = re.findall(r'^```python\n("""kill.py.*?)^```', GUIDE.read_text(), re.M | re.S)
    assert len(found) == 1
    program = tmp_path / "kill.py"
    program.write_text(found[0])
    rounds = "100" if DEEP else "5"
    command = [sys.executable, program, tmp_path / "pond.mp", rounds]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(rf"{rounds} kills, \d+ commits, none lost\n", ran.stdout)


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
