"""Which service is meant, and what a wrong file gets."""

import asyncio
import sys

import pytest

from quarterdeck.cli.cockpit import LocalMachine
from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.schema import read_config
from quarterdeck.cli.target import embedded_target, find_target, find_target_beside
from quarterdeck.client.errors import NoKeyError
from tests.support.waiting import eventually


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("QD_URL", "QD_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    return tmp_path


def write(home, text):
    (home / "config.toml").write_text(text)


def test_without_anything_it_is_the_embedded_service(home):
    target = find_target(None)
    assert target.embedded
    assert target.endpoint == f"unix:{home}/service/qd.sock"
    assert target.current_key() is None
    (home / "service").mkdir()
    (home / "service" / "key").write_text("sk_1\n")
    assert target.current_key() == "sk_1"


def test_variables_name_a_service_and_a_profile_wins(home, monkeypatch):
    write(home, '[profiles.work]\nurl = "https://work"\nkey = "sk_work"\n')
    monkeypatch.setenv("QD_URL", "http://other:1")
    monkeypatch.setenv("QD_API_KEY", "sk_other")
    other = find_target(None)
    assert (other.endpoint, other.current_key()) == ("http://other:1", "sk_other")
    work = find_target("work")
    assert (work.endpoint, work.current_key()) == ("https://work", "sk_work")
    assert not other.embedded and not work.embedded


def test_a_unix_address_of_this_home_is_the_embedded_service(home, monkeypatch):
    monkeypatch.setenv("QD_URL", f"unix:{home}/service/qd.sock")
    assert find_target(None).embedded
    monkeypatch.setenv("QD_URL", "unix:/elsewhere.sock")
    assert not find_target(None).embedded


def test_the_default_profile_is_used(home):
    write(home, 'default = "w"\n[profiles.w]\nsocket = "/run/w.sock"\n')
    assert find_target(None).endpoint == "unix:/run/w.sock"


def test_a_key_from_a_command_and_from_a_variable(home, monkeypatch):
    write(
        home,
        '[profiles.a]\nurl = "http://a"\n'
        f'key_command = ["{sys.executable}", "-c", "print(\'sk_told\')"]\n'
        '[profiles.b]\nurl = "http://b"\nkey_variable = "B_KEY"\n',
    )
    assert find_target("a").current_key() == "sk_told"
    with pytest.raises(ConfigError, match="B_KEY"):
        find_target("b")
    monkeypatch.setenv("B_KEY", "sk_b")
    assert find_target("b").current_key() == "sk_b"


async def test_only_the_embedded_service_needs_no_address(home):
    write(home, "[profiles.local]\nshown = true\n")
    assert find_target("local").embedded and (await find_target_beside("local")).embedded
    write(home, "[profiles.work]\nshown = true\n")
    with pytest.raises(ConfigError, match="work: give one of url and socket"):
        find_target("work")


async def test_the_key_of_the_service_in_use_is_sent_to_no_other(home, monkeypatch):
    monkeypatch.setenv("QD_API_KEY", "sk_mine")
    write(home, '[profiles.work]\nurl = "http://work"\n')
    assert find_target("work").current_key() == "sk_mine"
    beside = await find_target_beside("work")
    assert beside.current_key() is None
    assert beside.key_file == home / "client" / "keys" / "work"


async def test_the_key_command_of_a_service_beside_gets_no_terminal(home):
    program = "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '')"
    write(
        home, f'[profiles.a]\nurl = "http://a"\nkey_command = {[sys.executable, "-c", program]}\n'
    )
    assert (await find_target_beside("a")).key == "True True"
    write(home, '[profiles.a]\nurl = "http://a"\nkey_command = ["false"]\n')
    with pytest.raises(ConfigError, match="key command of profile 'a'"):
        await find_target_beside("a")


def test_the_key_command_of_a_service_beside_ends_with_the_cockpit(home, tmp_path):
    started, ended = tmp_path / "started", tmp_path / "ended"
    script = f"touch {started}; sleep 30; touch {ended}"
    command = f'key_command = ["sh", "-c", "{script}"]'
    write(home, f'[profiles.a]\nurl = "http://a"\nshown = true\n{command}\n')

    async def leave():
        (beside,) = LocalMachine(embedded_target()).beside()
        assert beside.revive is not None
        starting = asyncio.create_task(beside.revive(False))
        await eventually(started.exists, "the command")
        starting.cancel()

    asyncio.run(leave())  # it waits for its threads at the end
    assert not ended.exists()


async def test_services_beside_are_those_shown_each_address_once(home):
    write(
        home,
        '[profiles.a]\nurl = "http://a"\nkey = "k"\nshown = true\n'
        '[profiles.b]\nurl = "http://b"\nshown = true\n'
        '[profiles.again]\nurl = "http://b"\nkey = "k"\nshown = true\n'
        '[profiles.hidden]\nurl = "http://c"\nkey = "k"\n'
        "[profiles.local]\nshown = true\n",
    )
    machine = LocalMachine(find_target("a"))
    found = machine.beside()
    assert [(one.name, one.endpoint) for one in found] == [("b", "http://b"), ("local", "local")]
    assert found[0].git_variables == {"QD_PROFILE": "b"}
    assert found[0].revive is not None
    with pytest.raises(NoKeyError, match="no key for b"):
        await found[0].revive(False)
    machine.show_beside("hidden", True)
    assert [one.name for one in machine.beside()] == ["b", "hidden", "local"]


def test_names_are_renamed(home):
    write(
        home,
        '[profiles.h]\nurl = "https://h"\norganization = "o"\n'
        '[profiles.h.names]\nversion_header = "X-V"\ntranscript_key = "t"\n',
    )
    target = find_target("h")
    assert target.names is not None
    assert (target.names.version_header, target.names.transcript_key) == ("X-V", "t")
    assert target.names.version == "2026-10-07"
    assert target.organization == "o"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("= 1", "config.toml"),
        ("a = " + "9" * 5_000, "config.toml"),
        ("a = " + "[" * 5_000, "config.toml"),
        ("[profiles.x]\n", "give one of url and socket"),
        ('[profiles.x]\nurl = "http://a"\nsocket = "/s"\n', "give one of url and socket"),
        ('[profiles.x]\nurl = "nonsense"\n', "profiles.x.url"),
        ('[profiles.x]\nurl = "http://a"\nkye = "k"\n', "profiles.x.kye"),
        ('[profiles.x]\nurl = "http://a"\nkey = "k"\nkey_variable = "V"\n', "give one of key"),
        ('default = "gone"\n', "'gone'"),
        ("[profiles]\nx = 3\n", "profiles.x"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(home, text, told):
    write(home, text)
    with pytest.raises(ConfigError) as caught:
        read_config(home / "config.toml")
    assert told in caught.value.message
    assert str(home) in caught.value.message


def test_a_secret_in_a_wrong_file_is_not_repeated(home):
    write(home, '[profiles.x]\nurl = "sk_verysecret"\nkey = ["sk_verysecret"]\n')
    with pytest.raises(ConfigError) as caught:
        read_config(home / "config.toml")
    assert "verysecret" not in caught.value.message


def test_a_failing_key_command_is_named_without_its_output(home):
    write(home, '[profiles.x]\nurl = "http://a"\nkey_command = ["false"]\n')
    with pytest.raises(ConfigError, match="key command of profile 'x'"):
        find_target("x")


def test_the_program_ends_with_usage(installation):
    installation.home.mkdir()
    (installation.home / "config.toml").write_text("[profiles.x]\n")
    ended = installation.qd("replica", "ls", "--profile", "x")
    assert (ended.code, ended.out) == (2, "")
    assert "config.toml" in ended.err
    assert installation.qd("--profile", "nope", "replica", "ls").code == 2
    assert installation.qd("replica", "ls", QD_URL="nonsense").code == 2
    done = installation.qd("replica", "ls", QD_URL="http://me:hidden@127.0.0.1:9", QD_API_KEY="k")
    assert done.code == 3
    assert "hidden" not in done.err
    assert installation.qd("replica", "ls", QD_URL="http://127.0.0.1:9", QD_API_KEY="ä").code == 2


def test_traps_of_an_agent_are_those_that_the_drivers_know(home):
    table = '[agents.robot]\nname = "Robot"\ncommand = ["robot"]\ntraps = { %s }\n'
    write(home, table % 'error_prefix = "Oh: "')
    assert read_config(home / "config.toml").agents["robot"].traps == {"error_prefix": "Oh: "}
    write(home, table % "eats_pears = true")
    with pytest.raises(ConfigError, match="eats_pears"):
        read_config(home / "config.toml")
