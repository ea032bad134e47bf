"""The lock: every package by hash, no index named, and within the ranges that users install by."""

import json
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")


def pinned() -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each package."""
    found: dict[str, tuple[str, int]] = {}
    name = ""
    for line in LOCK.read_text().splitlines():
        if match := PINNED.match(line):
            name = canonicalize_name(match[1])
            found[name] = (match[2], 0)
        elif "--hash=sha256:" in line:
            found[name] = (found[name][0], found[name][1] + 1)
    return found


def test_the_lock_has_hashes_and_names_no_index() -> None:
    packages = pinned()
    assert len(packages) > 60 and all(hashes for _, hashes in packages.values())
    assert "://" not in LOCK.read_text() and "--index" not in LOCK.read_text()


def test_the_lock_is_within_the_ranges_and_each_has_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"].values()
    extras = project["project"]["optional-dependencies"].values()
    packages = pinned()
    for text in chain(project["project"]["dependencies"], *groups, *extras):
        requirement = Requirement(text)
        version, _ = packages[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), text
        assert any(part.operator in ("==", "<") for part in requirement.specifier), text


def test_the_list_of_parts_comes_from_the_lock(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / ".ci/sbom.py"), str(LOCK), str(tmp_path)]
    subprocess.run(script, check=True)
    (bom,) = tmp_path.glob("quarterdeck-*.cdx.json")
    (licences,) = tmp_path.glob("quarterdeck-*-licences.txt")
    read = json.loads(bom.read_text())
    assert (read["bomFormat"], read["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["name"]: part for part in read["components"]}
    assert parts.keys() == pinned().keys()
    assert (parts["textual"]["scope"], parts["pytest"]["scope"]) == ("required", "excluded")
    assert all(part["hashes"] for part in parts.values())
    needed = {name for name, part in parts.items() if part["scope"] == "required"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in chain(project["dependencies"], *project["optional-dependencies"].values()):
        assert canonicalize_name(Requirement(text).name) in needed, text
    assert {"aiohttp", "psycopg-binary"} <= needed  # of aiodocker, and of an extra of psycopg
    text = licences.read_text()
    assert {line.partition(" ")[0] for line in text.splitlines()} == needed
    assert ": not stated" not in text
    assert "textual 8.2.8: MIT" in text and "\nruff" not in text
