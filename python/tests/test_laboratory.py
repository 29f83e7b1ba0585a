"""The laboratory: against counts by hand, other ways to the same figures, and bad input."""

import collections
import os
import random
import threading

import millpond
import pytest

TRACE = millpond.generate("zipf-ro", "pages=500,refs=20k,theta=0.8", seed=3)


class Lru:
    """The least recently used page leaves."""

    def __init__(self, frames):
        self.pages = collections.OrderedDict()
        self.frames = frames

    def hit(self, page):
        self.pages.move_to_end(page)

    def miss(self, page):
        self.pages[page] = None
        assert len(self.pages) <= self.frames

    def evict(self):
        return self.pages.popitem(last=False)[0]


def lru_misses(pages, frames):
    """The count of an LRU cache, without any of the package's parts."""
    cache, misses = collections.OrderedDict(), 0
    for page in pages:
        if page in cache:
            cache.move_to_end(page)
        else:
            misses += 1
            if len(cache) == frames:
                cache.popitem(last=False)
            cache[page] = None
    return misses


def test_counts_are_those_of_a_cache_by_hand():
    draw = random.Random(1)
    pages = [min(draw.randrange(300), draw.randrange(300)) for _ in range(5000)]
    rows = millpond.simulate(pages, "lru", [1, 7, 30, "10%"])
    assert rows["size"] == [1, 7, 30, 30]
    assert rows["misses"] == [lru_misses(pages, size) for size in rows["size"]]
    assert all(h + m == r for h, m, r in zip(rows["hits"], rows["misses"], rows["references"]))


def test_a_policy_in_python_counts_as_the_built_in_one():
    draw = random.Random(2)
    pages = [min(draw.randrange(300), draw.randrange(300)) for _ in range(5000)]
    trace = millpond.trace(pages, [draw.random() < 0.3 for _ in pages])
    rows = millpond.simulate(trace, [Lru, "lru"], [3, 40, "50%"])
    own, built_in = rows.where(policy="Lru"), rows.where(policy="lru")
    assert len(own["size"]) == len(built_in["size"]) == 3
    for name in ("size", "hits", "misses", "writes", "dirty_evictions", "dirty_at_end",
                 "evictions", "references"):
        assert own[name] == built_in[name], name


def test_a_policy_that_misbehaves_is_told():
    class Wrong(Lru):
        def evict(self):
            return 10**9

    with pytest.raises(RuntimeError, match="not in the cache"):
        millpond.simulate([1, 2, 3], Wrong, 2)

    class Raises(Lru):
        name = "mine"

        def hit(self, page):
            raise LookupError(page)

    with pytest.raises(LookupError, match="7"):
        millpond.simulate([7, 7], Raises, 2)
    assert millpond.simulate([1, 2], Raises, 2)["policy"] == ["mine"]
    with pytest.raises(AttributeError):
        millpond.simulate([1, 2], lambda frames: object(), 2)
    with pytest.raises(ValueError, match="warm-up"):
        millpond.simulate([1, 2], Lru, 2, warmup=1)


def test_arrays_are_traces():
    numpy = pytest.importorskip("numpy")
    pages = numpy.array([5, 6, 5, 7, 2**63])
    for kind in (numpy.uint64, numpy.float64):
        array = pages.astype(kind)
        if kind is numpy.float64:
            with pytest.raises(TypeError):
                millpond.trace(array)
        else:
            assert (millpond.trace(array).pages == array).all()
    small = numpy.arange(10, dtype=numpy.uint8)[::3]
    assert millpond.trace(small).pages.tolist() == [0, 3, 6, 9]
    writes = numpy.array([0, 2, 0, 1])
    trace = millpond.trace(small, writes)
    assert trace.writes.tolist() == [False, True, False, True]
    assert millpond.simulate(small, "lru", 2)["misses"] == [4]
    for bad in (numpy.array([-1]), numpy.zeros((2, 2), dtype=int)):
        with pytest.raises(ValueError):
            millpond.trace(bad)
    with pytest.raises(ValueError):
        millpond.trace(small, writes[:2])
    with pytest.raises((OverflowError, TypeError)):
        millpond.trace([-1])


