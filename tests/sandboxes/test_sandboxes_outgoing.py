"""Packs that an agent could craft to fill memory, the disk or the time of whoever unpacks them."""

import asyncio
import hashlib
import os
import struct
import subprocess
import zlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from pathlib import Path

import pytest

from quarterdeck.sandboxes import git as sandboxes_git
from quarterdeck.sandboxes.errors import DiskFullError, PushError
from quarterdeck.sandboxes.source_port import RefUpdate
from tests.support.disks import limited_files

MEGABYTE = 1 << 20
BLOB, REF_DELTA = 3, 7


def entry(kind: int, size: int, data: bytes) -> bytes:
    """Return an object of a pack before its content: kind, size when unpacked, and packed data."""
    head = bytearray([(kind << 4) | (size & 15)])
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + data


def number(value: int) -> bytes:
    """Return a size as a delta has it."""
    digits = bytearray()
    while True:
        digits.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(digits)


def name_of(blob: bytes) -> bytes:
    """Return the name under which git keeps a file."""
    return hashlib.sha1(b"blob %d\0" % len(blob) + blob).digest()


def delta(base: bytes, name: bytes, times: int, nonce: int) -> bytes:
    """Return an object that repeats a megabyte so many times, made distinct by its first bytes."""
    first = struct.pack(">I", nonce)
    # Copy from the beginning: 0x40 says that a byte of the size follows, its third one.
    copied = b"\xc0\x10" * times
    program = number(len(base)) + number(4 + times * MEGABYTE) + b"\x04" + first + copied
    return entry(REF_DELTA, len(program), name + zlib.compress(program))


def pack_of(*entries: bytes, claimed: int | None = None) -> bytes:
    """Return a pack; `claimed` is how many objects it says that it has."""
    count = len(entries) if claimed is None else claimed
    content = b"PACK" + struct.pack(">II", 2, count) + b"".join(entries)
    return content + hashlib.sha1(content).digest()


async def parts_of(pack: bytes) -> AsyncGenerator[bytes]:
    """Yield a pack in uneven parts, the first of them shorter than its header."""
    yield pack[:7]
    for start in range(7, len(pack), 100_000):
        yield pack[start : start + 100_000]


def bomb(objects: int, megabytes: int) -> bytes:
    """Return a small pack of objects that have so many megabytes each."""
    base = os.urandom(MEGABYTE)
    name = name_of(base)
    made: Sequence[bytes] = [delta(base, name, megabytes, one) for one in range(objects)]
    return pack_of(entry(BLOB, MEGABYTE, zlib.compress(base)), *made)


def files_below(directory: Path) -> int:
    """Return how many bytes of files there are."""
    return sum(one.stat().st_size for one in directory.rglob("*") if one.is_file())


def noise() -> bytes:
    """Return a pack of one blob of a megabyte, which cannot be compressed."""
    base = os.urandom(MEGABYTE)
    return pack_of(entry(BLOB, MEGABYTE, zlib.compress(base)))


@pytest.mark.parametrize(
    ("limit", "value", "pack", "said"),
    [
        ("PACK_LIMIT", 1 << 19, noise, "more than 524288 bytes"),
        (
            "OBJECT_LIMIT",
            10_000_000,
            partial(pack_of, claimed=4_000_000_000),
            "claim to have 4,000,000,000",
        ),
        ("CHECK_MEMORY", 64 << 20, partial(bomb, 1, 256), "too much memory or time"),
        ("CHECK_SECONDS", 1, partial(bomb, 2000, 16), "too much memory or time"),
        ("UNFOLDED_LIMIT", 30 << 20, partial(bomb, 4, 8), "when they are unpacked"),
    ],
    ids=["size", "objects", "memory", "time", "disk"],
)
async def test_a_pack_that_is_too_large_is_refused(
    bench, checkout, tmp_path, git, monkeypatch, limit, value, pack, said
) -> None:
    remote = tmp_path / "remote.git"
    git("clone", "--quiet", "--bare", str(checkout), str(remote), at=tmp_path)
    source = await bench.connect(remote)
    before = files_below(remote), files_below(bench.home.mirrors)
    commit = git("rev-parse", "HEAD", at=remote)
    data = pack()

    async def push() -> None:
        updates = [RefUpdate("refs/heads/new", commit)]
        await bench.driver.push(source, parts_of(data), updates)

    with monkeypatch.context() as patched:
        patched.setattr(sandboxes_git, limit, value)
        with pytest.raises(PushError, match="too large to be pushed") as refused:
            await push()
    assert said in (refused.value.details or "")
    assert before == (files_below(remote), files_below(bench.home.mirrors))
    assert not list(bench.home.mirrors.glob(".outgoing-*"))
    assert "new" not in git("branch", at=remote)
    if limit in ("PACK_LIMIT", "UNFOLDED_LIMIT"):  # the limit alone refused it
        await push()
        assert git("rev-parse", "new", at=remote) == commit


