"""Nothing waits for itself: closing, signals, executors, values that are too deep."""

import asyncio
import concurrent.futures
import subprocess
import sys
import textwrap
import threading

import millpond
import pytest


def run(script, *arguments, ends=0):
    """Runs a script in a process of its own, which an alarm ends if it hangs."""
    before = "import signal, sys, threading, time\nimport millpond\nsignal.alarm(60)\n"
    code = before + WAITS + textwrap.dedent(script)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == ends, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


#: Returns when a call waits for a lock.
WAITS = """
def until_one_waits(store, so_far=0):
    while store.stats()["lock_waits"] == so_far:
        time.sleep(0.001)
"""
exec(f"import time\n{WAITS}")


@pytest.mark.parametrize("in_a_transaction", [False, True])
def test_close_ends_waits_for_locks_that_open_transactions_hold(path, in_a_transaction):
    store = millpond.open(path, "8MiB")
    tree = store.tree("accounts", str, int)
    tree["a"] = 0
    holder = store.begin()
    holder[tree]["a"] = 1
    raised = []

    def waits():
        try:
            if in_a_transaction:
                with store.begin(wait_max=15) as tx:
                    tx[tree]["a"] = 2
            else:
                tree["a"] = 2
        except millpond.Error as error:
            raised.append(type(error))

    thread = threading.Thread(target=waits)
    thread.start()
    until_one_waits(store)
    store.close()
    thread.join(60)
    assert raised == [millpond.Closed]
    with millpond.open(path, "8MiB") as store:
        assert dict(store.tree("accounts")) == {"a": 0} and not store.check()[0]["faults"]


#: What waits for a lock: a plain call, a transaction, and what closes a store.
WAITING = {
    "a plain call": "tree['a'] = 2",
    "a plain read": "tree['a']",
    "a transaction": "waiter[tree]['a'] = 2",
    "a retried transaction": "store.transact(lambda tx: tx[tree].put('a', 2), wait_max=1e6)",
    "an iterator": "list(waiter[tree])",
}


@pytest.mark.parametrize("waiting", WAITING)
def test_a_wait_for_a_lock_is_interrupted_by_a_signal(waiting):
    printed = run(
        f"""
        store = millpond.in_memory("8MiB")
        tree = store.tree("accounts", str, int)
        tree["a"] = 0
        holder, waiter = store.begin(), store.begin(wait_max=1e6)
        is_over = threading.Event()
        def hold():
            holder[tree]["a"] = 1
            held.set()
            is_over.wait()
        held = threading.Event()
        threading.Thread(target=hold).start()
        held.wait()
        def interrupt():
            until_one_waits(store)
            signal.raise_signal(signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {WAITING[waiting]}
        except KeyboardInterrupt:
            print("interrupted")
        finally:
            is_over.set()
        holder.commit()
        waiter[tree]["a"] = 3
        waiter.commit()
        assert tree["a"] == 3
        """
    )
    assert printed == "interrupted\n"


def test_what_a_signals_handler_raises_is_raised_by_the_call():
    printed = run(
        """
        class Gone(Exception): ...
        def gone(*_): raise Gone
        signal.signal(signal.SIGUSR1, gone)
        store = millpond.in_memory("8MiB")
        tree = store.tree("accounts", str, int)
        def hold():
            holder = store.begin()
            holder[tree]["a"] = 1
            held.set()
            is_over.wait()
            holder.abort()
        held, is_over = threading.Event(), threading.Event()
        threading.Thread(target=hold).start()
        held.wait()
        def interrupt():
            until_one_waits(store)
            signal.raise_signal(signal.SIGUSR1)
        threading.Thread(target=interrupt).start()
        try:
            with store.begin(wait_max=1e6) as tx:
                tx[tree]["a"] = 2
        except Gone:
            print("gone")
        is_over.set()
        """
    )
    assert printed == "gone\n"


