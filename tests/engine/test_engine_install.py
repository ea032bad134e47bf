"""What an environment carries is installed below HOME, and nowhere else."""

import base64
import json
import os
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.engine.setup.boot import install
from quarterdeck.engine.setup.home import SetupError
from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.engine import OpenChat
from quarterdeck.wire.setup import McpServer, Setup, SetupFile, SetupSkill, SkillFile
from quarterdeck.wire.terminals import ExecRequest
from tests.engine.conftest import Place


def skill(slug: str, **files: str) -> SetupSkill:
    return SetupSkill(
        slug=slug,
        files=[
            SkillFile(
                path=path.replace("__", "/"),
                content=base64.b64encode(text.encode()),
                executable=path.endswith("sh"),
            )
            for path, text in files.items()
        ],
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "state").mkdir()
    return tmp_path / "home"


def put(home: Path, **setup: object) -> None:
    install(Setup.model_validate(setup), home, home.parent / "state")


def test_a_file_lies_at_its_path_for_its_owner_alone(home: Path) -> None:
    put(home, files=[SetupFile(path="~/.config/tool/rc", content="a=1\n")])
    path = home / ".config/tool/rc"
    assert path.read_text() == "a=1\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["rc"]


@pytest.mark.parametrize("path", ["~/../out", "/etc/out", "~/", "~", "~/a/../../out"])
def test_a_path_that_leaves_the_home_is_refused(home: Path, path: str) -> None:
    with pytest.raises(SetupError):
        put(home, files=[SetupFile(path=path, content="x")])
    assert not (home.parent / "out").exists()


def test_a_link_is_not_followed_out_of_the_home(home: Path) -> None:
    outside = home.parent / "outside"
    outside.mkdir()
    (home / "way").symlink_to(outside)
    with pytest.raises(SetupError, match="way/out could not be written"):
        put(home, files=[SetupFile(path="~/way/out", content="x")])
    (outside / "kept").write_text("mine")
    (home / "file").symlink_to(outside / "kept")
    put(home, files=[SetupFile(path="~/file", content="x")])
    assert (home / "file").read_text() == "x"
    assert (outside / "kept").read_text() == "mine"


def test_an_edited_file_stays_until_the_environment_changes_it(home: Path) -> None:
    put(home, files=[SetupFile(path="~/rc", content="1")])
    (home / "rc").write_text("edited")
    put(home, files=[SetupFile(path="~/rc", content="1")])
    assert (home / "rc").read_text() == "edited"
    put(home, files=[SetupFile(path="~/rc", content="2")])
    assert (home / "rc").read_text() == "2"
    (home / "rc").unlink()
    put(home, files=[SetupFile(path="~/rc", content="2")])
    assert (home / "rc").read_text() == "2"


def test_a_skill_is_where_agents_look_and_goes_with_its_environment(home: Path) -> None:
    one = skill("review", **{"SKILL.md": "---\nname: review\n---\n", "scripts__run.sh": "true\n"})
    put(home, skills=[one])
    assert (home / ".agents/skills/review/SKILL.md").read_text().startswith("---")
    assert os.access(home / ".agents/skills/review/scripts/run.sh", os.X_OK)
    for place in (".claude/skills", ".codex/skills", ".gemini/skills", ".config/opencode/skills"):
        assert (home / place / "review/SKILL.md").is_file()
    put(home)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("slug", ["../x", "a/b", "..", "~"])
def test_a_skill_cannot_lie_elsewhere(home: Path, slug: str) -> None:
    with pytest.raises(SetupError):
        put(home, skills=[skill(slug, **{"SKILL.md": "x"})])


def test_instructions_reach_the_agents_files_unless_the_environment_has_its_own(home: Path) -> None:
    own = SetupFile(path="~/.claude/CLAUDE.md", content="mine")
    put(home, system_prompt="Be brief.", files=[own])
    assert (home / ".gemini/GEMINI.md").read_text() == "Be brief.\n"
    assert (home / ".codex/AGENTS.md").read_text() == "Be brief.\n"
    assert (home / ".claude/CLAUDE.md").read_text() == "mine"


def test_instructions_reach_the_file_of_a_configured_agent(home: Path) -> None:
    own = {"robot": OwnAgent(name="Robot", command=("robot",), instructions=".robot/ROBOT.md")}
    install(Setup(system_prompt="Be brief."), home, home.parent / "state", own)
    assert (home / ".robot/ROBOT.md").read_text() == "Be brief.\n"


async def test_an_engine_installs_before_it_is_ready(place: Place) -> None:
    place.environment["COLOUR"] = "blue"
    place.setup = Setup(files=[SetupFile(path="~/.rc", content="here\n")])
    await place.start()
    await (await place.entries()).wait("engine.ready")
    done = await (await place.link()).exec(ExecRequest(command="cat ~/.rc; echo $COLOUR"))
    assert done.output == "here\nblue\n"


async def test_what_cannot_be_installed_fails_the_boot_with_its_reason(place: Place) -> None:
    place.setup = Setup(files=[SetupFile(path="~/taken/rc", content="x")])
    place.configure()
    (place.root / "home/taken").write_text("a file")
    await place.start()
    entries = await place.entries()
    await entries.wait("error")
    state = (await (await place.link()).status()).setup
    assert state is not None and state.phase == "failed"
    assert state.failure is not None
    assert "taken/rc" in state.failure
    assert "engine.ready" not in entries.types()


async def test_keys_and_servers_reach_the_agent_alone(place: Place, agents, message) -> None:
    catalog = agents.FakeCatalog()
    server = McpServer(name="docs", transport="stdio", config={"command": "docs"})
    place.setup = Setup(credentials={"fake": "sk-secret", "other": "no"}, mcp_servers=[server])
    await place.start(catalog)
    entries = await place.entries()
    await entries.wait("engine.ready")
    link = await place.link()
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_send(message(chat, "say hello"))
    await entries.wait("chat.turn.completed")
    (spec,) = catalog.fake.opened
    assert spec.key == "sk-secret"
    assert [one.name for one in spec.mcp_servers] == ["docs"]
    assert "sk-secret" not in repr(spec)
    seen = await link.exec(ExecRequest(command="env; cat ../run/engine.json"))
    assert "workspaceId" in seen.output
    assert "sk-secret" not in seen.output
    assert "sk-secret" not in place.journal.read_text()
    assert json.loads((place.run_dir / "engine.json").read_text())["setup"]["credentials"] == {}
