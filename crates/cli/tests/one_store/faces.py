"""Reads what Rust and C wrote into a store, and changes it: see one_store.rs."""

import sys

import millpond

VALUES = {
    "()": None,
    "bool": True,
    "char": "é",
    "u8": 255,
    "u16": 65_535,
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "u128": 2**128 - 1,
    "i8": -128,
    "i16": -(2**15),
    "i32": -(2**31),
    "i64": -(2**63),
    "i128": -(2**127),
    "f32": -1.5,
    "f64": 2.0**-1000,
    "String": "a\0é",
    "Vec<u8>": b"\0\xff",
    "[u8; 4]": b"\x01\x02\x03\x04",
    "Option<u16>": 258,
    "(u8, String, Option<i64>)": (1, "two", -3),
}


def refused(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"not refused: {kind.__name__}")


path = sys.argv[1]
with millpond.open(path, create=False) as store:
    refused(millpond.InUse, lambda: millpond.open(path))
    refused(millpond.OtherType, lambda: store.tree("sessions"))
    refused(millpond.OtherType, lambda: store.tree("log"))
    refused(millpond.OtherType, lambda: store.tree("stock", str, int))
    refused(millpond.NotFound, lambda: store.raw_tree("none"))
    assert dict(store.structures())["sessions"] != "tree"
    stock = store.tree("stock", "(String, u32, i64, bool)", "u64")
    assert list(stock.items()) == [
        (("", 0, -(2**63), False), 0),
        (("b", 2**32 - 1, -1, True), 2**64 - 1),
        (("bolts", 8, 7, False), 1200),
        (("c", 3, -3, True), 33),
    ]
    numbers = store.tree("numbers")
    assert (numbers.key_type, numbers.value_type) == ("i64", "String")
    with store.snapshot() as before:
        with store.begin() as tx:
            tx[stock]["bolts", 8, 7, False] -= 200
            tx[numbers][-7] = "minus seven"
            del tx[numbers][1]
        assert list(before[numbers]) == [-1, 0, 1, 2**63 - 1]
        assert list(numbers) == [-7, -1, 0, 2**63 - 1]
        assert before[stock]["bolts", 8, 7, False] == 1200
    for name, value in VALUES.items():
        tree = store.tree(f"value {name}")
        assert (tree.key_type, tree.value_type) == ("u32", name)
        assert tree[7] == value, name
        tree[8] = tree[7]
    assert all(row["faults"] == [] for row in store.check())
refused(millpond.Closed, lambda: stock.first())
