"""Options have one name everywhere, and a shell completes them."""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from quarterdeck.cli import completion
from quarterdeck.cli.program import program
from quarterdeck.local.home import Home
from quarterdeck.local.sockets import socket_address

ENVIRONMENT = "environment"


@pytest.fixture
def silent():
    """The address of something that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def commands(group=program, path=("qd",)):
    """Every command below a group, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def options_of(command):
    return [one for one in command.params if isinstance(one, click.Option)]


def test_the_option_of_an_environment_has_one_name():
    found = {
        path: option.opts
        for path, command in commands()
        for option in options_of(command)
        if option.name == ENVIRONMENT
    }
    assert {path[1:] for path in found} >= {("replica", "create"), ("automation", "create")}
    assert {opts[0] for opts in found.values()} == {"--env"}
    for path, command in commands():
        if path in found:
            told = command.get_help(click.Context(command, info_name=path[-1]))
            assert "--env " in told and "--environment" not in told, path


@pytest.mark.parametrize("verb", ["replica", "automation"])
def test_its_longer_name_works_too(service, verb):
    made = ("create", "one", "--prompt", "p") if verb == "automation" else ("create",)
    unknown = service.qd(verb, *made, "--environment", "nowhere")
    assert unknown.code == 1 and "environment 'nowhere'" in unknown.err


def complete(installation, line, **variables):
    """What the shell's function of the completion script offers for a line whose cursor is at the end."""
    words = line.split(" ")
    script = installation.qd("completion", "bash").out
    ask = f"""
{script}
COMP_WORDS=({" ".join(map(shlex.quote, words))})
COMP_CWORD={len(words) - 1}
_qd_completion qd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", ask],
        env=installation.environment | {"PATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(installation, shell):
    ended = installation.qd("completion", shell)
    assert ended.code == 0, ended.err
    assert "_QD_COMPLETE" in ended.out and shell in ended.out
    assert installation.qd("completion", "csh").code == 2


def test_a_shell_completes_commands_and_options(installation):
    assert complete(installation, "qd repl") == ["replica"]
    assert {"sleep", "send", "show"} <= set(complete(installation, "qd replica s"))
    assert complete(installation, "qd replica create --en") == ["--env"]
    assert complete(installation, "qd config se") == ["set"]


@pytest.mark.long
def test_a_shell_completes_names_from_the_service(service):
    for name in ("alpha", "alphabet", "beta"):
        assert service.qd("replica", "create", "--name", name).code == 0
    assert service.qd("env", "create", "staging").code == 0
    run = ("--env", "global", "--prompt", "p")
    for name in ("nightly", "two words"):
        assert service.qd("automation", "create", name, *run).code == 0
    assert complete(service, "qd replica show al") == ["alpha", "alphabet"]
    assert complete(service, "qd replica sleep alpha al") == ["alphabet"]
    assert complete(service, "qd env show st") == ["staging"]
    assert complete(service, "qd env rm staging s") == []
    assert complete(service, "qd replica create --env ") == ["global", "staging"]
    # A name with blanks would be several words on the line: its id stands for it.
    (id,) = set(complete(service, "qd automation show ")) - {"nightly"}
    assert len(id) == 36
    for name in ("alpha", "alphabet", "beta"):
        service.qd("replica", "rm", "--yes", name)


@pytest.mark.parametrize(
    "name",
    ["$(touch${IFS}x)", "`id`", "a;id", "a|id", "a&", ">x", "~root", "{a,b}", "!!", "#a", "a\\b", "-x", "=ls",
     "--profile=x", "a\nb", "a\u2028b", "'a", '"a', "*", ""],
)  # fmt: skip
def test_a_name_that_means_more_to_a_shell_is_completed_by_its_id(name, monkeypatch):
    monkeypatch.setattr(completion, "_read", lambda *_: {"id-1": name, "id-2": "naïve/fix-1.2"})
    command = click.Command("show", params=[click.Argument(["replica"])])
    context = click.Context(command)
    offered = completion.replica_names(context, command.params[0], "")
    assert sorted(item.value for item in offered) == ["id-1", "naïve/fix-1.2"]


@pytest.mark.long
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"QD_URL": "http://127.0.0.1:9", "QD_API_KEY": "k"},
        {"QD_URL": "nonsense"},
    ],
)
def test_names_are_not_completed_and_nothing_is_said_without_a_service(installation, variables):
    assert complete(installation, "qd replica show al", **variables) == []


@pytest.mark.long
def test_completing_asks_no_person_for_a_key(installation, tmp_path):
    installation.home.mkdir()
    asked = tmp_path / "asked"
    text = f'[profiles.work]\nurl = "http://127.0.0.1:9"\nkey_command = ["touch", "{asked}"]\n'
    (installation.home / "config.toml").write_text(f'default = "work"\n{text}')
    assert complete(installation, "qd replica show al") == []
    assert not asked.exists()


@pytest.mark.long
def test_a_service_that_does_not_answer_is_not_waited_for(installation, silent):
    assert complete(installation, "qd replica show al", QD_URL=silent, QD_API_KEY="k") == []


def test_a_line_that_breaks_is_not_told_as_no_service(installation):
    home = Home(installation.home)
    home.key.parent.mkdir(parents=True)
    home.key.write_text("k\n")
    home.socket.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, socket_address(home.socket) as address:
        listener.bind(address)
        listener.listen()
        ending = threading.Thread(target=_close_each, args=(listener,), daemon=True)
        ending.start()
        ended = installation.qd("repo", "add", "https://host.example/shop.git")
        assert ended.code == 3 and "broke" in ended.err and "No service runs" not in ended.err
        listener.shutdown(socket.SHUT_RDWR)
        ending.join()


def _close_each(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.recv(1)
            connection.close()
