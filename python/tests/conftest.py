"""What the tests share."""

import os

import millpond
import pytest

#: Whether campaigns run at their full length.
DEEP = bool(os.environ.get("MILLPOND_DEEP"))


@pytest.fixture
def store():
    with millpond.in_memory("16MiB") as store:
        yield store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pond.mp"
