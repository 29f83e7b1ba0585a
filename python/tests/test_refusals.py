"""The laboratory refuses what has no sense, and what this machine has no room for."""

import inspect
import math
import re
import subprocess
import sys

import millpond
import pytest

TRACE = millpond.generate("zipf-ro", "pages=500,refs=5k,theta=0.8", seed=3)


class Fifo:
    def __init__(self, frames):
        self.queue = []

    def hit(self, page):
        pass

    def miss(self, page):
        self.queue.append(page)

    def evict(self):
        return self.queue.pop(0)


@pytest.mark.parametrize(
    "call",
    [
        lambda path: millpond.simulate(TRACE, "lru", "8KiB", page_size=0),
        lambda path: millpond.simulate(TRACE, "lru", 10, page_size=0),
        lambda path: millpond.simulate(TRACE, Fifo, "8KiB", page_size=0),
        lambda path: millpond.curve(TRACE, "lru", "8KiB", page_size=0),
        lambda path: millpond.curve(TRACE, "lru", page_size=0),
        lambda path: millpond.advise(TRACE, "8KiB", page_size=0),
        lambda path: millpond.advise(TRACE, page_size=0),
        lambda path: millpond.sweep(
            TRACE, "lru", "8KiB", out=path / "out", page_size=0, progress=False
        ),
    ],
)
def test_pages_of_no_bytes_are_refused(call, tmp_path):
    with pytest.raises(ValueError, match="page size 0 is none"):
        call(tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        lambda: millpond.simulate(TRACE, Fifo, "100B"),
        lambda: millpond.simulate(TRACE, "lru", "100B"),
        lambda: millpond.curve(TRACE, "lru", "100B"),
        lambda: millpond.advise(TRACE, "100B"),
    ],
)
def test_a_cache_that_holds_no_page_is_refused(call):
    with pytest.raises(ValueError, match="a cache of 100 bytes holds no page"):
        call()


def test_a_batch_of_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a batch of 0 frames"):
        millpond.simulate(TRACE, "lru", 10, batch=0)
    with pytest.raises(ValueError, match="a batch of 0 frames"):
        millpond.sweep(TRACE, "lru", 10, out=tmp_path / "out", batch=0, progress=False)


ROWS = millpond.simulate(
    [millpond.generate("zipf-ro", "pages=200,refs=2k", seed=n) for n in range(4)],
    ["lru", "fifo"],
    "20%",
)


@pytest.mark.parametrize("level", [2, 1, 0, -1, math.nan, math.inf])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ValueError, match="level .* is no probability"):
        millpond.compare(ROWS, level=level)


@pytest.mark.parametrize("margin", [-1, 10, math.nan, math.inf])
def test_a_margin_that_is_no_share_is_refused(margin):
    with pytest.raises(ValueError, match="margin .* is no share"):
        millpond.compare(ROWS, margin=margin)


@pytest.mark.parametrize("weight", [-1, 2e6, math.nan, math.inf])
def test_a_weight_of_writes_that_is_none_is_refused(weight):
    with pytest.raises(ValueError, match="a write costs 0 to 1000000 reads"):
        millpond.advise(TRACE, write_weight=weight)


def test_rows_of_several_settings_are_told_in_pythons_words():
    several = {name: list(column) * 2 for name, column in ROWS.items()}
    half = len(several["misses"]) // 2
    several["misses"][half:] = [misses + 1 for misses in several["misses"][half:]]
    other = {**ROWS, "options": ["read"] * half}
    for rows in (several, [ROWS, other]):
        with pytest.raises(ValueError) as raised:
            millpond.compare(rows)
        named = set(re.findall(r"`(\w+)`", str(raised.value)))
        assert named <= set(inspect.signature(millpond.compare).parameters), raised.value
        assert "where" not in str(raised.value) and "pass only rows" in str(raised.value)


PROGRAM = """
import resource
import millpond
trace = millpond.generate("zipf-ro", "pages=500,refs=5k,theta=0.8")
limit = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for call in (
    lambda size: millpond.simulate(trace, ["lru", "fifo", "arc", "lirs", "opt"], size),
    lambda size: millpond.curve(trace, "arc", size, check=True),
    lambda size: millpond.advise(trace, size),
):
    refused = []
    for size in (1000, 10**7, 6 * 10**7, 10**8, 10**9):
        try:
            call(size)
        except ValueError as error:
            assert "MiB of memory are free" in str(error), error
            refused.append(size)
    assert 1000 not in refused and 10**8 in refused and 10**9 in refused, refused
print("alive")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_a_limit_of_the_address_space_refuses_and_never_ends_the_interpreter():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.stdout == "alive\n", ran.stderr[-2000:]


def test_arrays_that_are_not_aligned_are_traces():
    numpy = pytest.importorskip("numpy")
    pages = numpy.array([1, 2, 3, 1, 2, 3, 9, 1], dtype="u8")
    shifted = numpy.frombuffer(b"HEAD" + pages.tobytes(), dtype="u8", offset=4)
    record = numpy.zeros(8, dtype=[("t", "u4"), ("id", "u8"), ("w", "i8")])
    record["id"] = pages
    record["w"] = 1
    assert not shifted.flags.aligned and not record["id"][:1].flags.aligned
    assert millpond.trace(shifted).pages.tolist() == pages.tolist()
    one = millpond.trace(record["id"][:1], record["w"][:1])
    assert one.pages.tolist() == [1] and one.writes.tolist() == [True]
    swapped = pages.astype(">u8")
    assert millpond.trace(swapped).pages.tolist() == pages.tolist()
