"""Hooks of an environment (specification, operation 9; INTERFACE 7)."""

from quarterdeck.wire.base import Body, Id, Record, Timestamp
from quarterdeck.wire.stored_text import Text
from quarterdeck.wire.warm_pools import WarmPool


class EnvironmentHook(Record):
    """A version of a hook: a shell script. Versions only grow, and one is active."""

    id: Id
    organization_id: Id
    environment_id: Id
    version: int
    content: str
    is_active: bool
    created_at: Timestamp


class WarmHookAnswer(Record):
    """Answer of saving a warm hook."""

    warm_hook: EnvironmentHook


class WarmHookState(Record):
    """Answer of `GET .../warm-hooks`."""

    warm_hook: EnvironmentHook | None
    warm_pool: WarmPool | None


class StartHookAnswer(Record):
    """Answer of `GET .../start-hooks` and of saving one; null when there is none."""

    start_hook: EnvironmentHook | None


class SaveHook(Body):
    """Body of the `save` operations; an empty start hook takes the active one away."""

    content: Text
