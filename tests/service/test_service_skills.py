"""Searching registries of skills: directories and git repositories, read by the real driver."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.context import ServiceContext
from tests.service.callers import Callers, environment, made, refused
from tests.support.git import commit_files

SEARCH = "/v1/environment-skills/search"


@pytest.fixture
def database_kind() -> str:
    """Registries are no matter of the database."""
    return "sqlite"


def skill(folder: Path, name: str | None = None, description: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fields = "" if name is None else f"name: {name}\ndescription: {description}\n"
    (folder / "SKILL.md").write_text(f"---\n{fields}---\nText.\n")


def mirrored(source: Path, bare: Path) -> None:
    """A bare clone of a repository."""
    subprocess.run(["git", "clone", "-q", "--bare", source, bare], check=True)


@pytest.fixture
async def search(callers: Callers, context: ServiceContext, home: Home) -> Any:
    context.sources = ProcessDriver(home)

    async def run(q: str | None = None) -> list[dict[str, Any]]:
        answer = await callers.member.get(SEARCH, params={} if q is None else {"q": q})
        assert answer.status_code == 200, answer.text
        return answer.json()["skills"]

    return run


async def slugs(search: Any, q: str | None = None) -> list[str]:
    return [one["slug"] for one in await search(q)]


async def test_without_a_registry_nothing_is_found(search: Any) -> None:
    assert await search() == []
    assert await search("pdf") == []


async def test_the_homes_own_directory_is_a_registry(search: Any, home: Home) -> None:
    skill(home.skills / "pdf", "PDF reader", "Reads and fills forms.")
    skill(home.skills / "office" / "sheets", "Sheets")
    skill(home.skills / "node_modules" / "no", "No")
    skill(home.skills / "no slug" / "~x", "No")
    (home.skills / "pdf" / "extra.txt").write_text("x")
    assert await search("reader") == [
        {
            "name": "PDF reader",
            "slug": "pdf",
            "source": f"{home.skills}#pdf",
            "installs": 0,
            "description": "Reads and fills forms.",
        }
    ]
    assert [one["source"] for one in await search()] == [
        f"{home.skills}#pdf",
        f"{home.skills}#office/sheets",
    ]


async def test_which_matches_come_first(search: Any, home: Home) -> None:
    skill(home.skills / "a", "Reads", "Also a PDF.")
    skill(home.skills / "b-pdf", "Some pdf tool")
    skill(home.skills / "pdf-fill", "Fill")
    skill(home.skills / "pdf", "Whatever")
    assert await slugs(search, "PDF") == ["pdf", "pdf-fill", "b-pdf", "a"]
    assert await slugs(search, "tool pdf") == ["b-pdf"]
    assert await slugs(search, "pdf nothing") == []
    assert await slugs(search, "  ") == ["a", "b-pdf", "pdf", "pdf-fill"]


async def test_a_git_repository_is_a_registry_also_when_it_is_away(
    search: Any, home: Home, tmp_path: Path
) -> None:
    source = tmp_path / "skills"
    skill(source / "tools" / "pdf", "Pdf")
    skill(source, "Top")
    commit_files(source)
    bare = tmp_path / "origin.git"
    mirrored(source, bare)
    home.skill_registries.write_text(f"# ours\n\n{bare}\n{bare}\n/nothing/here\n")
    expected = [("origin", f"{bare}"), ("pdf", f"{bare}#tools/pdf")]
    assert [(one["slug"], one["source"]) for one in await search()] == expected
    bare.rename(tmp_path / "away")
    assert [(one["slug"], one["source"]) for one in await search()] == expected


async def test_a_found_skill_can_be_enabled_and_read(
    search: Any, home: Home, callers: Callers, context: ServiceContext
) -> None:
    skill(home.skills / "pdf", "Pdf")
    (found,) = await search("pdf")
    path = await environment(callers.key)
    body = {field: found[field] for field in ("name", "slug", "source")}
    await made(callers.key, f"{path}/skills", **body)
    url, _, directory = found["source"].partition("#")
    files = await context.sources.read_tree(url, directory)
    assert [file.path for file in files] == ["SKILL.md"]


@pytest.mark.parametrize(
    "source",
    ["{}/none", "{}/none#pdf", "file://{}/none", "pdf", "-x", "~nobody-here/x", f"/{'x' * 300}"],
)
async def test_a_source_that_is_not_on_this_machine_is_refused_at_once(
    search: Any, callers: Callers, tmp_path: Path, source: str
) -> None:
    path = await environment(callers.key)
    body = {"name": "Pdf", "slug": "pdf", "source": source.format(tmp_path)}
    answer = await callers.key.post(f"{path}/skills", json=body)
    refused(answer, 400, "INVALID_REQUEST", "source")


async def test_a_source_elsewhere_is_not_asked_for(search: Any, callers: Callers) -> None:
    path = await environment(callers.key)
    await made(
        callers.key, f"{path}/skills", name="P", slug="p", source="https://nowhere.invalid/s"
    )


async def test_a_source_that_is_away_but_mirrored_can_be_enabled(
    search: Any, callers: Callers, home: Home, tmp_path: Path
) -> None:
    skill(tmp_path / "skills" / "pdf", "Pdf")
    commit_files(tmp_path / "skills")
    bare = tmp_path / "origin.git"
    mirrored(tmp_path / "skills", bare)
    home.skill_registries.write_text(f"{bare}\n")
    (found,) = await search("pdf")
    bare.rename(tmp_path / "away")
    path = await environment(callers.key)
    await made(callers.key, f"{path}/skills", name="P", slug="p", source=found["source"])


async def test_a_query_has_a_bound(callers: Callers) -> None:
    assert (await callers.key.get(SEARCH, params={"q": "x" * 1000})).status_code == 200
    refused(await callers.key.get(SEARCH, params={"q": "x" * 1001}), 400, "INVALID_REQUEST", "q")
