"""Damaged input for each parser of what comes from outside, as much of it as fits into some time.

A parser reads it or refuses it with the errors that it documents, in bounded time. Each input comes
from a number of its own, which a failure names: `QUARTERDECK_FUZZ_SEED=N` begins with it again. The
suite gives each parser a second and the same inputs every time; `make fuzz` gives all of them an hour, or
as many seconds as ARGS says, and other inputs every time.
"""

import asyncio
import base64
import gzip
import io
import json
import logging
import os
import random
import secrets
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import monotonic, process_time
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from PIL import Image

from quarterdeck.cli.cockpit import read_cockpit_file
from quarterdeck.cli.config_file import with_value
from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.schema import parse_config
from quarterdeck.client import Client, HttpConnection
from quarterdeck.client.stream_events import ConnectionLost, Received
from quarterdeck.command_rules import CommandRule, PatternError, judge, suggest
from quarterdeck.engine.journal import FILE_NAME
from quarterdeck.plain.transcript_lines import TranscriptLines
from quarterdeck.sandboxes.archive.packing import DamagedError, pack, unpack
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.saves import read_header, require_own_refs
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.service.automations.scheduler import check_schedule
from quarterdeck.service.errors import ApiError
from quarterdeck.store.automation_draft import coming
from quarterdeck.store.environment_paste import counts_text, parse, plan
from quarterdeck.transcript.fold import Transcript
from quarterdeck.transcript.images import dimensions
from quarterdeck.tui.picture_codec import LONGEST_SIDE, decoded
from quarterdeck.tui.pictures import NotShownError
from quarterdeck.tui.terminal.channel import FrameEncoder
from quarterdeck.tui.terminal.decoder import FrameDecoder
from quarterdeck.tui.terminal.ghostty import GhosttyCore
from quarterdeck.wire.events import TurnDelta, payload_of
from quarterdeck.wire.saves import FILES_REF, WorkSave, saved_refs
from tests.security.damage import damaged
from tests.security.forged_engine import MOMENT
from tests.security.fuzzed_link import LINK, read_link
from tests.security.mutated_answers import methods, read_answer
from tests.security.payloads import SEQUENCES, harm_in_text
from tests.security.test_damaged_journal import opened, small_journal

BYTES = 1 << 16
SLOW = 2.0
"""Processor seconds that no input of that size may take."""


@dataclass(frozen=True)
class Target:
    """`read` gets each damaged sample and an empty directory; it raises what the parser must not.

    It returns how many parts of the sample were accepted, 0 for one that was refused. The last
    `refused` samples are ones that must be refused.
    """

    samples: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], int]
    refused: int = 0


# The emulator


def read_terminal(data: bytes, _: Path) -> int:
    core = GhosttyCore(80, 24)
    drawn = 0
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for at in range(0, max(len(data), 1), 4_001):
        core.feed(data[at : at + 4_001])
        core.resize(1 + at % 200, 1 + at % 60)
        frame = decoder.decode(encoder.encode(core.state(), core.take_rows()))
        assert harm_in_text(frame.state.title) is None
        assert all(harm_in_text(run.text) is None for _, row in frame.rows for run in row)
        drawn += len(frame.rows)
        core.take_replies()
    core.close()
    return drawn


TERMINAL = [
    b"\x1b[2J\x1b[1;31mred\x1b[0m\r\n\x1b[?1049h\x1b[3;5H\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81\x1b[?1049l",
    b"\x1b]0;title\x07\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\\x1b]52;c;eA==\x07\x1bPq#0;2;0;0;0#0~~\x1b\\",
    b"\x1b[4:3m\x1b[38:2::1:2:3mx\x1b[2;5r\x1bM\x1bD\x1b[5L\x1b[9M\x1b[20@\x1b[20Pa\x1b[70000b\x1b[6n\x1b[c",
    *("".join(SEQUENCES[at : at + 40]).encode() for at in range(0, len(SEQUENCES), 40)),
]

# config.toml


