"""Directories of sources, from this machine's disk and from git, within bounds."""

import os
from pathlib import Path

import pytest

from quarterdeck.sandboxes import source_trees as trees
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.source_port import TreeFile
from quarterdeck.sandboxes.source_trees import Trees
from tests.git.remotes import PASSWORD, bare_copy, credential_helper, http_remote
from tests.support.git import commit_files, git


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkout with a skill, and something uncommitted in it."""
    root = tmp_path / "skills"
    (root / "review/scripts").mkdir(parents=True)
    (root / "review/SKILL.md").write_text("---\nname: review\n---\n")
    (root / "review/scripts/run.sh").write_text("true\n")
    (root / "review/scripts/run.sh").chmod(0o755)
    (root / "review/logo").write_bytes(b"\0\xff\n\n")
    commit_files(root)
    (root / "review/NEW").write_text("new")
    return root


@pytest.fixture
def reader(tmp_path: Path) -> Trees:
    return Trees(Mirrors(tmp_path / "mirrors"))


async def test_a_directory_of_this_machine_is_read_as_it_lies(reader: Trees, source: Path) -> None:
    found = {one.path: one for one in await reader.read(str(source), "review")}
    assert set(found) == {"SKILL.md", "NEW", "logo", "scripts/run.sh"}
    assert found["scripts/run.sh"].executable
    assert not found["SKILL.md"].executable


async def test_a_repository_is_read_as_committed_and_also_when_it_is_gone(
    reader: Trees, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "FRESH_SECONDS", 0.0)
    url = f"file://{source}/.git"
    found = {one.path: one for one in await reader.read(url, "review")}
    assert set(found) == {"SKILL.md", "logo", "scripts/run.sh"}
    assert found["logo"].content == b"\0\xff\n\n"
    assert found["scripts/run.sh"].executable
    away = tmp_path / "away"
    source.rename(away)  # noqa: ASYNC240 - nothing else runs
    assert len(await reader.read(url, "review")) == 3
    away.rename(source)
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "two")
    assert len(await reader.read(url, "review")) == 4


async def test_a_reader_that_is_killed_leaves_nothing(
    reader: Trees, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[set[str]] = []

    def read(packed: object) -> list[TreeFile]:
        beside.append({path.name for path in (tmp_path / "mirrors").iterdir()})
        return []

    monkeypatch.setattr(trees, "_read_archive", read)
    await reader.read(f"file://{source}/.git", "review")
    await reader.find(f"file://{source}/.git", "SKILL.md")
    (mirror,) = (tmp_path / "mirrors").glob("*/HEAD")
    assert beside == [{"gitconfig", mirror.parent.name}] * 2


async def test_nothing_outside_is_read(reader: Trees, source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (source / "review/link").symlink_to(tmp_path / "secret")
    (source / "out").symlink_to(tmp_path)
    os.mkfifo(source / "review/pipe")
    found = {one.path for one in await reader.read(str(source), "review")}
    assert "link" not in found
    assert "pipe" not in found
    for directory in ("..", "review/../..", "out"):
        with pytest.raises(SandboxError):
            await reader.read(str(source), directory)


@pytest.mark.parametrize("scheme", ["", "file://"])
async def test_what_is_too_large_is_refused(reader: Trees, source: Path, scheme: str) -> None:
    for number in range(trees.MOST_FILES):
        (source / "review" / f"f{number}").write_text("x")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "many")
    url = f"{scheme}{source}/.git" if scheme else str(source)
    with pytest.raises(SandboxError, match="too large"):
        await reader.read(url, "review")


async def test_files_of_a_name_are_found_among_similar_ones(reader: Trees, source: Path) -> None:
    skill = (source / "review/SKILL.md").read_text()
    for other in ("SKILL.md", "xSKILL.md", "SKILL.md.txt", "deep/er/SKILL.md", "a\tb/SKILL.md"):
        (source / other).parent.mkdir(parents=True, exist_ok=True)
        (source / other).write_text(skill)
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "similar")
    found = {one.path for one in await reader.find(f"file://{source}/.git", "SKILL.md")}
    assert found == {"SKILL.md", "review/SKILL.md", "deep/er/SKILL.md", "a\tb/SKILL.md"}
    assert not await reader.find(f"file://{source}/.git", "ILL.md")


async def test_a_source_cannot_have_git_write_more_than_its_files(
    reader: Trees, source: Path
) -> None:
    """A place of a file that git fills in would be a thousand times as long."""
    filled = "$Format:%<(16000)%h$\n" * 1000
    (source / "review/SKILL.md").write_text(filled)
    (source / ".gitattributes").write_text("SKILL.md export-subst\n")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "attributes")
    url = f"file://{source}/.git"
    (found,) = await reader.find(url, "SKILL.md")
    assert len(found.content) == len(filled)
    files = {one.path: one.content for one in await reader.read(url, "review")}
    assert files["SKILL.md"] == filled.encode()


def test_a_list_of_files_is_read_as_far_as_files_are_taken() -> None:
    listed = "100644 blob 1234 1\tf\0" * (trees.MOST_FILES + 100)
    records = trees._named(listed, "f")
    with pytest.raises(SandboxError, match="too large"):
        trees._check(records, trees._Bounds("many"))
    assert len(list(records)) == 99


async def test_no_such_directory(reader: Trees, source: Path) -> None:
    for url in (str(source), f"file://{source}/.git", "/nowhere"):
        with pytest.raises(SandboxError):
            await reader.read(url, "nothing")


async def test_without_a_login_no_credentials_are_used(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what was fetched with them: whose skill it is decides."""
    home = tmp_path / "home"
    home.mkdir()
    helper = credential_helper(home / "helper")
    (home / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    monkeypatch.setenv("HOME", str(home))
    mirrors = tmp_path / "mirrors"
    bare_copy(source, tmp_path / "served" / "skills.git")
    with http_remote(tmp_path / "served") as address:
        url = f"{address}/skills.git"
        (home / ".netrc").write_text(f"machine 127.0.0.1 login person password {PASSWORD}\n")
        assert len(await Trees(Mirrors(mirrors)).read(url, "review")) == 3
        stranger = Trees(Mirrors(mirrors, None), prefix="open-tree")
        with pytest.raises(SandboxError, match="git cannot read"):
            await stranger.read(url, "review")
    with http_remote(tmp_path / "served", secured=False) as address:
        assert len(await stranger.read(f"{address}/skills.git", "review")) == 3
    for refused in ("git@host.example:skills.git", "ssh://host.example/skills.git"):
        with pytest.raises(SandboxError, match="without credentials"):
            await stranger.require(refused)
        with pytest.raises(SandboxError):
            await stranger.read(refused, "review")
