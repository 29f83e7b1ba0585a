"""Examples run, and stubs say what is there."""

import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import millpond
import pytest

ROOT = pathlib.Path(millpond.__file__).parent
REPOSITORY = pathlib.Path(__file__).parents[2]
GUIDES = [REPOSITORY / "docs/python.md", REPOSITORY / "docs/sweeps.md"]


def documented():
    """All that the package shows and that has examples."""
    seen = {}

    def walk(name, thing):
        if name in seen:
            return
        text = getattr(thing, "__doc__", None)
        if isinstance(text, str) and ">>>" in text:
            seen[name] = inspect.cleandoc(text)
        if inspect.isclass(thing):
            for inner, value in vars(thing).items():
                walk(f"{name}.{inner}", value)

    for name in millpond.__all__:
        walk(name, getattr(millpond, name))
    return seen


def examples_pass(test):
    out = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.append)
    assert result.attempted > 0 and result.failed == 0, "".join(out)


@pytest.mark.parametrize(("name", "text"), documented().items(), ids=lambda x: x.split("\n")[0])
def test_examples_of_docstrings(name, text):
    examples_pass(doctest.DocTestParser().get_doctest(text, {}, name, None, 0))


def test_everything_is_documented():
    assert len(documented()) >= 18
    for name in millpond.__all__:
        thing = getattr(millpond, name)
        assert name == "__version__" or inspect.getdoc(thing), name
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for inner, value in vars(thing).items():
                if not inner.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{inner}"


def mypy(tmp_path, module, *arguments):
    """Runs it with a configuration that needs no stubs of other libraries."""
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\nignore_missing_imports = True\n"
                        f"disable_error_code = import-untyped\ncache_dir = {tmp_path}/cache\n")
    option = "--mypy-config-file" if module == "mypy.stubtest" else "--config-file"
    command = [sys.executable, "-m", module, option, settings, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT.parent)
    assert found.returncode == 0, found.stdout + found.stderr


def test_types_are_sound(tmp_path):
    pytest.importorskip("mypy")
    use = tmp_path / "use.py"
    use.write_text(USE)
    mypy(tmp_path, "mypy", "millpond", use)


def test_stubs_are_those_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    allowed = tmp_path / "allowed"
    allowed.write_text("millpond\\._millpond\\.(__all__|K|V|T)\n")
    # Which of the classes may be derived from together is no concern of a stub.
    mypy(tmp_path, "mypy.stubtest", "millpond._millpond", "--allowlist", allowed,
         "--ignore-disjoint-bases")


USE = """
from collections.abc import MutableMapping

import millpond
from typing_extensions import assert_type

with millpond.in_memory("16MiB") as store:
    tree = store.tree("birds", str, int)
    assert_type(tree["heron"], int)
    assert_type(tree.get("heron"), int | None)
    assert_type(tree.first(), tuple[str, int] | None)
    assert_type(store.transact(lambda tx: len(tx[tree])), int)
    for key, value in tree.items():
        assert_type(key, str)
    mapping: MutableMapping[str, int] = tree
    annotated: millpond.Tree[str, int] = tree
    annotated |= {"coot": 5}
    assert_type(tree.popitem(), tuple[str, int])
    assert_type(len(tree.keys()), int)
    assert_type(list(tree.keys()), list[str])
    assert_type(tree.pop("coot", None), int | None)
    tree.update({"coot": 5}, otter=6)
    raw = store.raw_tree("bytes")
    raw[b"a"] = bytearray(b"b")
    raw.put(b"a", memoryview(b"b"))
    millpond.open(b"pond.mp")
rows = millpond.simulate([1, 2, 1], ["lru", "arc"], ["5%", 10])
assert_type(rows, millpond.Table)
"""


@pytest.mark.skipif(not GUIDES[0].exists(), reason="the guide is not beside an installation")
@pytest.mark.parametrize(("guide", "least"), [(GUIDES[0], 9), (GUIDES[1], 4)])
def test_examples_of_the_guides(guide, least):
    """Each block is run where the ones before it were."""
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.M | re.S)
    assert len(blocks) >= least
    examples_pass(doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "guide", None, 0))
