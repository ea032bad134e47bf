"""Headers and keys that a hosted service may name differently."""

from typing import NamedTuple


class WireNames(NamedTuple):
    """Names that a profile can rename; everything else of the contract is fixed."""

    version_header: str = "X-Service-Api-Version"
    version: str = "2026-10-07"
    organization_header: str = "Service-Org-Id"
    transcript_key: str = "agentAspTranscript"


NEUTRAL = WireNames()
"""The contract's own names."""