def read_settings(data: bytes, directory: Path) -> int:
    text = data.decode(errors="replace")
    accepted = 0
    with suppress(ConfigError):
        parse_config(text, directory / "config.toml")
        accepted = 1
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = tomllib.loads(text)
    with suppress(ConfigError):
        changed = with_value(text, ["cockpit", "theme"], "dark")
        if document is not None:  # what reads the file is stricter than what changes it
            document.setdefault("cockpit", {})["theme"] = "dark"
            assert repr(tomllib.loads(changed)) == repr(document)
    (directory / "config.toml").write_bytes(data)
    read_cockpit_file(directory / "config.toml")
    return accepted


SETTINGS = [
    b"""default = "work"
[profiles.work]
url = "https://qd.example.org"
key_command = ["pass", "qd"]
[service]
requests_per_minute = 600
max_active = 9
new_users = "member"
[agents.mine]
name = "Mine"
command = ["mine", "--acp"]
[cockpit]
theme = "dark"
[keys]
"replica.sleep" = ["s", "ctrl+s"]
"variables.paste" = "v"
"""
]

# The client's event stream


def read_events(data: bytes, _: Path) -> int:
    return asyncio.run(_read_events(data))


async def _read_events(data: bytes) -> int:
    """To the end of the stream, and on through what a chat shows of it."""
    head = {"Content-Type": "text/event-stream"}
    answering = httpx.MockTransport(lambda _: httpx.Response(200, headers=head, content=data))
    transcript, accepted = Transcript(), 0
    spoken = TranscriptLines(transcript, "agent")
    async with (
        Client(HttpConnection("http://test", "qd_key", transport=answering)) as client,
        client.events.stream(uuid4(), 0) as stream,
    ):
        async for item in stream:
            if isinstance(item, ConnectionLost):
                break
            payload = payload_of(item.event) if isinstance(item, Received) else None
            accepted += payload is not None
            if isinstance(payload, TurnDelta):
                lines = spoken.take(transcript.append(payload.event))
                assert not any("\x1b" in line for line in lines)
    spoken.take(transcript.prepend([]))
    return accepted


def sse(number: int, type: str, /, **payload: Any) -> bytes:
    event = {"id": f"e{number}", "ts": MOMENT, "type": type, "payload": payload}
    return f"id: {number}\nevent: message\ndata: {json.dumps(event)}\n\n".encode()


def delta(number: int, type: str, /, **payload: Any) -> bytes:
    event = {"timestamp": MOMENT, "type": type, "payload": payload}
    of = {"chatId": str(UUID(int=1)), "messageId": str(UUID(int=2)), "event": event}
    return sse(number, "chat.turn.delta", **of)


EVENTS = [
    sse(1, "engine.status.changed", workspaceStatus="active", status="ready")
    + delta(2, "user-message", text="hello", messageId=str(UUID(int=2)))
    + delta(
        3,
        "acp-session_update",
        sessionUpdate="tool_call",
        toolCallId="t1",
        title="Run",
        kind="execute",
        status="in_progress",
        locations=[{"path": "/a", "line": 4}],
        content=[{"type": "diff", "path": "/a", "oldText": "a\nb", "newText": "a\nc"}],
        rawInput={"command": ["ls", "-l"]},
    )
    + delta(
        4,
        "acp-session_update",
        sessionUpdate="tool_call_update",
        toolCallId="t1",
        status="completed",
        content=[{"type": "content", "content": {"type": "text", "text": "x\n" * 9}}],
    )
    + delta(
        5,
        "acp-session_update",
        sessionUpdate="plan",
        entries=[{"content": "one", "status": "pending", "priority": "high"}],
    )
    + delta(
        6,
        "acp-session_update",
        sessionUpdate="agent_message_chunk",
        content={"type": "text", "text": "**hi** `x`"},
    )
    + delta(
        7,
        "acp-permission_request",
        requestId="r",
        toolCall={"toolCallId": "t1", "title": "Run"},
        options=[{"optionId": "a", "name": "Allow", "kind": "allow_once"}],
    )
    + delta(8, "acp-permission_outcome", requestId="r", outcome={"optionId": "a"})
    + delta(9, "turn-result", messageId=str(UUID(int=2)), stopReason="end_turn")
    + b": comment\nretry: 5\n\n"
]

