"""The screen of environments over the real service."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.tui.forms.kit.controls import FieldRow
from quarterdeck.wire.environment_parts import CreateFile, CreateVariable, EnvironmentHook
from quarterdeck.wire.environments import GLOBAL, CreateEnvironment, Environment
from quarterdeck.wire.replicas import CreateReplica
from tests.support.waiting import WAIT_SECONDS, eventually, pauses
from tests.tui_shell.live import Desk, Installation


@contextlib.asynccontextmanager
async def screen(
    live: Installation, size: tuple[int, int] = (100, 30), drafts: Path | None = None
) -> AsyncIterator[Desk]:
    """A cockpit with the screen open."""
    async with live.cockpit(size, drafts) as desk:
        await desk.see("online")
        await desk.press("e")
        await desk.see("Everywhere", "global")
        yield desk


async def made(live: Installation, name: str = "shop") -> Environment:
    async with live.client() as client:
        return await client.environments.create(CreateEnvironment(name=name))


async def test_the_page_opens_at_the_environment_of_the_replica(live: Installation) -> None:
    shop = await made(live)
    async with live.client() as client:
        body = CreateReplica(name="alpha", environment_id=shop.id)
        await client.replicas.create(body)
    try:
        async with live.cockpit() as desk:
            await desk.see("alpha")
            await desk.press("e")
            await desk.see("Everywhere", "Name          shop")
            await desk.press("up")
            await desk.see("Name          global")
    finally:
        await live.clear()


async def test_an_environment_from_its_making_to_its_end(live: Installation) -> None:
    async with screen(live) as desk:
        await desk.press("n")
        await desk.see("New environment")
        await desk.write("shop")
        await desk.press("tab")
        await desk.write("Sells things")
        await desk.press(*["tab"] * 4)
        await desk.write("/nowhere/at/all")
        await desk.press("ctrl+s")
        await desk.see("not a git repository", "New environment", "Sells things")
        await desk.press("ctrl+u")
        await desk.write(str(live.repository))
        await desk.press("ctrl+s")
        await desk.see("Organization", "Sells things")
        await desk.see(f"Repositories  {live.repository.name}")
        await desk.press("r")
        await desk.see("Description", "Preferences")
        await desk.press("ctrl+u")
        await desk.write("bakery")
        await desk.press("ctrl+s")
        await desk.see("Name          bakery")
        await desk.press("d")
        await desk.see("Delete bakery?", "hooks with all their versions")
        await desk.press("y")
        await desk.miss("bakery")
    async with live.client() as client:
        assert [one.name for one in await client.environments.list(scope="all")] == ["global"]


@pytest.mark.long
async def test_a_name_that_is_taken_is_said_beside_it_and_nothing_is_lost(
    live: Installation,
) -> None:
    await made(live)
    async with screen(live) as desk:
        await desk.press("n")
        await desk.see("New environment")
        await desk.write("shop")
        await desk.press("tab")
        await desk.write("kept words")
        await desk.press("ctrl+s")
        await desk.see("An environment has this name already.", "kept words")
        await desk.press("escape")
        await desk.see("Unsaved changes", "name, description")
        await desk.press("escape")
        await desk.see("kept words")
        await desk.press("2", "ctrl+s")
        await desk.see("shop2")


async def test_variables_are_masked_and_told_whose_they_are(
    live: Installation, tmp_path: Path
) -> None:
    shop = await made(live)
    async with live.client() as client:
        await client.variables.add(GLOBAL, CreateVariable(key="LEVEL", value="hunter1"))
        await client.variables.add(GLOBAL, CreateVariable(key="ZONE", value="hunter2"))
        await client.variables.add(shop.id, CreateVariable(key="LEVEL", value="hunter3"))
    async with screen(live, drafts=tmp_path / "drafts") as desk:
        await desk.press("down", "2")
        await desk.see("LEVEL", "over global", "ZONE", "from global")
        assert "hunter" not in desk.text
        await desk.press("a")
        await desk.see("New variable of shop")
        await desk.write("TOKEN")
        await desk.press("tab")
        await desk.write("hunter4")
        await desk.see("•••••••")
        assert "hunter" not in desk.text
        await desk.press("ctrl+s")
        await desk.see("TOKEN")
        assert "hunter" not in desk.text
        await desk.press("s")
        await desk.see("hunter2", "hunter3", "hunter4")
        await desk.press("s", "down", "d")
        await desk.see("Delete TOKEN?")
        await desk.press("y")
        await desk.see("TOKEN was deleted.")
        await desk.press("enter")
        await desk.see("Inherited from global")
    kept = [path for path in (tmp_path / "drafts").rglob("*") if path.is_file()]
    assert not any(b"hunter" in path.read_bytes() for path in kept)


@pytest.mark.long
async def test_a_pasted_file_is_shown_before_it_changes_anything(live: Installation) -> None:
    shop = await made(live)
    async with live.client() as client:
        await client.variables.add(shop.id, CreateVariable(key="OLD", value="1"))
    async with screen(live) as desk:
        await desk.press("down", "2")
        await desk.see("OLD")
        await desk.press("v")
        await desk.see("Paste a .env file into shop")
        await desk.write('OLD=hunter2\nexport NEW="a b"\nHOME=/\n')
        await desk.see("1 added, 1 changed, 1 invalid", "sandbox sets it")
        assert "hunter2" not in desk.text
        async with live.client() as client:
            assert len(await client.variables.list(shop.id)) == 1
        await desk.press("ctrl+s")
        await desk.see("Imported 2", "= same")
        async with live.client() as client:
            found = {one.key: one.value for one in await client.variables.list(shop.id)}
        assert found == {"OLD": "hunter2", "NEW": "a b"}
        await desk.press("escape")
        await desk.see("NEW", "OLD", "s show values")


@pytest.mark.long
async def test_files_are_written_and_changed(live: Installation) -> None:
    shop = await made(live)
    hostile = "title\x1b]0;owned\x07\nsecond line"
    async with live.client() as client:
        await client.environment_files.add(shop.id, CreateFile(path="~/a.txt", content=hostile))
    async with screen(live, (80, 24)) as desk:
        await desk.press("down", "3")
        await desk.see("~/a.txt", "2 lines", "own")
        await desk.press("enter")
        await desk.see("second line")
        assert not {"\x1b", "\x07"} & set(desk.text)
        await desk.press("tab", "down", "end")
        await desk.write(" more")
        await desk.press("ctrl+s")
        await desk.miss("ctrl+s")
        await desk.press("a")
        await desk.see("New file")
        await desk.write("/etc/passwd")
        await desk.press("ctrl+s")
        await desk.see("It must begin with ~/")
        await desk.press("escape", "d")
        await desk.see("~/a.txt")
    async with live.client() as client:
        (file,) = await client.environment_files.list(shop.id)
    assert file.content == hostile + " more"


@pytest.mark.long
async def test_skills_are_found_and_installed(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await desk.press("down", "4")
        await desk.see("No skills")
        await desk.press("a")
        await desk.see("Type to search.")
        assert "No results" not in desk.text
        await desk.press("escape")
    skill = live.home / "skills" / "review"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: Review\ndescription: Looks at diffs\n---\nDo it.\n")
    async with screen(live) as desk:
        await desk.press("down", "4")
        await desk.see("No skills")
        await desk.press("a")
        await desk.see("Review", "Looks at diffs")
        await desk.write("nothing like it")
        await desk.see("No results")
        await desk.press("ctrl+u")
        await desk.write("diffs")
        await desk.see("1 skill;")
        await desk.press("enter")
        await desk.see("✓ installed")
        await desk.press("enter")
        await desk.see("enabled already")
        await desk.press("escape")
        await desk.see("SKILL", "Review")
        await desk.press("d")
        await desk.see("Remove Review?")
        await desk.press("y")
        await desk.see("No skills")
    async with live.client() as client:
        assert not await client.skills.list(shop.id)


@pytest.mark.long
async def test_mcp_servers_of_both_kinds(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await desk.press("down", "5")
        await desk.see("No MCP servers")
        await desk.press("a")
        await desk.see("New MCP server", "Command")
        await desk.write("docs")
        await desk.press("ctrl+s")
        await desk.see("Required.")
        await desk.write("npx")
        await desk.press("tab")
        await desk.write("-y\ndocs-mcp")
        await desk.press("tab")
        await desk.write("TOKEN=hunter2")
        await desk.press("ctrl+s")
        await desk.see("npx (2 arguments)", "TOKEN=")
        assert "hunter2" not in desk.text
        await desk.press("enter")
        await desk.see("docs-mcp")
        await desk.press("tab", "enter", "down", "enter")
        await desk.see("URL")
        assert "Command" not in desk.text
        await desk.press("tab")
        await desk.write("ftp://x")
        await desk.press("ctrl+s")
        await desk.see("It must begin with http")
        await desk.press("ctrl+u")
        await desk.write("https://host/mcp?key=hunter3")
        await desk.press("ctrl+s")
        await desk.see("https://host/mcp?••••")
        assert "hunter3" not in desk.text
    async with live.client() as client:
        (mcp,) = await client.mcps.list(shop.id)
    assert mcp.config == {"url": "https://host/mcp?key=hunter3", "headers": {}}


@pytest.mark.long
async def test_a_start_hook_is_tried_out_and_saved(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await desk.press("down", "6")
        await desk.see("Warm hook", "Start hook", "enter to write one")
        await desk.press("down", "enter")
        await desk.see("Start hook of shop, new")
        await desk.write("echo it is $((40 + 2)); exit 3")
        await desk.press("ctrl+t")
        await desk.see("it is 42", "Failed (exit code 3)")
        await desk.press(*["backspace"] * 8, "ctrl+t")
        await desk.see("Succeeded (exit code 0)")
        await desk.press("escape")
        await desk.see("Unsaved changes", "the script")
        await desk.press("s")
        await desk.see("Saved as version 1")
        await desk.press("escape")
        await desk.see("version 1, 1 line", "echo it is $((40 + 2))")
    async with live.client() as client:
        hook = await client.environment_hooks.start(shop.id)
    assert isinstance(hook, EnvironmentHook) and hook.content == "echo it is $((40 + 2))"


async def test_the_warm_pool_is_switched(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await desk.press("down", "7")
        await desk.see("Off: replicas are created on demand")
        await desk.press("enter")
        await desk.see("Target size", "on")
        async with live.client() as client:
            pool = (await client.environment_hooks.warm(shop.id)).warm_pool
        assert pool is not None and pool.enabled
        await desk.press("enter")
        await desk.see("Off.")
    async with asyncio.timeout(WAIT_SECONDS), live.client() as client:
        for pause in pauses(0.02):
            if not await client.warm_pools.workspaces(pool.id):
                break
            await asyncio.sleep(pause)


@pytest.mark.long
async def test_what_could_not_be_read_is_read_when_the_line_is_back(live: Installation) -> None:
    await made(live)
    async with screen(live) as desk:
        await desk.press("down", "2")
        await desk.see("No variables")
        live.kill()
        await desk.press("3")
        await desk.see("Could not be read")
        live.start()
        await live.ready()
        await desk.see("No files")


@pytest.mark.long
async def test_a_narrow_window_shows_one_part_at_a_time(live: Installation) -> None:
    await made(live)
    async with screen(live, (50, 20)) as desk:
        assert "[General]" not in desk.text
        await desk.press("down", "enter")
        await desk.see("[General]", "shop")
        assert "Everywhere" not in desk.text
        await desk.press("escape")
        await desk.see("Everywhere")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "ReplicaListView")


async def edit_field(desk: Desk, path: str) -> None:
    """Open the form of the environment `shop`, and focus a field."""
    await desk.press("down")
    await desk.see("Name          shop")
    await desk.press("r")
    await desk.see("Description", "Preferences")
    rows = desk.app.screen.query(FieldRow)
    control = next(row.control for row in rows if row.spec.field.path == path)
    while desk.app.focused is not control:
        await desk.press("tab")


@pytest.mark.long
async def test_a_cost_limit_is_typed_as_in_the_dialog_of_a_replica(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await edit_field(desk, "cost_limit")
        await desk.write("much")
        await desk.press("ctrl+s")
        await desk.see("Not an amount in dollars")
        await desk.press("ctrl+u")
        await desk.write("$12345.67")
        await desk.press("ctrl+s")
        await desk.see("Cost limit", "$12345.67")
        async with live.client() as client:
            assert (await client.environments.get(str(shop.id))).cost_limit == 12345.67


@pytest.mark.long
async def test_permission_rules_are_lines_of_the_form(live: Installation) -> None:
    shop = await made(live)
    async with screen(live) as desk:
        await edit_field(desk, "rules")
        await desk.write("allow git status *\npush it")
        await desk.press("ctrl+s")
        await desk.see("A rule begins with")
        await desk.press("ctrl+u")
        await desk.write("reject git push")
        await desk.press("ctrl+s")
        await desk.see("Rules", "allow git status *", "reject git push")
        async with live.client() as client:
            rules = (await client.environments.get(str(shop.id))).permission_rules
        assert [rule.line for rule in rules] == ["allow git status *", "reject git push"]