def test_traces_are_written_and_read(tmp_path):
    pytest.importorskip("numpy")
    trace = millpond.trace(TRACE.pages, TRACE.pages % 3 == 0)
    for name in ("trace.parquet", "trace.csv.gz"):
        trace.write(tmp_path / name)
        again = millpond.read_trace(tmp_path / name)
        assert (again.pages == trace.pages).all() and (again.writes == trace.writes).all()
    (tmp_path / "pages.txt").write_text("1\n2\n1\n")
    assert millpond.simulate(str(tmp_path / "pages.txt"), "lru", 2)["misses"] == [2]
    with pytest.raises(OSError):
        millpond.read_trace(tmp_path / "missing.parquet")
    (tmp_path / "bad.csv").write_text("page\n1\nx,y\n")
    with pytest.raises(ValueError):
        millpond.read_trace(tmp_path / "bad.csv", format="csv")


def test_a_named_pipe_is_read_once_and_whole(tmp_path):
    text = "".join(f"{page}\n" for page in range(200_000))
    for number in range(5):
        path = tmp_path / f"fifo-{number}"
        os.mkfifo(path)
        # A daemon: it waits for ever if nobody opens the pipe.
        threading.Thread(target=path.write_text, args=[text], daemon=True).start()
        assert len(millpond.read_trace(path)) == 200_000


def test_what_the_reader_says_of_a_file_is_a_warning(tmp_path):
    path = tmp_path / "requests.csv"
    lines = [f"{n * n % 97 * 4096},{4096 if n % 5 else 0}\n" for n in range(4000)]
    path.write_text("offset,size\n" + "".join(lines))
    says = "requests.csv: 800 requests of length 0 were skipped"
    assert millpond.read_trace(path).notes == [says.partition(": ")[2]]
    for run in (
        lambda: millpond.simulate(path, "lru", 10),
        lambda: millpond.curve(path, "lru", 10),
        lambda: millpond.advise(path, "20%"),
        lambda: millpond.sweep(path, ["lru", "fifo"], 10, out=tmp_path / "out", progress=False),
    ):
        with pytest.warns(UserWarning, match=says) as caught:
            run()
        assert [warning.filename for warning in caught] == [__file__]
    # What was run before is not read again.
    millpond.sweep(path, ["lru", "fifo"], 10, out=tmp_path / "out", progress=False)
    with pytest.warns(UserWarning, match="not used with these columns: `expand_sizes`"):
        millpond.sweep(path, "lru", 10, out=tmp_path / "more", progress=False, columns="page=1",
                       expand_sizes=True)


def test_curves_are_those_of_single_runs():
    sizes = [5, 50, 250]
    points = millpond.curve(TRACE, ["lru", "opt", "arc"], sizes, check=True)
    assert points["exact_miss_ratio"][:6] == pytest.approx(points["miss_ratio"][:6])
    rows = millpond.simulate(TRACE, ["lru", "opt", "arc"], sizes)
    found = {(r["policy"], r["size"]): r["misses"] / r["references"] for r in rows.rows()}
    for row in points.rows():
        assert row["exact_miss_ratio"] == pytest.approx(found[row["policy"], row["size"]])
    assert len(millpond.curve(TRACE, "lru")["size"]) > 5


def test_advice_names_a_policy_and_what_it_rests_on():
    advice = millpond.advise(TRACE, ["5%", "20%"], policies="random")
    assert advice.references == 20_000 and advice.default == "tide" and advice.write_share == 0
    assert advice.choice in millpond.policies() and str(advice).count("\n") == 2
    assert "random" in " ".join(map(str, advice.table["policy"]))
    with pytest.raises(ValueError, match="too few"):
        millpond.advise([1, 2, 3])


def test_comparisons_have_tests_of_significance():
    traces = [millpond.generate("zipf-ro", "pages=500,refs=10k", seed=seed) for seed in range(6)]
    rows = millpond.simulate(traces, ["fifo", "lru", "opt"], ["10%", "30%"])
    found = millpond.compare(rows, to="opt")
    assert found.replicate == "trace" and set(found.contestants) == {"fifo", "lru", "opt"}
    assert len(found.pairs["verdict"]) == 2 and max(found.pairs["p_holm"]) < 0.01
    assert found.ranking is not None and found.ranking["contestant"][0] == "opt"
    assert millpond.compare([dict(rows)], replicate="size").replicate == "size"
    # The same policy twice is alike, or open, but never better.
    twice = [rows.where(policy="lru"), rows.where(policy="lru")]
    assert millpond.compare(twice).pairs["verdict"][0] not in ("better", "worse")
    with pytest.raises(ValueError):
        millpond.compare(rows, replicate="moon")
    with pytest.raises(ValueError):
        millpond.compare(rows.where(policy="lru"))


