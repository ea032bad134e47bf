"""States of workspaces that nobody owns yet."""

from enum import StrEnum


class WarmState(StrEnum):
    """Values of `workspaces.warm_state`; null for a workspace that somebody owns."""

    WARMING = "warming"
    """It is being prepared for a pool,"""
    READY = "ready"
    """and can be claimed."""
    TESTING = "testing"
    """A hook is tested in it; it goes when the test is over."""


POOLED = (WarmState.WARMING, WarmState.READY)
