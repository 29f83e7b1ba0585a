"""The first program, docs/start/python.md, prints what its page says; first mistakes say what to do."""

import pathlib
import re
import shutil
import subprocess
import sys

import millpond
import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs/start/python.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not beside an installation")
def test_the_first_program_prints_what_its_page_says(tmp_path):
    page = PAGE.read_text()
    [program] = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    [printed] = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


def test_the_folder_of_the_sources_says_that_it_is_not_an_installation(tmp_path):
    sources = pathlib.Path(__file__).parents[1] / "millpond"
    skipped = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(sources, tmp_path / "millpond", ignore=skipped)
    ran = subprocess.run(
        [sys.executable, "-c", "import millpond"], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode == 1 and "pip install ./python" in ran.stderr, ran.stderr


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars", "matplotlib"])
def test_a_library_that_is_not_there_is_named_with_what_to_install(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    table = millpond.simulate([1, 2, 1], "lru", 2)
    call = {"pyarrow": table.arrow, "matplotlib": table.plot}.get(library) or getattr(table, library)
    with pytest.raises(ImportError, match=rf"needs {library}.*pip install 'millpond\["):
        call()


def test_messages_have_pythons_names_and_not_those_of_the_command_line(tmp_path):
    (tmp_path / "birds").write_text("heron coot swan\n")
    with pytest.raises(ValueError, match="say `format`, or `columns` page=N"):
        millpond.read_trace(tmp_path / "birds")
    with pytest.raises(ValueError, match=r"`millpond.policies\(\)` lists"):
        millpond.simulate([1, 2, 1], "lruu", 2)
    with pytest.raises(millpond.NotFound, match="allow `create`, or name another"):
        millpond.open(tmp_path / "pond.mp", create=False)
