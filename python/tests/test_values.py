"""Keys and values: of what types they may be, and the errors of those that are of none."""

import collections
import collections.abc
import decimal
import fractions
import math

import millpond
import pytest


class HasFloat:
    """A number of another kind, which has a float near it."""

    def __float__(self):
        return 1.5


class HasIndex:
    """An integer of another class."""

    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


NEAR = 2**53 + 1


@pytest.mark.parametrize(
    "number", [decimal.Decimal(NEAR), fractions.Fraction(NEAR), HasFloat()], ids=repr
)
def test_a_number_that_is_no_float_is_never_rounded_into_one(store, number):
    tree = store.tree("floats", float, str)
    tree[2.0**53] = "first"
    with pytest.raises(TypeError, match=f"^{type(number).__name__} is no float$"):
        tree[number] = "second"
    assert list(tree.items()) == [(2.0**53, "first")]
    values = store.tree("values", str, tuple[str, float])
    with pytest.raises(TypeError, match=f"^{type(number).__name__} is no float$"):
        values["a"] = ("b", number)
    assert len(values) == 0


def test_floats_are_pythons_and_numpys_and_integers_that_are_one_exactly(store):
    class Own(float):
        pass

    tree = store.tree("floats", float, float)
    for number in (0.5, Own(1.5), 2**53, True + 1):
        tree[number] = number
    with pytest.raises(OverflowError):
        tree[NEAR] = 0.0
    assert list(tree) == [0.5, 1.5, 2.0, 2.0**53]
    numpy = pytest.importorskip("numpy")
    for number in (numpy.float16(0.25), numpy.float32(0.75), numpy.float64(3), numpy.int8(4)):
        tree[number] = number
    tree[numpy.longdouble("nan")] = numpy.longdouble("inf")
    tree[numpy.longdouble(5)] = 5
    assert [key for key in tree if key == key] == [0.25, 0.5, 0.75, 1.5, 2, 3, 4, 5, 2.0**53]
    wide = numpy.longdouble(2) ** 53 + 1
    if wide != float(wide):
        with pytest.raises(OverflowError, match="longdouble .* is no float exactly"):
            tree[wide] = 0.0
    assert len(tree) == 10


def test_truth_values_of_numpy_are_truth_values(store):
    numpy = pytest.importorskip("numpy")
    flags = store.tree("flags", bool, tuple[bool, int])
    flags[numpy.bool_(True)] = (numpy.bool_(False), numpy.int16(3))
    assert list(flags.items()) == [(True, (False, 3))]


@pytest.mark.parametrize(
    "key, given, message",
    [
        (int, decimal.Decimal(1), "Decimal is no int"),
        (int, fractions.Fraction(2, 1), "Fraction is no int"),
        (int, slice(1, 3), "slice is no int"),
        (int, [1], "list is no int"),
        (str, HasIndex(3), "HasIndex is no str"),
        (tuple[int, str], [1, "a"], "list is no tuple[int, str]"),
        (tuple[int, str], ([1], "a"), "list is no int"),
        (tuple[str, tuple[int, bytes]], ("a", (1, {})), "dict is no bytes"),
        (tuple[str, int | None], ("a", object()), "object is no int | None"),
        (bytes, [1], "list is no bytes"),
        (bytes, "a", "str is no bytes: encode it, as by text.encode()"),
        (tuple[int, bytes], (1, "a"), "str is no bytes: encode it, as by text.encode()"),
    ],
    ids=str,
)
def test_messages_name_the_type_that_was_given_and_the_one_of_the_tree(store, key, given, message):
    tree = store.tree("tree", key, int)
    with pytest.raises(TypeError) as raised:
        tree[given]
    assert str(raised.value) == message


def test_numpys_truth_values_are_told_by_their_name(store):
    numpy = pytest.importorskip("numpy")
    tree = store.tree("tree", int, float)
    name = type(numpy.bool_(True)).__name__
    with pytest.raises(TypeError, match=f"^{name} is no int$"):
        tree[numpy.bool_(True)] = 0.5
    with pytest.raises(TypeError, match="^ndarray is no int$"):
        tree[numpy.array([1, 2])] = 0.5
    tree[numpy.array(7)] = 0.5
    assert list(tree) == [7]


def test_what_a_number_raises_comes_through(store):
    tree = store.tree("tree", int, int)
    for raised in (RuntimeError("no index today"), MemoryError(), OverflowError("by itself")):
        with pytest.raises(type(raised)) as found:
            tree[HasIndex(raised)] = 1
        assert found.value is raised
    with pytest.raises(TypeError, match="__index__ returned non-int \\(type str\\)"):
        tree[HasIndex("7")] = 1
    with pytest.raises(OverflowError, match="128 bits"):
        tree[HasIndex(2**200)] = 1
    tree[HasIndex(7)] = 1
    assert list(tree) == [7]


def test_arrays_of_bytes_are_byte_strings_within_tuples_too(store):
    numpy = pytest.importorskip("numpy")
    tree = store.tree("tree", tuple[int, bytes], int)
    tree[1, numpy.array([65, 66], dtype=numpy.uint8)] = 1
    tree[2, bytearray(b"C")] = 2
    assert list(tree) == [(1, b"AB"), (2, b"C")]


def test_zero_and_nan_with_a_sign_are_keys_of_their_own_as_the_docs_say(store):
    tree = store.tree("floats", float, int)
    numbers = [math.nan, math.inf, 1.0, 0.0, -0.0, -1.0, -math.inf, math.copysign(math.nan, -1.0)]
    for place, number in enumerate(numbers):
        tree[number] = place
    assert list(tree.values()) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert tree[0.0] == 3 and tree[-0.0] == 4 and tree[-0.0 + 0.0] == 3


class Words(collections.abc.MutableMapping):
    """A tree beside which `MutableMapping`'s own methods show what they do."""

    def __init__(self):
        self.kept = {}

    def __getitem__(self, key):
        return self.kept[key]

    def __setitem__(self, key, value):
        self.kept[key] = value

    def __delitem__(self, key):
        del self.kept[key]

    def __iter__(self):
        return iter(self.kept)

    def __len__(self):
        return len(self.kept)


class HasKeys:
    def keys(self):
        return ["coot", "heron"]

    def __getitem__(self, key):
        return len(key)


@pytest.mark.parametrize(
    "arguments",
    [
        (), ({},), (HasKeys(),), ([("a", 1)],), (None,), (7,), ({}, {}), ([["a", 1]],),
        ([("a", 1, 2)],), ([7],), (collections.ChainMap({"x": 1}),),
    ],
    ids=repr,
)
def test_update_takes_and_refuses_what_a_mutable_mapping_does(store, arguments):
    tree, words, error = store.tree("words", str, int), Words(), None
    try:
        words.update(*arguments)
    except Exception as raised:
        error = type(raised)
    if error is None:
        tree.update(*arguments)
    else:
        with pytest.raises(error):
            tree.update(*arguments)
    assert dict(tree) == dict(words)


def test_setdefault_without_a_default_puts_none(store):
    tree = store.tree("words", str, int | None)
    assert tree.setdefault("heron") is None and tree["heron"] is None
    tree["coot"] = 1
    assert tree.setdefault("coot") == 1
    with pytest.raises(TypeError, match="^None is no int$"):
        store.tree("numbers", str, int).setdefault("heron")
