"""Triggers of automations (docs/interface.md 8)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from quarterdeck.wire.base import ONE_LINE, Body, Id, Switch

EXPRESSION = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
ZONE = Annotated[str, Field(min_length=1, max_length=100), ONE_LINE]
ACTOR = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]


class TriggerType(StrEnum):
    """The types of triggers; the last two are stored only."""

    CRON = "cron"
    HOST_A = "host-a"
    HOST_B = "host-b"
    CUSTOM = "custom"
    CHATAPP = "chatapp"
    ERRMON = "errmon"


PullRequestEvent = Literal[
    "pull_request.opened",
    "pull_request.synchronize",
    "pull_request.merged",
    "pull_request.closed",
    "pull_request.command",
]
MergeRequestEvent = Literal[
    "merge_request.opened",
    "merge_request.synchronize",
    "merge_request.merged",
    "merge_request.closed",
    "merge_request.command",
]


class CronConfig(Body):
    """Five fields of cron, in a zone of the IANA database."""

    schedule: EXPRESSION
    """Five fields of cron."""
    timezone: ZONE = "UTC"
    """IANA time zone."""


class _HostConfig(Body):
    repository_ids: list[Id] | None = None
    """Only these connected repositories. When it is left out, those that the environment is bound to;
    all of them when it is bound to none."""
    group_pr_events: Switch = False
    """A later event of the same pull request goes to the running workspace as a message: to that
    of a run that goes on, or has ended well and left its workspace active."""
    excluded_actors: list[ACTOR] = []
    """Authors whose events are ignored, by the host's names, in any case."""
    check: Switch = True
    """A run opens a check, which the agent reports (own field)."""


class HostAConfig(_HostConfig):
    """An event of a pull request at host A."""

    event: PullRequestEvent
    """Event of the host."""


class HostBConfig(_HostConfig):
    """An event of a merge request at host B."""

    event: MergeRequestEvent
    """Event of the host."""


class OpenConfig(Body):
    """A configuration of which nothing is known but that it is an object; kept as it is."""

    model_config = ConfigDict(extra="allow")


class CronTrigger(Body):
    """A schedule."""

    type: Literal[TriggerType.CRON]
    """Always `cron`."""
    config: CronConfig
    """Settings of the schedule."""


class HostATrigger(Body):
    """Host A's signed webhook."""

    type: Literal[TriggerType.HOST_A]
    """Always `host-a`."""
    config: HostAConfig
    """Which events start a run."""


class HostBTrigger(Body):
    """Host B's signed webhook."""

    type: Literal[TriggerType.HOST_B]
    """Always `host-b`."""
    config: HostBConfig
    """Which events start a run."""


class CustomTrigger(Body):
    """The automation's own webhook."""

    type: Literal[TriggerType.CUSTOM]
    """Always `custom`."""
    config: OpenConfig = Field(default_factory=OpenConfig)
    """Any object; it is stored."""


class StoredOnlyTrigger(Body):
    """Accepted and stored; nothing fires it here."""

    type: Literal[TriggerType.CHATAPP, TriggerType.ERRMON]
    """`chatapp` or `errmon`."""
    config: OpenConfig = Field(default_factory=OpenConfig)
    """Any object; it is stored."""


Trigger = Annotated[
    CronTrigger | HostATrigger | HostBTrigger | CustomTrigger | StoredOnlyTrigger,
    Field(discriminator="type"),
]
"""One way to start an automation."""
