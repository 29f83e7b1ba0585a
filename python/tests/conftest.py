"""What the tests share."""

import os
import pathlib

import millpond
import pytest

#: Whether campaigns run at their full length.
DEEP = bool(os.environ.get("MILLPOND_DEEP"))


def _cli():
    """The command line of the same build: `run.py` says where that is."""
    target = os.environ.get("MILLPOND_TARGET")
    path = pathlib.Path(target or "no-target", "debug", "millpond")
    return path if path.is_file() else None


#: The command line, if it was built; run.py leaves out nothing without it.
CLI = _cli()


@pytest.fixture
def store():
    with millpond.in_memory("16MiB") as store:
        yield store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pond.mp"