# Archives


def read_archive(data: bytes, directory: Path) -> int:
    """Damage below the compression: above it a checksum finds all."""
    outside = directory / "outside"
    outside.write_text("x")
    archive, tree = directory / "a.tar.gz", directory / "tree"
    archive.write_bytes(gzip.compress(data, 1))
    accepted = 0
    try:
        with suppress(DamagedError, tarfile.TarError, EOFError, zlib.error, OSError):
            unpack(archive, tree)
            accepted = 1
        assert outside.stat().st_nlink == Path("/etc/passwd").stat().st_nlink == 1
        assert outside.read_text() == "x"
        assert {path.name for path in directory.iterdir()} <= {"outside", "a.tar.gz", "tree"}
    finally:
        remove_tree(tree)
    return accepted


@cache
def archives() -> list[bytes]:
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        (tree / "d/e").mkdir(parents=True)
        (tree / "d/file").write_bytes(b"content " * 90)
        (tree / "d/other").hardlink_to(tree / "d/file")
        (tree / "d/e/link").symlink_to("../file")
        os.mkfifo(tree / "pipe")
        with (tree / "sparse").open("wb") as sparse:
            sparse.truncate(1 << 16)
            sparse.write(b"start")
        pack(tree, Path(place) / "a", frozenset())
        whole = gzip.decompress((Path(place) / "a").read_bytes())
    return [whole, *map(_with_member, HOSTILE)]


HOSTILE = [
    *(
        (tarfile.LNKTYPE, "d/x", to)
        for to in ("../outside", "d/../../outside", "/etc/passwd", "", "d")
    ),
    *(
        (tarfile.REGTYPE, name, "")
        for name in ("../x", "d/../../x", "/x", "//x", "d//x", "", ".", "d")
    ),
    *((tarfile.SYMTYPE, "d", to) for to in ("..", "/")),
    *((tarfile.DIRTYPE, name, "") for name in ("..", "/", "d/..", "d/./", "d")),
    (tarfile.CHRTYPE, "d/null", ""),
]


def _with_member(hostile: tuple[bytes, str, str]) -> bytes:
    """An archive with a directory, a member that ours never have, and a file below the directory."""
    written = io.BytesIO()
    kinds = [(tarfile.DIRTYPE, "d", ""), hostile, (tarfile.REGTYPE, "d/outside", "")]
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as writer:
        for type, name, target in kinds:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = type, target
            member.pax_headers = {"mtime": "1.5"}
            writer.addfile(member)
    return written.getvalue()


# Files of variables, schedules, journals


def read_variables(data: bytes, _: Path) -> int:
    text = data.decode(errors="surrogateescape")
    lines = parse(text)
    assert [one.number for one in lines] == sorted({one.number for one in lines})
    counts_text(plan(lines, (), bound=True))
    return len(lines)


VARIABLES = [
    b'# comment\nexport A=plain # more\nB=\'one\ntwo\'\nC="x\\n\\"y\\" $A" # c\r\nD=\n1=2\nE = f\n'
]


def read_schedule(data: bytes, _: Path) -> int:
    text = data.decode(errors="replace")
    expression, _bar, zone = text.partition("|")
    with suppress(ApiError):
        check_schedule(expression, zone, "trigger")
    found = coming(expression, zone, datetime(2026, 3, 29, tzinfo=UTC))
    assert all(a < b for a, b in pairwise(found.moments)), found
    return len(found.moments)


SCHEDULES = [
    b"*/10 * * * *|UTC",
    b"30 2 29 2 MON#1|Europe/Paris",
    b"0 9-17/2,23 L */3 1-5|Asia/Kolkata",
    b"59 23 31 12 SUN|Australia/Lord_Howe",
    b"0 0 30 2 *|America/New_York",
]


