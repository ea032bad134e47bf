"""Writes what a release consists of: a CycloneDX list from the lock, and the licences as text.

    python .ci/sbom.py LOCK DIRECTORY

Run in an environment that has the packages of the lock: it knows their licences, and which of them
quarterdeck itself needs, with any of its extras.
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
LICENCE_FILE = re.compile(r"(?i)(licen[cs]e|copying)")
CLASSIFIER = "License :: OSI Approved :: "


def pinned(lock: str) -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of each package of a lock."""
    found: dict[str, tuple[str, list[str]]] = {}
    hashes: list[str] = []
    for line in lock.splitlines():
        if match := PINNED.match(line):
            hashes = []
            found[canonicalize_name(match[1])] = (match[2], hashes)
        hashes += HASH.findall(line)
    return found


def installed(name: str) -> Distribution | None:
    """Return a package, None when it is for another platform."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def needed(name: str, extras: Iterable[str], seen: set[tuple[str, str]]) -> set[str]:
    """Return all packages that a package needs with some extras, itself included."""
    name = canonicalize_name(name)
    package = installed(name)
    for extra in {"", *extras} - {extra for one, extra in seen if one == name}:
        seen.add((name, extra))
        for text in (package.requires if package else None) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needed(requirement.name, requirement.extras, seen)
    return {name for name, _ in seen}


def licence(name: str) -> str:
    """Return a package's licence as it states it."""
    package = installed(name)
    if package is None:
        return "not installed on this platform"
    data = package.metadata
    classified = [
        c.removeprefix(CLASSIFIER) for c in data.get_all("Classifier") or () if CLASSIFIER in c
    ]
    stated = (data.get("License") or "").strip().splitlines()
    return (
        data.get("License-Expression")
        or " / ".join(classified)
        or next(iter(stated), None)
        or title(package)
        or "not stated"
    )


def title(package: Distribution) -> str | None:
    """Return the first line of a package's licence file, which says what it is."""
    for file in package.files or ():
        if LICENCE_FILE.match(file.name) and ".dist-info" in str(file):
            lines = map(str.strip, file.read_text().splitlines())
            return next(filter(None, lines), None)
    return None


def main(lock: Path, directory: Path) -> None:
    """Write both files."""
    version = distribution("quarterdeck").version
    extras = distribution("quarterdeck").metadata.get_all("Provides-Extra") or ()
    own = needed("quarterdeck", extras, set()) - {"quarterdeck"}
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{number}",
            "name": name,
            "version": number,
            "purl": f"pkg:pypi/{name}@{number}",
            "scope": "required" if name in own else "excluded",
            "licenses": [{"license": {"name": licence(name)}}],
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
        }
        for name, (number, hashes) in sorted(pinned(lock.read_text()).items())
    ]
    parent = {
        "type": "application",
        "bom-ref": "quarterdeck",
        "name": "quarterdeck",
        "version": version,
    }
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**parent, "licenses": [{"license": {"id": "MIT"}}]}},
        "components": components,
    }
    (directory / f"quarterdeck-{version}.cdx.json").write_text(json.dumps(bom, indent=1) + "\n")
    lines = [
        f"{part['name']} {part['version']}: {part['licenses'][0]['license']['name']}"
        for part in components
        if part["scope"] == "required"
    ]
    (directory / f"quarterdeck-{version}-licences.txt").write_text("\n".join(lines) + "\n")


main(Path(sys.argv[1]), Path(sys.argv[2]))
