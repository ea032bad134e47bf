"""What an environment carries is there in its workspaces, and where it must not be, it is not."""

import base64
import json
from pathlib import Path

import pytest
from sqlalchemy import update

from quarterdeck.service.db.tables import environment_variables
from tests.shaping.conftest import SPY, Shop
from tests.support.trees import files_under
from tests.support.waiting import eventually


async def typed(shop: Shop, id: str, line: str) -> str:
    """What a terminal shows of a line's output."""
    base = f"/v1/replica/{id}/terminal/sessions"
    session = (await shop.call("POST", base, {"cols": 200, "rows": 50}, 201))["session"]["id"]
    body = {"data": f"{line}; exit\n", "generation": 0, "sequence": 0}
    shown = b""
    async with shop.client.stream("GET", f"{base}/{session}/stream") as response:
        await shop.call("POST", f"{base}/{session}/input", body)
        async for text in response.aiter_lines():
            if text.startswith("data: "):
                event = json.loads(text[6:])
                shown += base64.b64decode(event.get("data") or "")
                if event["type"] == "exit":
                    break
    return shown.decode(errors="replace")


async def test_variables_reach_exec_terminal_hooks_and_agent(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.add(
        "global", "variables", key="LAYER", value="global", personal_override_allowed=True
    )
    await shop.add("global", "variables", key="SHARED", value="below")
    await shop.add(environment, "variables", key="LAYER", value="own")
    kept = await shop.add(environment, "variables", key="KEPT", value="/nowhere")
    # As it was stored while such a key was allowed.
    stored = update(environment_variables).values(key="HOME")
    one = environment_variables.c.id == kept["environment_variable"]["id"]
    await shop.context.database.write(lambda c: c.execute(stored.where(one)))
    await shop.hook(environment, "warm", 'echo "$LAYER $SHARED" > ~/hooked')
    text = "```sh\necho agent-$LAYER-$SHARED > ~/agent\n```"
    made = await shop.make(environment, message=text)
    assert await shop.run(made, "echo $LAYER $SHARED $HOME") == "own below /home/agent\n"
    assert await shop.run(made, "cat ~/hooked") == "own below\n"
    assert "seen-own-below" in await typed(shop, made, "echo seen-$LAYER-$SHARED")

    async def ran() -> bool:
        return await shop.run(made, "cat ~/agent 2>/dev/null") == "agent-own-below\n"

    await eventually(ran, "the agent's turn")


@pytest.mark.long
async def test_variables_too_large_for_a_process_are_the_replicas_error(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(environment, "warm", "true")
    large = [
        await shop.add(environment, "variables", key=f"LARGE_{number}", value="x" * 65_536)
        for number in range(96)  # six megabytes: more than any process is given
    ]
    made = await shop.begin(environment)
    error = (await shop.reach(made, "error"))["error"]
    assert "variables are together too large for a process" in error
    assert "files of the environment" in error and "hook" not in error
    for variable in large[8:]:
        path = f"/v1/environments/{environment}/variables/{variable['environment_variable']['id']}"
        await shop.call("DELETE", path)
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")


@pytest.mark.long
async def test_files_lie_at_their_path_and_are_renewed_when_woken(shop: Shop) -> None:
    environment = await shop.environment()
    one = await shop.add(
        environment, "files", name="rc", path="~/.config/tool/rc", content="first\n"
    )
    made = await shop.make(environment)
    assert await shop.run(made, "cat ~/.config/tool/rc; stat -c %a ~/.config/tool/rc") == (
        "first\n600\n"
    )
    id = one["environment_file"]["id"]
    await shop.call("PATCH", f"/v1/environments/{environment}/files/{id}", {"content": "second\n"})
    await shop.call("POST", f"/v1/workspaces/{made}/sleep")
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")
    assert await shop.run(made, "cat ~/.config/tool/rc") == "second\n"


@pytest.mark.long
async def test_a_skill_is_installed_from_a_repository_and_told_of(shop: Shop, skills: Path) -> None:
    environment = await shop.environment(system_prompt="Be brief.")
    for slug, source in (("review", f"{skills}#review"), ("other", f"file://{skills}/.git#review")):
        await shop.add(environment, "skills", name=slug, slug=slug, source=source)
    await shop.add(environment, "files", name="f", path="~/f", content="x")
    await shop.add(environment, "variables", key="TOKEN", value="s3cret")
    await shop.hook(environment, "start", "echo started")
    made = await shop.make(environment)
    places = "~/.agents/skills/review/SKILL.md ~/.claude/skills/other/SKILL.md"
    assert (await shop.run(made, f"cat {places}")).count("name: review") == 2
    assert await shop.run(made, "cat ~/.gemini/GEMINI.md") == "Be brief.\n"
    for _ in range(2):
        replica = await shop.call("GET", f"/v1/replica/{made}?include=environment")
        told = replica["replica"]["environment"]
        assert told["files_uploaded"] == ["~/f"]
        assert told["env_vars_set"] == ["TOKEN"]
        assert sorted(told["skills_installed"]) == ["other", "review"]
        (hook,) = told["hooks"]["start_hooks"]
        assert (hook["exitCode"], hook["timedOut"]) == (0, False)
        assert told["last_updated_at"]
        assert "s3cret" not in json.dumps(replica)
        await shop.call("POST", f"/v1/workspaces/{made}/sleep")


@pytest.mark.long
@pytest.mark.parametrize("address", ["{}", "file://{}/.git"])
async def test_a_source_of_many_skills_gives_the_one_named_by_the_slug(
    shop: Shop, skills: Path, address: str
) -> None:
    environment = await shop.environment()
    source = address.format(skills)
    await shop.add(environment, "skills", name="Look", slug="review", source=source)
    made = await shop.make(environment)
    assert await shop.run(made, "cd ~/.agents/skills; find . -type f") == "./review/SKILL.md\n"


@pytest.mark.long
async def test_a_skill_at_the_top_wins_over_a_folder_of_its_name(shop: Shop, skills: Path) -> None:
    (skills / "SKILL.md").write_text("---\nname: top\n---\n")
    environment = await shop.environment()
    await shop.add(environment, "skills", name="Look", slug="review", source=str(skills))
    made = await shop.make(environment)
    assert "name: top" in await shop.run(made, "cat ~/.agents/skills/review/SKILL.md")


@pytest.mark.long
async def test_a_source_without_the_skill_says_where_it_was_sought(
    shop: Shop, skills: Path
) -> None:
    environment = await shop.environment()
    await shop.add(environment, "skills", name="Look", slug="look", source=str(skills))
    replica = await shop.reach(await shop.begin(environment), "error")
    assert "holds no SKILL.md at its top or in look" in replica["error"]


@pytest.mark.long
async def test_a_skill_that_cannot_be_read_is_the_replicas_error(shop: Shop, skills: Path) -> None:
    environment = await shop.environment()
    await shop.add(environment, "skills", name="no", slug="no", source=f"{skills}#nothing")
    made = await shop.begin(environment)
    replica = await shop.reach(made, "error")
    assert "The skill no could not be read" in replica["error"]
    listed = await shop.call("GET", f"/v1/environments/{environment}/skills")
    (one,) = listed["environment_skills"]
    await shop.call("DELETE", f"/v1/environments/{environment}/skills/{one['id']}")
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")


@pytest.mark.long
async def test_an_agent_gets_its_key_and_servers_and_nobody_else_the_key(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(
        environment,
        "warm",
        f"mkdir -p ~/.local/bin; cat > ~/.local/bin/gemini <<'END'\n{SPY}\nEND\n"
        "chmod +x ~/.local/bin/gemini; env > ~/hook-environment",
    )
    body = {"name": "keyless", "environment_id": environment, "coding_agent": "gemini"}
    await shop.call("POST", "/v1/replica", body, 400)
    await shop.call("POST", "/v1/gemini/credentials", {"api_key": "sk-for-gemini-alone"}, 200)
    stdio = {"command": "docs", "args": ["--all"], "env": {"TOKEN": "t"}}
    await shop.add(environment, "mcps", name="docs", transport="stdio", config=stdio)
    web = {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "k"}}
    await shop.add(environment, "mcps", name="web", transport="http", config=web)
    await shop.add(environment, "mcps", name="old", transport="sse", config={"url": "http://x/"})
    made = await shop.make(environment, coding_agent="gemini", message="hello")

    async def seen() -> str:
        return await shop.run(made, "cat ~/seen.json 2>/dev/null")

    told = json.loads(await eventually(seen, "the agent"))
    assert told["environment"]["GEMINI_API_KEY"] == "sk-for-gemini-alone"
    assert told["params"]["mcpServers"] == [
        {
            "name": "docs",
            "command": "docs",
            "args": ["--all"],
            "env": [{"name": "TOKEN", "value": "t"}],
        },
        {
            "type": "http",
            "name": "web",
            "url": "http://127.0.0.1:1/mcp",
            "headers": [{"name": "X-Key", "value": "k"}],
        },
    ]
    looked = await shop.run(
        made, "rm ~/seen.json; env; cat ~/hook-environment; cat /run/replica/*.json"
    )
    assert "GEMINI_API_KEY" not in looked
    assert "sk-for-gemini-alone" not in looked
    assert "sk-for-gemini-alone" not in await typed(shop, made, "env")
    place = shop.home.workspaces / made
    for path, content in files_under(place / "state"):
        assert b"sk-for-gemini-alone" not in content, path
    assert "sk-for-gemini-alone" not in json.dumps(await shop.events(made))

    async def told_of_the_old() -> bool:
        return "cannot use these MCP servers: old" in json.dumps(await shop.events(made))

    await eventually(told_of_the_old, "a word on the server that was left out")
