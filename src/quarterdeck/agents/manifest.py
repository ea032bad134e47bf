"""The `package.json` of a program that came with npm or its like."""

import json
from pathlib import Path
from typing import Any, cast


def manifest_of(program: Path) -> dict[str, Any]:
    """What the package of a program says of itself; empty when it lies in no package."""
    true = program.resolve()
    if "node_modules" not in true.parts:
        return {}
    for directory in true.parents:
        if directory.name == "node_modules":
            return {}
        if found := _read(directory / "package.json"):
            return found
    return {}


def _read(path: Path) -> dict[str, Any]:
    """A manifest; those that only mark a directory say no version and do not count."""
    try:
        read: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    found = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    return found if isinstance(found.get("version"), str) else {}
