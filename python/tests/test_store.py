"""What a store does, call by call."""

import threading
from array import array
from collections.abc import MutableMapping

import millpond
import pytest


def test_a_tree_is_a_mapping(store):
    tree = store.tree("birds", str, int)
    assert isinstance(tree, MutableMapping)
    tree["heron"] = 3
    tree.update({"coot": 5, "swan": 7})
    tree.update([("duck", 1)])
    assert list(tree) == ["coot", "duck", "heron", "swan"]
    assert list(reversed(tree)) == list(tree.keys(reverse=True)) == list(tree)[::-1]
    assert list(tree.items()) == [("coot", 5), ("duck", 1), ("heron", 3), ("swan", 7)]
    assert list(tree.values(reverse=True)) == [7, 3, 1, 5]
    assert len(tree) == 4 and "coot" in tree and "crow" not in tree
    assert tree.get("crow") is None and tree.get("crow", 9) == 9
    assert tree.setdefault("crow", 2) == 2 and tree.setdefault("crow", 4) == 2
    assert tree.pop("crow") == 2 and tree.pop("crow", None) is None
    del tree["duck"]
    for absent in (lambda: tree["duck"], lambda: tree.pop("duck"), lambda: tree.__delitem__("x")):
        with pytest.raises(KeyError):
            absent()
    assert tree.pop_first() == ("coot", 5) and tree.pop_last() == ("swan", 7)
    assert tree.clear() == 1 and not tree and tree.pop_first() is None
    assert tree.first() is None and tree.last() is None


def test_writes_that_look_first(store):
    tree = store.tree("birds", str, int)
    assert tree.put("heron", 1) is False and tree.put("heron", 2) is True
    assert tree.insert("heron", 3) == 2 and tree.insert("coot", 1) is None
    assert not tree.insert_if_absent("heron", 9) and tree.insert_if_absent("duck", 9)
    assert tree.replace("duck", 8) and not tree.replace("swan", 8)
    assert tree.compare_and_swap("duck", 8, None) and "duck" not in tree
    assert not tree.compare_and_swap("duck", 8, 9) and tree.compare_and_swap("duck", None, 4)
    assert dict(tree.items()) == {"coot": 1, "duck": 4, "heron": 3}
    with pytest.raises(millpond.OtherType):
        store.tree("maybe", str, int | None).compare_and_swap("a", None, 1)


def test_ranges_prefixes_and_cursors(store):
    tree = store.tree("stock", tuple[str, int], int)
    rows = {(name, size): size for name in ("bolts", "nuts") for size in (-6, 8, 10)}
    tree.update(rows)
    in_order = sorted(rows.items())
    assert list(tree.items()) == in_order
    assert list(tree.prefix(("nuts",))) == in_order[3:]
    assert list(tree.prefix(("bolts",), reverse=True)) == in_order[2::-1]
    assert list(tree.range(("bolts", 0), ("nuts", 8))) == in_order[1:4]
    assert list(tree.range(("nuts",))) == in_order[3:] and list(tree.range(("x",))) == []
    assert list(tree.range(("nuts", 8), ("bolts", 8))) == []
    assert tree.count(("nuts",)) == 3 and tree.count() == 6
    assert tree.first() == in_order[0] and tree.last() == in_order[-1]
    with tree.cursor(("bolts", 0)) as cursor:
        assert cursor.prev() == in_order[-1] and cursor.first() == in_order[1]
        assert cursor.seek(("nuts", 9)) == in_order[5]
        assert cursor.seek_back(("nuts",)) == in_order[2]
        assert cursor.next() == in_order[3] and cursor.seek(("zinc",)) is None
        assert cursor.last() == in_order[5] and cursor.next() is None
    with pytest.raises(millpond.Closed):
        cursor.first()
    assert tree.remove_range(("bolts",), ("nuts",)) == 3 and len(tree) == 3


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (int, "i64", [-(2**63), -1, 0, 2**63 - 1]),
        (str, "String", ["", "a", "aé", "b"]),
        (bytes, "Vec<u8>", [b"", b"\0", b"a", b"\xff"]),
        (float, "f64", [float("-inf"), -1.5, 0.0, 2.5]),
        (bool, "bool", [False, True]),
        ("u128", "u128", [0, 2**64, 2**127, 2**128 - 1]),
        ("i128", "i128", [-(2**127), 0, 2**127 - 1]),
        ("char", "char", ["a", "é"]),
        ("[u8; 2]", "[u8; 2]", [b"ab", b"ba"]),
        (tuple[str, bool], "(String, bool)", [("", True), ("a", False), ("a", True)]),
        (int | None, "Option<i64>", [None, -1, 1]),
    ],
)
def test_keys_of_all_types_are_in_order_and_come_back(store, kind, name, values):
    tree = store.tree("tree", kind, kind)
    assert (tree.key_type, tree.value_type) == (name, name)
    for value in reversed(values):
        tree.put(value, value)
    assert list(tree.items()) == [(value, value) for value in values]
    assert store.tree("tree").key_type == name
    raw = store.raw_tree("tree")
    assert [tree[key] for key in tree] == values and list(raw) == sorted(raw)


