"""Signing webhook calls: an organization's secret, and a body's signature.

The secret is derived from the installation's master key, so that nothing has to be stored and it
stays the same as long as that key does. A receiver checks

    X-Service-Signature: sha256=<hex HMAC-SHA256 of the raw body, keyed with the secret's text>
"""

import hashlib
import hmac

from quarterdeck.service.vault import Vault

HEADER = "X-Service-Signature"
MARK = "whsec_"


def webhook_secret(vault: Vault, organization_id: str) -> str:
    """The secret with which an organization's calls are signed."""
    key = vault.derived("webhooks")
    return MARK + hmac.new(key, organization_id.encode(), hashlib.sha256).hexdigest()


def signature(secret: str, body: bytes) -> str:
    """The header's value for a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
