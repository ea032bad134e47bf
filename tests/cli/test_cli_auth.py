"""Keys and tokens from the outside: the embedded service's owner, and a profile elsewhere."""

import json
import stat

import httpx
import pytest

from tests.support.waiting import WAIT_SECONDS


def get(service, path, bearer, **headers):
    url = service.environment["QD_TEST_URL"]
    return httpx.get(
        f"{url}{path}",
        headers={"Authorization": f"Bearer {bearer}", **headers},
        timeout=WAIT_SECONDS,
    )


@pytest.fixture
def elsewhere(service):
    """The same service as a profile without a key."""
    url = service.environment["QD_TEST_URL"]
    path = service.home / "config.toml"
    path.write_text(f'[profiles.far]\nurl = "{url}"\n')
    return service


def approve(service, process, *options):
    """Reads the code that a waiting verb shows, and decides on it where the service runs."""
    code = process.stderr.readline().rstrip(".\n").rpartition(" ")[2]
    return service.qd("auth", "approve", *options, code)


def test_the_owner_gets_a_token_at_once(service):
    plain = service.qd("auth", "token")
    assert (plain.code, plain.err) == (0, "")
    told = service.qd("auth", "token", "--json").json
    assert (told["token_type"], told["expires_in"]) == ("Bearer", 3600)
    for token in (plain.out.strip(), told["access_token"]):
        (organization,) = get(service, "/v1/organizations", token).json()["organizations"]
        assert organization["role"] == "admin"
        assert get(service, "/v1/replica", token).status_code == 400
        named = {"Service-Org-Id": organization["id"]}
        assert get(service, "/v1/replica", token, **named).status_code == 200


@pytest.mark.long
def test_who_one_is(service):
    whoami = service.qd("auth", "whoami")
    assert whoami.code == 0
    assert "Owner" in whoami.out and "Local" in whoami.out
    shared = service.qd("keys", "create", "--organization", "ours", "--json").json
    told = service.qd("auth", "whoami", QD_API_KEY=shared["key"])
    assert "organization key" in told.out and "Local" in told.out
    made = service.qd("keys", "create", "mine", "--json").json
    own = service.qd("auth", "whoami", "--json", QD_API_KEY=made["key"]).json
    assert own["user"]["name"] == "Owner"
    assert [one["name"] for one in own["organizations"]] == ["Local"]


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--organization"]])
def test_keys_are_made_listed_and_taken_away(service, options):
    made = service.qd("keys", "create", *options, "laptop")
    key = made.out.strip()
    assert (made.code, made.err) == (0, "Copy it now; it is not shown again.\n")
    assert get(service, "/v1/agents", key).status_code == 200
    profile = get(service, "/v1/user/profile", key)
    assert profile.status_code == (401 if options else 200)
    listed = service.qd("keys", "ls", *options, "--json").json
    (record,) = (one for one in listed["api_keys"] if one["name"] == "laptop")
    assert key.startswith(record["key_prefix"]) and key not in json.dumps(listed)
    assert "laptop" in service.qd("keys", "ls", *options).out
    assert service.qd("keys", "rm", *options, "nothing").code == 2
    gone = service.qd("keys", "rm", *options, "laptop", "--json")
    assert (gone.code, gone.json["deleted"]) == (0, [record["id"]])
    assert get(service, "/v1/agents", key).status_code == 401


@pytest.mark.long
def test_two_keys_of_one_name_need_the_id(service):
    first = service.qd("keys", "create", "same", "--json").json["api_key"]
    service.qd("keys", "create", "same")
    assert service.qd("keys", "rm", "same").code == 2
    assert service.qd("keys", "rm", first["id"]).code == 0
    assert service.qd("keys", "rm", "same").code == 0
    assert "same" not in service.qd("keys", "ls").out


@pytest.mark.long
def test_a_device_elsewhere_waits_for_the_owner(elsewhere):
    process = elsewhere.start("auth", "token", "--profile", "far", "--json")
    approved = approve(elsewhere, process)
    assert approved.code == 0, approved.err
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert get(elsewhere, "/v1/user/profile", json.loads(out)["access_token"]).status_code == 200


@pytest.mark.long
def test_a_device_that_is_turned_away_fails(elsewhere):
    process = elsewhere.start("auth", "token", "--profile", "far")
    assert approve(elsewhere, process, "--deny").code == 0
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "access_denied" in err


@pytest.mark.long
def test_login_keeps_a_key_for_the_profile_and_logout_takes_it_away(elsewhere):
    assert elsewhere.qd("replica", "ls", "--profile", "far").code == 1
    process = elsewhere.start("auth", "login", "--profile", "far", "--name", "here", "--json")
    assert approve(elsewhere, process).code == 0
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    record = json.loads(out)["api_key"]
    assert record["name"] == "here"
    assert f"Logged in: key {record['key_prefix']}... saved in profile far." in err
    kept = elsewhere.home / "client" / "keys" / "far"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    key = kept.read_text().strip()
    assert key not in out + err
    assert elsewhere.qd("replica", "ls", "--profile", "far").code == 0
    ended = elsewhere.qd("auth", "logout", "--profile", "far", "--json")
    assert (ended.code, ended.json) == (0, {"success": True, "removed": True})
    assert not kept.exists()
    assert get(elsewhere, "/v1/agents", key).status_code == 401
    again = elsewhere.qd("auth", "logout", "--profile", "far")
    assert (again.code, again.out) == (0, "")


def test_what_keeps_no_key_says_so(service):
    for verb in ("login", "logout"):
        ended = service.qd("auth", verb)
        assert ended.code == 2
        assert "needs no login" in ended.err


def test_an_unknown_code_is_refused(service):
    ended = service.qd("auth", "approve", "ABCD-EFGH")
    assert ended.code == 1
    assert "No device waits" in ended.err


def test_nobody_approves_over_tcp(service):
    url = service.environment["QD_TEST_URL"]
    key = service.qd("auth", "key").out.strip()
    ended = service.qd("auth", "approve", "ABCD-EFGH", QD_URL=url, QD_API_KEY=key)
    assert ended.code == 1
    assert "Only the owner" in ended.err
