"""The goal of a chat, and the plan that waits for a word of the person."""

from collections.abc import Mapping
from typing import Literal

from textual import work
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.panes.chat_ask import AskField, AskScreen, WrongFieldError
from quarterdeck.tui.panes.chat_sending import Sending
from quarterdeck.tui.panes.chat_words import goal_words
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.goals import TOKEN_BUDGET_LIMIT, GoalStatus

ACCEPTED = "The plan is accepted. Carry it out."
NO_GOALS = "The agent of this chat keeps no goal of its own. Send a message in goal mode: ctrl+l."


def plan_ready_words() -> str:
    """A plan waits for the person."""
    return keyed(
        "▲ plan to review: {chat.plan-accept} carries it out, {chat.plan-change} asks for changes"
    )


class Goals(Sending):
    """Lines above the composer, absent when there is nothing to say."""

    def show_goal(self, chat: ChatState) -> None:
        """Shows the goal, and whether a plan waits."""
        line = self.query_one("#goal", Static)
        line.display = chat.record.goal is not None
        if chat.record.goal is not None:
            line.update(goal_words(chat.record.goal))
        self.query_one("#plan", Static).display = chat.plan_waits

    def action_accept_plan(self) -> None:
        """Has the plan carried out."""
        if self.chat is not None and self.chat.plan_waits:
            self._problem = ""
            self.send(ACCEPTED)

    def action_change_plan(self) -> None:
        """What is written next asks for another plan."""
        if self.chat is not None and self.chat.plan_waits:
            self.composer.plan_mode = True
            self.screen.set_focus(self.composer)

    @work(exclusive=True, group="goal")
    async def action_goal(self) -> None:
        """Sets the goal and its budget."""
        chat, chat_id = self.chat, self.chat_id
        if chat is None:
            return
        goal = chat.record.goal
        objective = one_line(goal.objective) if goal else ""
        budget = str(goal.token_budget) if goal and goal.token_budget else ""

        async def change(values: Mapping[str, str]) -> None:
            wanted, most = values["objective"], budget_of(values["budget"])
            if not wanted:
                raise WrongFieldError("objective", "A goal needs an objective.")
            # An objective begins the goal anew, its counters at zero: only a new one is sent.
            renewed = wanted if wanted != objective else None
            if renewed is None and (most is None or values["budget"] == budget):
                return
            commands = self._deck.chat_commands
            if not await commands.set_goal(self.replica_id, chat_id, renewed, most):
                raise WrongFieldError("form", NO_GOALS)

        fields = [
            AskField("objective", "Objective", objective, "what is worked towards"),
            AskField("budget", "Token budget", budget, "none"),
        ]
        hold_keys(self)
        await self.app.push_screen_wait(AskScreen("Goal of the chat", fields, change, "sets it"))

    @work(exclusive=True, group="goal")
    async def action_switch_goal(self) -> None:
        """Pauses the goal, or goes on with it."""
        goal = self.chat.record.goal if self.chat else None
        if goal is None:
            self.trouble(keyed("There is no goal yet: {chat.goal} sets one."))
            return
        status: Literal["active", "paused"] = (
            "paused" if goal.status == GoalStatus.ACTIVE else "active"
        )
        try:
            await self._deck.chat_commands.switch_goal(self.replica_id, self.chat_id, status)
        except ClientError as error:
            self.refused("the goal is as it was", error)


def budget_of(typed: str) -> int | None:
    """Digits, with what people put between them; `k` and `m` count thousands and millions.

    Raises:
        WrongFieldError: it is no number of tokens.
    """
    text = typed.lower().replace(",", "").replace("_", "").replace(" ", "")
    if not text:
        return None
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    digits = text[:-1] if factor > 1 else text
    if not (digits.isascii() and digits.isdigit()):
        raise WrongFieldError("budget", "A budget is a number of tokens, such as 100k.")
    budget = int(digits) * factor
    if not 1 <= budget <= TOKEN_BUDGET_LIMIT:
        raise WrongFieldError("budget", f"A budget is 1 to {TOKEN_BUDGET_LIMIT:,} tokens.")
    return budget
