"""Saves as they are received: what a replica sends is not trusted."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from _pytest.mark import ParameterSet

from quarterdeck.engine.git_operations import CheckoutOperations
from quarterdeck.local.home import Home
from quarterdeck.sandboxes import saves as saves_module
from quarterdeck.sandboxes.errors import SandboxError, SaveRepairedError
from quarterdeck.sandboxes.git import GitRunner
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.record import CloneBook, CloneEntry, store_book
from quarterdeck.sandboxes.save_repair import find_damage
from quarterdeck.sandboxes.saves import Saves
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.saves import WorkSave
from tests.support.git import git, make_repository

ID = "workspace"


@dataclass
class Replica:
    """A checkout that is saved, and the saves it goes to."""

    root: Path
    checkout: Path
    mirrors: Mirrors
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
    return Replica(tmp_path, checkout, mirrors, Saves(home, mirrors), source)


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


@pytest.mark.parametrize(("most", "parts"), [(100, 150), (1_000_000, 300)])
async def test_refs_of_a_save_cannot_use_up_the_files_of_the_disk(
    replica: Replica, monkeypatch: pytest.MonkeyPatch, most: int, parts: int
) -> None:
    """Each part of a name is a directory or a file, and nothing counts them for the replica."""
    monkeypatch.setattr(saves_module, "MOST_PARTS", most)
    await replica.receive(await replica.output())
    before = sum(1 for _ in replica.place.rglob("*"))
    line, _, pack = (await replica.output()).partition(b"\n")
    work = json.loads(line)
    object = next(iter(work["refs"].values()))
    work["refs"][f"refs/saves/{replica.source.id}/heads/{'a/' * parts}b"] = object
    with pytest.raises(SandboxError) as refused:
        await replica.receive(json.dumps(work).encode() + b"\n" + pack)
    assert f"more than {most:,} parts" in (refused.value.details or "")
    assert sum(1 for _ in replica.place.rglob("*")) < before + 20


async def test_a_save_is_not_read_before_it_is_a_repository(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = GitRunner.run
    read: list[object] = []

    async def begun(self: GitRunner, *arguments: str, **more: Any) -> str:
        if arguments[0] == "init":
            await asyncio.to_thread(os.mkdir, arguments[-1])  # what git does first
            read.append(await replica.saves.file(ID, "notes", 100))
        return await run(self, *arguments, **more)

    monkeypatch.setattr(GitRunner, "run", begun)
    await replica.receive(await replica.output())
    assert read == [None]
    assert await replica.saves.newest(ID) is not None


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


@dataclass
class Damaged:
    """A replica that was saved twice: in a turn, and with an uncommitted file after it."""

    replica: Replica

    @property
    def prefix(self) -> str:
        return f"refs/saves/{self.replica.source.id}"

    def object(self, revision: str) -> Path:
        """Return the file of an object: all of them are in files of their own."""
        name = git(self.replica.place, "rev-parse", revision).strip()
        return self.replica.place / "objects" / name[:2] / name[2:]

    def ref(self, name: str) -> Path:
        return self.replica.place / self.prefix / name

    def asides(self) -> list[Path]:
        return sorted(self.replica.place.parent.glob("*.damaged-*"))

    async def restarted(self) -> Replica:
        """Return the replica with saves that have not looked at anything yet."""
        saves = Saves(Home(self.replica.root / "home"), self.replica.mirrors)
        return replace(self.replica, saves=saves)


@pytest.fixture
async def damaged(replica: Replica) -> Damaged:
    shop = replica.checkout
    home = Home(replica.root / "home")
    base = git(shop, "rev-parse", "HEAD").strip()
    entry = CloneEntry(directory="shop", base_commit=base, objects=None)
    book = places_of(home, ID).clones
    book.parent.mkdir(parents=True)
    store_book(book, CloneBook(clones={replica.source.id: entry}))
    git(shop, "checkout", "-q", "-b", "mine")
    (shop / "first").write_text("first\n")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "First")
    git(shop, "branch", "other")
    (shop / "draft").write_text("an early draft\n")
    checkpoint = CheckoutOperations(shop, dict(os.environ))
    await checkpoint.checkpoint("turns/one", "The first turn")
    canvas = replica.root / "inside/home/.quarterdeck/canvas"
    canvas.mkdir(parents=True)
    (canvas / "plan.md").write_text("a plan\n")
    (canvas / "sketch.md").write_text("a sketch\n")
    await replica.receive(await replica.output())
    (shop / "second").write_text("second\n")
    git(shop, "add", "second")
    git(shop, "commit", "-qm", "Second")
    for name in ("draft", "note"):
        (shop / name).write_text(f"the newest {name}\n")
    await replica.receive(await replica.output())
    _unpack(replica)
    return Damaged(replica)


def _unpack(replica: Replica) -> None:
    """Put every object into a file of its own."""
    for pack in replica.place.glob("objects/pack/*.pack"):
        moved = pack.rename(replica.root / pack.name)
        for rest in pack.parent.glob(f"{pack.stem}.*"):
            rest.unlink()
        command = ["git", "--git-dir", replica.place, "unpack-objects", "-q"]
        subprocess.run(command, input=moved.read_bytes(), check=True)


def _cut(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size // 2)


def _repack(save: Damaged) -> Path:
    git(save.replica.place, "repack", "-a", "-d", "-q", "-l")
    git(save.replica.place, "prune-packed")
    (pack,) = save.replica.place.glob("objects/pack/*.pack")
    return pack


def _flip(path: Path) -> None:
    """Change bytes of the last object that no other one needs to be found."""
    content = bytearray(path.read_bytes())
    for place in range(len(content) - 28, len(content) - 22):
        content[place] ^= 0xFF
    path.chmod(0o600)
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Damaged], object]] = {
    "an object is missing": lambda save: save.object(f"{save.prefix}/qd/saved:note").unlink(),
    "an object is cut off": lambda save: _cut(save.object(f"{save.prefix}/heads/mine")),
    "a pack is cut off": lambda save: _cut(_repack(save)),
    "a pack has other bytes": lambda save: _flip(_repack(save)),
    "all objects are missing": lambda save: remove_tree(save.replica.place / "objects"),
    "a ref names nothing": lambda save: save.ref("heads/other").write_text("1" * 40 + "\n"),
    "a ref is empty": lambda save: save.ref("qd/saved").write_text(""),
    "the newest files are missing": lambda save: save.ref("qd/saved").unlink(),
    "packed refs are no text": lambda save: (save.replica.place / "packed-refs").write_bytes(
        b"\0\1\2\n"
    ),
    "it is no repository": lambda save: (save.replica.place / "HEAD").unlink(),
    "its settings are damaged": lambda save: (save.replica.place / "config").write_text("[core"),
    "the header is missing": lambda save: save.object("refs/saves/header").unlink(),
    "the header is cut off": lambda save: _cut(save.object("refs/saves/header")),
}


def _kinds(names: Iterable[str], *shorter: str) -> list[ParameterSet]:
    """Return parameters, most of which are only for the gate."""
    return [pytest.param(one, marks=() if one in shorter else pytest.mark.long) for one in names]


@pytest.mark.parametrize("kind", _kinds(DAMAGES, "a pack is cut off"))
async def test_a_damaged_save_is_kept_and_replaced(damaged: Damaged, kind: str) -> None:
    before = damaged.replica.place.stat().st_ino
    DAMAGES[kind](damaged)
    replica = await damaged.restarted()
    (replica.checkout / "note").write_text("newer still\n")
    await replica.receive(await replica.output())
    (aside,) = damaged.asides()
    assert aside.stat().st_ino == before
    assert str(aside) in replica.saves.notices[ID]
    # The new one is complete, without the damaged one.
    aside.rename(replica.root / "elsewhere")
    assert await find_damage(replica.mirrors.git, replica.place, contents=True) is None
    assert replica.saved("note") == "newer still" and replica.saved("second") == "second"
    subjects = git(replica.place, "log", "--format=%s", f"{damaged.prefix}/heads/mine")
    assert subjects.split("\n")[:2] == ["Second", "First"]
    assert git(replica.place, "show", f"{damaged.prefix}/qd/turns/one:draft") == "an early draft"
    assert git(replica.place, "show", "refs/saves/files:home/.quarterdeck/canvas/plan.md")
    newest = await replica.saves.newest(ID)
    assert newest is not None and newest.lost == []
    assert newest.heads == {replica.source.id: "refs/heads/mine"}
    await replica.receive(await replica.output())
    assert damaged.asides() == []


@pytest.mark.long
@pytest.mark.parametrize(
    "lock", _kinds(["packed-refs.lock", "HEAD.lock", "refs/saves/header.lock"], "packed-refs.lock")
)
async def test_a_lock_that_was_left_is_removed(damaged: Damaged, lock: str) -> None:
    (damaged.replica.place / lock).touch()
    replica = await damaged.restarted()
    (replica.checkout / "note").write_text("newer still\n")
    await replica.receive(await replica.output())
    assert replica.saved("note") == "newer still"
    assert damaged.asides() == [] and replica.saves.notices == {}


@pytest.mark.long
async def test_a_save_that_is_damaged_while_it_is_used_is_made_again(damaged: Damaged) -> None:
    """What is found out only while git works with it."""
    replica = await damaged.restarted()
    await replica.receive(await replica.output())
    pack = _repack(damaged)
    (replica.checkout / "note").write_text("newer still\n")
    output = await replica.output()
    pack.with_suffix(".idx").unlink()
    with pytest.raises(SaveRepairedError):
        await replica.receive(output)
    assert len(damaged.asides()) == 1
    await replica.receive(await replica.output())
    assert replica.saved("note") == "newer still"
    assert len(damaged.asides()) == 1


LOSSES: dict[str, tuple[str, list[str], str]] = {
    # What is lost, what a person is told, and the files and commits that are there.
    "blob": ("{}/qd/saved:note", ["shop/note"], "draft first second / Second First"),
    "tree": ("{}/qd/saved^{{tree}}", ["shop: its newest changes"], "first second / Second First"),
    "saved": ("{}/qd/saved", ["shop: its newest changes"], "first second / Second First"),
    "commit": (
        "{}/heads/mine",
        ["shop: the newest commits of mine"],
        "draft first note second / First",
    ),
    "header": ("refs/saves/header", [], "draft first note second / Second First"),
    "file": (
        "refs/saves/files:home/.quarterdeck/canvas/plan.md",
        ["home/.quarterdeck/canvas/plan.md"],
        "draft first note second / Second First",
    ),
    "files": (
        "refs/saves/files",
        ["the canvas and the sessions of agents"],
        "draft first note second / Second First",
    ),
    "checkpoint": (
        "{}/qd/turns/one",
        ["shop: a checkpoint"],
        "draft first note second / Second First",
    ),
}


@pytest.mark.parametrize("kind", _kinds(LOSSES, "blob"))
async def test_what_can_be_read_of_a_damaged_save_is_kept(damaged: Damaged, kind: str) -> None:
    lost, told, there = LOSSES[kind]
    damaged.object(lost.format(damaged.prefix)).unlink()
    replica = await damaged.restarted()
    newest = await replica.saves.newest(ID)
    assert newest is not None and newest.lost == told
    assert newest.heads == {replica.source.id: "refs/heads/mine"}
    (aside,) = damaged.asides()
    aside.rename(replica.root / "elsewhere")
    files = git(replica.place, "ls-tree", "--name-only", f"{damaged.prefix}/qd/saved").split()
    own = ("log", "--format=%s", f"{damaged.prefix}/heads/mine", "--not", "--alternate-refs")
    assert " ".join([*files[1:], "/", *git(replica.place, *own).split()]) == there
    assert await find_damage(replica.mirrors.git, replica.place, contents=True) is None
    # It is a save like any other: the next one needs no more than what is new.
    await replica.receive(await replica.output())
    assert replica.saved("note") == "the newest note"


@pytest.mark.long
async def test_without_anything_readable_the_replica_starts_from_its_base(
    damaged: Damaged,
) -> None:
    remove_tree(damaged.replica.place / "objects")
    replica = await damaged.restarted()
    newest = await replica.saves.newest(ID)
    assert newest is not None
    assert newest.lost[:2] == ["shop: all of its work", "the canvas and the sessions of agents"]
    assert replica.saved("README") == "A shop.\nOpen."
    git(replica.place, "cat-file", "-e", "refs/saves/files^{tree}")


@pytest.mark.long
async def test_a_missing_mirror_is_not_taken_for_damage(damaged: Damaged) -> None:
    mirror = damaged.replica.mirrors.path(damaged.replica.source.id)
    aside = mirror.rename(mirror.with_name("aside"))
    replica = await damaged.restarted()
    assert await replica.saves.newest(ID) is not None
    aside.rename(mirror)
    assert await replica.saves.newest(ID) is not None
    assert damaged.asides() == [] and replica.saves.notices == {}


async def test_a_save_whose_installation_was_moved_is_not_taken_for_damaged(
    damaged: Damaged,
) -> None:
    moved = damaged.replica.root / "moved"
    (damaged.replica.root / "home").rename(moved)
    home = Home(moved)
    saves = Saves(home, Mirrors(home.mirrors))
    newest = await saves.newest(ID)
    assert newest is not None and newest.lost == [] and saves.notices == {}
    git(moved / "saves" / f"{ID}.git", "fsck", "--connectivity-only")


async def test_damaged_alternates_are_written_again(damaged: Damaged) -> None:
    alternates = damaged.replica.place / "objects/info/alternates"
    before = alternates.read_bytes()
    alternates.write_bytes(b"\xff\n")
    replica = await damaged.restarted()
    newest = await replica.saves.newest(ID)
    assert newest is not None and newest.lost == []
    assert alternates.read_bytes() == before
    assert damaged.asides() == [] and replica.saves.notices == {}


@pytest.mark.long
async def test_a_repair_that_was_cut_off_is_finished(damaged: Damaged) -> None:
    damaged.object(f"{damaged.prefix}/qd/saved:note").unlink()
    place = damaged.replica.place
    part = place.with_suffix(".part")
    (part / "objects").mkdir(parents=True)
    replica = await damaged.restarted()
    await replica.saves.newest(ID)
    assert len(damaged.asides()) == 1 and not part.exists()
    # Between the two names.
    place.rename(part)
    newest = await (await damaged.restarted()).saves.newest(ID)
    assert newest is not None and newest.lost == ["shop/note"]
    await replica.saves.remove(ID)
    assert [*place.parent.iterdir()] == []
