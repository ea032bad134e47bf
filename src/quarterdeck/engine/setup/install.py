"""Installs an environment's files, skills and instructions below HOME.

Installed items are noted in the state directory with a digest. A later boot writes only items that
the environment has changed since (so edits in the workspace stay), and removes items that the
environment no longer has.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from quarterdeck.engine.setup.home import (
    INSTRUCTIONS,
    OWN_SKILLS,
    SKILLS,
    SandboxHome,
    SetupError,
    parts_of,
)
from quarterdeck.local.files import write_file
from quarterdeck.wire.setup import Setup

MANIFEST = "installed.json"


@dataclass(frozen=True)
class _Item:
    """One thing below HOME: a file's content and mode, or a link's target."""

    content: bytes
    mode: int = 0o644
    link: bool = False

    @property
    def digest(self) -> str:
        head = f"{self.mode} {self.link} ".encode()
        return hashlib.sha256(head + self.content).hexdigest()


def install(setup: Setup, home: Path, state: Path) -> None:
    """Update HOME to the environment. Blocking.

    Raises:
        SetupError: something could not be installed.
    """
    target = SandboxHome(home)
    items = _items(setup)
    before = _read(state / MANIFEST)
    for path in before.keys() - items.keys():
        target.remove(path)
    noted = {path: digest for path, digest in before.items() if path in items}
    try:
        for path, item in items.items():
            if noted.get(path) == item.digest and target.has(path):
                continue
            _put(target, path, item)
            noted[path] = item.digest
    finally:
        _note(state / MANIFEST, noted)


def _put(target: SandboxHome, path: str, item: _Item) -> None:
    if item.link:
        target.link(path, item.content.decode())
    else:
        target.write(path, item.content, item.mode)


def _items(setup: Setup) -> dict[str, _Item]:
    """Return the items by normal path; an environment's own file wins over those of instructions."""
    items: dict[str, _Item] = {}
    if setup.system_prompt:
        text = setup.system_prompt.rstrip().encode() + b"\n"
        items |= {path: _Item(text) for path in INSTRUCTIONS}
    for skill in setup.skills:
        slug = _slug(skill.slug)
        for file in skill.files:
            path = "/".join(parts_of(f"{SKILLS}/{slug}/{file.path}"))
            items[path] = _Item(bytes(file.content), 0o755 if file.executable else 0o644)
        for place in OWN_SKILLS:
            up = "../" * (place.count("/") + 1)
            items[f"{place}/{slug}"] = _Item(f"{up}{SKILLS}/{slug}".encode(), link=True)
    for file in setup.files:
        items["/".join(parts_of(file.path))] = _Item(file.content.encode(), 0o600)
    return items


def _slug(slug: str) -> str:
    if len(parts_of(slug)) != 1 or "~" in slug:
        raise SetupError(f"{slug!r} cannot be the name of a skill's directory.")
    return slug


def _read(path: Path) -> dict[str, str]:
    try:
        digests = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, str]", digests) if isinstance(digests, dict) else {}


def _note(path: Path, installed: dict[str, str]) -> None:
    try:
        write_file(path, json.dumps(installed))
    except OSError as error:
        raise SetupError(f"{path.name} could not be written: {error.strerror or error}.") from error