def test_tables_go_to_other_libraries():
    rows = millpond.simulate(TRACE, ["lru", Lru], [10, 20], seeds=[1])
    assert "Lru" in str(rows) and "<table>" in rows._repr_html_() and "4 rows" in repr(rows)
    pyarrow = pytest.importorskip("pyarrow")
    arrow = rows.arrow()
    assert arrow.num_rows == 4 and pyarrow.types.is_integer(arrow.schema.field("misses").type)
    pytest.importorskip("pandas")
    frame = rows.pandas()
    assert frame.groupby("policy")["misses"].sum().nunique() == 1


def test_frames_of_other_libraries_are_traces_and_rows():
    numpy = pytest.importorskip("numpy")
    pages = TRACE.pages.tolist()
    expected = millpond.simulate(pages, "lru", 50)["misses"]
    rows = millpond.simulate([TRACE, millpond.generate("zipf-ro", "pages=500,refs=20k", seed=4)],
                             ["lru", "fifo", "arc"], [50, 100])
    verdicts = millpond.compare(rows, to="lru").pairs["verdict"]
    writes = numpy.array(pages) % 3 == 0
    marked = millpond.simulate(millpond.trace(pages, writes), "lru", 50)["writes"]

    def check(column, flags, frame):
        assert millpond.simulate(column, "lru", 50)["misses"] == expected
        trace = millpond.trace(column, flags)
        assert millpond.simulate(trace, "lru", 50)["writes"] == marked
        assert millpond.compare(frame, to="lru").pairs["verdict"] == verdicts
        assert millpond.compare([frame], to="lru").pairs["verdict"] == verdicts

    tried = 0
    for name in ("pandas", "pyarrow", "polars"):
        try:
            library = __import__(name)
        except ImportError:
            continue
        tried += 1
        if name == "pandas":
            check(library.Series(pages), library.Series(writes), rows.pandas())
            with pytest.raises(TypeError):
                millpond.trace(library.Series([1, None, 2]))
        elif name == "pyarrow":
            check(library.array(pages), library.array(writes.tolist()), rows.arrow())
            check(library.chunked_array([pages[:7], pages[7:]]), writes, library.table(rows))
            with pytest.raises((TypeError, ValueError)):
                millpond.trace(library.array([1, None, 2]))
        else:
            check(library.Series(pages), library.Series(writes), rows.polars())
            check(library.Series(pages, dtype=library.Int32), writes, rows.polars())
            with pytest.raises((TypeError, ValueError)):
                millpond.trace(library.Series([1, None, 2]))
    if tried == 0:
        pytest.skip("no pandas, pyarrow or polars")
    with pytest.raises(TypeError, match="data frame"):
        millpond.compare([7])


def test_plots_are_one_call():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = millpond.curve(TRACE, ["lru", "opt"], [10, 50]).plot()
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert set(lines) == {"lru", "opt"} and lines["opt"][0] < lines["lru"][0]
    assert axes.get_xlabel() == "size" and axes.get_ylabel() == "miss ratio"
    assert millpond.simulate(TRACE, "random", 50, seeds=[1, 2, 3]).plot(ax=axes) is axes
    assert len(axes.lines) == 3 and len(axes.lines[2].get_xdata()) == 1
    with pytest.raises(ValueError):
        millpond.Table({"policy": ["lru"], "size": [1]}).plot()


@pytest.mark.parametrize("column", ["trace", "content", "options", "params", "block"])
def test_a_plot_has_no_mean_of_rows_that_are_of_different_things(column):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    rows = {"policy": ["lru"] * 3, "size": [1, 1, 2], "misses": [7, 5, 3]}
    table = millpond.Table({**rows, column: ["a", "b", "a"]})
    with pytest.raises(ValueError, match=f"differ in {column} .'a' and 'b'."):
        table.plot()
    axes = table.where(**{column: "a"}).plot()
    assert list(axes.lines[-1].get_ydata()) == [7, 3]
    assert list(table.plot(by=column).lines[-2].get_ydata()) == [7, 3]
    millpond.Table({**rows, "seed": [1, 2, 1]}).plot()
    sizes = millpond.Table({**rows, "share": [9, 9, 9]}).where(misses=7)
    assert list(sizes.plot(x="share").lines[-1].get_ydata()) == [7]
    with pytest.raises(ValueError, match="differ in size .1 and 2."):
        millpond.Table({**rows, "misses": [7, 7, 3], "share": [9, 9, 9]}).plot(x="share")
    matplotlib.pyplot.close("all")