def test_close_is_interrupted_by_a_signal_and_goes_on_when_called_again():
    printed = run(
        """
        store = millpond.in_memory("8MiB")
        tree = store.tree("t", int, bytes)
        tree.update((n, b"") for n in range(10))
        may_end, is_inside = threading.Event(), threading.Event()
        def slow():
            yield 1, b""
            is_inside.set()
            may_end.wait()
        def progress(*now):
            is_inside.set()
            may_end.wait()
        import tempfile
        folder = tempfile.TemporaryDirectory()
        path = folder.name + "/pond.mp"
        store = millpond.open(path, "8MiB")
        tree = store.tree("t", int, bytes)
        thread = threading.Thread(target=store.backup, args=(path + "-copy", progress))
        thread.start()
        is_inside.wait()
        def interrupt():
            while not store.closed:
                time.sleep(0.001)
            signal.raise_signal(signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            store.close()
        except KeyboardInterrupt:
            print("interrupted")
        may_end.set()
        store.close()
        thread.join()
        with millpond.open(path, "8MiB"):
            print("closed")
        """
    )
    assert printed == "interrupted\nclosed\n"


#: Long calls of the laboratory; the one that draws takes hours if nobody ends it.
LONG = {
    "a generator": "millpond.generate('zipf-ro', 'pages=1000,refs=4000M,theta=0.8')",
    "a curve": "millpond.curve(trace, ['arc', 'lru', 'opt'], SIZES)",
    "a curve that is checked": "millpond.curve(trace, ['lru', 'fifo'], SIZES, check=True)",
    "advice": "millpond.advise(trace, SIZES)",
}


@pytest.mark.parametrize("call", LONG)
def test_a_long_call_of_the_laboratory_is_interrupted_by_a_signal(call):
    pytest.importorskip("numpy")
    printed = run(
        f"""
        import os
        SIZES = list(range(1000, 40_000, 50))
        trace = millpond.generate("zipf-ro", "pages=100000,refs=20M,theta=0.8")
        begun = threading.Event()
        def interrupt():
            begun.wait()
            while True:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
        threading.Thread(target=interrupt, daemon=True).start()
        signal.alarm(40)
        try:
            begun.set()
            {LONG[call]}
            print("it came to its end")
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted")
        """
    )
    assert printed == "interrupted\n"


def test_long_calls_of_a_store_are_interrupted_by_a_signal():
    printed = run(
        """
        store = millpond.in_memory("64MiB")
        tree = store.tree("t", int, int)
        rows = {n: n for n in range(100_000)}
        def interrupt():
            while len(tree) < 100:
                time.sleep(0.001)
            signal.raise_signal(signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            while True:
                tree.update(rows.items())
                print("all")
        except KeyboardInterrupt:
            print("interrupted" if len(tree) < 100_000 else "late")
        """
    )
    assert printed == "interrupted\n"


DEEP = "deep = ()\nfor _ in range(1_000_000): deep = (deep,)\n"
#: What takes values that may be nested.
NESTED = {
    "a key": "pairs.get(deep)",
    "a value": "values.put(1, deep)",
    "the front of a key": "pairs.prefix(deep)",
    "the end of a range": "pairs.range(None, deep)",
    "a cursor": "pairs.cursor().seek(deep)",
    "an element": "values.put(1, (1, deep))",
}


@pytest.mark.parametrize("nested", NESTED)
def test_a_value_that_is_nested_too_deep_is_an_error(nested):
    script = f"""
        deep = ()
        for _ in range(1_000_000):
            deep = (deep,)
        store = millpond.in_memory("8MiB")
        pairs = store.tree("pairs", tuple[int, int], int)
        values = store.tree("values", int, tuple[int, int])
        try:
            {NESTED[nested]}
        except (TypeError, ValueError) as error:
            print("deep" if "nested" in str(error) else error)
        del deep
        """
    assert run(script) == "deep\n"


def test_a_type_that_is_nested_too_deep_is_an_error():
    printed = run(
        """
        deep = int
        for _ in range(100_000):
            deep = tuple[deep]
        store = millpond.in_memory("8MiB")
        for key, value in ((deep, int), (int, deep), ("(" * 100_000, int)):
            try:
                store.tree("deep", key, value)
            except millpond.Invalid as error:
                assert len(str(error)) < 1000, len(str(error))
                print("deep")
        sys.stdout.flush()
        import os
        os._exit(0)  # The interpreter itself overflows its stack when it frees such a type.
        """
    )
    assert printed == "deep\n" * 3


