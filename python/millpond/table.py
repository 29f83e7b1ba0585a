"""Tables of results, and what other libraries make of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow


def look_for(library: str, extra: str = "") -> None:
    """Says what to install if it is not there; `extra` is the package's name for it, if any."""
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        wanted = f"'millpond[{extra}]'" if extra else library
        raise ImportError(
            f"this needs {library}, which is not installed here: pip install {wanted}"
        ) from error


#: Columns that say what a row is of: rows that differ there repeat nothing.
_KINDS = ("trace", "content", "options", "policy", "params", "size", "block", "model", "method")


class Table(Mapping[str, list[Any]]):
    """Rows of named columns: a mapping from names to lists of one length.

    >>> from millpond import Table
    >>> table = Table({"policy": ["lru", "watt"], "size": [10, 10], "misses": [7, 5]})
    >>> table["misses"], len(table.rows())
    ([7, 5], 2)
    >>> print(table)
    policy  size  misses
    lru       10       7
    watt      10       5
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {name: list(column) for name, column in columns.items()}

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dictionary."""
        names = list(self._columns)
        return [dict(zip(names, row)) for row in zip(*self._columns.values())]

    def where(self, **values: Any) -> Table:
        """The rows whose columns have these values.

        >>> from millpond import Table
        >>> Table({"policy": ["lru", "watt"], "misses": [7, 5]}).where(policy="watt")["misses"]
        [5]
        """
        kept = [
            row
            for row in self.rows()
            if all(row[name] == value for name, value in values.items())
        ]
        return Table({name: [row[name] for row in kept] for name in self._columns})

    def arrow(self) -> pyarrow.Table:
        """As a table of Arrow (needs `pyarrow`)."""
        look_for("pyarrow", "arrow")
        import pyarrow

        return pyarrow.table(self._columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For libraries that take columns as Arrow has them: DuckDB, Polars (needs `pyarrow`)."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas (needs `pandas`)."""
        look_for("pandas", "pandas")
        import pandas

        return pandas.DataFrame(self._columns)

    def polars(self) -> polars.DataFrame:
        """As a data frame of Polars (needs `polars`)."""
        look_for("polars", "polars")
        import polars

        return polars.DataFrame(self._columns, strict=False)

    def plot(
        self,
        x: str = "size",
        y: str | None = None,
        *,
        by: str = "policy",
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Draws `y` over `x`, a line for each value of `by`; returns the axes (needs `matplotlib`).

        Without `y` it is the first of `miss_ratio`, `misses` and `over_best` that there is. Values
        of several rows with the same `x`, as those of seeds, are averaged. Rows that differ in
        what they are of (their trace, its references, a policy's parameters, options, size or
        block) are no repetitions: a `ValueError` says in what, and `where` or `by` chooses among them.
        """
        if y is None:
            known = [name for name in ("miss_ratio", "misses", "over_best") if name in self]
            if not known:
                raise ValueError(f"there is nothing to draw: name one of {', '.join(self)} as y")
            y = known[0]
        lines = {label: self._means(x, y, by, label) for label in dict.fromkeys(self[by])}
        if ax is None:
            look_for("matplotlib", "plot")
            import matplotlib.pyplot

            ax = matplotlib.pyplot.subplots()[1]
        for label, means in lines.items():
            ax.plot(list(means), list(means.values()), marker=".", label=str(label))
        ax.set_xlabel(x.replace("_", " "))
        ax.set_ylabel(y.replace("_", " "))
        ax.legend()
        return ax

    def _means(self, x: str, y: str, by: str, label: Any) -> dict[Any, float]:
        """The means of `y` at each `x`, over rows that repeat each other."""
        points: dict[Any, list[float]] = {}
        kinds: dict[Any, dict[str, Any]] = {}
        for row in self.where(**{by: label}).rows():
            if row[x] is None or row[y] is None:
                continue
            points.setdefault(row[x], []).append(row[y])
            kind = {name: row[name] for name in _KINDS if name in row and name != x}
            first = kinds.setdefault(row[x], kind)
            for name in kind:
                if kind[name] != first[name]:
                    raise ValueError(
                        f"rows of {by} {label} at {x} {row[x]} differ in {name} "
                        f"({first[name]!r} and {kind[name]!r}), and have no mean: choose "
                        f"among them with where({name}=…), or draw by={name!r}"
                    )
        return {place: sum(points[place]) / len(points[place]) for place in sorted(points)}

    def __str__(self) -> str:
        used = {
            name: [name, *map(_shown, column)]
            for name, column in self._columns.items()
            if any(value is not None for value in column)
        }
        lines = []
        is_text = {name: isinstance(self[name][0], str) for name in used}
        widths = {name: max(map(len, texts)) for name, texts in used.items()}
        for row in zip(*used.values()):
            cells = [
                text.ljust(widths[name]) if is_text[name] else text.rjust(widths[name])
                for name, text in zip(used, row)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        rows = len(next(iter(self._columns.values()), []))
        return f"<millpond.Table of {rows} rows: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self)
        body = ""
        for row in self.rows():
            cells = "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row.values())
            body += f"<tr>{cells}</tr>"
        return f"<table><tr>{head}</tr>{body}</table>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
