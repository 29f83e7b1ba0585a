"""A store against a dictionary: at random under threads, and as a state machine."""

import random
import threading

import hypothesis.strategies as some
import millpond
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from conftest import DEEP

OPERATIONS = 100_000 if DEEP else 10_000


def test_ten_thousand_operations_of_threads_against_dictionaries(path):
    """Each thread has keys of its own; together they change one sum, in transactions."""
    with millpond.open(path, "8MiB", durability="async") as store:
        tree = store.tree("all", tuple[int, int], bytes)
        sums = store.tree("sums", str, int)
        sums["all"] = 0
        failures, threads = [], 4

        def work(number):
            try:
                model, draw = {}, random.Random(number)
                for _ in range(OPERATIONS // threads):
                    step(store, tree, sums, number, model, draw)
                found = {key[1]: value for key, value in tree.prefix((number,))}
                assert found == model
            except BaseException as error:
                failures.append(error)

        running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(300)
        assert failures == []
        assert sums["all"] == len(tree) == tree.count()
        assert all(row["faults"] == [] for row in store.check())
        entries = list(tree.items())
    with millpond.open(path, "8MiB") as store:
        assert list(store.tree("all").items()) == entries


def step(store, tree, sums, number, model, draw):
    at, value = draw.randrange(200), draw.randbytes(draw.randrange(300))
    key = (number, at)

    def counted(change, by):
        def work(tx):
            change(tx[tree])
            here = tx[sums]
            here["all"] = here.get_for_update("all") + by

        store.transact(work)

    match draw.randrange(10):
        case 0 | 1 if at in model:
            counted(lambda tree: tree.put(key, value), 0)
            model[at] = value
        case 0 | 1 | 2 if at not in model:
            counted(lambda tree: tree.put(key, value), 1)
            model[at] = value
        case 3 if at in model:
            counted(lambda tree: tree.delete(key), -1)
            del model[at]
        case 4 if model:
            victim = draw.choice(sorted(model))
            tx = store.begin()
            tx[tree].delete((number, victim))
            tx.abort()
        case 5:
            assert tree.replace(key, value) == (at in model)
            if at in model:
                model[at] = value
        case 6:
            stop = at + draw.randrange(30)
            found = [(k[1], v) for k, v in tree.range((number, at), (number, stop))]
            assert found == sorted((k, v) for k, v in model.items() if at <= k < stop)
        case 7:
            with store.snapshot() as snapshot:
                assert snapshot[tree].get(key) == model.get(at)
        case _:
            assert tree.get(key) == model.get(at)
            assert (key in tree) == (at in model)


KEYS = some.tuples(some.text("ab\0é", max_size=3), some.integers(-2, 2))
VALUES = some.none() | some.integers(-(2**63), 2**63 - 1)


class StoreMachine(RuleBasedStateMachine):
    """A store, a transaction, a snapshot; beside each, what a dictionary would have."""

    def __init__(self):
        super().__init__()
        self.store = millpond.in_memory("8MiB")
        self.tree = self.store.tree("tree", tuple[str, int], int | None)
        self.model = {}
        self.tx, self.mine = None, None
        self.snapshot, self.old = None, None

    @property
    def here(self):
        return self.tree if self.tx is None else self.tx[self.tree]

    @property
    def now(self):
        return self.model if self.tx is None else self.mine

    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        assert self.here.put(key, value) == (key in self.now)
        self.now[key] = value

    @rule(key=KEYS, value=VALUES)
    def insert_if_absent(self, key, value):
        assert self.here.insert_if_absent(key, value) == (key not in self.now)
        self.now.setdefault(key, value)

    @rule(key=KEYS)
    def delete(self, key):
        assert self.here.delete(key) == (key in self.now)
        self.now.pop(key, None)

    @rule(key=KEYS)
    def look(self, key):
        assert self.here.get(key, "none") == self.now.get(key, "none")

    @rule(start=KEYS, stop=KEYS, reverse=some.booleans())
    def range(self, start, stop, reverse):
        expected = sorted(item for item in self.now.items() if start <= item[0] < stop)
        found = list(self.here.range(start, stop, reverse=reverse))
        assert found == (expected[::-1] if reverse else expected)
        assert self.here.count(start, stop) == len(expected)

    @rule(start=KEYS, stop=KEYS)
    def remove_range(self, start, stop):
        gone = [key for key in self.now if start <= key < stop]
        assert self.here.remove_range(start, stop) == len(gone)
        for key in gone:
            del self.now[key]

    @rule(first=some.booleans())
    def pop(self, first):
        expected = None
        if self.now:
            key = min(self.now) if first else max(self.now)
            expected = (key, self.now.pop(key))
        assert (self.here.pop_first() if first else self.here.pop_last()) == expected

    @rule(key=KEYS)
    def seek(self, key):
        cursor = self.here.cursor()
        above = sorted(item for item in self.now.items() if item[0] >= key)
        assert cursor.seek(key) == (above[0] if above else None)
        if above:
            assert cursor.next() == (above[1] if len(above) > 1 else None)

    @precondition(lambda self: self.tx is None)
    @rule()
    def begin(self):
        self.tx, self.mine = self.store.begin(), dict(self.model)

    @precondition(lambda self: self.tx is not None)
    @rule(commits=some.booleans())
    def end(self, commits):
        if commits:
            self.tx.commit()
            self.model = self.mine
        else:
            self.tx.abort()
        self.tx = None

    @rule()
    def take(self):
        self.snapshot, self.old = self.store.snapshot(), dict(self.model)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def look_back(self):
        assert dict(self.snapshot[self.tree].items()) == self.old

    @invariant()
    def is_the_model(self):
        assert list(self.here.items()) == sorted(self.now.items(), key=lambda item: item[0])
        assert len(self.here) == len(self.now)

    def teardown(self):
        self.store.close()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=300 if DEEP else 25,
    stateful_step_count=50 if DEEP else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