def test_a_failed_allocation_of_a_value_is_a_memory_error(path):
    """Python takes four bytes for each character of the text, and the engine one."""
    with millpond.open(path, "32MiB") as store:
        store.tree("t", str, str)["large"] = "x" * (128 << 20) + "\U0001f986"
    printed = run(
        """
        import resource
        store = millpond.open(sys.argv[1], "32MiB")
        tree = store.tree("t")
        tree.get("none")
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + (480 << 20), -1))
        try:
            tree["large"]
            print("there is room")
        except MemoryError:
            print("no memory")
        """,
        path,
    )
    assert printed == "no memory\n"


async def asynchronous(tx):
    """What `transact` cannot run."""


def generates(tx):
    yield


async def generates_asynchronously(tx):
    yield


@pytest.mark.parametrize("work", [asynchronous, generates, generates_asynchronously])
def test_transact_refuses_what_does_not_run_when_it_is_called(store, work):
    with pytest.raises(TypeError, match="transact"):
        store.transact(work)
    assert store.stats()["commits"] == 0


def test_a_transaction_of_an_executor_does_not_hinder_other_calls_of_its_threads(store):
    """One request's transaction is used in a worker; another request's write waits there."""
    tree = store.tree("accounts", str, int)
    tree["a"] = 0

    async def requests():
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(1) as one:
            with concurrent.futures.ThreadPoolExecutor(1) as another:
                tx = await loop.run_in_executor(one, store.begin)
                await loop.run_in_executor(one, lambda: tx[tree].put("a", 1))
                waits = loop.run_in_executor(one, lambda: tree.put("a", 2))
                await loop.run_in_executor(another, until_one_waits, store)
                await loop.run_in_executor(another, tx.commit)
                await waits

    asyncio.run(requests())
    assert tree["a"] == 2


def test_a_call_that_would_wait_for_its_own_block_fails_at_once(store):
    tree = store.tree("accounts", str, int)
    with store.begin(wait_max=1e6) as tx:
        tx[tree]["a"] = 1
        with pytest.raises(millpond.OwnTransaction):
            tree["a"] = 2

    def work(tx):
        tx[tree]["a"] = 3
        with pytest.raises(millpond.OwnTransaction):
            tree["a"] = 4

    thread = threading.Thread(target=store.transact, args=(work,))
    thread.start()
    thread.join(60)
    assert tree["a"] == 3 and store.stats()["lock_waits"] <= 3


def test_a_transaction_in_no_block_is_waited_for_by_its_own_thread(store):
    tree = store.tree("accounts", str, int)
    tree["a"] = 1
    tx = store.begin()
    tx[tree]["a"] = 5
    other = store.begin(wait_max=0.01)
    with pytest.raises(millpond.Timeout):
        other[tree]["a"] = 6
    other.abort()
    tx.commit()
    assert tree["a"] == 5


@pytest.mark.parametrize("prefetch", ["items", "keys", "values", "reversed"])
def test_an_iterator_shows_no_more_removed_entries_than_it_may(store, prefetch):
    tree = store.tree("numbers", int, int)
    tree.update((n, n) for n in range(2000))
    for begins in range(0, 600, 7):
        rows = iter(reversed(tree) if prefetch == "reversed" else getattr(tree, prefetch)())
        for _ in range(begins + 1):
            next(rows)
        tree.clear()
        assert len(list(rows)) <= 64
        tree.update((n, n) for n in range(2000))


def test_a_backup_without_progress_is_interrupted_by_a_signal(path):
    printed = run(
        """
        import os
        store = millpond.open(sys.argv[1], "16MiB", durability="async")
        tree = store.tree("t", int, bytes)
        with store.begin() as tx:
            tx[tree].update((n, os.urandom(4000)) for n in range(20_000))
        def interrupt():
            while not os.path.exists(sys.argv[1] + "-copy-partial"):
                time.sleep(0.0001)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            store.backup(sys.argv[1] + "-copy")
        except KeyboardInterrupt:
            left = [name for name in os.listdir(os.path.dirname(sys.argv[1])) if "copy" in name]
            print("interrupted", left)
        """,
        path,
    )
    assert printed == "interrupted []\n"
