"""Sweeps: in this process, on a cluster that loses workers, by the command line; the same files."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import millpond
import pytest

from conftest import CLI, DEEP

#: A trace that takes a policy a good part of a second at one size.
LONG = "pages=200k,refs=4M,theta=0.7"


@pytest.fixture
def traces(tmp_path):
    """Three small traces in files."""
    paths = []
    for seed in range(1, 4):
        path = tmp_path / f"{seed}.parquet"
        millpond.generate("dynzipf-rw", "pages=300,refs=5k,theta=0.8", seed=seed).write(path)
        paths.append(path)
    return paths


def files(folder):
    """What a sweep left, without traces that it wrote."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()
            if path.is_file()}


def is_whole(folder):
    """No temporary files are left, and all others can be read."""
    assert all(not name.startswith(".") for name in files(folder))
    return millpond.read_results(folder)


POLICIES, SIZES = ["lru", "random", "watt(sample=4)"], [10, "20%"]


def test_rows_are_those_of_simulate_and_files_stay(traces, tmp_path):
    seen = []
    rows = millpond.sweep(traces, POLICIES, SIZES, seeds=[1, 2], out=tmp_path / "out",
                          progress=lambda *now: seen.append(now))
    assert [now[:2] for now in seen] == [(n, 9) for n in range(1, 10)]
    once = millpond.simulate([os.fspath(path) for path in traces], POLICIES, SIZES, seeds=[1, 2])
    key = ("trace", "policy", "params", "size", "seed", "misses", "writes", "evictions")
    assert sorted(zip(*(rows[k] for k in key))) == sorted(zip(*(once[k] for k in key)))
    assert "ns_per_reference" not in rows
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = millpond.sweep(traces, POLICIES, SIZES, seeds=[1, 2], out=tmp_path / "out")
    assert again.rows() == rows.rows()
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    # A further policy: its units only.
    seen.clear()
    more = millpond.sweep(traces, [*POLICIES, "fifo"], SIZES, seeds=[1, 2], out=tmp_path / "out")
    assert len(more["size"]) == len(rows["size"]) + 6
    assert len(files(tmp_path / "out")) == 1 + 12
    found = millpond.compare(tmp_path / "out", to="lru")
    assert set(found.contestants) == {"lru", "random", "watt(sample=4)", "fifo"}
    assert millpond.compare([os.fspath(tmp_path / "out")], to="lru").pairs == found.pairs


def test_the_command_line_leaves_the_same_files(traces, tmp_path):
    if CLI is None:
        pytest.skip("there is no millpond beside the module: cargo build -p millpond-cli")
    options = {"seeds": [1, 2], "warmup": "5%", "progress": False}
    millpond.sweep(traces, POLICIES, SIZES, out=tmp_path / "python", **options)
    for shard in ("1/4", "2/4", "3/4", "4/4"):
        command = [CLI, "sim", *traces, "-p", ",".join(POLICIES), "-s", "10,20%", "--seed", "1,2",
                   "--warmup", "5%", "--out-dir", tmp_path / "array", "--shard", shard]
        subprocess.run(command, check=True, capture_output=True)
        millpond.sweep(traces, POLICIES, SIZES, out=tmp_path / "parts", shard=shard, **options)
    assert len(files(tmp_path / "python")) == 10
    assert files(tmp_path / "python") == files(tmp_path / "array") == files(tmp_path / "parts")


def test_traces_in_memory_are_kept_beside_their_rows(tmp_path):
    trace = millpond.generate("dynzipf-rw", "pages=300,refs=5k,theta=0.8")
    rows = millpond.sweep([trace], "lru", 20, out=tmp_path)
    assert rows["trace"] == [trace.name] and len(list((tmp_path / "traces").iterdir())) == 1
    assert millpond.sweep(trace, "lru", 20, out=tmp_path).rows() == rows.rows()
    assert millpond.sweep([1, 2, 1, 3], "lru", 2, out=tmp_path)["misses"] == [3]
    kept = [millpond.read_trace(path) for path in (tmp_path / "traces").iterdir()]
    assert sorted(map(len, kept)) == [4, 5000]


