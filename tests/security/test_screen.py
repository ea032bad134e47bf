"""Several hundred payloads by every channel: none of their sequences reaches the terminal."""

import asyncio
import base64
import json
import os
import re
import resource
import sys
import types
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner
from pydantic import AwareDatetime, BaseModel
from rich.color import ColorSystem
from rich.segment import Segment
from textual.screen import Screen
from textual.strip import Strip

from quarterdeck.cli import git_remote
from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import (
    LONGEST_CELL,
    json_text,
    print_message,
    print_table,
    print_text,
    safe_name,
)
from quarterdeck.cli.replica import git as git_verbs
from quarterdeck.client.errors import ConflictError
from quarterdeck.transcript.text import (
    MOST_JOINED,
    UNNAMED,
    clean,
    clean_output,
    name_line,
    one_line,
)
from quarterdeck.tui.automations.run_screen import RunDialog
from quarterdeck.tui.frames.cells import CellMaker, Pens
from quarterdeck.tui.kit.dialogs import AskField, AskScreen, ChooseScreen
from quarterdeck.tui.screens.get_changes import GetChangesScreen
from quarterdeck.tui.screens.rewind import RewindScreen
from quarterdeck.tui.terminal.channel import FrameEncoder
from quarterdeck.tui.terminal.decoder import FrameDecoder, fit
from quarterdeck.tui.terminal.ghostty import GhosttyCore
from quarterdeck.wire.automations import AutomationList
from quarterdeck.wire.chats import ChatList
from quarterdeck.wire.environments import EnvironmentList
from quarterdeck.wire.previews import PreviewList
from quarterdeck.wire.replicas import ReplicaAnswer, ReplicaList
from quarterdeck.wire.setup import HookLogs
from tests.security.hostile_cockpit import LAST
from tests.security.payloads import NUMBER, harm_in_text, harm_on_screen, payloads
from tests.support import forked
from tests.support.program import Program
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text

ROOT = Path(__file__).parents[2]
TEXTS = payloads()


def test_there_are_several_hundred() -> None:
    assert len(TEXTS) > 400
    assert all(
        harm_in_text(text)
        for text in TEXTS
        if "\u0301" not in text
        and "\u00ad" not in text
        and "\u3164" not in text
        and "\U0001f468" not in text
        and "\u1100" not in text
    )


def test_what_the_command_line_prints(capsys: pytest.CaptureFixture[str]) -> None:
    for text in TEXTS:
        print_text(text)
        print_message(text)
        print_table(["A", "B"], [[text, text]])
        print_text(json_text({text: text, "list": [text]}))
    out, err = capsys.readouterr()
    assert harm_in_text(out) is None and harm_in_text(err) is None
    assert out.count("go") >= 4 * len(TEXTS)


@pytest.mark.parametrize("in_container", [False, True])
def test_what_git_shows_of_a_push_from_inside(
    in_container: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source's server says something, and may refuse with details."""
    if in_container:  # whose image has no transcripts
        monkeypatch.setitem(sys.modules, "quarterdeck.transcript.text", None)
    texts = [text for text in TEXTS if text.isascii() or not in_container]
    texts += ["\x9b2J\u202e\u200b\U000e0041é"]
    said = " ".join(texts)

    def accept(_: object) -> str:
        return "\n".join(f"remote: {text}" for text in texts)

    def refuse(_: object) -> str:
        raise ConflictError(said, status=409, details=said)

    for answer in (accept, refuse):
        monkeypatch.setattr(git_remote, "_with_origin", answer)
        git_remote._push("deck", ["push :refs/heads/a"], {})  # pyright: ignore[reportPrivateUsage]
    out, err = capsys.readouterr()
    assert "ok refs/heads/a\n\nerror refs/heads/a go0" in out
    assert "é" in out and "é" in err
    assert harm_in_text(out) is None and harm_in_text(err) is None


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 20])
async def test_what_git_shows_of_a_fetch_from_a_replica(size: int) -> None:
    """git prints the messages of an answer as they are; all else stays as it is."""

    def packets(*texts: bytes) -> bytes:
        return b"".join(b"%04x%s" % (len(text) + 4, text) for text in texts)

    messages = [text.encode() for text in [*TEXTS, "\u00e9\n", "50%\r"]] + [b"\xff\x9b2J"]
    kept = packets(b"acknowledgments\n", b"\x02\x1b[A", b"ready\n") + b"0001"
    pack = [b"\x01PACK\x1b[A", b"\x01\x00\xff"]
    said = packets(*(bytes([2 + at % 2]) + text for at, text in enumerate(messages)))
    answer = kept + packets(b"packfile\n", pack[0]) + said + packets(pack[1]) + b"0000"

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(answer), size):
            yield answer[start : start + size]

    given = b"".join([part async for part in git_remote.harmless(parts())])
    assert len(given) == len(answer)
    assert given.startswith(kept + packets(b"packfile\n", pack[0]))
    assert given.endswith(packets(pack[1]) + b"0000")
    shown = given[len(kept) :].decode(errors="ignore").replace("\x01", "").replace("\x02", "")
    shown = shown.replace("\x03", "").replace("PACK\x1b[A", "").replace("\x00", "")
    assert "go1" in shown and "\u00e9\n" in shown and "50%\r" in shown
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u200b]", shown)


