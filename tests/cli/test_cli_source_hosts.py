"""The source hosts in the configuration file and in variables: taken by `qd serve`, told by doctor."""

import hashlib
import hmac
import json
import signal
from contextlib import contextmanager

import httpx
import pytest

from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.settings import hosts_settings
from tests.support.waiting import WAIT_SECONDS

SECRET, TOKEN = "secret of host a", "token-of-host-a"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    return tmp_path


def configure(directory, text, mode=0o600):
    path = directory / "config.toml"
    path.write_text(text)
    path.chmod(mode)


def test_nothing_said_is_nothing_set_up(directory):
    found = hosts_settings()
    for host in (found.host_a, found.host_b):
        assert (host.webhook_secret, host.api_url, host.token) == (None, None, None)
        assert not host.writable


def test_the_file_and_the_files_it_names(directory):
    (directory / "b.token").write_text(f"{TOKEN}\n")
    configure(
        directory,
        f"""[host-a]
        webhook_secret = "{SECRET}"
        [host-b]
        api_url = "https://host-b.example/api/v4/"
        token_file = "b.token"
        """,
    )
    found = hosts_settings()
    assert found.host_a.webhook_secret == SECRET and found.host_a.token is None
    assert (found.host_b.token, found.host_b.api_url) == (TOKEN, "https://host-b.example/api/v4")
    assert found.host_b.writable and found.host_b.webhook_secret is None


def test_variables_come_first(directory, monkeypatch):
    (directory / "kept").write_text("from a file")
    configure(directory, '[host-a]\nwebhook_secret = "x"\ntoken = "y"\napi_url = "http://old"\n')
    monkeypatch.setenv("QD_HOST_A_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("QD_HOST_A_TOKEN_FILE", str(directory / "kept"))
    monkeypatch.setenv("QD_HOST_A_API_URL", "http://127.0.0.1:9")
    found = hosts_settings().host_a
    assert (found.webhook_secret, found.token) == (SECRET, "from a file")
    assert found.api_url == "http://127.0.0.1:9"
    assert SECRET not in repr(found) and "from a file" not in repr(found)


WRONG = {
    "both": ('[host-a]\ntoken = "a"\ntoken_file = "b"\n', "give one of token and token_file"),
    "no file": ('[host-b]\nwebhook_secret_file = "missing"\n', "host-b: webhook_secret_file"),
    "empty": ('[host-a]\nwebhook_secret = ""\n', "host-a.webhook_secret"),
    "blank": ('[host-a]\nwebhook_secret = "  "\n', "host-a: webhook_secret is empty"),
    "no address": ('[host-a]\napi_url = "host-a.example"\n', "api_url"),
    "unknown": ('[host-a]\nsecret = "a"\n', "host-a.secret"),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense_is_told(directory, text, told):
    configure(directory, text)
    with pytest.raises(ConfigError) as caught:
        hosts_settings()
    assert told in caught.value.message


def test_wrong_variables_are_told(directory, monkeypatch):
    monkeypatch.setenv("QD_HOST_B_TOKEN", "a")
    monkeypatch.setenv("QD_HOST_B_TOKEN_FILE", "b")
    with pytest.raises(ConfigError, match="QD_HOST_B_TOKEN"):
        hosts_settings()
    monkeypatch.delenv("QD_HOST_B_TOKEN_FILE")
    monkeypatch.setenv("QD_HOST_B_API_URL", "ftp://host-b.example")
    with pytest.raises(ConfigError, match="api_url"):
        hosts_settings()


@contextmanager
def serving(installation):
    process = installation.start("serve", "--listen", "127.0.0.1:0", "--json")
    try:
        yield json.loads(process.stdout.readline())["listening"][1]
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert SECRET not in out + err


def call(url):
    body = b'{"zen": "Design for failure."}'
    made = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "ping", "X-Hub-Signature-256": f"sha256={made}"}
    return httpx.post(
        f"{url}/v1/host-a/webhook", content=body, headers=headers, timeout=WAIT_SECONDS
    )


def test_serve_takes_the_webhooks_of_a_host_that_is_set_up(installation):
    with serving(installation) as url:
        assert call(url).status_code == 401
    (installation.home / "secret").write_text(f"{SECRET}\n")
    configure(installation.home, '[host-a]\nwebhook_secret_file = "secret"\n')
    with serving(installation) as url:
        assert [call(url).status_code for _ in range(2)] == [202, 409]


def test_the_service_in_the_background_takes_them_too(installation):
    installation.home.mkdir(mode=0o700)
    configure(installation.home, "[host-a]\nwebhook_secret = 3\n")
    refused = installation.qd("replica", "ls")
    assert refused.code != 0 and "host-a.webhook_secret" in refused.err


def checks(installation, **variables):
    told = installation.qd("doctor", "--json", **variables)
    assert SECRET not in told.out + told.err and TOKEN not in told.out + told.err
    found = {}
    for one in told.json["checks"]:
        found.setdefault(one["name"], []).append(one)
    return found


@pytest.mark.long
def test_doctor_says_which_are_set_up(installation):
    installation.home.mkdir(mode=0o700)
    assert [one["message"] for one in checks(installation)["host-a"]] == ["not set up"]
    (installation.home / "b.token").write_text(TOKEN)
    (installation.home / "b.token").chmod(0o644)
    text = f'[host-a]\nwebhook_secret = "{SECRET}"\n'
    text += '[host-b]\napi_url = "https://host-b.example"\ntoken_file = "b.token"\n'
    configure(installation.home, text, 0o640)
    found = checks(installation)
    assert found["host-a"][0]["message"] == "webhooks are accepted; checks are kept locally only"
    first, second = found["host-b"]
    assert first["message"] == "no webhook secret; checks are written"
    assert (second["level"], "b.token" in second["message"]) == ("warn", True)
    assert found["config"][0]["level"] == "warn" and "640" in found["config"][0]["message"]
    configure(installation.home, text)
    (installation.home / "b.token").chmod(0o600)
    found = checks(installation)
    assert "config" not in found and len(found["host-b"]) == 1


def test_doctor_says_what_is_wrong(installation):
    installation.home.mkdir(mode=0o700)
    configure(installation.home, '[host-a]\ntoken_file = "missing"\n')
    assert checks(installation)["source hosts"][0]["level"] == "fail"
