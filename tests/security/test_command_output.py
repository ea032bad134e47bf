"""Every command prints the answers of a hostile service without a control sequence."""

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click
import httpx
import pytest

from quarterdeck.cli.errors import Exit
from quarterdeck.cli.program import program, run
from quarterdeck.local.home import Home
from quarterdeck.service.app import build_app
from quarterdeck.service.db.database import sqlite_url
from quarterdeck.service.start import build_service, open_service
from tests.security.answering import KNOWN, Shapes, answering
from tests.security.payloads import harm_in_text, payloads
from tests.service.conftest import Mirrors

LOCAL = {
    *("serve", "stop", "doctor", "completion", "mcp", "image build", "config edit"),
    *("agents install", "auth login", "auth approve", "auth webhook-secret"),
}
"""Commands that ask no service, or wait for something else."""
STREAMS = {
    "replica watch",
    "replica wait",
    "replica attach",
    "replica exec",
    "env test",
    "replica respond",
}
"""Commands that follow a stream, which this server does not have."""

OPTIONS = {
    "env edit": ["--name", "x"],
    "automation create": ["--prompt", "x"],
}
"""What a command needs besides what it declares as required."""
INSIDE = (("QD_WORKSPACE_ID", KNOWN), ("QD_ENGINE_SECRET", "x"))


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command below a group."""
    if not isinstance(group, click.Group):
        if not {" ".join(path), path[0]} & (LOCAL | STREAMS):
            yield path
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, (*path, name))


def arguments_of(path: tuple[str, ...], file: Path) -> list[str]:
    """Return something for each argument and option that a command requires."""
    command: click.Command = program
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    words = list(OPTIONS.get(" ".join(path), ()))
    for one in command.params:
        if isinstance(one, click.Argument):
            words.append(_word(one, file))
        elif one.required:
            words += [one.opts[-1], _word(one, file)]
        elif one.name in ("yes", "force"):
            words.append(one.opts[-1])
    return words


def _word(one: click.Parameter, file: Path) -> str:
    if isinstance(one.type, click.Choice):
        return str(one.type.choices[0])
    if isinstance(one.type, click.types.IntParamType):
        return "1"
    if one.name in ("file", "source"):
        return str(file)
    return "https://127.0.0.1/x" if one.name == "url" else KNOWN


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Shapes:
    """The routes of the service, as it describes them."""

    async def asked() -> bytes:
        place = tmp_path_factory.mktemp("described")
        driver, database = cast(Any, Mirrors()), sqlite_url(place / "one.sqlite3")
        async with open_service(Home(place / "home"), driver, list, database) as context:
            transport = httpx.ASGITransport(build_app(build_service(context)))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as nobody:
                return (await nobody.get("/openapi.json")).content

    return Shapes(json.loads(asyncio.run(asked())), payloads())


def test_the_commands_are_found() -> None:
    assert len(list(commands(program))) > 80


@pytest.mark.long
@pytest.mark.parametrize("refuses", [False, True], ids=["answers", "refuses"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_prints_a_control_sequence(
    refuses: bool,
    form: str,
    shapes: Shapes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.write_text("A=1")
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    shown, harmful = 0, dict[str, str]()
    with answering(shapes, refuses) as url:
        for name, value in (("QD_URL", url), ("QD_API_KEY", "qd_x"), *INSIDE):
            monkeypatch.setenv(name, value)
        for path in commands(program):
            words = [*path, *(["--json"] if form == "json" else []), *arguments_of(path, file)]
            monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
            code = run(words)
            out, err = capsys.readouterr()
            assert code in set(Exit), (words, err)
            shown += "go" in out + err
            if (harm := harm_in_text(out) or harm_in_text(err)) is not None:
                harmful[" ".join(path)] = harm
    assert not harmful
    assert shown > 50
