"""Installs an environment's files, skills and instructions below HOME.

What was installed is noted in the state directory with a digest. A later boot writes again only
what the environment has changed since (so what somebody edited in the workspace stays edited), and
removes what the environment no longer has.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from quarterdeck.engine.setup.agent_homes import INSTRUCTIONS, OWN_SKILLS, SKILLS
from quarterdeck.engine.setup.errors import SetupFailed
from quarterdeck.engine.setup.home import Home, parts_of
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
    """Brings HOME up to the environment. Blocking.

    Raises:
        SetupFailed: something could not be put in its place.
    """
    target = Home(home)
    wanted = _wanted(setup)
    before = _read(state / MANIFEST)
    for path in before.keys() - wanted.keys():
        target.remove(path)
    noted = {path: digest for path, digest in before.items() if path in wanted}
    try:
        for path, item in wanted.items():
            if noted.get(path) == item.digest and target.has(path):
                continue
            _put(target, path, item)
            noted[path] = item.digest
    finally:
        _note(state / MANIFEST, noted)


def _put(target: Home, path: str, item: _Item) -> None:
    if item.link:
        target.link(path, item.content.decode())
    else:
        target.write(path, item.content, item.mode)


def _wanted(setup: Setup) -> dict[str, _Item]:
    """By normal path; an environment's own file wins over what comes with instructions."""
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
        raise SetupFailed(f"{slug!r} cannot be the name of a skill's directory.")
    return slug


def _read(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, str]", known) if isinstance(known, dict) else {}


def _note(path: Path, installed: dict[str, str]) -> None:
    new = path.with_suffix(".new")
    try:
        with new.open("w") as file:
            json.dump(installed, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise SetupFailed(
            f"{path.name} could not be written: {error.strerror or error}."
        ) from error
