"""User tokens, ours and an outside issuer's: which are taken, which are refused, and why."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import text

from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import StartError
from quarterdeck.service.identity.tokens import (
    FRESH_SECONDS,
    RETRY_SECONDS,
    USE,
    IdentitySettings,
    IssuerSettings,
    KeySet,
)
from quarterdeck.service.start import build_service
from quarterdeck.wire.base import utc_now
from tests.service.people import People, bearing, key_of, settle, token_of

pytestmark = pytest.mark.one_database

ISSUER = "https://id.example.org/"
AUDIENCE = "deck"
PROFILE = "/v1/user/profile"


class Provider:
    """An identity provider on loopback: publishes keys and signs tokens."""

    def __init__(self) -> None:
        self.published: list[dict[str, Any]] = []
        self.private: dict[str, Any] = {}
        self.fetches = 0
        self.body: bytes | None = None
        self.status = 200

    def add(self, kid: str, private: Any, **extra: str) -> None:
        rsa_key = isinstance(private, rsa.RSAPrivateKey)
        kind = jwt.algorithms.RSAAlgorithm if rsa_key else jwt.algorithms.ECAlgorithm
        public = json.loads(kind.to_jwk(private.public_key()))
        self.published.append({**public, "kid": kid, **extra})
        self.private[kid] = private

    def sign(self, kid: str = "rsa", algorithm: str = "RS256", **claims: Any) -> str:
        now = utc_now()
        given = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "user-1",
            "exp": now + timedelta(minutes=5),
            "iat": now,
            "email": "ann@example.org",
            "name": "Ann",
        }
        chosen = {name: value for name, value in {**given, **claims}.items() if value is not None}
        return jwt.encode(chosen, self.private[kid], algorithm, {"kid": kid})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.fetches += 1
        body = self.body or json.dumps({"keys": self.published}).encode()
        head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close"
        writer.write(head.encode() + b"\r\n\r\n" + body)
        await writer.drain()
        writer.close()


SPKI = PublicFormat.SubjectPublicKeyInfo
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def provider() -> Provider:
    made = Provider()
    made.add("rsa", RSA_KEY, use="sig", alg="RS256")
    made.add("ec", ec.generate_private_key(ec.SECP256R1()))
    return made


@pytest.fixture
async def jwks_url(provider: Provider) -> AsyncIterator[str]:
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    server.close()
    await server.wait_closed()


Open = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def opened(context: ServiceContext, jwks_url: str) -> AsyncIterator[Open]:
    """Opens clients of services that trust the provider."""
    clients: list[httpx.AsyncClient] = []

    def make(**settings: Any) -> httpx.AsyncClient:
        issuer = IssuerSettings(
            **{"issuer": ISSUER, "jwks_url": jwks_url, "audience": AUDIENCE} | settings
        )
        app = build_app(build_service(replace(context, identity=IdentitySettings(issuer))))
        transport = httpx.ASGITransport(app)
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://test"))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
async def people(context: ServiceContext) -> People:
    return await settle(context)


async def profile(client: httpx.AsyncClient, token: str) -> httpx.Response:
    return await client.get(PROFILE, headers=bearing(token))


def refused(answer: httpx.Response, status: int = 401, code: str = "UNAUTHORIZED") -> None:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text


# Ours


def own(context: ServiceContext, people: People, key: bytes | None = None, **claims: Any) -> str:
    now = utc_now()
    given = {
        "iss": "quarterdeck",
        "aud": "quarterdeck",
        "sub": people.member,
        "iat": now,
        "exp": now + timedelta(minutes=5),
    }
    chosen = {name: value for name, value in {**given, **claims}.items() if value is not None}
    return jwt.encode(chosen, key or context.vault.derived(USE), "HS256")


async def test_our_own_token_is_taken(
    client: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    answer = await profile(client, own(context, people))
    assert answer.json()["user"]["name"] == "Mem"


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"nbf": 9_999_999_999},
        {"iat": 9_999_999_999},
        {"aud": "other"},
        {"aud": None},
        {"iss": "other"},
        {"iss": None},
        {"sub": None},
        {"sub": "nobody"},
        {"sub": str(uuid4())},
    ],
    ids=range(12),
)
async def test_our_own_token_with_a_wrong_claim_is_refused(
    client: httpx.AsyncClient, context: ServiceContext, people: People, claims: dict[str, Any]
) -> None:
    answer = await profile(client, own(context, people, **claims))
    refused(answer)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["details"]


@pytest.mark.parametrize(("ahead", "status"), [(90, 200), (150, 401), (-90, 200), (-150, 401)])
async def test_a_token_of_a_service_whose_clock_is_a_little_wrong_is_taken(
    client: httpx.AsyncClient, context: ServiceContext, people: People, ahead: int, status: int
) -> None:
    """One ahead issues it in our future; to one behind it seems to be over."""
    moment = utc_now() + timedelta(seconds=ahead)
    over = {"exp": moment} if ahead < 0 else {}
    token = own(context, people, **{"iat": moment, **over})
    assert (await profile(client, token)).status_code == status


async def test_a_token_of_another_key_or_algorithm_is_refused(
    client: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    refused(await profile(client, own(context, people, key=b"x" * 32)))
    good = own(context, people)
    head, body, signature = good.split(".")
    none = jwt.encode(jwt.decode(good, options={"verify_signature": False}), None, "none")
    claims = jwt.decode(good, options={"verify_signature": False})
    longer = jwt.encode(claims, context.vault.derived(USE) * 2, "HS512")
    for bad in (
        none,
        longer,
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        "a.b.c",
        "..",
    ):
        refused(await profile(client, bad))


async def test_the_organization_must_be_named_and_ones_own(
    client: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    token = token_of(context, people.member)
    refused(await client.get("/v1/replica", headers=bearing(token)), 400, "ORG_HEADER_REQUIRED")
    for bad in ("x", "", "global"):
        answer = await client.get("/v1/replica", headers=bearing(token, bad))
        refused(answer, 400, "INVALID_REQUEST")
        assert "Service-Org-Id" in answer.json()["details"]
    for foreign in (people.other, str(uuid4())):
        refused(await client.get("/v1/replica", headers=bearing(token, foreign)), 404, "NOT_FOUND")
    upper = bearing(token, people.organization.upper())
    assert (await client.get("/v1/replica", headers=upper)).status_code == 200
    refused(await client.get("/v1/nothing", headers=bearing(token)), 404, "NOT_FOUND")


async def test_a_key_needs_no_header_and_keeps_its_organization(
    client: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    key = await key_of(context, people.other)
    answer = await client.get("/v1/environments", headers=bearing(key, people.organization))
    owners = {one["organization_id"] for one in answer.json()["environments"]}
    assert owners == {people.other}


@pytest.mark.parametrize("path", ["/v1/replica", "/v1/workspaces"])
async def test_a_token_makes_no_replica(
    client: httpx.AsyncClient, context: ServiceContext, people: People, path: str
) -> None:
    token = token_of(context, people.owner)
    body = {"name": "n", "environment_id": str(uuid4())}
    for headers in (bearing(token), bearing(token, people.organization)):
        refused(await client.post(path, json=body, headers=headers), 403, "API_KEY_REQUIRED")


async def test_the_role_is_that_in_the_organization(
    client: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    path = "/v1/organization/api-keys"
    member = bearing(token_of(context, people.member), people.organization)
    refused(await client.get(path, headers=member), 403, "FORBIDDEN")
    owner = bearing(token_of(context, people.owner), people.organization)
    assert (await client.get(path, headers=owner)).status_code == 200


# An outside issuer's


async def test_an_outside_user_is_made_at_first_sight(
    opened: Open, provider: Provider, context: ServiceContext
) -> None:
    client = opened()
    tokens = [provider.sign("rsa"), provider.sign("ec", "ES256")]
    answers = await asyncio.gather(*(profile(client, token) for token in tokens * 4))
    users = [answer.json()["user"] for answer in answers]
    assert {one["id"] for one in users} == {users[0]["id"]}
    assert (users[0]["email"], users[0]["name"]) == ("ann@example.org", "Ann")
    assert provider.fetches == 1
    again = await profile(client, provider.sign(name="Ann B", email="x" * 400))
    assert (again.json()["user"]["name"], again.json()["user"]["email"]) == ("Ann B", None)
    assert again.json()["user"]["id"] == users[0]["id"]


async def test_membership_decides_over_an_outside_user(
    opened: Open, provider: Provider, people: People
) -> None:
    client, token = opened(), provider.sign()
    listed = await client.get("/v1/organizations", headers=bearing(token))
    assert listed.json() == {"organizations": []}
    named = bearing(token, people.organization)
    refused(await client.get("/v1/replica", headers=named), 404, "NOT_FOUND")
    refused(
        await client.post("/v1/user/api-keys", json={"name": "a"}, headers=bearing(token)),
        400,
        "ORG_HEADER_REQUIRED",
    )


@pytest.mark.parametrize("role", ["member", "admin"])
async def test_new_users_can_be_made_members(
    opened: Open, provider: Provider, people: People, role: str
) -> None:
    client, token = opened(new_users=role), provider.sign()
    listed = await client.get("/v1/organizations", headers=bearing(token))
    (organization,) = listed.json()["organizations"]
    assert (organization["id"], organization["role"]) == (people.organization, role)
    named = bearing(token, people.organization)
    assert (await client.get("/v1/replica", headers=named)).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"nbf": 9_999_999_999},
        {"iat": 9_999_999_999},
        {"aud": "other"},
        {"aud": None},
        {"iss": "https://other.example.org/"},
        {"iss": "quarterdeck"},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 201},
        {"sub": "a\u0000b"},
    ],
    ids=range(12),
)
async def test_an_outside_token_with_a_wrong_claim_is_refused(
    opened: Open, provider: Provider, claims: dict[str, Any]
) -> None:
    refused(await profile(opened(), provider.sign(**claims)))


async def test_without_a_configured_audience_a_token_may_name_none(
    opened: Open, provider: Provider
) -> None:
    client = opened(audience=None)
    refused(await profile(client, provider.sign()))
    assert (await profile(client, provider.sign(aud=None))).status_code == 200


def crafted(header: dict[str, Any], key: Any, algorithm: str) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "evil", "exp": 9_999_999_999}
    return jwt.encode(claims, key, algorithm, header)


async def test_no_trick_with_the_algorithm_works(opened: Open, provider: Provider) -> None:
    client = opened()
    secret = b"k" * 32
    oct_key = {"kty": "oct", "kid": "oct", "k": jwt.utils.base64url_encode(secret).decode()}
    provider.published.append(oct_key)
    tricks = [
        crafted({"kid": "rsa"}, None, "none"),
        forged(RSA_KEY.public_key().public_bytes(Encoding.PEM, SPKI)),
        forged(RSA_KEY.public_key().public_bytes(Encoding.DER, SPKI)),
        forged(json.dumps(provider.published[0]).encode()),
        forged(b""),
        crafted({"kid": "oct"}, secret, "HS256"),
        crafted({"kid": "rsa"}, RSA_KEY, "RS512"),
        crafted({"kid": "ec"}, RSA_KEY, "RS256"),
        crafted({"kid": "rsa"}, ec.generate_private_key(ec.SECP256R1()), "ES256"),
        crafted({"kid": "unknown"}, RSA_KEY, "RS256"),
        crafted({}, RSA_KEY, "RS256"),
        crafted({"kid": "rsa", "jku": "http://evil"}, other_rsa(), "RS256"),
        crafted({"kid": "rsa", "jwk": provider.published[0]}, other_rsa(), "RS256"),
    ]
    for number, token in enumerate(tricks):
        answer = await profile(client, token)
        assert answer.status_code == 401, (number, answer.text)
    assert (await profile(client, provider.sign())).status_code == 200


def forged(secret: bytes) -> str:
    """Signed with what is public, as if it were a shared secret; the library refuses to."""
    signed = crafted({"kid": "rsa"}, b"k" * 32, "HS256").rpartition(".")[0]
    mac = hmac.new(secret, signed.encode(), "sha256").digest()
    return f"{signed}.{jwt.utils.base64url_encode(mac).decode()}"


def other_rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


async def test_a_key_for_encryption_signs_nothing(opened: Open, provider: Provider) -> None:
    provider.add("enc", other_rsa(), use="enc")
    refused(await profile(opened(), provider.sign("enc")))


async def test_an_issuer_with_one_key_needs_no_kid(opened: Open, provider: Provider) -> None:
    del provider.published[1]
    assert (await profile(opened(), crafted({}, RSA_KEY, "RS256"))).status_code == 200


async def test_an_unconfigured_issuer_is_refused(
    client: httpx.AsyncClient, provider: Provider
) -> None:
    refused(await profile(client, provider.sign()))
    assert provider.fetches == 0


async def test_an_issuer_that_does_not_answer_is_no_reason_to_refuse_the_token(
    opened: Open, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    client = opened()
    provider.status = 500
    refused(await profile(client, provider.sign()), 500, "INTERNAL_ERROR")
    assert "could not be fetched" in caplog.text


# The set of keys


async def test_keys_are_rotated(jwks_url: str, provider: Provider) -> None:
    now = [0.0]
    keys = KeySet(jwks_url, lambda: now[0])
    assert await keys.find("rsa") is not None
    provider.published[0]["kid"] = "next"
    now[0] = RETRY_SECONDS
    assert await keys.find("next") is not None
    assert await keys.find("rsa") is None
    assert provider.fetches == 2


async def test_unknown_keys_ask_the_issuer_now_and_then(jwks_url: str, provider: Provider) -> None:
    now = [0.0]
    keys = KeySet(jwks_url, lambda: now[0])
    assert await asyncio.gather(*(keys.find(f"k{n}") for n in range(50))) == [None] * 50
    assert provider.fetches == 1
    now[0] = RETRY_SECONDS + 0.1
    await asyncio.gather(*(keys.find(f"k{n}") for n in range(50)))
    assert provider.fetches == 2


async def test_a_withdrawn_key_ends(jwks_url: str, provider: Provider) -> None:
    now = [0.0]
    keys = KeySet(jwks_url, lambda: now[0])
    assert await keys.find("rsa") is not None
    del provider.published[0]
    now[0] = FRESH_SECONDS - 1
    assert await keys.find("rsa") is not None
    now[0] = FRESH_SECONDS
    assert await keys.find("rsa") is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"keys": 5}', b"{}", b"x" * ((1 << 20) + 1)], ids=range(5)
)
async def test_a_bad_list_keeps_the_keys_there_are(
    jwks_url: str, provider: Provider, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    keys = KeySet(jwks_url, lambda: now[0])
    assert await keys.find("rsa") is not None
    provider.body, provider.status = body or b" ", 200
    now[0] = FRESH_SECONDS
    assert await keys.find("rsa") is not None
    assert "could not be fetched" in caplog.text


@pytest.mark.parametrize(
    "url", ["http://id.example.org/keys", "file:///etc/passwd", "", "https://", "ftp://127.0.0.1/"]
)
def test_keys_come_over_a_safe_line_only(url: str) -> None:
    with pytest.raises(StartError, match="https"):
        KeySet(url)


def test_loopback_and_https_are_safe() -> None:
    for url in ("https://id.example.org/k", "http://localhost/k", "http://[::1]:5/k"):
        KeySet(url)


# Callers inside a workspace


async def test_an_engine_secret_opens_nothing_ordinary(
    client: httpx.AsyncClient, context: ServiceContext, new_workspace: Any
) -> None:
    workspace = str(uuid4())
    sealed = context.vault.seal(workspace, "e" * 64)
    await new_workspace(context.database, id=workspace, engine_secret_sealed=sealed)
    headers = bearing("e" * 64) | {"X-Workspace-Id": workspace}
    refused(await client.get(f"/v1/workspaces/{workspace}", headers=headers))
    refused(await client.get("/v1/agents", headers=headers))
    refused(await client.get("/v1/nothing", headers=headers), 404, "NOT_FOUND")


async def test_users_are_rows_with_what_the_token_says(
    opened: Open, provider: Provider, context: ServiceContext
) -> None:
    answer = await profile(opened(), provider.sign())
    statement = text("SELECT id, issuer, subject FROM users WHERE issuer = :i")
    row = await context.database.read(lambda c: c.execute(statement, {"i": ISSUER}).one())
    assert tuple(row) == (answer.json()["user"]["id"], ISSUER, "user-1")
    assert UUID(row.id)
