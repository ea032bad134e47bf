"""What is rarely said of a new replica: folded below the rest of the dialog."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic import Field as Bounds

from quarterdeck.store.creation import Size, Wish
from quarterdeck.store.repositories import RepositoryWish
from quarterdeck.tui.forms.kit import Field, Kind, ModelForm, Refusal
from quarterdeck.tui.forms.paths import in_full
from quarterdeck.wire.base import Body, Switch
from quarterdeck.wire.messages import ThinkingLevel
from quarterdeck.wire.replicas import LifecyclePolicy, ReplicaConfig
from quarterdeck.wire.stored_text import ONE_LINE

Branch = Annotated[str, Bounds(min_length=1, max_length=255), ONE_LINE]


def _wish(line: str) -> str:
    if len(line.split()) > 2:
        raise ValueError("each line is a path or URL, and after a blank a branch")
    return line


class More(Body):
    """The fields of `CreateReplica` that have a default, and more of the repositories."""

    branch: Branch | None = None
    others: list[Annotated[str, AfterValidator(_wish)]] = []
    plan_mode: Switch = False
    goal_mode: Switch = False
    fast_mode: Switch = False
    thinking_level: ThinkingLevel | None = None
    size: Size | None = None
    lifecycle_policy: LifecyclePolicy | None = None
    config: ReplicaConfig | None = None
    webhook_url: Annotated[str, ONE_LINE] | None = None


FIELDS = (
    Field("branch", help="That work begins from.", placeholder="the repository's own"),
    Field(
        "others",
        "More repositories",
        "They stand beside the first one; a branch may follow after a blank.",
        kind=Kind.LIST,
        rows=2,
    ),
    Field("plan_mode", "Plan first", "The agent plans and waits for your word."),
    Field("goal_mode", "As a goal", "The agent works until the message's goal is reached."),
    Field("fast_mode", "Fast", "Less thought, for agents that know it."),
    Field("thinking_level", "Thinking", none="the agent's own choice"),
    Field("size", help="How much of the machine it may use.", none="the usual"),
    Field(
        "lifecycle_policy",
        "When done",
        "What becomes of it when its work is done.",
        options=(
            ("the usual", "default"),
            ("archive it", "archive_when_done"),
            ("put it to sleep", "sleep_when_done"),
            ("delete it when nothing happens", "delete_after_inactivity"),
        ),
        none="the usual",
    ),
    Field("config.auto_stop_minutes", "Sleeps after", "Minutes in which nothing happens in it."),
    Field("webhook_url", "Webhook", "Is told of what becomes of it.", placeholder="https://"),
)


def more_form(start: Mapping[str, Any]) -> ModelForm:
    """The fields, folded unless something stands in them."""
    return ModelForm(More, [replace(one, folded=True) for one in FIELDS], start, id="more")


def with_more(wish: Wish, more: More) -> Wish:
    """A wish with what was said here."""
    return replace(
        wish,
        branch=more.branch,
        others=tuple(_repository(line) for line in more.others),
        plan_mode=more.plan_mode,
        goal_mode=more.goal_mode,
        fast_mode=more.fast_mode,
        thinking_level=more.thinking_level,
        size=more.size,
        lifecycle_policy=more.lifecycle_policy,
        auto_stop_minutes=more.config.auto_stop_minutes if more.config else None,
        webhook_url=more.webhook_url,
    )


def unused_repositories(wish: Wish) -> Refusal | None:
    """What is wrong when a branch or more repositories were named that would have no effect."""
    named = {"branch": bool(wish.branch), "others": bool(wish.others)}
    if wish.environment_id is not None:
        words = "The chosen environment says which there are: choose the repository's own."
    elif wish.repository_url is None:
        words = "Name the first repository above."
    else:
        return None
    beside = {path: words for path, given in named.items() if given}
    return Refusal(beside) if beside else None


def _repository(line: str) -> RepositoryWish:
    url, *branch = line.split()
    return RepositoryWish(in_full(url), branch[0] if branch else None)
