"""Every command prints the answers of a hostile service without a control sequence."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from quarterdeck.cli.errors import Exit
from quarterdeck.cli.program import program, run
from tests.security.answering import KNOWN, Shapes, answering, description
from tests.security.payloads import harm_in_text, payloads
from tests.support.git import commit_files

LOCAL = {
    *("serve", "stop", "doctor", "completion", "mcp", "image build", "config edit"),
    *("agents install", "auth login", "auth approve", "auth webhook-secret"),
    *("config set", "auth key", "auth logout"),
    "replica attach",  # it needs a terminal: what it passes on is in test_cli_terminal_filter
}
"""Commands that ask no service, or wait for something else."""

OPTIONS = {
    "env edit": ["--name", "x"],
    "automation create": ["--prompt", "x"],
    "env mcp set": ["--from", "server.json"],
    "replica pr": ["--repository", "x"],
    "replica send": ["--wait"],
    "replica wait": ["--timeout", "1"],
}
"""What a command needs besides what it declares as required."""
ARGUMENTS = {
    ("env variables set", "key"): ["A"],
    ("env files put", "path"): ["~/x"],
    ("replica files cat", "path"): ["x/y"],
    ("replica respond", "request"): [],
}
"""Arguments of a form of their own, or that are left out."""
USAGE = {
    "keys create": "holds characters that no key has",
    "replica diff": "A patch is not JSON",
}
"""What is said by commands whose usage error is no mistake of this test."""
INSIDE = (("QD_WORKSPACE_ID", KNOWN), ("QD_ENGINE_SECRET", "x"))


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command below a group."""
    if not isinstance(group, click.Group):
        if not {" ".join(path), path[0]} & LOCAL:
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
    verb = " ".join(path)
    words = list(OPTIONS.get(verb, ()))
    for one in command.params:
        if isinstance(one, click.Argument):
            words += ARGUMENTS.get((verb, one.name or ""), [_word(one, file)])
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
def shapes() -> Shapes:
    """The routes of the service, as it describes them."""
    return Shapes(description(), payloads())


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
    (tmp_path / "server.json").write_text('{"command": "x"}')
    commit_files(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    shown, harmful, unasked = 0, dict[str, str](), dict[str, str]()
    with answering(shapes, refuses) as url:
        for name, value in (("QD_URL", url), ("QD_API_KEY", "qd_x"), *INSIDE):
            monkeypatch.setenv(name, value)
        for path in commands(program):
            words = [*path, *(["--json"] if form == "json" else []), *arguments_of(path, file)]
            monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
            try:
                code: object = run(words)
            except SystemExit as end:  # as that of a hook's test
                code = end.code
            out, err = capsys.readouterr()
            assert code in set(Exit), (words, err)
            if code == Exit.USAGE:
                unasked[" ".join(path)] = err
            shown += "go" in out + err
            if (harm := harm_in_text(out) or harm_in_text(err)) is not None:
                harmful[" ".join(path)] = harm
    assert not harmful
    mistaken = {
        one: said for one, said in unasked.items() if USAGE.get(one, said + "?") not in said
    }
    assert not mistaken
    assert shown > 50


@pytest.mark.parametrize("terminal", [False, True])
def test_a_patch_is_exact_in_a_pipe_and_clean_on_a_terminal(
    terminal: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """As with `git diff`: what is piped into `git apply` must not be changed."""
    patch = "+a\x1b]0;x\x07\u202eb\r\n"
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    monkeypatch.setenv("QD_API_KEY", "qd_x")
    with answering(Shapes(description(), [patch])) as url:
        monkeypatch.setenv("QD_URL", url)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        assert run(["replica", "diff", KNOWN, "--repository", "x"]) == Exit.DONE
    out = capsysbinary.readouterr().out
    assert out == (b"+ab\n" if terminal else patch.encode())
