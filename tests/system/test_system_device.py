"""A device elsewhere, over TCP, from the code that it shows to a replica that it makes."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from tests.support.installation import Installation, refused

pytestmark = pytest.mark.long

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def device(deck: Installation) -> Iterator[httpx.Client]:
    """Somebody with no key at all."""
    with deck.client() as client:
        yield client


def test_a_device_over_tcp_is_let_in_by_the_owner(deck: Installation, device: httpx.Client) -> None:
    asked = device.post("/v1/auth/device").json()
    wanted = {"grant_type": GRANT, "device_code": asked["device_code"]}
    waits = device.post("/v1/auth/token", json=wanted)
    assert (waits.status_code, waits.json()["error"]) == (400, "authorization_pending")

    approval = {"user_code": asked["user_code"]}
    refused(deck.ask("POST", "/v1/auth/approve", approval), 403, "FORBIDDEN", "Only the owner")
    approved = deck.qd("auth", "approve", asked["user_code"])
    assert approved.returncode == 0, approved.stderr

    token = device.post("/v1/auth/token", json=wanted).json()["access_token"]
    again = device.post("/v1/auth/token", json=wanted)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    device.headers["Authorization"] = f"Bearer {token}"
    refused(device.get("/v1/replica"), 400, "ORG_HEADER_REQUIRED", "Service-Org-Id")
    (organization,) = device.get("/v1/organizations").json()["organizations"]
    device.headers["Service-Org-Id"] = organization["id"]
    assert device.get("/v1/replica").status_code == 200
    body = {"name": f"far-{uuid4()}", "environment_id": deck.plain_environment}
    refused(device.post("/v1/replica", json=body), 403, "API_KEY_REQUIRED", "API key")

    key = device.post("/v1/user/api-keys", json={"name": "far"})
    assert key.status_code == 201, key.text
    device.headers["Authorization"] = f"Bearer {key.json()['key']}"
    made = device.post("/v1/replica", json=body)
    assert made.status_code == 201, made.text
    deck.reach(made.json()["replica"]["id"], "active")
