"""Sweeps of thousands of simulations: on this machine, on a cluster, in files that stay."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _millpond
from .laboratory import Size, Trace, _inputs, _sizes
from .table import Table

if TYPE_CHECKING:
    import distributed

#: What is told of a sweep: units that are done, units in all, what was done last.
Progress = Callable[[int, int, str], object]
#: Names under which workers may declare their memory, in bytes.
_RESOURCES = ("MEMORY", "memory", "Memory")
#: Failures that an error's text lists.
_LISTED = 5


def sweep(
    traces: Any,
    policies: str | Iterable[str],
    sizes: Size | Iterable[Size],
    *,
    out: str | os.PathLike[str],
    on: distributed.Client | None = None,
    seeds: Iterable[int] = (1,),
    page_size: int = 4096,
    warmup: Size = 0,
    blocks: int = 0,
    batch: int = 1,
    model: str = "pool",
    charge_ghosts: int = 0,
    scan_hints: bool = False,
    format: str | None = None,
    columns: str | None = None,
    ops: str | None = None,
    expand_sizes: bool = False,
    map_ids: bool = False,
    shard: str | None = None,
    threads: int = 0,
    memory: int | None = None,
    progress: bool | Progress = True,
) -> Table:
    """Runs policies on traces, and keeps the rows in the folder `out`: a Parquet file for each unit,
    which is a trace and a policy at up to 16 sizes and seeds. Files that are there are not run
    again. Returns the rows of this sweep; `read_results(out)` has those of the whole folder.

    `traces` are paths of files, or traces in memory, which are written to `out/traces`; `format`,
    `columns`, `ops`, `expand_sizes` and `map_ids` say how the files are read. Everything up to
    `model` is as in `simulate`. `charge_ghosts` shrinks the cache by so many bytes for each ghost of
    an out queue; with `scan_hints`, pages that only marked scans have touched go first. Both are as
    in `millpond sim`, whose `--out-dir` writes the same files.
    `shard="3/8"` runs the third of eight parts.

    Without `on` it runs on `threads` of this machine, all by default. With `on`, a client of
    `dask.distributed`, units are tasks of a cluster: each asks for `memory` bytes, or for an
    estimate from its trace's file, of the resource `MEMORY`, if the workers declare one. The traces
    have to be where they are here on all workers; `out` is written by this process alone.

    `progress` is a function that is called with the units that are done, their number, and the last
    one; or whether to write to standard error. Units that fail do not end the others: at the end a
    `RuntimeError` names them. Ctrl-C ends the sweep; what is finished stays.

    >>> import millpond, tempfile
    >>> trace = millpond.generate("zipf-ro", "pages=1000,refs=10k,theta=0.8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = millpond.sweep(trace, ["lru", "arc"], ["5%", "10%"], out=folder, progress=False)
    ...     again = millpond.read_results(folder)
    >>> len(rows["misses"]), again["misses"] == rows["misses"]
    (4, True)
    """
    out = pathlib.Path(out)
    is_one = isinstance(policies, str) or not isinstance(policies, Iterable)
    chosen: list[Any] = [policies] if is_one else list(policies)
    if not all(isinstance(policy, str) for policy in chosen):
        raise TypeError(
            "a sweep runs policies by name; `simulate` runs one that is written in Python"
        )
    if on is not None:
        _check_client(on)
    work = _millpond.Sweep(
        _files(traces, out),
        chosen,
        _sizes(sizes),
        list(seeds),
        out,
        page_size=page_size,
        warmup=str(warmup),
        blocks=blocks,
        batch=batch,
        model=model,
        charge_ghosts=charge_ghosts,
        scan_hints=scan_hints,
        format=format,
        columns=columns,
        ops=ops,
        expand_sizes=expand_sizes,
        map_ids=map_ids,
        shard=shard,
    )
    tell = _teller(progress)
    if on is None:
        failed, notes = work.run(threads, memory, tell)
    else:
        failed, notes = _on_cluster(work, on, memory, tell)
    for name, note in notes:
        warnings.warn(f"{name}: {note}", stacklevel=2)
    if failed:
        listed = "".join(f"\n  {label}: {why}" for label, why in failed[:_LISTED])
        more = f"\n  and {len(failed) - _LISTED} more" if len(failed) > _LISTED else ""
        raise RuntimeError(f"{len(failed)} of {len(work)} units failed; the others are in {out}:"
                           f"{listed}{more}")
    return Table(work.rows())


def read_results(path: str | os.PathLike[str]) -> Table:
    """The rows of a sweep's folder, or of a result directory of a command.

    A simulation that several files of a folder have is there once; if they differ, as after a
    trace was changed, it is an error.
    """
    return Table(_millpond.read_results(os.fspath(path)))


def _files(given: Any, out: pathlib.Path) -> list[tuple[str, str]]:
    """Names of traces, and where they are; those in memory are written."""
    files = []
    for one in _inputs(given):
        if isinstance(one, Trace):
            files.append((one.name, _written(one, out / "traces")))
        else:
            files.append((os.fspath(one), os.path.abspath(one)))
    return files


def _written(one: Trace, folder: pathlib.Path) -> str:
    """A file with the trace, named by what it has."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".millpond-", dir=folder) as temporary:
        path = pathlib.Path(temporary) / "trace.parquet"
        one.write(path)
        with path.open("rb") as file:
            name = hashlib.file_digest(file, "blake2b").hexdigest()[:16]
        place = folder / f"{name}.parquet"
        os.replace(path, place)
    return os.path.abspath(place)


def _teller(progress: bool | Progress) -> Progress | None:
    if callable(progress):
        return progress
    return _told if progress else None


def _told(done: int, units: int, last: str) -> None:
    """A line that is written over on a terminal; elsewhere a line for each tenth."""
    if sys.stderr.isatty():
        end = "\n" if done == units else ""
        print(f"\r\x1b[Ksweep: {done} of {units}: {last}", end=end, file=sys.stderr, flush=True)
    elif done == units or done * 10 // units > (done - 1) * 10 // units:
        print(f"sweep: {done} of {units}", file=sys.stderr, flush=True)


def _dask() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "a sweep on a cluster needs Dask, which is not installed here: "
            "pip install 'millpond[dask]'"
        ) from error
    return distributed


