"""Who `qd serve` lets in: options, the file, and what makes no sense."""

import json
import signal
from contextlib import contextmanager

import httpx
import pytest

from tests.support.waiting import WAIT_SECONDS

PROVIDER = ["--issuer", "https://id.example/", "--jwks-url", "http://127.0.0.1:1/keys"]


@contextmanager
def serving(installation, *options):
    process = installation.start("serve", "--listen", "127.0.0.1:0", "--json", *options)
    try:
        yield json.loads(process.stdout.readline())["listening"][1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def ask(installation, url):
    key = installation.qd("auth", "key").out.strip()
    return httpx.get(
        f"{url}/v1/agents", headers={"Authorization": f"Bearer {key}"}, timeout=WAIT_SECONDS
    )


@pytest.mark.long
def test_a_bound_of_requests_from_the_option_before_the_file(installation):
    installation.home.mkdir(mode=0o700)
    (installation.home / "config.toml").write_text("[service]\nrequests_per_minute = 1\n")
    with serving(installation, "--requests-per-minute", "2") as url:
        assert [ask(installation, url).status_code for _ in range(3)] == [200, 200, 429]
    with serving(installation) as url:
        assert ask(installation, url).status_code == 200
        refused = ask(installation, url)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_how_many_replicas_run_at_once(installation):
    installation.home.mkdir(mode=0o700)
    (installation.home / "config.toml").write_text("[service]\nmax_active = 1\n")
    for options, most in (((), 1), (("--max-active", "2"), 2)):
        with serving(installation, *options) as url:
            key = installation.qd("auth", "key").out.strip()
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                of = client.get("/v1/environments/global").json()["environment"]["id"]
                made = [
                    client.post("/v1/replica", json={"name": f"r{n}", "environment_id": of})
                    for n in range(most + 1)
                ]
                assert [one.status_code for one in made] == [201] * most + [429]
                assert made[-1].json()["code"] == "WORKSPACE_LIMIT_REACHED"
                for one in made[:-1]:
                    id = one.json()["replica"]["id"]
                    assert client.delete(f"/v1/replica/{id}").status_code == 200


def test_a_provider_is_taken(installation):
    with serving(installation, *PROVIDER, "--audience", "deck") as url:
        assert ask(installation, url).status_code == 200


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (PROVIDER[:2], "jwks_url"),
        (PROVIDER[2:], "issuer"),
        (["--audience", "deck"], "issuer and jwks_url"),
        (["--requests-per-minute", "0"], "requests-per-minute"),
        (["--max-active", "0"], "max-active"),
        (["--new-users", "owner"], "new-users"),
    ],
    ids=range(6),
)
def test_what_makes_no_sense_is_refused(installation, options, told):
    ended = installation.qd("serve", *options)
    assert ended.code == 2
    assert told in ended.err


def test_keys_over_an_open_line_are_refused(installation):
    ended = installation.qd("serve", "--issuer", "a", "--jwks-url", "http://id.example/keys")
    assert ended.code == 1
    assert "https://" in ended.err and "Traceback" not in ended.err


def test_the_file_is_checked(installation):
    installation.home.mkdir(mode=0o700)
    (installation.home / "config.toml").write_text("[service]\nnew_users = 'owner'\n")
    ended = installation.qd("serve")
    assert ended.code == 2
    assert "new_users" in ended.err
