"""Automations and runs in few words."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.wire.automations import Automation, Execution, StoredTrigger

FORMAT = "%a %Y-%m-%d %H:%M"


def trigger_words(trigger: "StoredTrigger") -> str:
    """What fires it: `cron 0 9 * * 1-5 Europe/Berlin`, `webhook`, `pull_request.opened`."""
    config = trigger.config
    match trigger.type:
        case "cron":
            return f"cron {config.get('schedule')} {config.get('timezone', 'UTC')}"
        case "custom":
            return "webhook"
        case "host-a" | "host-b":
            return str(config.get("event"))
        case other:
            return other


def triggers_words(automation: "Automation") -> str:
    """All that fires it, or a dash."""
    return ", ".join(map(trigger_words, automation.triggers)) or "-"


def webhook_path(automation: "Automation") -> str | None:
    """Where its webhook is called, below the service's address; None without one."""
    token = automation.webhook_token
    return token and f"/v1/automations/webhook/{token}"


def here(moment: datetime) -> str:
    """A moment by the clock of this machine."""
    return moment.astimezone().strftime(f"{FORMAT} %Z")


def duration(length: timedelta) -> str:
    """A length of time in its two largest units: `8s`, `3m05s`, `2h04m`, `3d02h`."""
    seconds = max(0, int(length.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"


def run_trigger(run: "Execution") -> str:
    """What set a run off."""
    return " ".join(filter(None, (run.trigger_type, run.trigger_event))) or "-"


def verdict(run: "Execution") -> str:
    """What its check says: the conclusion, else how the check stands."""
    if run.check is None:
        return "-"
    return run.check.conclusion or run.check.status