def _check_client(client: Any) -> None:
    if not isinstance(client, _dask().Client):
        raise TypeError(f"on= takes a client of dask.distributed, and not {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("on= takes a client that is not asynchronous")


def _run_unit(description: str, name: str) -> tuple[bytes, list[str]]:
    """What a task of a cluster does."""
    return _millpond.run_unit(description, name)


def _on_cluster(
    work: _millpond.Sweep, client: Any, memory: int | None, tell: Progress | None
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Runs what is missing as tasks; returns the labels of the units that failed, and why, and the
    notes on the traces that were read."""
    distributed = _dask()
    missing = work.missing()
    needs = {name: memory or estimate for name, _, _, estimate in missing}
    resource = _memory_resource(client, needs)
    call = uuid.uuid4().hex[:8]
    labels: dict[Any, tuple[str, str, str]] = {}
    for name, description, label, _ in missing:
        future = client.submit(
            _run_unit,
            description,
            name,
            key=f"millpond-{call}-{name}",
            resources={resource: needs[name]} if resource else None,
        )
        labels[future] = (name, label, json.loads(description)["trace"])
    units = len(work)
    done = units - len(missing)
    failed = []
    noted: dict[tuple[str, str], None] = {}
    try:
        # What was scheduled anew after its worker was lost comes here like the others.
        for future in distributed.as_completed(list(labels)):
            name, label, trace = labels.pop(future)
            try:
                file, notes = future.result()
                work.store(name, file)
                noted.update(dict.fromkeys((trace, note) for note in notes))
            except Exception as error:
                failed.append((label, f"{type(error).__name__}: {error}"))
                continue
            finally:
                future.release()
            done += 1
            if tell is not None:
                tell(done, units, label)
    finally:
        # After Ctrl-C, or an exception of `tell`: what waits is not begun.
        if labels:
            client.cancel(list(labels), force=True)
    return failed, list(noted)


def _memory_resource(client: Any, needs: dict[str, int]) -> str | None:
    """The resource by which workers declare their memory, if they do."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:
        # Older versions always have all workers.
        workers = client.scheduler_info()["workers"]
    for name in _RESOURCES:
        declared = [
            worker["resources"][name]
            for worker in workers.values()
            if name in worker.get("resources", {})
        ]
        if declared:
            most = max(needs.values(), default=0)
            if most > max(declared):
                raise ValueError(
                    f"a unit may need {most} bytes of memory, and no worker declares more than "
                    f"{max(declared):.0f} of {name}: ask for less with memory=, or declare more"
                )
            return name
    return None