MARKUP = "a[/b] [red]c [@click=app.quit]d[/]"


class Silent:
    """Never answers, and is called like markup of Textual."""

    name = title = MARKUP
    record = types.SimpleNamespace(enabled=True)
    id = UUID(int=7)
    pull_requests: tuple[()] = ()

    def __getattr__(self, name: str) -> Any:
        async def call(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        return call


DIALOGS: dict[str, Callable[[Any], Screen[Any]]] = {
    "ask": lambda _: AskScreen(MARKUP, [AskField("a", "A", "")], Silent().ask, "do"),
    "choose": lambda _: ChooseScreen(MARKUP, []),
    "get changes": GetChangesScreen,
    "rewind": lambda one: RewindScreen(one, one),
    "run": lambda one: RunDialog(one, one),
}


@pytest.mark.parametrize("dialog", DIALOGS)
async def test_the_title_of_a_dialog_has_names_as_they_are(dialog: str, tmp_path: Path) -> None:
    app = FrozenCockpit(tmp_path)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        await app.push_screen(DIALOGS[dialog](Silent()))
        await eventually(lambda: MARKUP in screen_text(app), "the title")


async def test_what_is_not_of_gits_protocol_is_not_passed_to_git() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"+004\x02\x1b[A"

    with pytest.raises(FailedError, match="not of git's protocol"):
        _ = [part async for part in git_remote.harmless(parts())]


def test_a_command_to_copy_is_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of checkpoints come from a git that the agent may have replaced."""
    monkeypatch.setattr(
        git_verbs, "with_replica", lambda *_: types.SimpleNamespace(undo="x;touch y")
    )
    done = CliRunner().invoke(git_verbs.rewind, ["shop", "--to", "turns/1"], obj=Common())
    assert "qd replica rewind shop --to 'x;touch y'." in done.output


def test_json_has_marks_and_what_is_not_seen_as_escapes() -> None:
    """`--json` prints it without cleaning, and what reads it gets the text as it was."""
    for text in TEXTS:
        printed = json_text({text: [text]})
        assert json.loads(printed) == {text: [text]}
        if "\U0001f3fb" not in text:
            assert harm_in_text(printed) is None, repr(text)


def test_one_long_cell_does_not_widen_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["x" * 5_000, "state", "y" * 5_000]] + [["name", "state", "end"]] * 1_000
    print_table(["NAME", "STATE", "END"], rows)
    out = capsys.readouterr().out
    assert len(out) < 100_000
    assert max(map(len, out.splitlines())) < 3 * LONGEST_CELL
    assert out.splitlines()[2].split() == ["name", "state", "end"]


@pytest.mark.parametrize(
    "text", ["", " ", "\x1b[31m", "\u200b", "\u202e\u2066", "\n\t", "\U000e0041"]
)
def test_a_name_of_which_nothing_can_be_shown(text: str) -> None:
    assert name_line(text) == safe_name(text) == UNNAMED
    assert name_line(f"{text}a") == safe_name(f"{text}a") == "a"


def test_cleaned_text_has_nothing_harmful() -> None:
    for text in TEXTS:
        for cleaned in (clean(text), clean_output(text), one_line(text)):
            assert harm_in_text(cleaned) is None, repr(text)


def test_the_frames_are_the_last_resort() -> None:
    """Also for text that a widget has forgotten to clean."""
    maker = CellMaker(Pens(ColorSystem.TRUECOLOR))
    for text in TEXTS:
        cells = maker.cells(Strip([Segment(text)]))
        assert all(len(cell.text) <= 1 + MOST_JOINED for cell in cells), repr(text)
        drawn = "".join(cell.text for cell in cells)
        assert harm_in_text(drawn) is None and "\n" not in drawn and "\t" not in drawn, repr(text)


def test_what_a_program_in_a_terminal_prints() -> None:
    core = GhosttyCore(80, 24)
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for text in TEXTS:
        core.feed(text.encode("utf-8", "replace") + b"\x1b\\\x18\r\n")
        rows = core.take_rows()
        frame = decoder.decode(encoder.encode(core.state(), rows))
        assert harm_in_text(frame.state.title) is None
        for _, row in frame.rows:
            for run in row:
                assert harm_in_text(run.text) is None, repr(text)
                assert len(run.text) <= run.cells + MOST_JOINED, repr(text)
    core.close()
    for marks in range(1, 65):
        for base in ("a", "\U0001f44d", "\u0e01"):
            assert len(fit(base + "\u0300\U0001f3fb" * marks, 2)) <= 2 + MOST_JOINED


def test_images_of_a_program_are_neither_promised_nor_kept() -> None:
    core = GhosttyCore(80, 24)
    for before in (b"", b"\x1bc", b"\x1b[!p", b"\x1b[?1049h"):
        core.feed(before + b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[5n")
        assert core.take_replies() == b"\x1b[0n"
    core.feed(b"\x1b_Ga=T,f=24,s=9999,v=9999,m=1;AAAA\x1b\\")
    before = resident()
    for _ in range(1_000):  # 64 MB
        core.feed(b"\x1b_Gm=1;" + b"QUFB" * 16_000 + b"\x1b\\")
    assert resident() - before < 16
    core.feed(b"\x1b[2J\x1b[Hok")
    assert "ok" in "".join(run.text for run in core.take_rows()[0][1])
    core.close()


def resident() -> float:
    """Megabytes that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


QUERIES = (
    *("\x1b]0;{}\x07\x1b[21t\x1b[20t", "\x1bP$q{}\x1b\\", "\x1bP+q{}\x1b\\", "\x1b]52;c;{}\x07\x1b]52;c;?\x07"),
    *("\x1b]52;{};?\x07", "\x1b]4;{};?\x07", "\x1b]10;{}\x07\x1b]10;?\x07", "\x1b]21;{}=?\x1b\\", "\x1b]99;i={}:p=?;\x1b\\"),
    *("\x1b]5522;type=read:id={};\x1b\\", "\x1b_Gi=31,a=q,t=f;{}\x1b\\", "\x1b]22;{}\x07\x1b]22;?__current__\x07"),
    *("\x1b]1337;ReportVariable={}\x07", "\x1bP>|{}\x1b\\", "\x05{}", "\x1b[5i{}\x1b[4i", "\x1b]50;{}\x07\x1b]50;?\x07"),
)  # fmt: skip


@pytest.mark.parametrize(
    "text", ["touch x", "touch x\r", "\ntouch x\n", "\x1b[200~touch x\r", "\x03"]
)
def test_no_answer_to_a_program_is_a_command(text: str) -> None:
    """Answers are typed into the terminal, where a shell may read them."""
    core = GhosttyCore(80, 24)
    for query in QUERIES:
        for given in (text, text.encode().hex(), base64.b64encode(text.encode()).decode()):
            core.feed((query.format(given) + "\x1b\\\x18").encode())
            reply = core.take_replies()
            assert "touch x" not in reply.decode()
            assert not re.search(rb"[\x00-\x06\x08-\x1a\x1c-\x1f]", reply), (query, reply)
    core.close()


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[65535b",
        b"\x1b[99999999999b",
        b"\x1b[6\x005535b",
        b"\x1b[000065535;b",
        b"\x1b\x00[65535b",
    ],
)
def test_repeats_are_cut_to_a_line(sequence: bytes) -> None:
    """250 KB of them would be two thousand million characters."""
    core = GhosttyCore(80, 24)
    core.feed(b"x" + sequence)
    scrolled = core.state().scrollback.total
    assert scrolled <= 24 + 2
    core.close()


