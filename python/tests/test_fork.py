"""Forks of a process that has a store open: the child leaves it alone."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

#: What children do. `kept` are the parent's handles; a child that returns ends as Python does.
CHILDREN = {
    "ends": "",
    "ends at once": "os._exit(0)",
    "drops": "kept = store = tree = tx = snapshot = rest = cursor = None; gc.collect()",
    "closes": "store.close(); snapshot.close(); cursor.close(); assert tree.get",
    "calls": """
        for call in (
            lambda: tree["a"], lambda: tree.update({"a": 7}), lambda: list(tree), lambda: next(rest),
            lambda: cursor.next(), tx.commit, tx.abort, lambda: tx[tree].get("a"),
            lambda: snapshot[tree]["a"], store.begin, store.snapshot, store.check, store.flush,
            store.checkpoint, store.stats, lambda: store.backup(path + "-copy"),
            lambda: store.transact(lambda tx: 1), lambda: millpond.open(path),
        ):
            try:
                call()
            except millpond.InUse as error:
                assert "fork" in str(error) or "process" in str(error), error
            else:
                raise AssertionError("a handle of the parent does something")
    """,
    "works with a store of its own": """
        with millpond.open(path + "-own", "8MiB") as own:
            own.tree("t", str, int)["a"] = 1
        assert millpond.simulate(list(range(100)), "lru", 10)["misses"] == [100]
    """,
}

PARENT = """
    import gc, os, signal, sys, threading, warnings
    import millpond
    warnings.simplefilter("ignore", DeprecationWarning)  # Threads and forks, from 3.12 on.
    signal.alarm(60)  # A process that hangs is killed; the child has an alarm of its own.
    path = sys.argv[1]
    store = millpond.open(path, "8MiB")
    tree = store.tree("t", str, int)
    tree.update((str(n), n) for n in range(500))
    tree["a"] = 1
    tx, snapshot, rest = store.begin(), store.snapshot(), iter(tree)
    cursor = tree.cursor()
    tx[tree]["b"] = 2
    assert next(rest) and cursor.first()
    kept = [store, tree, tx, snapshot, rest, cursor]
    # Others are in calls while the process forks.
    is_over = False
    def work(name):
        number = 0
        while not is_over:
            number += 1
            tree[name] = number
            tree.get("7")
        counted[name] = number
    counted = {}
    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for turn in range(10):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            CHILD
            sys.exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended == 0, ended
    is_over = True
    for thread in threads:
        thread.join()
    tx.commit()
    store.close()
    with millpond.open(path, "8MiB") as store:
        tree = store.tree("t")
        assert (tree["a"], tree["b"], len(tree)) == (1, 2, 504), len(tree)
        assert (tree["x"], tree["y"]) == (counted["x"], counted["y"])
        assert not any(one["faults"] for one in store.check())
"""


def run(script, path):
    """Runs it in a process of its own: a fork of this one would have pytest's threads."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert done.stderr == "", "nobody panics"


@pytest.mark.parametrize("child", CHILDREN, ids=lambda child: child.replace(" ", "-"))
def test_the_child_of_a_fork_leaves_the_store_alone(child, path):
    code = textwrap.indent(textwrap.dedent(CHILDREN[child]).strip(), " " * 8).strip()
    run(textwrap.dedent(PARENT).replace("CHILD", code or "pass"), path)


def test_what_is_under_way_in_a_fork_is_the_parents(path):
    run(
        """
        import os, sys, warnings
        import millpond
        warnings.simplefilter("ignore", DeprecationWarning)
        store = millpond.open(sys.argv[1], "8MiB")
        tree = store.tree("t", str, int)
        def forks(tx):
            tx[tree]["a"] = 1
            return os.fork()
        def ended(child):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            child = store.transact(forks)
        except millpond.InUse:
            os._exit(7)
        assert ended(child) == 7 and tree["a"] == 1
        try:
            with store.begin() as tx:
                tx[tree]["a"] = 2
                child = os.fork()
        except millpond.InUse:
            os._exit(7)
        assert ended(child) == 7 and tree["a"] == 2
        with store:
            child = os.fork()
            if child == 0:
                sys.exit(7)
            assert ended(child) == 7
            tree["a"] = 3
        with millpond.open(sys.argv[1], "8MiB") as store:
            assert dict(store.tree("t")) == {"a": 3}
        """,
        path,
    )


def test_a_pool_of_forks_works_beside_an_open_store(path):
    run(
        """
        import multiprocessing, sys, warnings
        import millpond
        warnings.simplefilter("ignore", DeprecationWarning)
        store = millpond.open(sys.argv[1], "8MiB")
        tree = store.tree("t", int, int)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            for number, square in enumerate(pool.starmap(pow, [(n, 2) for n in range(50)])):
                tree[number] = square
            # Its file is free for others, although forks have its descriptors.
            store.close()
            with millpond.open(sys.argv[1], "8MiB") as store:
                assert list(store.tree("t").values()) == [n * n for n in range(50)]
        """,
        path,
    )


def test_a_child_opens_the_store_when_its_parent_has_closed_it(path):
    run(
        """
        import os, sys, warnings
        import millpond
        warnings.simplefilter("ignore", DeprecationWarning)
        store = millpond.open(sys.argv[1], "8MiB")
        store.tree("t", str, int)["a"] = 1
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            assert os.read(reading, 1) == b"."
            with millpond.open(sys.argv[1], "8MiB") as own:
                own.tree("t")["a"] = 2
                grandchild = os.fork()
                if grandchild == 0:
                    try:
                        own.tree("t")
                    except millpond.InUse:
                        sys.exit(7)
                assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 7
            sys.exit(0)
        store.close()
        os.write(writing, b".")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with millpond.open(sys.argv[1], "8MiB") as store:
            assert store.tree("t")["a"] == 2
        """,
        path,
    )
