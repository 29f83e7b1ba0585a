"""The first program, docs/start/python.md, prints what its page says."""

import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs/start/python.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not beside an installation")
def test_the_first_program_prints_what_its_page_says(tmp_path):
    page = PAGE.read_text()
    [program] = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    [printed] = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr
