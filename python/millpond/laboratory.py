"""The laboratory: policies on traces, curves, advice, comparisons."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _millpond
from .table import Table, look_for

if TYPE_CHECKING:
    import numpy
    import numpy.typing

#: A size of a cache: frames, or a text as "5%" (of the distinct pages) or "64MiB".
Size = Union[int, str]


class Policy(Protocol):
    """What a policy written in Python has: see `simulate`."""

    def hit(self, page: int, /) -> object:
        """A page in the cache was referenced."""

    def miss(self, page: int, /) -> object:
        """A page was referenced and is in the cache from now on."""

    def evict(self) -> int:
        """The cache is full: returns the page that leaves."""


class Trace:
    """References to pages, in memory: made by `trace`, `read_trace` and `generate`."""

    def __init__(self, inner: _millpond.Trace) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """What results call it."""
        return self._inner.name

    @property
    def notes(self) -> list[str]:
        """What the reader had to say of the file."""
        return self._inner.notes

    @property
    def pages(self) -> numpy.typing.NDArray[numpy.uint64]:
        """The pages, as an array (needs `numpy`)."""
        look_for("numpy")
        import numpy

        return numpy.frombuffer(self._inner.page_bytes(), dtype=numpy.uint64)

    @property
    def writes(self) -> numpy.typing.NDArray[numpy.bool_]:
        """Which references are writes, as an array (needs `numpy`)."""
        look_for("numpy")
        import numpy

        return numpy.frombuffer(self._inner.write_bytes(), dtype=numpy.bool_)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file: `.parquet`, `.csv`, `.txt`, the latter two with `.gz` or `.zst`."""
        self._inner.write(os.fspath(path))

    def __len__(self) -> int:
        return len(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner)


def trace(pages: Any, writes: Any = None, *, name: str = "array") -> Trace:
    """A trace of an array, or any sequence, of page numbers, and of one that says which references
    are writes.

    >>> import millpond
    >>> millpond.trace([7, 8, 7], [False, False, True])
    <millpond.Trace "array" of 3 references>
    """
    column = _column(pages, "Q")
    if len(column) == 0:
        raise ValueError("a trace has one reference at least")
    return Trace(_millpond.Trace(column, _column(writes, "B"), name))