def test_what_is_no_reference_is_refused_and_never_taken_for_one():
    for pages in (b"0123456789abcdef", bytearray(16), memoryview(bytes(16)), "12"):
        with pytest.raises(TypeError, match="pages are integers"):
            millpond.trace(pages)
    for writes in (["r", "w"], [None, None], [False, "w"], [0.0, 1.0], b"\0\1", "rw"):
        with pytest.raises(TypeError, match="writes are truth values"):
            millpond.trace([1, 2], writes)
    for size in (2.9, 2.0, [3, 2.5], None):
        with pytest.raises(TypeError):
            millpond.simulate([1, 2, 3], "lru", size)
    with pytest.raises(TypeError):
        millpond.trace([1.5, 2])


def test_arrays_of_objects_and_masks_are_refused():
    numpy = pytest.importorskip("numpy")
    for writes in ([None, None], ["r", "w"], [0.0, 1.0]):
        with pytest.raises(TypeError, match="writes are truth values"):
            millpond.trace([1, 2], numpy.array(writes, dtype=object))
    with pytest.raises(TypeError, match="pages are integers"):
        millpond.trace(numpy.array([1, None], dtype=object))
    masked = numpy.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ValueError, match="masked entry"):
        millpond.trace(masked)
    with pytest.raises(ValueError, match="masked entry"):
        millpond.trace([1, 2, 3], masked == 1)
    assert millpond.trace(masked.compressed()).pages.tolist() == [1, 3]
    assert millpond.trace([1, 2], [numpy.True_, numpy.False_]).writes.tolist() == [True, False]


def test_threads_are_no_more_than_the_cells():
    assert millpond.simulate([1, 2, 3], "lru", 2, threads=10**6)["misses"] == [3]


def test_replicates_are_told_by_their_contents():
    with pytest.raises(ValueError, match="given twice"):
        millpond.simulate([1, 2, 3], "random", 2, seeds=[1, 1])
    rows = millpond.simulate([[1, 2, 3, 1], [1, 2, 3, 1]], ["lru", "mru"], 2)
    assert rows["trace"] == ["array 1"] * 2 + ["array 2"] * 2
    assert len(set(rows["content"])) == 1
    with pytest.raises(ValueError, match="fewer than two"):
        millpond.compare(rows)
    warm = millpond.simulate([1, 2, 3, 1], "mru", 2, warmup=1)
    cold = millpond.simulate([1, 2, 3, 1], "lru", 2)
    with pytest.raises(ValueError, match="different options"):
        millpond.compare([warm, cold])


def test_bad_names_and_sizes_are_told():
    for call in (
        lambda: millpond.simulate(TRACE, "lruu", 10),
        lambda: millpond.simulate(TRACE, "lru(", 10),
        lambda: millpond.simulate(TRACE, "lru", "many"),
        lambda: millpond.simulate(TRACE, "lru", 10, model="none"),
        lambda: millpond.simulate([], "lru", 10),
        lambda: millpond.curve([TRACE, TRACE], "lru", 10),
        lambda: millpond.generate("none"),
        lambda: millpond.generate("zipf-ro", "pages=x"),
    ):
        with pytest.raises(ValueError):
            call()


def test_a_store_is_recorded(path):
    pytest.importorskip("numpy")
    with millpond.open(path, "8MiB") as store:
        tree = store.tree("numbers", int, bytes)
        with pytest.raises(ValueError, match="not over"):
            millpond.record(store).trace
        with millpond.record(store) as recording:
            with pytest.raises(millpond.Exists), millpond.record(store):
                pass
            tree.update((n, b"x" * 1000) for n in range(20_000))
            assert sum(len(value) for value in tree.values()) == 20_000_000
        trace = recording.trace
        with millpond.record(store) as nothing:
            pass
        assert len(nothing.trace) < 1000
    reads = len(trace) - int(trace.writes.sum())
    assert reads > 1000 and trace.writes.sum() > 1000
    rows = millpond.simulate(trace, "lru", "50%", model="rw")
    assert rows["references"] == [len(trace)]
