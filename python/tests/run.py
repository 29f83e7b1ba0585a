"""Runs the tests in a virtual environment: `python3 python/tests/run.py TARGET`.

TARGET is cargo's target directory, where `cargo test --workspace --test python_module` has put the
module. The environment is made in it on the first call, which needs the network. What cannot be
had is left out, and named. Further arguments go to pytest.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
#: Without these there are no tests.
NEEDED = ["pytest", "hypothesis"]
#: Tests that need one of these are left out without it.
WANTED = [
    "numpy", "pyarrow", "pandas", "matplotlib", "mypy", "typing_extensions", "nbclient",
    "ipykernel", "distributed", "polars",
]
#: Seconds for an installation.
PATIENCE = 240


def result(passed, failed, left_out):
    """The line that `cargo xtask test` counts."""
    state = "FAILED" if failed else "ok"
    counts = f"{passed} passed; {failed} failed; {left_out} ignored"
    print(f"test result: {state}. {counts}; 0 measured; 0 filtered out")
    return 1 if failed else 0


def leave_out(why):
    print(f"the Python package's tests are left out: {why}")
    return result(0, 0, 1)


def environment(target):
    """The Python of an environment that has what is needed, and what of the rest can be had."""
    place = target / "python-venv"
    python = place / "bin" / "python"
    wanted = f"{sys.version} {NEEDED} {WANTED}".encode()
    mark = place / f"complete-{hashlib.sha256(wanted).hexdigest()[:16]}"
    if mark.exists():
        return python
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    for packages in (NEEDED + WANTED, NEEDED + ["numpy"], NEEDED):
        command = [python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *packages]
        try:
            if subprocess.run(command, timeout=PATIENCE).returncode == 0:
                break
        except subprocess.TimeoutExpired:
            pass
        print(f"pip install {' '.join(packages)} failed")
    else:
        return None
    if packages == NEEDED + WANTED:
        mark.touch()
    return python


def package(target):
    """The package with the module that was built, as an installation has it."""
    site = target / "python-site"
    shutil.rmtree(site, ignore_errors=True)
    files = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGE / "millpond", site / "millpond", ignore=files)
    suffix = "dylib" if sys.platform == "darwin" else "so"
    built = target / "debug" / "deps" / f"lib_millpond.{suffix}"
    shutil.copy(built, site / "millpond" / "_millpond.abi3.so")
    return site


def main(target, *arguments):
    target = pathlib.Path(target).resolve()
    if sys.version_info < (3, 11):
        return leave_out(f"they need Python 3.11, and this is {sys.version.split()[0]}")
    try:
        python = environment(target)
    except (OSError, subprocess.SubprocessError) as error:
        return leave_out(f"no virtual environment can be made: {error}")
    if python is None:
        return leave_out("pytest and hypothesis cannot be installed")
    site = package(target)
    variables = {
        **os.environ,
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MILLPOND_TARGET": str(target),
    }
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-c", str(PACKAGE / "pyproject.toml")]
    command = [python, "-m", "pytest", *options, str(HERE), *arguments]
    # Not in the folder of the sources, which Python would find first, and which have no module.
    run = subprocess.run(command, cwd=site, env=variables, stdout=subprocess.PIPE, text=True)
    print(run.stdout)
    last = run.stdout.strip().rsplit("\n", 1)[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    failed = counts.get("failed", 0) + counts.get("errors", 0) + counts.get("error", 0)
    if run.returncode != 0 and failed == 0:
        failed = 1
    return result(counts.get("passed", 0), failed, counts.get("skipped", 0))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