def _column(values: Any, code: str) -> Any:
    """What has a buffer of these items: a NumPy array as it is, anything else copied."""
    if values is None:
        return None
    what = "pages are integers" if code == "Q" else "writes are truth values"
    if isinstance(values, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{what}, one for each reference, and not {type(values).__name__}")
    if hasattr(values, "__array__"):
        look_for("numpy")
        import numpy

        if isinstance(values, numpy.ma.MaskedArray) and numpy.ma.is_masked(values):
            raise ValueError("a masked entry is no reference: leave it out with `compressed()`")
        found = numpy.asarray(values)
        if found.ndim != 1:
            raise ValueError(f"a trace has one dimension, and not {found.ndim}")
        if found.dtype.kind not in ("iu" if code == "Q" else "biu"):
            raise TypeError(f"{what}, and not {found.dtype}")
        if code == "Q":
            if found.dtype.kind == "i" and len(found) > 0 and int(found.min()) < 0:
                raise ValueError("pages are 0 or more")
            return numpy.require(found, dtype=numpy.uint64, requirements=["C", "A"])
        return numpy.ascontiguousarray(found != 0).view(numpy.uint8)
    import array

    if code == "B":
        return array.array("B", [_truth(value, what) for value in values])
    return array.array("Q", values)


def _truth(value: Any, what: str) -> int:
    """A truth value as 0 or 1: of a text or of None there is none, whatever Python takes it for."""
    try:
        return int(operator.index(value) != 0)
    except TypeError:
        pass
    if type(value).__name__ in ("bool_", "bool"):  # NumPy's, which has no index
        return int(bool(value))
    raise TypeError(f"{what}, and not {value!r}")


def read_trace(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: str | None = None,
    ops: str | None = None,
    page_size: int = 4096,
    expand_sizes: bool = False,
    map_ids: bool = False,
) -> Trace:
    """Reads a trace from a file, whose format is detected.

    `format` and `columns` (as `"page=3,op=5"` of CSV or Parquet) say what it cannot; `ops` says what
    words for operations mean, as `"gets=R,cas=W,D=skip"`; `expand_sizes` turns an object of several
    pages into as many references; `map_ids` numbers ids by first appearance.
    """
    return Trace(
        _millpond.read_trace(
            os.fspath(path),
            format=format,
            columns=columns,
            ops=ops,
            page_size=page_size,
            expand_sizes=expand_sizes,
            map_ids=map_ids,
        )
    )


class Recording:
    """What a store asks of its storage, while a `with` block runs: see `record`."""

    def __init__(self, store: _millpond.Store) -> None:
        self._store = store
        self._trace: Trace | None = None

    @property
    def trace(self) -> Trace:
        """What was recorded; there is none before the end of the block."""
        if self._trace is None:
            raise ValueError("the recording is not over: its trace is there after the block")
        return self._trace

    def __enter__(self) -> Recording:
        self._inner = _millpond.Recording(self._store)
        return self

    def __exit__(self, *_args: object) -> None:
        self._trace = Trace(self._inner.stop())


def record(store: _millpond.Store) -> Recording:
    """Records the pages that a store reads from its storage, and writes to it, as a trace: what a
    second tier would see. References to pages in memory are not among them; those are recorded by
    `millpond bench --record`, from an engine that is compiled for it.

    >>> import millpond
    >>> with millpond.in_memory("8MiB") as store:
    ...     tree = store.tree("numbers", int, bytes)
    ...     with millpond.record(store) as recording:
    ...         tree.update((n, b"x" * 1000) for n in range(20_000))
    ...     trace = recording.trace
    >>> len(trace) > 1000 and bool(trace.writes.any())
    True
    """
    return Recording(store)


def generate(generator: str, params: str = "", *, seed: int = 1) -> Trace:
    """Generates a trace, always the same one for a seed.

    >>> import millpond
    >>> len(millpond.generate("zipf-ro", "pages=1000,refs=10k,theta=0.8"))
    10000
    """
    return Trace(_millpond.generate(generator, params, seed=seed))


def policies() -> dict[str, list[str]]:
    """The built-in policies, each with the names of its parameters.

    >>> import millpond
    >>> "write_weight" in millpond.policies()["watt"]
    True
    """
    return dict(_millpond.policies())


def simulate(
    trace: Any,
    policies: str | Callable[[int], Policy] | Iterable[str | Callable[[int], Policy]],
    sizes: Size | Iterable[Size],
    *,
    seeds: Iterable[int] = (1,),
    page_size: int = 4096,
    warmup: Size = 0,
    blocks: int = 0,
    batch: int = 1,
    model: str = "pool",
    threads: int = 0,
) -> Table:
    """Runs policies on traces; a row for each trace, policy, size and seed.

    `trace` is a trace, an array of pages, the path of a file, or a list of such. Policies are named
    as `"lru"` or `"watt(sample=16)"`; sizes are frames, `"5%"` of the distinct pages, or bytes as
    `"64MiB"`. `blocks` cuts each trace into so many blocks with a row each, for `compare`.

    >>> import millpond
    >>> rows = millpond.simulate([1, 2, 3, 1, 2, 4, 1], ["lru", "fifo", "opt"], 3)
    >>> dict(zip(rows["policy"], rows["misses"]))
    {'lru': 4, 'fifo': 5, 'opt': 4}

    A policy may be a class of your own, or anything that is called with the number of frames and
    returns an object with `hit(page)`, `miss(page)`, and `evict()`, which returns the page that
    leaves. It is asked to evict before the miss for which there is no room. Such a policy runs
    once for each trace and size, whatever the seeds, without warm-up, blocks or batches.

    >>> class Mine:
    ...     "First in, first out."
    ...     def __init__(self, frames):
    ...         self.queue = []
    ...     def hit(self, page):
    ...         pass
    ...     def miss(self, page):
    ...         self.queue.append(page)
    ...     def evict(self):
    ...         return self.queue.pop(0)
    >>> rows = millpond.simulate([1, 2, 3, 1, 2, 4, 1], [Mine, "fifo"], 3)
    >>> dict(zip(rows["policy"], rows["misses"]))
    {'fifo': 5, 'Mine': 5}
    """
    traces = _traces(trace)
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        policies = [policies]
    chosen = list(policies)
    named = [policy for policy in chosen if isinstance(policy, str)]
    own = [policy for policy in chosen if not isinstance(policy, str)]
    size_texts = _sizes(sizes)
    if own and (str(warmup) != "0" or blocks != 0 or batch != 1 or model != "pool"):
        raise ValueError(
            "a policy written in Python has no warm-up, blocks, batches or other models: "
            "simulate the named ones by themselves"
        )
    columns: dict[str, list[Any]] = {}
    if named or not own:
        columns = _millpond.simulate(
            [trace._inner for trace in traces],
            named,
            size_texts,
            list(seeds),
            page_size=page_size,
            warmup=str(warmup),
            blocks=blocks,
            batch=batch,
            model=model,
            threads=threads,
        )
    for one in traces:
        for make in own:
            for size in size_texts:
                row = _millpond.simulate_own(one._inner, make, size, page_size=page_size)
                _append(columns, row)
    return Table(columns)


def _append(columns: dict[str, list[Any]], row: Mapping[str, Any]) -> None:
    """Appends a row; columns that either has not are None there."""
    length = len(next(iter(columns.values()), []))
    for name in row:
        columns.setdefault(name, [None] * length)
    for name, column in columns.items():
        column.append(row.get(name))


def _traces(given: Any, level: int = 3) -> list[Trace]:
    """The traces, read into memory. The reader's notes on a file are warnings for the user, who is
    `level` calls up and has no other sight of them."""
    found = []
    for one in _inputs(given):
        if not isinstance(one, Trace):
            one = read_trace(one)
            for note in one.notes:
                warnings.warn(f"{one.name}: {note}", stacklevel=level)
        found.append(one)
    return found


def _inputs(given: Any) -> list[Trace | str | os.PathLike[str]]:
    """Traces and paths of traces, with a name for each array: rows are told apart by it."""
    if isinstance(given, (Trace, str, os.PathLike)):
        return [given]
    if isinstance(given, (list, tuple)) and len(given) > 0 and not _is_page(given[0]):
        found: list[Trace | str | os.PathLike[str]] = []
        for number, part in enumerate(given, 1):
            is_array = not isinstance(part, (Trace, str, os.PathLike, list, tuple)) or (
                isinstance(part, (list, tuple)) and len(part) > 0 and _is_page(part[0])
            )
            found += [trace(part, name=f"array {number}")] if is_array else _inputs(part)
        return found
    return [trace(given)]


def _is_page(value: Any) -> bool:
    return hasattr(value, "__index__") and not hasattr(value, "__len__")


def _one(given: Any) -> Trace:
    inputs = _inputs(given)
    if len(inputs) != 1:
        raise ValueError(f"one trace is needed, and not {len(inputs)}")
    return _traces(inputs, 4)[0]


def _sizes(sizes: Size | Iterable[Size]) -> list[str]:
    several: Iterable[Size]
    if isinstance(sizes, (int, str)):
        several = [sizes]
    else:
        several = sizes if isinstance(sizes, Iterable) else [sizes]
    return [size if isinstance(size, str) else _frames(size) for size in several]


def _frames(size: Any) -> str:
    try:
        return str(operator.index(size))
    except TypeError:
        raise TypeError(
            f"a size is a whole number of frames, or a text as '5%' or '64MiB', and not {size!r}"
        ) from None


def curve(
    trace: Any,
    policies: str | Sequence[str],
    sizes: Size | Iterable[Size] = (),
    *,
    page_size: int = 4096,
    seed: int = 1,
    check: bool = False,
) -> Table:
    """The miss-ratio curves of policies on a trace, in one pass: exact for `lru`, `opt` and `mru`,
    sampled for others. With `check`, every point is also run exactly.

    >>> import millpond
    >>> points = millpond.curve([1, 2, 3, 1, 2, 3], "lru", [2, 3])
    >>> points["size"], points["miss_ratio"]
    ([2, 3], [1.0, 0.5])
    """
    named = [policies] if isinstance(policies, str) else list(policies)
    return Table(
        _millpond.curve(
            _one(trace)._inner,
            named,
            _sizes(sizes),
            page_size=page_size,
            seed=seed,
            check=check,
        )
    )


@dataclass(frozen=True)
class Advice:
    """Which policy for a trace, and what that rests on."""

    #: The advice, in three lines.
    lines: list[str]
    #: The policy.
    choice: str
    #: The policy that it was compared with.
    default: str
    #: References of the trace.
    references: int
    #: Its distinct pages.
    pages: int
    #: The share of its references that are writes.
    write_share: float
    #: The share of its pages that are referenced once.
    once_share: float
    #: Whether the trace marks scans, which are hints then for all policies but `opt`.
    has_scans: bool
    #: The policies, the best first.
    summary: Table
    #: All runs.
    table: Table

    def __str__(self) -> str:
        return "\n".join(self.lines)


def advise(
    trace: Any,
    sizes: Size | Iterable[Size] = (),
    *,
    policies: str | Sequence[str] = (),
    default: str = _millpond.POLICY_DEFAULT,
    page_size: int = 4096,
    write_weight: float = 1.0,
) -> Advice:
    """Which policy for a trace: a shortlist, and `policies` beside it, are run at five sizes, or at
    `sizes`, and compared with `default`, which is a store's. Scans that the trace marks are hints, as
    in a pool, for all policies but `opt`, which is a bound; a policy by `simulate` has none.

    >>> import millpond
    >>> trace = millpond.generate("zipf-ro", "pages=1000,refs=20k,theta=0.8")
    >>> advice = millpond.advise(trace, "10%")
    >>> len(advice.lines), advice.default
    (3, 'tide')
    """
    found = _millpond.advise(
        _one(trace)._inner,
        _sizes(sizes),
        [policies] if isinstance(policies, str) else list(policies),
        default=default,
        page_size=page_size,
        write_weight=write_weight,
    )
    found["summary"] = Table(found["summary"])
    found["table"] = Table(found["table"])
    return Advice(**found)


@dataclass(frozen=True)
class Comparison:
    """Which policies are better than which, and how sure that is."""

    #: The result in a sentence.
    sentence: str
    #: What it rests on.
    basis: str
    #: What was compared.
    metric: str
    #: Over what the tests were made: traces, seeds, blocks, sizes.
    replicate: str
    #: The policies.
    contestants: list[str]
    #: A row for each pair: the effect with its interval, p-values, the verdict.
    pairs: Table
    #: Luan's marks, if there are two settings at least.
    marks: Table | None
    #: Luan's final scores, the best first.
    ranking: Table | None

    def __str__(self) -> str:
        return self.sentence


def _columns_of(rows: Any) -> dict[str, list[Any]]:
    """Columns by name, of a mapping, or of a table of Arrow, pandas or Polars."""
    if isinstance(rows, Mapping):
        return {name: list(column) for name, column in rows.items()}
    if hasattr(rows, "to_pydict"):
        return dict(rows.to_pydict())
    if hasattr(rows, "columns"):
        return {str(name): rows[name].to_list() for name in rows.columns}
    raise TypeError(f"rows are columns by name, or a data frame, and not {type(rows).__name__}")


def compare(
    results: Any,
    *,
    metric: str | None = None,
    policies: str | Sequence[str] = (),
    to: str | None = None,
    replicate: str | None = None,
    margin: float = 0.01,
    level: float = 0.05,
) -> Comparison:
    """Compares policies over the rows of `simulate`: tests of significance for all pairs, or for
    all others with the policy `to`. Rows may be a table, or a data frame of pandas, Polars or Arrow;
    in their place there may be the path of a sweep's folder, or of a result directory.

    `replicate` is what the tests are made over: `trace`, `seed`, `block`, `size`; without it, what
    says most of what the rows have. Differences below `margin` are none; `level` is the
    probability that any verdict is wrong.

    >>> import millpond
    >>> traces = [millpond.generate("zipf-ro", "pages=500,refs=10k", seed=s) for s in range(1, 6)]
    >>> rows = millpond.simulate(traces, ["lru", "fifo"], "20%")
    >>> millpond.compare(rows).pairs["verdict"]
    ['better']
    """
    is_one = isinstance(results, (Mapping, str, os.PathLike)) or hasattr(results, "columns")
    several = [results] if is_one else list(results)
    named = []
    for number, run in enumerate(several, 1):
        if isinstance(run, (str, os.PathLike)):
            named.append((os.fspath(run), _millpond.read_results(run)))
        else:
            named.append((f"run {number}", _columns_of(run)))
    found = _millpond.compare(
        named,
        metric=metric,
        policies=[policies] if isinstance(policies, str) else list(policies),
        to=to,
        replicate=replicate,
        margin=margin,
        level=level,
    )
    for name in ("pairs", "marks", "ranking"):
        found[name] = None if found[name] is None else Table(found[name])
    return Comparison(**found)