def test_values_of_other_types_are_refused(store):
    tree = store.tree("birds", str, int)
    with pytest.raises(TypeError):
        tree[3] = 3
    with pytest.raises(TypeError):
        tree["heron"] = "three"
    with pytest.raises(TypeError):
        tree["heron"] = True
    with pytest.raises(OverflowError):
        tree["heron"] = 2**63
    with pytest.raises(OverflowError):
        tree["heron"] = 2**200
    with pytest.raises(ValueError):
        store.tree("pairs", tuple[str, int])["a", 1, 2] = b""
    with pytest.raises(TypeError):
        store.tree("bytes")["text"] = b""
    with pytest.raises(UnicodeError):
        tree["\ud800"] = 1
    for kind in (list, dict, complex, tuple, "Vec<u16>", int | str, object()):
        with pytest.raises(millpond.Invalid):
            store.tree("none", kind)
    assert len(tree) == 0


def test_buffers_are_byte_strings(store):
    tree = store.tree("bytes")
    for number, buffer in enumerate([b"abc", bytearray(b"abc"), memoryview(b"xabcx")[1:4]]):
        tree[buffer] = buffer
        assert tree[b"abc"] == b"abc" and len(tree) == 1, number
    numpy = pytest.importorskip("numpy")
    numbers = numpy.arange(8, dtype=numpy.uint8)
    tree[b"numbers"] = numbers
    assert (numpy.frombuffer(tree[b"numbers"], dtype=numpy.uint8) == numbers).all()
    strided = memoryview(b"a.b.c.")[::2]
    tree[b"strided"] = strided
    assert tree[b"strided"] == b"abc"
    with pytest.raises(TypeError):
        tree[b"numbers"] = array("Q", [1])
    counts = store.tree("counts", int, int)
    counts[numpy.int64(3)] = numpy.uint8(4)
    assert list(counts.items()) == [(3, 4)]


def test_a_tree_of_another_type_is_refused_and_can_be_read_raw(store):
    store.tree("birds", str, int)["heron"] = 258
    with pytest.raises(millpond.OtherType):
        store.tree("birds", int)
    assert store.tree("birds", value=int)["heron"] == 258
    assert store.raw_tree("birds")[b"heron"] == (258).to_bytes(8, "little")
    with pytest.raises(millpond.NotFound):
        store.raw_tree("fish")
    assert ("birds", "tree") in store.structures()
    store.tree("gone", str, str)
    store.drop_tree("gone")
    assert "gone" not in dict(store.structures())


