"""Views of a tree: its keys, its values and its entries, as a dict's."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, TypeVar

from ._millpond import Tree

K = TypeVar("K")
V = TypeVar("V")


class Keys(KeysView[K]):
    """The keys of a tree in order, or backwards: a set."""

    __slots__ = ("_reverse", "_tree")

    def __init__(self, tree: Tree[K, Any], reverse: bool) -> None:
        super().__init__(tree)
        self._tree, self._reverse = tree, reverse

    def __iter__(self) -> Iterator[K]:
        return self._tree._iterate("keys", self._reverse)

    def __reversed__(self) -> Iterator[K]:
        return self._tree._iterate("keys", not self._reverse)


class Values(ValuesView[V]):
    """The values of a tree in the order of its keys, or backwards."""

    __slots__ = ("_reverse", "_tree")

    def __init__(self, tree: Tree[Any, V], reverse: bool) -> None:
        super().__init__(tree)
        self._tree, self._reverse = tree, reverse

    def __iter__(self) -> Iterator[V]:
        return self._tree._iterate("values", self._reverse)

    def __reversed__(self) -> Iterator[V]:
        return self._tree._iterate("values", not self._reverse)


class Items(ItemsView[K, V]):
    """The pairs of key and value of a tree in the order of its keys, or backwards: a set."""

    __slots__ = ("_reverse", "_tree")

    def __init__(self, tree: Tree[K, V], reverse: bool) -> None:
        super().__init__(tree)
        self._tree, self._reverse = tree, reverse

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._tree._iterate("items", self._reverse)

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        return self._tree._iterate("items", not self._reverse)
