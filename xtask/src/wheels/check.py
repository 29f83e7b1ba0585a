"""What a wheel must have and do: `python check.py WHEEL SOURCES MACHINE`, where it is installed.

SOURCES is the package in the repository.
"""

import pathlib
import platform
import re
import sys
import tempfile
import zipfile

import millpond


def contents(wheel, sources):
    """The files are the package's, the module, licences, and what installers want."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    info = f"millpond-{millpond.__version__}.dist-info"
    wanted = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    wanted |= {f"{info}/licenses/LICENSE-{name}" for name in ("APACHE", "MIT")}
    wanted |= {f"millpond/{file.name}" for file in sources.glob("*.py*")} | {"millpond/py.typed"}
    wanted |= {"millpond/_millpond.abi3.so"}
    # The list of everything that was compiled into the module.
    found = {name for name in names if not name.startswith(f"{info}/sboms/")}
    assert found == wanted, (found - wanted, wanted - found)
    tags = r"millpond-[^-]+-cp311-abi3-(manylinux\w+\.)*manylinux_2_17_\w+(\.manylinux\w+)*\.whl"
    assert re.fullmatch(tags, wheel.name), wheel.name


def store(folder):
    """What was written is there when the store is opened again."""
    path = folder / "pond.mp"
    with millpond.open(path) as pond:
        birds = pond.tree("birds", str, int)
        with pond.begin() as tx:
            tx[birds].update({"heron": 3, "coot": 5})
    with millpond.open(path, create=False) as pond:
        assert list(pond.tree("birds").items()) == [("coot", 5), ("heron", 3)]
        assert not any(row["faults"] for row in pond.check())


def laboratory():
    """Four pages in a cycle: LRU with three frames never hits, and the best policy does."""
    rows = millpond.simulate([0, 1, 2, 3] * 100, ["lru", "opt"], 3)
    lru, best = rows["misses"]
    assert (lru, best) == (400, 4 + 396 // 3), (lru, best)


def main(wheel, sources, machine):
    assert platform.machine() == machine, platform.machine()
    contents(pathlib.Path(wheel), pathlib.Path(sources))
    with tempfile.TemporaryDirectory() as folder:
        store(pathlib.Path(folder))
    laboratory()
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"millpond {millpond.__version__} works with Python {python} on {machine}")


if __name__ == "__main__":
    main(*sys.argv[1:])
