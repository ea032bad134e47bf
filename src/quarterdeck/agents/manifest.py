"""The `package.json` of a program installed by npm or a similar tool."""

import json
from pathlib import Path
from typing import Any, cast


def manifest_of(program: Path) -> dict[str, Any]:
    """Return the manifest of a program's package; empty when it is not in a package."""
    target = program.resolve()
    if "node_modules" not in target.parts:
        return {}
    for directory in target.parents:
        if directory.name == "node_modules":
            return {}
        if manifest := _read(directory / "package.json"):
            return manifest
    return {}


def _read(path: Path) -> dict[str, Any]:
    """Return a manifest; those without a version only mark a directory and do not count."""
    try:
        parsed: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    manifest = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    return manifest if isinstance(manifest.get("version"), str) else {}
