"""Saves as they are received: what a replica sends is not trusted."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.saves import Saves
from quarterdeck.wire.saves import WorkSave
from tests.support.git import git, make_repository

ID = "workspace"


@dataclass
class Replica:
    """A checkout that is saved, and the saves it goes to."""

    root: Path
    checkout: Path
    saves: Saves
    source: RepositorySource

    @property
    def place(self) -> Path:
        return self.root / "home/saves" / f"{ID}.git"

    async def output(self) -> bytes:
        """What the engine prints now."""
        call = {
            "repositories": [
                {
                    "id": self.source.id,
                    "name": "shop",
                    "path": str(self.checkout),
                    "defaultBranch": "main",
                }
            ],
            "stateDir": str(self.root / "inside/state"),
            "known": await self.saves.known(ID, [self.source]),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "quarterdeck.engine.saving"),
            env={**os.environ, "HOME": str(self.root / "inside/home")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        output, _ = await process.communicate(json.dumps(call).encode())
        assert process.returncode == 0
        return output

    async def receive(self, output: bytes) -> WorkSave:
        return await self.saves.receive(ID, [self.source], _parts(output))

    def saved(self, path: str) -> str:
        return git(self.place, "show", f"refs/saves/{self.source.id}/qd/saved:{path}")


async def _parts(output: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(output), 1000):
        yield output[start : start + 1000]


@pytest.fixture
async def replica(tmp_path: Path) -> Replica:
    repository = make_repository(tmp_path / "shop")
    home = Home(tmp_path / "home")
    mirrors = Mirrors(home.mirrors)
    source = RepositorySource(str(uuid4()), "shop", str(repository), "main")
    await mirrors.connect(source.id, source.url)
    checkout = tmp_path / "inside/workspace/shop"
    git(tmp_path, "clone", "--quiet", str(repository), str(checkout))
    for name in ("user.name", "user.email"):
        git(checkout, "config", name, "someone@example.invalid")
    for name in ("home", "state"):
        (tmp_path / "inside" / name).mkdir()
    return Replica(tmp_path, checkout, Saves(home, mirrors), source)


async def test_only_what_is_new_is_sent(replica: Replica) -> None:
    (replica.checkout / "large").write_bytes(os.urandom(300_000))
    git(replica.checkout, "checkout", "-q", "-b", "mine")
    await replica.receive(await replica.output())
    # What the mirror has is not copied: a commit, its tree, the file, and no files of HOME.
    listed = git(replica.place, "count-objects", "-v")
    assert "in-pack: 4\n" in listed, listed
    (replica.checkout / "small").write_text("small\n")
    output = await replica.output()
    assert len(output) < 10_000
    work = await replica.receive(output)
    assert replica.saved("small") == "small"
    assert work.heads == {replica.source.id: "refs/heads/mine"}
    newest = await replica.saves.newest(ID)
    assert newest is not None and newest.heads == work.heads and newest.at is not None


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["short", "no pack", "no header", "foreign", "injected", "missing"]
)
async def test_what_is_damaged_leaves_the_earlier_save(replica: Replica, kind: str) -> None:
    (replica.checkout / "note").write_text("earlier\n")
    await replica.receive(await replica.output())
    before = git(replica.place, "for-each-ref")
    (replica.checkout / "note").write_text("later\n")
    line, _, pack = (await replica.output()).partition(b"\n")
    work = json.loads(line)
    object = work["refs"]["refs/saves/files"]
    match kind:
        case "short":
            pack = pack[: len(pack) // 2]
        case "no pack":
            pack = b"nothing of the kind"
        case "no header":
            line = b"nothing of the kind"
        case "foreign":
            work["refs"]["refs/saves/other/heads/main"] = object
        case "injected":
            name = f"refs/saves/{replica.source.id}/x\0{object}\0\0delete refs/saves/header\0"
            work["refs"][name] = object
        case _:
            work["refs"][f"refs/saves/{replica.source.id}/heads/x"] = "1" * 40
    if kind != "no header":
        line = json.dumps(work).encode()
    with pytest.raises(SandboxError):
        await replica.receive(line + b"\n" + pack)
    assert git(replica.place, "for-each-ref") == before
    assert replica.saved("note") == "earlier"
    await replica.receive(await replica.output())
    assert replica.saved("note") == "later"


@pytest.mark.long
async def test_a_repository_that_cannot_be_read_keeps_its_save(replica: Replica) -> None:
    await replica.receive(await replica.output())
    (replica.checkout / ".git").rename(replica.checkout / "aside")
    work = await replica.receive(await replica.output())
    assert work.failed == [replica.source.id]
    newest = await replica.saves.newest(ID)
    assert newest is not None and newest.heads == {replica.source.id: "refs/heads/main"}
    assert replica.saved("README") == "A shop.\nOpen."
    await replica.saves.remove(ID)
    assert not replica.place.exists() and await replica.saves.newest(ID) is None
