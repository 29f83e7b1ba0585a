"""The notebook of the papers' figures runs; its cells check what they state."""

import json
import os
import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def test_the_notebook_runs(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("numpy")
    matplotlib.use("Agg")
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")
    monkeypatch.chdir(EXAMPLES)
    notebook = json.loads(pathlib.Path("papers.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == 6 and all(cell["outputs"] == [] for cell in cells)
    names = {}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert len(matplotlib.pyplot.get_fignums()) == 5
    matplotlib.pyplot.close("all")


def test_the_notebook_runs_in_a_kernel():
    """As a reader would run it. Without a kernel its cells run in the test above all the same."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    if not os.environ.get("MILLPOND_DEEP"):
        pytest.skip("the cells run once already; with MILLPOND_DEEP=1 in a kernel, too")
    notebook = nbformat.read(EXAMPLES / "papers.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300).execute(cwd=str(EXAMPLES))