@pytest.mark.parametrize("kind", ["list", "tuple", "array", "uint32", "rows"])
def test_arrays_are_swept_as_they_are_simulated(tmp_path, kind):
    pages, others = [1, 2, 3, 1, 2, 4, 1, 5, 2], [9, 8, 7, 6, 9, 9, 9, 8, 7]
    make = {"list": list, "tuple": tuple}.get(kind)
    if make is None:
        numpy = pytest.importorskip("numpy")
        dtype = numpy.uint32 if kind == "uint32" else numpy.int64
        make = {"array": lambda all: numpy.array(all, dtype),
                "uint32": lambda all: list(numpy.array(all, dtype)),
                "rows": lambda all: list(numpy.array(all, dtype))}[kind]
    several = [make(pages), make(others)]
    if kind == "rows":
        several = list(numpy.array([pages, others]))
    for number, given in enumerate([make(pages), [make(pages)], several, several[:1] + several]):
        once = millpond.simulate(given, ["lru", "fifo"], 3)
        rows = millpond.sweep(given, ["lru", "fifo"], 3, out=tmp_path / str(number), progress=False)
        key = ("trace", "policy", "size", "misses")
        assert sorted(zip(*(rows[k] for k in key))) == sorted(zip(*(once[k] for k in key)))


def test_what_cannot_be_is_told(traces, tmp_path):
    def sweep(traces=traces, policies="lru", sizes=10, **more):
        return millpond.sweep(traces, policies, sizes, **{"out": tmp_path / "out", **more})

    with pytest.raises(TypeError, match="simulate"):
        sweep(policies=lambda frames: None)
    with pytest.raises(TypeError, match=r"client of dask\.distributed|Dask"):
        pytest.importorskip("distributed")
        sweep(on="tcp://127.0.0.1:1")
    with pytest.raises(OSError, match="none.parquet"):
        sweep(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="given twice"):
        sweep([traces[0], traces[0]])
    for bad in ({"policies": "lruu"}, {"sizes": "many"}, {"shard": "5/4"}, {"model": "none"},
                {"traces": []}, {"seeds": []}):
        with pytest.raises(ValueError):
            sweep(**bad)
    sweep()
    with pytest.raises(ValueError, match="another sweep: they have batch = 1, and not 2"):
        sweep(batch=2)
    (tmp_path / "bad.csv").write_text("page\n1\nx,y\n")
    with pytest.raises(RuntimeError, match=r"1 of 2 units failed(.|\n)*bad.csv"):
        sweep([traces[1], tmp_path / "bad.csv"], out=tmp_path / "other", columns="page=1",
              format=None)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        sweep(out=tmp_path / "file")
    with pytest.raises(ValueError):
        millpond.read_results(tmp_path / "nowhere")


@pytest.mark.parametrize("way, says", [
    ({"expand_sizes": True}, "expand_sizes = false, and not true"),
    ({"columns": "page=2"}, 'columns = null, and not "page=2"'),
    ({"map_ids": True}, "map_ids = false, and not true"),
    ({"format": "csv"}, 'format = null, and not "csv"'),
    ({"ops": "x=R"}, 'ops = null, and not "x=R"'),
])
def test_a_folder_has_one_way_of_reading_traces(tmp_path, way, says):
    path, out = tmp_path / "objects.csv", tmp_path / "out"
    rows = (f"{n * n * 7919 % 503},{4096 * (1 + n % 4)}" for n in range(3000))
    path.write_text("page,size\n" + "\n".join(rows) + "\n")
    rows = millpond.sweep(path, "lru", 100, out=out, progress=False)
    with pytest.raises(ValueError, match=f"another sweep: they have {says}"):
        millpond.sweep(path, "lru", 100, out=out, progress=False, **way)
    assert millpond.read_results(out).rows() == rows.rows()


def test_without_dask_it_says_what_to_install(traces, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'millpond\[dask\]'"):
        millpond.sweep(traces, "lru", 10, out=tmp_path, on=object())


SWEEP = """
import sys, millpond
traces = sys.argv[2:]
print("ready", flush=True)
millpond.sweep(traces, ["lru", "arc", "watt", "lirs", "s3-fifo"], [700, "1%", "3%", "5%"],
               out=sys.argv[1], threads=1, progress=lambda done, units, last: print(done, flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_kill_leave_whole_files(tmp_path, how):
    path, out = tmp_path / "long.parquet", tmp_path / "out"
    millpond.generate("zipf-ro", "pages=50k,refs=500k,theta=0.7").write(path)
    command = [sys.executable, "-c", SWEEP, out, path]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n" and run.stdout.readline() == "1\n"
    run.send_signal(how)
    said, errors = run.communicate(timeout=60)
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in errors and run.returncode not in (0, -signal.SIGKILL)
        assert all(not path.name.startswith(".") for path in out.iterdir())
    done = [path for path in out.glob("*.parquet") if not path.name.startswith(".")]
    assert 1 <= len(done) <= 5
    rows = millpond.read_results(out)
    assert len(rows["size"]) == 4 * len(done)
    fresh = []
    millpond.sweep(path, ["lru", "arc", "watt", "lirs", "s3-fifo"], [700, "1%", "3%", "5%"],
                   out=out, progress=lambda *now: fresh.append(now))
    assert len(millpond.read_results(out)["size"]) == 20 and len(fresh) == 5


# A cluster: a scheduler and workers that are processes of their own, as on several machines.


@contextlib.contextmanager
def cluster(workers, *options):
    """A client, and the processes of its workers."""
    distributed = pytest.importorskip("distributed")
    python = [sys.executable, "-W", "ignore", "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    address_file = pathlib.Path(os.environ["PYTEST_CLUSTER_FOLDER"]) / f"{time.monotonic_ns()}.json"
    command = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--scheduler-file", address_file]
    with contextlib.ExitStack() as stack:
        def start(command):
            process = subprocess.Popen([*python, *command], start_new_session=True, **quiet)
            stack.callback(end, process)
            return process

        start(command)
        deadline = time.monotonic() + 60
        while not address_file.exists() or not address_file.read_text().strip():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        worker = ["distributed.cli.dask_worker", "--scheduler-file", address_file,
                  "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1",
                  "--local-directory", address_file.parent, *options]
        processes = [start(worker) for _ in range(workers)]
        client = stack.enter_context(distributed.Client(scheduler_file=os.fspath(address_file)))
        client.wait_for_workers(workers, timeout=60)
        yield client, processes


def end(process):
    """Ends a process and its children: a nanny has one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(autouse=True)
def _cluster_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PYTEST_CLUSTER_FOLDER", os.fspath(tmp_path_factory.mktemp("cluster")))
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__LOG_FORMAT", "%(message)s")


pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_cluster_leaves_the_same_files(traces, tmp_path):
    with cluster(2, "--no-nanny") as (client, _):
        rows = millpond.sweep(traces, POLICIES, SIZES, seeds=[1, 2], out=tmp_path / "dask",
                              on=client, progress=False)
        here = millpond.sweep(traces, POLICIES, SIZES, seeds=[1, 2], out=tmp_path / "here")
        assert rows.rows() == here.rows() and len(rows["size"]) == 3 * 2 * 5
        assert files(tmp_path / "dask") == files(tmp_path / "here")
        # What is there is not run again: not even the trace's file is needed for that.
        seen = []
        millpond.sweep(traces, POLICIES, SIZES, seeds=[1, 2], out=tmp_path / "dask", on=client,
                       progress=lambda *now: seen.append(now))
        assert seen == []
        (tmp_path / "bad.csv").write_text("page\n1\nx,y\n")
        with pytest.raises(RuntimeError, match=r"1 of 2 units failed(.|\n)*bad.csv"):
            millpond.sweep([traces[0], tmp_path / "bad.csv"], "lru", 10, out=tmp_path / "bad",
                           on=client, columns="page=1")
        assert len(is_whole(tmp_path / "bad")["size"]) == 1


@pytest.mark.parametrize("nanny", ["--nanny", "--no-nanny"])
def test_a_worker_that_is_killed_costs_no_unit(tmp_path, nanny):
    """One of two worker processes is killed while it runs; with a nanny it comes again."""
    path, policies = tmp_path / "long.parquet", ["lru", "arc", "lirs", "watt", "s3-fifo", "2q"]
    trace = millpond.generate("zipf-ro", LONG if DEEP else "pages=50k,refs=1M,theta=0.7")
    trace.write(path)
    with cluster(2, nanny) as (client, _):
        workers = client.run(os.getpid)
        victim = list(workers.values())[0]
        killed = threading.Event()

        def kill(done, units, last):
            if not killed.is_set():
                os.kill(victim, signal.SIGKILL)
                killed.set()

        rows = millpond.sweep(path, policies, [100, "1%", "5%"], out=tmp_path / "out", on=client,
                              progress=kill)
        assert killed.is_set() and len(rows["size"]) == 18
    here = millpond.sweep(path, policies, [100, "1%", "5%"], out=tmp_path / "here", progress=False)
    assert here.rows() == rows.rows() and files(tmp_path / "here") == files(tmp_path / "out")


def test_memory_is_asked_of_workers_that_declare_it(traces, tmp_path):
    with cluster(1, "--no-nanny", "--resources", "MEMORY=500e6") as (client, _):
        millpond.sweep(traces, "lru", 10, out=tmp_path / "out", on=client, progress=False)
        with pytest.raises(ValueError, match="no worker declares more than 500000000 of MEMORY"):
            millpond.sweep(traces, "fifo", 10, out=tmp_path / "out", on=client, memory=10**9)
        assert len(is_whole(tmp_path / "out")["size"]) == 3


def test_another_content_on_a_worker_is_told(traces, tmp_path, monkeypatch):
    """The client's trace is not the worker's: as if the two had folders of their own."""
    with cluster(1, "--no-nanny") as (client, _):
        real = millpond._millpond.Sweep

        class Moved:
            def __init__(self, *arguments, **options):
                self.inner = real(*arguments, **options)

            def __len__(self):
                return len(self.inner)

            def __getattr__(self, name):
                return getattr(self.inner, name)

            def missing(self):
                found = self.inner.missing()
                traces[0].write_bytes(traces[1].read_bytes())
                return found

        monkeypatch.setattr(millpond._millpond, "Sweep", Moved)
        with pytest.raises(RuntimeError, match="another content on this machine"):
            millpond.sweep(traces[0], "lru", 10, out=tmp_path / "out", on=client, progress=False)
        assert list(files(tmp_path / "out")) == ["sweep.json"]


INTERRUPTED = """
import sys, distributed, millpond
client = distributed.Client(sys.argv[1])
print("ready", flush=True)
millpond.sweep(sys.argv[3], ["lru", "arc", "watt", "lirs", "s3-fifo"], [700, "1%", "3%", "5%"],
               out=sys.argv[2], on=client, progress=lambda done, *more: print(done, flush=True))
"""


def test_ctrl_c_of_a_client_cancels_its_tasks(traces, tmp_path):
    path, out = tmp_path / "long.parquet", tmp_path / "out"
    millpond.generate("zipf-ro", "pages=50k,refs=1M,theta=0.7").write(path)
    with cluster(1, "--no-nanny") as (client, _):
        address = client.scheduler.address
        command = [sys.executable, "-W", "ignore", "-c", INTERRUPTED, address, out, path]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.stdout.readline() == "ready\n" and run.stdout.readline() == "1\n"
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        assert "KeyboardInterrupt" in errors, errors
        assert 1 <= len(is_whole(out)["size"]) // 4 < 5
        # Nothing waits in the cluster: another client's work is next.
        rows = millpond.sweep(traces, "lru", 10, out=tmp_path / "next", on=client, progress=False)
        assert len(rows["size"]) == 3


def test_a_part_without_units_has_columns_and_failures_name_what_to_do(tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text("1\n2\n3\n")
    options = {"sizes": 2, "out": tmp_path / "out", "progress": False}
    whole = millpond.sweep(trace, "lru", **options)
    part = millpond.sweep(trace, "lru", shard="3/3", **options)
    assert len(part["misses"]) == 0 and set(part) == set(whole)
    [unit] = (tmp_path / "out").glob("*.parquet")
    unit.write_bytes(unit.read_bytes()[:-20])
    with pytest.raises(ValueError, match=f"{unit.name}.*delete the file"):
        millpond.sweep(trace, "lru", **options)
    unit.unlink()
    assert millpond.sweep(trace, "lru", **options)["misses"] == whole["misses"]
    trace.write_text("garbage here\n")
    with pytest.raises(RuntimeError, match="`format`"):
        millpond.sweep(trace, "lru", **options)