def read_journal(data: bytes, directory: Path) -> int:
    """What can be read is read in order, numbering goes on above it, and it can be read again."""
    path = directory / FILE_NAME
    path.write_bytes(data)
    file, entries = opened(path)
    following = file.last_index + 1
    file.append(b'{"index":%d,"ts":"x","type":"y","payload":{}}\n' % following, False)
    file.close()
    indices = [index for index, _ in entries]
    assert all(a < b for a, b in pairwise(indices))
    assert all(json.loads(line)["index"] == index for index, line in entries)
    assert file.last_index == (indices[-1] if indices else 0)
    again, repeated = opened(path)
    again.close()
    assert repeated[:-1] == entries and again.lost == 0
    return len(entries)


def read_save(data: bytes, _: Path) -> int:
    return asyncio.run(_read_save(data))


async def _read_save(data: bytes) -> int:
    """What follows the header arrives whole, and a header that is stored names refs of its own only."""

    async def parts() -> AsyncGenerator[bytes]:
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    with suppress(SandboxError):
        work, rest = await read_header(parts())
        assert b"".join([part async for part in rest]) == data.partition(b"\n")[2]
        again = WorkSave.model_validate_json(work.model_dump_json(by_alias=True).encode())
        assert again.model_copy(update={"at": work.at}) == work  # it is kept in milliseconds
        require_own_refs(work, [SAVED_REPOSITORY])
        assert "\0" not in "".join(work.refs)
        assert all(len(object) == 40 and object.isascii() for object in work.refs.values())
        return 1
    return 0


SAVED_REPOSITORY = "0f1e7a34-8d4d-4d59-9d0a-3f8e6a1f7c11"
SAVED = WorkSave(
    refs={
        f"{saved_refs(SAVED_REPOSITORY)}/heads/qd/one": "1b" * 20,
        f"{saved_refs(SAVED_REPOSITORY)}/saved": "0f" * 20,
        FILES_REF: "a9" * 20,
    },
    heads={SAVED_REPOSITORY: "refs/heads/qd/one"},
    left_out=["large.bin", "é/\u202e"],
    failed=["7d0c1f0e-50c6-4c54-8d3d-0d6c6f1c2b7a"],
    at=datetime(2026, 3, 29, tzinfo=UTC),
)


def read_command(data: bytes, _: Path) -> int:
    text = data.decode(errors="replace")
    judgement = judge(text, [CommandRule(True, "git status *"), CommandRule(False, "git push")])
    assert not judgement.doubtful or not judgement.rules
    suggest(text)
    with suppress(PatternError):
        CommandRule(True, text)
    return not judgement.doubtful


COMMANDS = [
    b"cd src && git status -s | grep 'a b' > out",
    b"FOO=1 git push \"origin\"; bash -lc 'git status; rm -rf x'",
    b'for x in *.py; do git status $(cat "$x") `id`; done <<E\nx\nE',
]


SAVES = [
    SAVED.model_dump_json(by_alias=True).encode() + b"\nPACK\0\0\0\2\0\0\0\0",
    b'{"refs":{},"heads":{}}\n',
]


# Images of chats and files


def read_image(data: bytes, _: Path) -> int:
    """Any bytes have a size or none, and are decoded or refused in a sentence."""
    dimensions(base64.b64encode(data).decode())
    with suppress(NotShownError):
        pixels = decoded(data).pixels
        assert pixels.mode == "RGB" and max(pixels.size) <= LONGEST_SIDE
        return 1
    return 0


def images() -> list[bytes]:
    """Return a small image of each kind."""
    made: list[bytes] = []
    for kind in ("PNG", "JPEG", "GIF", "WEBP"):
        file = io.BytesIO()
        Image.linear_gradient("L").resize((60, 40)).convert("RGB").save(file, kind)
        made.append(file.getvalue())
    return made


# Answers of the service


def read_answers(data: bytes, _: Path) -> int:
    return read_answer(data)


