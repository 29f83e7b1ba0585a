"""A tree is a `MutableMapping`; names of files, sizes and messages are Python's."""

import collections
import collections.abc
import os

import millpond
import pytest

WORDS = {"coot": 1, "heron": 2, "otter": 3}


@pytest.fixture
def birds(store):
    tree = store.tree("birds", str, int)
    tree.update(WORDS)
    return tree


def test_a_tree_has_all_that_a_mutable_mapping_has(birds):
    assert isinstance(birds, collections.abc.MutableMapping)
    for name in dir(collections.abc.MutableMapping):
        assert name.startswith("_") or hasattr(birds, name), name


def test_views_are_those_of_a_dict(birds):
    keys, values, items = birds.keys(), birds.values(), birds.items()
    assert isinstance(keys, collections.abc.KeysView)
    assert isinstance(values, collections.abc.ValuesView)
    assert isinstance(items, collections.abc.ItemsView)
    assert len(keys) == len(values) == len(items) == 3
    # Again and again, both ways.
    for _ in range(2):
        assert list(keys) == list(WORDS) and list(reversed(keys)) == list(WORDS)[::-1]
        assert list(values) == [1, 2, 3] and list(reversed(values)) == [3, 2, 1]
        assert list(items) == list(WORDS.items())
    assert list(birds.items(reverse=True)) == list(WORDS.items())[::-1]
    assert "heron" in keys and "crane" not in keys and 2 in values and 7 not in values
    assert ("heron", 2) in items and ("heron", 3) not in items and ("crane", 2) not in items
    assert keys & {"heron", "crane"} == {"heron"} and keys | {"crane"} == {*WORDS, "crane"}
    assert keys == WORDS.keys() and items == WORDS.items()
    birds["crane"] = 4
    assert len(keys) == 4 and "crane" in keys
    assert dict(birds) == {**WORDS, "crane": 4}


def test_views_see_what_their_transaction_and_their_snapshot_see(store, birds):
    with store.snapshot() as before, store.begin() as tx:
        tx[birds]["crane"] = 4
        assert len(tx[birds].keys()) == 4 and "crane" in tx[birds].keys()
        assert "crane" not in before[birds].keys() and len(before[birds].items()) == 3


def test_popitem_and_updates_in_place(birds):
    birds |= {"crane": 4}
    assert isinstance(birds, millpond.Tree) and birds["crane"] == 4
    birds.update([("heron", 5)], otter=6)
    birds.update(coot=7)
    birds.update()
    assert dict(birds) == {"coot": 7, "crane": 4, "heron": 5, "otter": 6}
    assert birds.popitem() == ("otter", 6)
    birds.clear()
    with pytest.raises(KeyError):
        birds.popitem()
    assert collections.ChainMap(birds, {"a": 1})["a"] == 1


def test_classes_take_types_in_annotations():
    assert millpond.Tree[int, str].__args__ == (int, str)
    assert millpond.Cursor[int, str].__origin__ is millpond.Cursor
    assert millpond.Entries[int].__args__ == (int,)


@pytest.mark.parametrize("value", [b"deep", bytearray(b"deep"), memoryview(b"deep")])
def test_values_are_anything_that_has_bytes(store, value):
    tree = store.tree("bytes", bytes, bytes)
    tree[value] = value
    assert tree[b"deep"] == b"deep" and value in tree
    pairs = store.tree("pairs", int, tuple[bytes, int])
    pairs[1] = (value, 2)
    assert pairs[1] == (b"deep", 2)


def test_files_have_the_names_that_python_knows(tmp_path):
    folder = os.fsencode(tmp_path)
    for name in (folder + b"/\xff\xfe.mp", str(tmp_path / "a.mp"), tmp_path / "b.mp"):
        with millpond.open(name, "8MiB") as store:
            store.tree("t", str, int)["a"] = 1
            store.backup(os.fsencode(name) + b"-copy")
        assert os.path.exists(name) and os.path.exists(os.fsencode(name) + b"-copy")
    with pytest.raises(TypeError):
        millpond.open(7)
    trace = tmp_path / "trace.txt"
    trace.write_text("1\n2\n1\n")
    assert len(millpond.read_trace(os.fsencode(trace))) == 3


def test_a_trace_that_is_not_there_is_a_file_not_found_error(tmp_path):
    for call in (millpond.read_trace, lambda path: millpond.simulate(path, "lru", 10)):
        with pytest.raises(FileNotFoundError) as raised:
            call(tmp_path / "none.txt")
        assert raised.value.errno == 2 and str(raised.value.filename).endswith("none.txt")
    if os.geteuid() != 0:
        secret = tmp_path / "secret.txt"
        secret.write_text("1\n")
        secret.chmod(0)
        with pytest.raises(PermissionError):
            millpond.read_trace(secret)


def test_sizes_have_all_units(store):
    for unit in ("KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"):
        with pytest.raises(millpond.Error) as raised:
            millpond.in_memory(f"0.5{unit}")
        assert "no number of bytes" in str(raised.value)
        with pytest.raises((millpond.Memory, millpond.NotFound)):
            number = 40_000 if unit.startswith("K") else 1
            millpond.open("/nonexistent/pond.mp", f"{number}{unit}", create=False)


@pytest.mark.parametrize(
    ("key", "value", "given", "message"),
    [
        (str, int, ("a", "b"), "str is no int"),
        (str, int, ("a", None), "None is no int"),
        (str, int, (1, 1), "int is no str"),
        (str, float, ("a", b""), "bytes is no float"),
        (str, "u8", ("a", "b"), "str is no int (u8)"),
        (str, bool, ("a", 1), "int is no bool"),
        (tuple[str, int], int, ("a", 1), "str is no tuple[str, int]"),
        (str, tuple[str, int | None], ("a", ("b",)), "those of tuple[str, int | None]"),
        (str, tuple[str, int | None], ("a", ("b", "c")), "str is no int"),
    ],
)
def test_messages_name_pythons_types(store, key, value, given, message):
    tree = store.tree("t", key, value)
    with pytest.raises(TypeError if "those" not in message else ValueError) as raised:
        tree[given[0]] = given[1]
    assert message in str(raised.value)
