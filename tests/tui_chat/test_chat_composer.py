"""The composer: naming, history, and what is chosen for the next message."""

import asyncio
import base64
import struct
import zlib
from pathlib import Path
from uuid import UUID

import pytest
from textual import events

from quarterdeck.client.client import Client
from quarterdeck.store.drafts import NotReadableError, PromptHistory
from quarterdeck.tui import host_services
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.widgets.completions import Completions, Token, token_at
from quarterdeck.wire.chats import SlashCommand
from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica
from quarterdeck.wire.repositories import ConnectRepository
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.frozen import FrozenCockpit, Story, said, screen_text
from tests.tui_shell.live import Desk, Installation


def test_a_word_is_named_at_the_cursor_only() -> None:
    assert token_at("/pl", 0) == Token("command", 0, "pl")
    assert token_at("/pl", 1) is None
    assert token_at("/plan what", 0) is None
    assert token_at("see @src/a", 3) == Token("file", 4, "src/a")
    assert token_at("me@example.org", 0) is None
    assert token_at("@a b", 0) is None


@pytest.mark.long
async def test_commands_of_the_server_are_offered_and_taken(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.see("○ idle")
        await desk.write("/")
        await desk.see("/plan", "Plan, and change nothing.", "/fast")
        await desk.write("f")
        await desk.miss("/plan")
        await desk.press("enter")
        await eventually(lambda: composer.text == "/fast ", "the command")
        assert not desk.app.screen.query_one(Completions).is_open
        await desk.press("ctrl+u")
        await desk.write("/")
        await desk.see("/plan")
        await desk.press("down", "tab")
        await eventually(lambda: composer.text == "/fast ", "the second command")
        await desk.press("ctrl+u")
        await desk.write("/")
        await desk.see("/plan")
        await desk.press("escape")
        await eventually(lambda: not desk.app.screen.query_one(Completions).is_open)
        assert desk.focus == "Composer"


@pytest.mark.long
async def test_commands_of_the_cockpit(live: Installation, tmp_path: Path) -> None:
    await live.create("alpha", "Say hello")
    async with live.cockpit() as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.see("○ idle", "In plan mode I list")
        await desk.write("/cop")
        await desk.see("Copy the agent's last message")
        await desk.press("enter")
        await desk.see("characters ")
        assert composer.text == ""
        await desk.write("/export")
        await desk.press("escape", "enter")
        await desk.see("Export the chat")
        path = tmp_path / "chat.md"
        await desk.press("ctrl+u")
        await desk.write(str(path))
        await desk.press("enter")
        await eventually(path.exists, "the file")
        assert "/copy" not in path.read_text() and "Say hello" in path.read_text()


async def with_repository(live: Installation, client: Client) -> UUID:
    url = str(live.repository)
    repository = await client.repositories.connect(ConnectRepository(url=url))
    environment = await client.environments.create(
        CreateEnvironment(name="shop", scope="user", repository_id=repository.id)
    )
    body = CreateReplica(name="alpha", environment_id=environment.id)
    return (await client.replicas.create(body)).id


@pytest.mark.long
async def test_files_of_the_repository_are_named(live: Installation) -> None:
    async with live.client() as client:
        await with_repository(live, client)
    async with live.cockpit() as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.see("○ idle")
        await desk.write("see @REA")
        await desk.see("@shop/README")
        await desk.press("tab")
        await eventually(lambda: composer.text.endswith("README "), "the file")
        assert composer.text.startswith("see @")


@pytest.mark.long
async def test_what_was_written_before_is_gone_back_to(live: Installation) -> None:
    await live.create("alpha")
    drafts = live.home / "history"
    async with live.cockpit((100, 90), drafts) as desk:  # a long answer follows each
        await opened(desk, "alpha")
        await desk.see("○ idle")
        for text in ("first", "second"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(text)
    async with live.cockpit(drafts=drafts) as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.write("unsent")
        await desk.press("up")
        await eventually(lambda: composer.text == "second")
        await desk.press("up")
        await eventually(lambda: composer.text == "first")
        await desk.press("up", "down", "down")
        await eventually(lambda: composer.text == "unsent")


def test_history_keeps_each_prompt_once_and_survives(tmp_path: Path) -> None:
    from quarterdeck.store.disk import ClientDisk

    disk, replica = ClientDisk(tmp_path), UUID(int=1)
    history = PromptHistory(disk, replica)
    for text in ("a", "b", "a", "  "):
        history.add(text)
    assert disk.prompts(replica) == ["b", "a"]
    again = PromptHistory(disk, replica)
    assert [again.back("x"), again.back("a"), again.back("b")] == ["a", "b", None]
    assert [again.forward(), again.forward(), again.forward()] == ["a", "x", None]


@pytest.mark.long
async def test_what_is_pasted_has_no_control_characters(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        composer = (await opened(desk, "alpha")).composer
        desk.app.post_message(events.Paste("a\x1b]52;c;AAAA\x07b\x1b[2J\u202ec"))
        await eventually(lambda: composer.text, "the paste")
        assert composer.text == "abc"


@pytest.mark.long
async def test_a_model_is_chosen_for_the_messages_to_come(live: Installation) -> None:
    made = await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("○ idle")
        await desk.press("alt+m")
        await desk.see("Model (from the next message)", "Agent default")
        agents = [row for row in desk.text.splitlines() if "│  agent " in row]
        assert agents and all("new chat" in row or "installed" in row for row in agents), agents
        await desk.write("nobody-1")
        await desk.press("enter")
        await desk.see("Message · nobody-1")
        chat = desk.replica("alpha").first_chat
        assert chat is not None and chat.model == "nobody-1"
        assert made.id == desk.replica("alpha").id


def png() -> bytes:
    """A picture of one pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        sum_ = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    data = zlib.compress(b"\x00\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


async def attach(desk: Desk, path: Path) -> None:
    await desk.press("ctrl+o")
    await desk.see("Attach a file")
    await desk.write(str(path))
    await desk.press("enter")


async def test_files_go_with_a_message(live: Installation, tmp_path: Path) -> None:
    made = await live.create("alpha")
    picture, report = tmp_path / "p.png", tmp_path / "report.txt"
    picture.write_bytes(png())
    report.write_text("fine\n")
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("○ idle")
        await attach(desk, tmp_path / "nothing")
        await desk.see("Cannot be read: No such file or directory.")
        await desk.press("escape")
        await desk.write("see")
        await attach(desk, report)
        place = "see ~/.quarterdeck/canvas/report.txt "
        await eventually(lambda: pane.composer.text == place, "the file's place")
        await attach(desk, picture)
        await desk.see("with the next message: p.png")
        await desk.write("look")
        await desk.press("enter")
        await desk.miss("with the next message")
        await desk.see("[image: image/png, ")
        page = await client.history.page(made.id)
        sent = next(one for one in page.events if one.type == "user-message")
        assert base64.b64decode(sent.payload["images"][0]["source"]["data"]) == png()
        assert (await client.canvas.list(made.id))[0].filename == "report.txt"


@pytest.mark.long
async def test_an_upload_for_a_sleeping_replica_comes_with_the_message(
    live: Installation, tmp_path: Path
) -> None:
    made = await live.create("alpha")
    report = tmp_path / "late.txt"
    report.write_text("fine\n")
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("○ idle")
        await client.replicas.sleep(made.id)
        await desk.see("enter wakes and sends")
        await attach(desk, report)
        await desk.see("with the next message: late.txt")
        assert "You" not in desk.text
        await desk.press("enter")
        # Its delivery, some time after the replica woke; the answer may move it off the screen.
        await desk.see("Other agents here")
        await eventually(lambda: not desk.replica("alpha").works)
        page = await client.history.page(made.id)
        [sent] = [one for one in page.events if one.type == "user-message"]
        assert sent.payload["uploads"] == ["~/.quarterdeck/canvas/late.txt"]
        assert [one.filename for one in await client.canvas.list(made.id)] == ["late.txt"]
        assert pane.messages.draft.attachments == []


def test_every_key_of_the_pane_has_its_action() -> None:
    from quarterdeck.tui.panes.chat import ChatPane
    from quarterdeck.tui.screens.main import MainScreen

    for binding in ChatPane.BINDINGS:
        name = binding.action.partition("(")[0]  # pyright: ignore[reportAttributeAccessIssue]
        owner = MainScreen if name.startswith("screen.") else ChatPane
        assert hasattr(owner, f"action_{name.removeprefix('screen.')}"), name


async def test_the_pasted_path_of_an_image_is_attached(
    frozen: FrozenCockpit, tmp_path: Path
) -> None:
    frozen.add("alpha")
    picture, report = tmp_path / "my shot.png", tmp_path / "not a picture.png"
    picture.write_bytes(png())
    report.write_text("fine\n")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        escaped = str(picture).replace(" ", "\\ ")
        for pasted in (escaped, f"'{picture}' ", str(picture)):
            pane.messages.detach()
            frozen.post_message(events.Paste(pasted))
            await eventually(lambda: "with the next message: my shot.png" in screen_text(frozen))
            assert pane.composer.text == ""
        for pasted in (str(report), str(tmp_path / "none.png"), f"see {picture}"):
            pane.composer.text = ""
            frozen.post_message(events.Paste(pasted))
            await eventually(lambda text=pasted: pane.composer.text == text)
        assert len(pane.messages.draft.attachments) == 1


async def test_keys_wait_for_the_image_of_a_pasted_path(
    frozen: FrozenCockpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen.add("alpha")
    read = asyncio.Event()

    async def read_slowly(_: str) -> None:
        await read.wait()
        raise NotReadableError("gone")

    monkeypatch.setattr(host_services, "read_dropped", read_slowly)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        for letter in "see":
            frozen.post_message(events.Key(letter, letter))
        frozen.post_message(events.Paste("/none.png"))
        for letter in "now":
            frozen.post_message(events.Key(letter, letter))
        await eventually(lambda: "Reading the image … 3 keys wait" in screen_text(frozen))
        assert pane.composer.text == "see"
        read.set()
        await eventually(lambda: pane.composer.text == "see/none.pngnow")


async def test_enter_runs_a_chosen_command_that_takes_no_argument(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen.add("alpha")
    sent: list[str] = []

    async def slash_commands(*_: UUID) -> list[SlashCommand]:
        return [
            SlashCommand(command="/compact", description="Summarize", providers=["builtin"]),
            SlashCommand(
                command="/review", description="", argument_hint="what", providers=["builtin"]
            ),
        ]

    monkeypatch.setattr(frozen.app_state.chat_commands, "slash_commands", slash_commands)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        monkeypatch.setattr(pane.messages, "send", lambda text, **_: sent.append(text))
        await eventually(lambda: frozen.focused is pane.composer)
        for typed, rest, is_sent in (
            ("r", "/review ", []),
            ("c", "", ["/compact "]),
            ("c", "/compact  it", []),
        ):
            sent.clear()
            pane.composer.text = " it" if rest.endswith("it") else ""
            await pilot.press("slash", typed)
            await eventually(lambda: pane.completions.is_open)
            await pilot.press("enter")
            await eventually(lambda rest=rest: pane.composer.text == rest)
            await eventually(lambda is_sent=is_sent: sent == is_sent)


async def test_an_unknown_command_is_sent_only_again(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = frozen.add("alpha")
    sent: list[str] = []

    async def slash_commands(*_: UUID) -> list[SlashCommand]:
        return [SlashCommand(command="/review", description="", providers=["builtin"])]

    monkeypatch.setattr(frozen.app_state.chat_commands, "slash_commands", slash_commands)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        monkeypatch.setattr(pane.messages, "send", lambda text, **_: sent.append(text))
        await eventually(lambda: frozen.focused is pane.composer)
        await pilot.press("slash")
        await eventually(lambda: "/review" in screen_text(frozen))
        # Before the first turn the agent may not have reported its commands.
        await pilot.press(*"revix", "enter")
        await eventually(lambda: sent == ["/revix"])
        sent.clear()
        said(known, Story().user("/revix").events)
        pane.composer.text = "/revix"
        await pilot.press("enter")
        await eventually(lambda: "/revix is not a command of this agent." in screen_text(frozen))
        assert (sent, pane.composer.text) == ([], "/revix")
        await pilot.press("enter")
        await eventually(lambda: sent == ["/revix"])
        for text in ("/review it", "/etc/hosts is wrong", "a /revix"):
            pane.composer.text = text
            await pilot.press("enter")
            await eventually(lambda last=text: sent[-1] == last)