def answers() -> list[bytes]:
    """Return what names the answer to each method of the client."""
    return [str(number).encode() for number in range(len(methods()))]


TARGETS = {
    "answers": Target(answers, read_answers),
    "command rules": Target(lambda: COMMANDS, read_command),
    "engine link": Target(lambda: LINK, read_link),
    "emulator": Target(lambda: TERMINAL, read_terminal),
    "configuration": Target(lambda: SETTINGS, read_settings),
    "event stream": Target(lambda: EVENTS, read_events),
    "archive": Target(archives, read_archive, len(HOSTILE)),
    "variables": Target(lambda: VARIABLES, read_variables),
    "schedule": Target(lambda: SCHEDULES, read_schedule, 1),
    "journal": Target(lambda: [b"".join(small_journal())], read_journal),
    "save": Target(lambda: SAVES, read_save),
    "image": Target(images, read_image),
}


ASKED = os.environ.get("QUARTERDECK_FUZZ_SECONDS")
SECONDS = float(ASKED or len(TARGETS)) / len(TARGETS)
"""For each parser."""
FIRST = int(
    os.environ.get("QUARTERDECK_FUZZ_SEED") or (1 + secrets.randbelow(1 << 40) if ASKED else 1)
)


def data_of(samples: list[bytes], seed: int) -> bytes:
    """Return the input of a number: a sample as it is, later some samples, damaged once or more."""
    if 0 < seed <= len(samples):
        return samples[seed - 1]
    by = random.Random(seed)
    data = b"".join(by.choices(samples, k=by.choice((1, 1, 2, 5))))
    for _ in range(by.choice((1, 1, 2, 8))):
        data = damaged(data or samples[0], by)
    return data[:BYTES]


def run(name: str, directory: Path, begin: Callable[[int], object] = lambda seed: None) -> int:
    """Read inputs until the time is over, and return how many; `begin` is told each one's number."""
    logging.disable()  # nobody reads an hour of it
    target = TARGETS[name]
    samples = target.samples()
    end, seed = monotonic() + SECONDS, FIRST
    while monotonic() < end or seed == FIRST:
        begin(seed)
        start = process_time()
        try:
            target.read(data_of(samples, seed), directory)
            assert process_time() - start < SLOW, "it took too long"
        except BaseException as error:
            error.add_note(f"{name}: QUARTERDECK_FUZZ_SEED={seed}")
            raise
        seed += 1
    logging.disable(logging.NOTSET)
    return seed - FIRST


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_get_through_the_parser(name: str, tmp_path: Path) -> None:
    """What is refused at once tests nothing behind that: samples pass, and some damaged ones."""
    target = TARGETS[name]
    samples = target.samples()
    accepted = [bool(target.read(sample, tmp_path)) for sample in samples]
    assert accepted == [True] * (len(samples) - target.refused) + [False] * target.refused
    after = range(len(samples) + 1, len(samples) + 401)
    assert any(target.read(data_of(samples, seed), tmp_path) for seed in after)


@pytest.mark.long
@pytest.mark.timeout(60 + 2 * SECONDS)
@pytest.mark.parametrize("name", sorted(TARGETS.keys() - {"emulator"}))
def test_a_parser_reads_or_refuses(name: str, tmp_path: Path) -> None:
    print(f"{name}: {run(name, tmp_path)} inputs")


@pytest.mark.long
@pytest.mark.timeout(60 + 2 * SECONDS)
def test_the_emulator_survives(tmp_path: Path) -> None:
    """In a process of its own, as in the cockpit: its native part can end the process."""
    command = [sys.executable, "-m", "tests.security.test_fuzz", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    seeds = done.stdout.split()
    last = seeds[-1] if seeds else FIRST
    assert done.returncode == 0, f"QUARTERDECK_FUZZ_SEED={last}\n{done.stderr[-3000:]}"
    print(f"emulator: {len(seeds)} inputs")


def main() -> None:
    run("emulator", Path(sys.argv[1]), lambda seed: os.write(1, b"%d\n" % seed))


if __name__ == "__main__":
    main()
