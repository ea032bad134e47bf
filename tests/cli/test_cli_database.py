"""`qd serve` over a database of its own choice."""

import json
from pathlib import Path

import httpx
import psycopg
import pytest

from quarterdeck.local.home import Home
from tests.support.postgresql import Server, find_programs
from tests.support.postgresql import running as server_running
from tests.support.waiting import WAIT_SECONDS

SECRET = "s3cret"


@pytest.fixture
def database_kind() -> str:
    return "postgresql"


def with_password(url: str) -> str:
    # The server trusts its socket: a password is not asked for, and must still not be told.
    return url.replace("deck@", f"deck:{SECRET}@")


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_everything_is_kept_in_the_database_that_was_named(
    installation, database_url: str, postgresql: Server, way: str
):
    url = with_password(database_url)
    words = ["--database-url", url] if way == "argument" else []
    if way == "variable":
        installation.environment["QUARTERDECK_DATABASE_URL"] = url
    running = installation.start("serve", "--json", *words)
    assert json.loads(running.stdout.readline())["ready"]
    home = Home(installation.home)
    assert not home.database.exists()
    if way == "variable":
        command = Path(f"/proc/{running.pid}/cmdline").read_bytes().decode()
        assert SECRET not in command
    transport = httpx.HTTPTransport(uds=str(home.socket))
    headers = {"Authorization": f"Bearer {home.key.read_text().strip()}"}
    with httpx.Client(
        transport=transport, base_url="http://qd", headers=headers, timeout=WAIT_SECONDS
    ) as client:
        assert client.post("/v1/environments", json={"name": "kept"}).status_code == 201
    running.terminate()
    out, err = running.communicate(timeout=60)
    assert SECRET not in out + err
    again = installation.start("serve", "--json", *words)
    assert json.loads(again.stdout.readline())["ready"]
    with httpx.Client(
        transport=transport, base_url="http://qd", headers=headers, timeout=WAIT_SECONDS
    ) as client:
        names = [one["name"] for one in client.get("/v1/environments").json()["environments"]]
    assert "kept" in names
    again.terminate()
    again.communicate(timeout=60)


@pytest.mark.long
def test_a_database_of_another_installation_is_refused(
    installation, database_url: str, tmp_path: Path
):
    first = installation.start("serve", "--json", "--database-url", database_url)
    assert json.loads(first.stdout.readline())["ready"]
    elsewhere = str(tmp_path / "other")
    foreign = installation.qd("serve", "--database-url", database_url, QUARTERDECK_HOME=elsewhere)
    assert (foreign.code, "another installation" in foreign.err) == (1, True)
    key = tmp_path / "other" / "service" / "master.key"
    assert f"copy service/master.key of a home that uses it to {key}" in " ".join(
        foreign.err.split()
    )
    assert not (tmp_path / "other" / "service" / "key").exists()
    assert "Traceback" not in foreign.err
    first.terminate()
    first.communicate(timeout=60)


@pytest.mark.long
def test_a_copy_of_a_home_that_is_served_is_refused(
    installation, database_url: str, tmp_path: Path
):
    first = installation.start("serve", "--json", "--database-url", database_url)
    assert json.loads(first.stdout.readline())["ready"]
    copy = tmp_path / "copy"
    for name in ("master.key", "home.id"):
        (copy / "service").mkdir(parents=True, exist_ok=True)
        (copy / "service" / name).write_bytes((installation.home / "service" / name).read_bytes())
    refused = installation.qd("serve", "--database-url", database_url, QUARTERDECK_HOME=str(copy))
    assert (refused.code, "a copy of it" in refused.err) == (1, True)
    first.terminate()
    first.communicate(timeout=60)


@pytest.mark.parametrize(
    "url", [f"postgresql://me:{SECRET}@127.0.0.1:1/deck", f"mysql://me:{SECRET}@host/deck"]
)
def test_a_database_that_cannot_be_used_is_told_without_its_password(installation, url: str):
    ended = installation.qd("serve", "--database-url", url)
    assert ended.code == 1
    assert "database" in ended.err
    assert SECRET not in ended.out + ended.err
    assert "Traceback" not in ended.err


@pytest.mark.long
def test_who_starts_a_service_is_told_why_its_database_failed(installation, database_url: str):
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE settings RENAME TO others")
    ended = installation.qd("serve", "--database-url", database_url)
    told = " ".join(ended.err.rpartition("qd: ")[2].split())
    assert (ended.code, 'relation "settings" does not exist' in told) == (1, True), ended.err


@pytest.mark.long
def test_a_service_whose_database_is_away_runs_and_says_so(installation):
    programs = find_programs()
    if programs is None:
        pytest.skip("postgresql is not installed")
    with server_running(programs) as server:
        url = server.url(server.create())
        running = installation.start("serve", "--json", "--database-url", url)
        assert json.loads(running.stdout.readline())["ready"]
        assert installation.qd("status").code == 0
        server.stop()
        status = installation.qd("status", "--json")
        assert (status.code, status.json["answers"]) == (1, True)
        assert "database cannot be reached" in status.json["problem"]
        assert "database cannot be reached" in installation.qd("status").out
        listed = installation.qd("replica", "ls")
        assert (listed.code, "database cannot be reached" in listed.err) == (1, True)
        assert "Starting the service" not in listed.err + status.err
        running.terminate()
        _, err = running.communicate(timeout=60)
    told = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    (lost,) = [one for one in told if one["level"] != "info"]
    assert lost["message"] == "The database cannot be reached" and "traceback" not in lost
