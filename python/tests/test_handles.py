"""Handles are used and dropped in every order, and nothing of them stays."""

import gc
import itertools
import threading

import millpond
import pytest

from conftest import DEEP


def handles(store):
    """One of each, in use."""
    tree = store.tree("birds", str, int)
    tree.update((str(n), n) for n in range(10))
    tx, snapshot = store.begin(), store.snapshot()
    within, before = tx[tree].cursor(), snapshot[tree].cursor()
    tx[tree]["new"] = 1
    rest = iter(tree)
    assert within.first() and before.first() and next(rest)
    return [store, tree, tx, snapshot, within, before, rest]


@pytest.mark.parametrize("closes", [False, True])
def test_handles_are_dropped_in_every_order(path, closes):
    orders = list(itertools.permutations(range(7)))
    for number, order in enumerate(orders if DEEP else orders[:: len(orders) // 120]):
        store = millpond.open(path, "8MiB") if number % 12 == 0 else millpond.in_memory("8MiB")
        kept = handles(store)
        if closes:
            store.close()
        del store
        for at in order:
            kept[at] = None
        del kept
    with millpond.open(path, "8MiB") as store:
        assert list(store.tree("birds")) == [str(n) for n in range(10)]


def test_handles_live_on_without_their_store():
    store = millpond.in_memory("8MiB")
    store, tree, tx, snapshot, within, before, rest = handles(store)
    del store
    gc.collect()
    assert within.next() == ("1", 1) and before.last() == ("9", 9) and len(list(rest)) == 9
    tx.commit()
    assert tree["new"] == 1
    with pytest.raises(millpond.TransactionFailed):
        within.next()


def test_handles_are_dropped_by_other_threads():
    for _ in range(20):
        kept = handles(millpond.in_memory("8MiB"))
        kept.reverse()
        threads = [threading.Thread(target=kept.pop) for _ in range(7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert kept == []


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_nothing_leaks():
    """After a first round, which fills pools and caches, memory does not grow with the rounds."""

    def use(store, tree):
        for _ in range(200):
            with store.begin() as tx:
                cursor = tx[tree].cursor()
                cursor.first()
                tx[tree]["x"] = b"x" * 1000
            with store.snapshot() as before:
                assert len(before[tree]["x"]) == 1000
            assert len(list(tree.items())) == 50
            with pytest.raises(KeyError):
                tree["missing"]
            with pytest.raises(TypeError):
                tree["x"] = 1

    with millpond.in_memory("8MiB") as store:
        tree = store.tree("birds", str, bytes)
        tree.update((str(n), b"y" * 500) for n in range(49))
        tree["x"] = b""
        use(store, tree)
        use(store, tree)
        gc.collect()
        before = resident()
        rounds = 60 if DEEP else 10
        for _ in range(rounds):
            use(store, tree)
        gc.collect()
        # 200 leaked values or handles a round would be 200 KB and more for each of them.
        assert resident() - before < 100_000 * rounds


def test_closed_stores_leave_nothing(path):
    def use():
        for number in range(6):
            kept = handles(millpond.open(path, "8MiB"))
            if number % 2 == 0:
                kept[0].close()
            del kept

    use()
    use()
    before = resident()
    rounds = 30 if DEEP else 4
    for _ in range(rounds):
        use()
    gc.collect()
    # A store has 8 MiB: six a round that stay would be 48 MiB.
    assert resident() - before < (4 << 20) * rounds


@pytest.mark.parametrize("closes", ["the work", "another thread"])
def test_a_transaction_that_a_store_aborts_by_closing_is_no_success(path, closes):
    def close(store):
        if closes == "the work":
            store.close()
        else:
            thread = threading.Thread(target=store.close)
            thread.start()
            thread.join()

    def work(store, tx):
        tx[store.tree("birds", str, int)]["heron"] = 3
        close(store)

    store = millpond.open(path, "8MiB")
    with pytest.raises(millpond.Closed):
        store.transact(lambda tx: work(store, tx))
    store = millpond.open(path, "8MiB")
    with pytest.raises(millpond.Closed), store.begin() as tx:
        work(store, tx)
    # What was ended before is as it was.
    store = millpond.open(path, "8MiB")
    with store.begin() as tx:
        tx[store.tree("birds")]["egret"] = 1
        tx.commit()
        close(store)
    store = millpond.open(path, "8MiB")
    assert store.transact(lambda tx: (tx.abort(), close(store))) == (None, None)
    with millpond.open(path, "8MiB") as store:
        assert dict(store.tree("birds")) == {"egret": 1}