async def test_a_push_on_a_full_disk_says_so(bench, checkout, tmp_path, git) -> None:
    remote = tmp_path / "remote.git"
    git("clone", "--quiet", "--bare", str(checkout), str(remote), at=tmp_path)
    source = await bench.connect(remote)
    updates = [RefUpdate("refs/heads/new", git("rev-parse", "HEAD", at=remote))]
    with limited_files(0), pytest.raises(DiskFullError):
        await bench.driver.push(source, parts_of(pack_of()), updates)
    assert not list(bench.home.mirrors.glob(".outgoing-*"))


@pytest.mark.parametrize(
    ("ref", "commit", "said"),
    [
        ("refs/notes/x", None, "neither a branch nor a tag"),
        ("HEAD", None, "neither a branch nor a tag"),
        ("refs/replace/x", None, "neither a branch nor a tag"),
        ("--force", None, "neither a branch nor a tag"),
        ("refs/heads/a..b", None, "not a valid name"),
        ("refs/heads/a:refs/heads/b", None, "not a valid name"),
        ("refs/heads/a", "HEAD", "not the name of a commit"),
        ("refs/heads/a", "--all", "not the name of a commit"),
    ],
)
async def test_only_branches_and_tags_are_pushed_and_commits_by_name(
    bench, checkout, tmp_path, git, ref: str, commit: str | None, said: str
) -> None:
    remote = tmp_path / "remote.git"
    git("clone", "--quiet", "--bare", str(checkout), str(remote), at=tmp_path)
    source = await bench.connect(remote)
    before = git("for-each-ref", at=remote)
    with pytest.raises(PushError, match=said):
        await bench.driver.push(source, parts_of(pack_of()), [RefUpdate(ref, commit)])
    assert git("for-each-ref", at=remote) == before


async def test_no_work_tree_follows_a_push_even_if_its_repository_asks_for_that(
    bench, checkout, tmp_path, git
) -> None:
    """Its filters would run. In a rebase git lists no branch, and yet updates the work tree."""
    remote = tmp_path / "remote"
    git("clone", "--quiet", str(checkout), str(remote), at=tmp_path)
    source = await bench.connect(remote)
    branch = git("branch", "--show-current", at=remote)
    before = git("rev-parse", "HEAD", at=remote)
    git("checkout", "--quiet", "--detach", at=remote)
    (remote / ".git/rebase-merge").mkdir()
    (remote / ".git/rebase-merge/head-name").write_text(f"refs/heads/{branch}\n")
    (remote / ".git/info/attributes").write_text("* filter=theirs\n")
    git("config", "filter.theirs.smudge", f"touch {tmp_path}/ran; cat", at=remote)
    git("config", "receive.denyCurrentBranch", "updateInstead", at=remote)
    (checkout / "more").write_text("more\n")
    git("add", "more", at=checkout)
    git("commit", "--quiet", "-m", "More", at=checkout)
    commit = git("rev-parse", "HEAD", at=checkout)
    process = await asyncio.to_thread(
        subprocess.run,
        ("git", "pack-objects", "--revs", "--stdout"),
        cwd=checkout,
        input=commit.encode(),
        capture_output=True,
        check=True,
    )
    packed = process.stdout
    with pytest.raises(PushError, match="refused the push"):
        updates = [RefUpdate(f"refs/heads/{branch}", commit)]
        await bench.driver.push(source, parts_of(packed), updates)
    assert not (tmp_path / "ran").exists()
    assert git("rev-parse", branch, at=remote) == before
    assert not (remote / "more").exists()