def test_short_repeats_are_as_they_were() -> None:
    core = GhosttyCore(80, 24)
    core.feed(b"x\x1b[3by\x1b[bz\x1b[12;3bw")
    text = "".join(run.text for run in core.take_rows()[0][1])
    assert text.rstrip().startswith("xxxxyyz")
    core.close()


# A server that answers with payloads


def filled(kind: Any, texts: Iterator[str], deep: int = 0) -> Any:
    """Return JSON of a type whose every text is a payload."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return filled(arguments[0], texts, deep)
    if origin in (types.UnionType, typing.Union):
        return filled(next(one for one in arguments if one is not type(None)), texts, deep)
    if origin is list:
        return [filled(arguments[0], texts, deep + 1) for _ in range(20 if deep == 0 else 1)]
    if origin is dict or kind is dict:
        return {next(texts): filled(arguments[1], texts, deep) if arguments else next(texts)}
    if origin is typing.Literal:
        return arguments[0]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind)).value
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        kind.model_rebuild()
        return {
            field.serialization_alias or field.alias or name: filled(field.annotation, texts, deep)
            for name, field in kind.model_fields.items()
        }
    simple: dict[Any, Any] = {
        UUID: str(UUID(int=7)),
        AwareDatetime: "2026-01-02T00:00:00Z",
        int: 1,
        float: 1.0,
        bool: True,
    }
    return simple[kind] if kind in simple else next(texts)


COMMANDS: list[tuple[type[BaseModel] | None, list[str]]] = [
    (ReplicaList, ["replica", "ls"]),
    (ReplicaAnswer, ["replica", "show", str(UUID(int=7))]),
    (ChatList, ["replica", "chats", str(UUID(int=7))]),
    (HookLogs, ["replica", "hooks", str(UUID(int=7))]),
    (PreviewList, ["replica", "previews", str(UUID(int=7))]),
    (EnvironmentList, ["env", "ls"]),
    (AutomationList, ["automation", "ls"]),
    (None, ["replica", "ls"]),
    (None, ["replica", "send", str(UUID(int=7)), "x"]),
]


@asynccontextmanager
async def answering(model: type[BaseModel] | None) -> AsyncIterator[str]:
    texts = cycle(TEXTS)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        if model is None:
            body: Any = {name: next(texts) for name in ("error", "details", "code")}
        else:
            body = filled(model, texts)
        text = json.dumps(body).encode("ascii")
        status = 409 if model is None else 200
        writer.write(
            b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            % (status, len(text))
        )
        writer.write(text)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("number", range(len(COMMANDS)))
async def test_commands_that_print_answers_of_a_hostile_server(number: int, tmp_path: Path) -> None:
    model, arguments = COMMANDS[number]
    async with answering(model) as url:
        own = {k: v for k, v in os.environ.items() if not k.startswith(("QD_", "QUARTERDECK_"))}
        result = await asyncio.to_thread(
            forked.run,
            [sys.executable, "-P", "-m", "quarterdeck", *arguments],
            input="",
            text=True,
            timeout=60,
            env=own | {"QD_URL": url, "QD_API_KEY": "qd_x", "QUARTERDECK_HOME": str(tmp_path)},
            cwd=tmp_path,
        )
    printed = result.stdout + result.stderr
    assert "go" in printed, printed
    assert harm_in_text(printed) is None
    assert result.returncode == (0 if model else 1), printed


# The cockpit in a real terminal


def test_the_cockpit_writes_no_sequence_of_a_payload(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.security.hostile_cockpit", str(tmp_path)]
    with Program(argv, columns=200, lines=60, directory=ROOT) as program:
        program.wait_for("go1")
        program.settle(0.3)
        for key in ("\x1b[6~",) * 12 + ("\x1b[F", "\x1b[H", "\r"):  # the list, then a chat
            program.type(key)
            program.settle(0.1)
        program.wait_for(LAST)
        for key in ("\x1b", "\t", "\x1b[H") + ("\r", "\x1b[6~") * 15:  # blocks, folded and open
            program.type(key)
            program.settle(0.1)
        program.type("\x1b[20~")
        program.settle(0.3)
        assert program.process.poll() is None
        raw = bytes(program.raw)
    assert NUMBER.encode() in raw
    assert harm_on_screen(raw) is None
