"""Whether a webhook comes from a host: what only those who know its secret can show.

Host A signs the body. Host B shows the secret itself, or signs in the way of Standard Webhooks: then
the signature alone decides, and its moment must be near.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

NEAR_SECONDS = 300
"""How far the moment of a signature may be from the present one."""
MARK = "whsec_"
_LONGEST_MOMENT = 12


def is_from_host_a(secret: str | None, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether `X-Hub-Signature-256` is the body's."""
    if not secret:
        return False
    wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _same(headers.get("x-hub-signature-256", ""), wanted)


def is_from_host_b(
    secret: str | None, headers: Mapping[str, str], body: bytes, now: datetime
) -> bool:
    """Whether `webhook-signature` is the body's; without one, `X-Gitlab-Token` the secret."""
    if not secret:
        return False
    if "webhook-signature" in headers:
        return _is_signed(secret, headers, body, now)
    return _same(headers.get("x-gitlab-token", ""), secret)


def _is_signed(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
    moment = headers.get("webhook-timestamp", "")
    if not (moment.isdecimal() and moment.isascii() and len(moment) <= _LONGEST_MOMENT):
        return False
    if abs(now.timestamp() - int(moment)) > NEAR_SECONDS:
        return False
    head = f"{headers.get('webhook-id', '')}.{moment}.".encode("latin-1")
    made = hmac.new(_key(secret), head + body, hashlib.sha256).digest()
    wanted = f"v1,{base64.b64encode(made).decode()}"
    return any(_same(one, wanted) for one in headers["webhook-signature"].split())


def _key(secret: str) -> bytes:
    """The key that a secret stands for: one with the mark holds it as base64."""
    if secret.startswith(MARK):
        try:
            return base64.b64decode(secret.removeprefix(MARK), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()


def _same(given: str, wanted: str) -> bool:
    """In constant time. A header's characters are its bytes."""
    return hmac.compare_digest(given.encode("latin-1"), wanted.encode())
