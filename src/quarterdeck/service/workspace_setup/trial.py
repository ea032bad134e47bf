"""The test of a hook, as the workspace that it runs in remembers it (in `config_json`)."""

import json
from dataclasses import asdict, dataclass

from quarterdeck.service.environments.bundle import Bundle
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.service.workspace_setup.states import WarmState
from quarterdeck.wire.setup import HookKind, SetupHook

TESTED = "test"
"""Name of the tested hook among the others."""


@dataclass(frozen=True)
class Trial:
    """Which hook is tested. `own_warm` and `own_start` say whether the environment itself has one.

    The tested hook takes the place of the environment's own. Those that come before it in the
    contract's order run as well, those that come after it do not.
    """

    kind: HookKind
    content: str
    own_warm: bool
    own_start: bool

    def as_json(self) -> str:
        """For `config_json`."""
        return json.dumps({"hook_test": asdict(self)})

    def hooks(self, bundle: Bundle) -> list[SetupHook]:
        """The hooks of the workspace, the tested one last."""
        warm, start = bundle.warm_hooks, bundle.start_hooks
        tested = SetupHook(kind=self.kind, name=TESTED, script=self.content)
        if self.kind == HookKind.WARM:
            before = [(HookKind.WARM, hook) for hook in (warm[:-1] if self.own_warm else warm)]
        else:
            before = [(HookKind.WARM, hook) for hook in warm]
            before += [(HookKind.START, hook) for hook in (start[:-1] if self.own_start else start)]
        return [
            *(
                SetupHook(kind=kind, name=f"{number}: {hook.name}", script=hook.content)
                for number, (kind, hook) in enumerate(before, 1)
            ),
            tested,
        ]


def trial_of(row: WorkspaceRow) -> Trial | None:
    """The test that a workspace was made for; None for any other workspace."""
    if row.warm_state != WarmState.TESTING or row.config_json is None:
        return None
    values = json.loads(row.config_json)["hook_test"]
    return Trial(
        kind=HookKind(values["kind"]),
        content=str(values["content"]),
        own_warm=bool(values["own_warm"]),
        own_start=bool(values["own_start"]),
    )
