"""Millpond: an embedded transactional store, and a laboratory of page-replacement policies.

The store: `open`, `in_memory`. The laboratory: `read_trace`, `trace`, `generate`, `simulate`,
`curve`, `advise`, `compare`, `record`, `policies`, `sweep`, `read_results`. Every kind of error of the store has a class of
its own, all of them below `Error`.
"""

from collections.abc import MutableMapping as _MutableMapping

try:
    from ._millpond import __version__
except ModuleNotFoundError as error:
    raise ImportError(
        f"{__path__[0]} has millpond's sources, without its compiled module: install the package "
        "(`pip install ./python` in the checkout), and start Python in another folder"
    ) from error
from ._millpond import (
    Cancelled,
    Closed,
    Cursor,
    Damaged,
    Deadlock,
    DiskFull,
    Entries,
    Error,
    Exists,
    InUse,
    Incomplete,
    Invalid,
    Io,
    Memory,
    NotFound,
    OtherType,
    OwnTransaction,
    ReadOnly,
    Snapshot,
    Store,
    Timeout,
    TooLong,
    Transaction,
    TransactionFailed,
    Tree,
    Version,
    in_memory,
    open,
)
from .laboratory import (
    Advice,
    Comparison,
    Policy,
    Recording,
    Trace,
    advise,
    compare,
    curve,
    generate,
    policies,
    read_trace,
    record,
    simulate,
    trace,
)
from .sweeps import read_results, sweep
from .table import Table

_MutableMapping.register(Tree)

__all__ = [
    "Advice",
    "Cancelled",
    "Closed",
    "Comparison",
    "Cursor",
    "Damaged",
    "Deadlock",
    "DiskFull",
    "Entries",
    "Error",
    "Exists",
    "InUse",
    "Incomplete",
    "Invalid",
    "Io",
    "Memory",
    "NotFound",
    "OtherType",
    "OwnTransaction",
    "Policy",
    "ReadOnly",
    "Recording",
    "Snapshot",
    "Store",
    "Table",
    "Timeout",
    "TooLong",
    "Trace",
    "Transaction",
    "TransactionFailed",
    "Tree",
    "Version",
    "__version__",
    "advise",
    "compare",
    "curve",
    "generate",
    "in_memory",
    "open",
    "policies",
    "read_results",
    "read_trace",
    "record",
    "simulate",
    "sweep",
    "trace",
]
