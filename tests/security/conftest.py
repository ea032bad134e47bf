"""A service with a fleet over doubled sandboxes, as in the tests of the fleet."""

from tests.fleet.conftest import home, scripted, settings, world

__all__ = ["home", "scripted", "settings", "world"]
