"""The control plane: records, event log, relay to engines, authentication, HTTP routes."""

from quarterdeck.wire.base import build_bodies_at_once

build_bodies_at_once()  # before any route is declared