def test_transactions_commit_abort_and_go_back(store):
    tree = store.tree("birds", str, int)
    with store.begin() as tx:
        tx[tree]["heron"] = 1
        assert tx.tree(tree)["heron"] == 1 and len(tx[tree]) == 1
        there = tx.savepoint()
        tx[tree].update({"coot": 1, "duck": 1})
        cursor = tx[tree].cursor()
        assert cursor.first() == ("coot", 1)
        tx.rollback_to(there)
        with pytest.raises(millpond.TransactionFailed):
            cursor.next()
        assert list(tx[tree]) == ["heron"]
        with pytest.raises(millpond.TransactionFailed):
            tx.rollback_to(7)
    assert not tx.is_open and dict(tree.items()) == {"heron": 1}
    with pytest.raises(ZeroDivisionError), store.begin() as tx:
        tx[tree]["heron"] = 2
        1 / 0
    assert tree["heron"] == 1
    with pytest.raises(millpond.TransactionFailed):
        tx.commit()
    with pytest.raises(millpond.TransactionFailed):
        tx[tree]["heron"] = 3
    with store.begin() as tx:
        tx[tree]["heron"] = 4
        tx.abort()
    assert tree["heron"] == 1


def test_an_iterator_within_a_transaction_sees_what_is_written_ahead(store):
    tree = store.tree("numbers", int, int)
    tree.update((n, n) for n in range(20))
    with store.begin() as tx:
        here = tx[tree]
        seen = []
        for key in here:
            seen.append(key)
            here.delete(key + 1)
        assert seen == list(range(0, 20, 2))


def test_deadlocks_are_retried_and_other_errors_raised(store):
    tree = store.tree("accounts", str, int)
    tree.update({"a": 0, "b": 0})
    barrier, runs = threading.Barrier(2, timeout=20), []

    def work(first, second):
        met = False

        def move(tx):
            nonlocal met
            runs.append(first)
            tx[tree][first] = tx[tree].get_for_update(first) + 1
            if not met:
                met = True
                barrier.wait()
            tx[tree][second] = tx[tree].get_for_update(second) + 1

        store.transact(move)

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert dict(tree.items()) == {"a": 2, "b": 2} and len(runs) >= 3

    def fails(tx):
        tx[tree]["a"] = 100
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        store.transact(fails)
    assert tree["a"] == 2
    assert store.transact(lambda tx: tx[tree]["a"]) == 2


def test_a_lock_is_waited_for_no_longer_than_asked(store):
    tree = store.tree("accounts", str, int)
    tree["a"] = 0
    with store.begin() as holder:
        holder[tree]["a"] = 1
        raised = []

        def other():
            try:
                with store.begin(wait_max=0.05) as tx:
                    tx[tree]["a"] = 2
            except millpond.Error as error:
                raised.append(type(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
        assert raised == [millpond.Timeout]
        with pytest.raises(millpond.OwnTransaction):
            tree["a"] = 3


def test_a_snapshot_stays_as_it_was_and_is_for_reading(store):
    tree = store.tree("birds", str, int)
    tree["heron"] = 1
    with store.snapshot() as before:
        old = before[tree]
        tree.update({"heron": 2, "coot": 3})
        assert dict(old.items()) == {"heron": 1} and "coot" not in old and len(old) == 1
        with pytest.raises(millpond.ReadOnly):
            old["heron"] = 4
        with pytest.raises(millpond.Invalid):
            old.get_for_update("heron")
    with pytest.raises(millpond.Closed):
        old["heron"]


def test_closing_ends_all_handles_and_frees_the_file(path):
    with millpond.open(path, "16MiB") as store:
        tree = store.tree("birds", str, int)
        tree.update((str(n), n) for n in range(100))
        tx, snapshot, cursor, rest = store.begin(), store.snapshot(), tree.cursor(), iter(tree)
        cursor.first()
        next(rest)
        next(rest)
        tx[tree]["never"] = 1
        within = tx[tree].cursor()
        with pytest.raises(millpond.InUse):
            millpond.open(path, "16MiB")
    assert store.closed and repr(store) == "<millpond.Store, closed>"
    store.close()
    calls = [
        lambda: tree["1"],
        lambda: tree.put("1", 1),
        lambda: len(tree),
        cursor.next,
        within.first,
        lambda: next(rest),
        tx.commit,
        lambda: snapshot[tree]["1"],
        lambda: tx[tree].first(),
        store.begin,
        store.snapshot,
        lambda: store.tree("birds"),
        store.stats,
        store.flush,
    ]
    for number, call in enumerate(calls):
        with pytest.raises(millpond.Closed):
            call()
            pytest.fail(f"call {number} of a closed store was made")
    with millpond.open(path, "16MiB", create=False, read_only=True) as store:
        again = store.tree("birds")
        assert len(again) == 100 and again["7"] == 7
        with pytest.raises(millpond.ReadOnly):
            again["7"] = 8


def test_a_store_is_closed_while_other_threads_call(path):
    store = millpond.open(path, "16MiB")
    tree = store.tree("numbers", int, int)
    ended, started = [], threading.Barrier(5, timeout=20)

    def work(number):
        started.wait()
        try:
            for n in range(10_000_000):
                tree[number * 10_000_000 + n] = n
        except millpond.Closed:
            ended.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    while len(tree) < 100:
        pass
    store.close()
    for thread in threads:
        thread.join(30)
    assert sorted(ended) == [0, 1, 2, 3]
    with millpond.open(path, "16MiB") as store:
        assert len(store.tree("numbers")) >= 100 and store.check()[0]["faults"] == []


def test_what_is_stored_is_there_again_and_backed_up(path, tmp_path):
    with millpond.open(path, memory=16 << 20, durability="group", page_size=4096) as store:
        tree = store.tree("birds", str, bytes)
        tree.update((f"{n:04}", b"x" * n) for n in range(1000))
        store.checkpoint()
        phases = []
        copied = store.backup(tmp_path / "copy.mp", lambda *now: phases.append(now))
        assert copied["page_bytes"] > 0 and phases[0][0] == "pages"
        assert {phase for phase, _, _ in phases} >= {"pages", "log"}
        with pytest.raises(millpond.Cancelled):
            store.backup(tmp_path / "none.mp", lambda *now: False)
        with pytest.raises(ZeroDivisionError):
            store.backup(tmp_path / "none2.mp", lambda *now: 1 / 0)
        with pytest.raises(millpond.Exists):
            store.backup(tmp_path / "copy.mp")

        def close(*now):
            store.close()

        with pytest.raises(millpond.InUse):
            store.backup(tmp_path / "none3.mp", close)
        report = {row["name"]: row for row in store.check()}
        assert report["birds"]["entries"] == 1000 and report["birds"]["faults"] == []
        stats = store.stats()
        assert stats["puts"] == 1000 and stats["page_size"] == store.page_size == 4096
    with millpond.open(tmp_path / "copy.mp", "16MiB", create=False) as store:
        assert store.tree("birds")["0999"] == b"x" * 999


def test_impossible_options_are_told_by_kind(path):
    for bad in (
        {"policy": "none"},
        {"page_size": 5000},
        {"durability": "never"},
        {"compression": "zip"},
        {"memory": "much"},
        {"slow_after": -1.0},
    ):
        with pytest.raises(millpond.Invalid):
            millpond.open(path, **bad)
    with pytest.raises(millpond.Memory):
        millpond.open(path, memory=1)
    with pytest.raises(millpond.NotFound):
        millpond.open(path, create=False)
    path.write_bytes(b"no store at all" * 1000)
    with pytest.raises(millpond.OtherType):
        millpond.open(path)
    kinds = [getattr(millpond, name) for name in millpond.__all__]
    kinds = [k for k in kinds if isinstance(k, type) and issubclass(k, Exception)]
    assert len(kinds) == 20 and all(issubclass(kind, millpond.Error) for kind in kinds)


def test_handles_of_another_store_are_refused(store):
    with millpond.in_memory() as other:
        tree = other.tree("birds", str, int)
        with pytest.raises(millpond.OtherType):
            store.begin()[tree]
        with pytest.raises(millpond.OtherType):
            store.snapshot()[tree]


def test_a_second_tier_caches_pages(tmp_path):
    tier = (tmp_path / "pond.tier", "8MiB", "tq")
    with millpond.open(tmp_path / "pond.mp", "16MiB", tier=tier) as store:
        store.tree("birds", str, int)["heron"] = 3
        assert store.stats()["tier_frames"] > 0


@pytest.mark.parametrize("memory", [-5, "zzz", 1.5, "-1MiB", None.__class__])
def test_memory_that_is_no_number_of_bytes(memory):
    with pytest.raises(millpond.Invalid, match="no number of bytes"):
        millpond.in_memory(memory)
