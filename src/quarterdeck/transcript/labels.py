"""Short texts that the cockpit and the command line share."""

from quarterdeck.transcript.blocks import QuestionBlock, ResultBlock, ToolBlock

_REASONS = {
    "failed": "Failed",
    "cancelled": "Interrupted",
    "refusal": "The agent refused to go on",
    "max_tokens": "Stopped: the answer reached the token limit",
    "max_turn_requests": "Stopped: the turn reached its limit of model requests",
}


def result_text(block: ResultBlock) -> str:
    """Return how the turn ended, in one sentence."""
    reason = _REASONS.get(block.reason, f"Ended: {block.reason}")
    return f"{reason}: {block.error}" if block.error else reason


def duration_text(seconds: float) -> str:
    """Return a duration as text: `0.4 s`, `12 s`, `3 m 05 s`, `2 h 10 m`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def question_text(block: QuestionBlock, tool: ToolBlock | None) -> str:
    """Return the question as text."""
    return block.title or (tool.name if tool else None) or "The agent asks"


def outcome_text(block: QuestionBlock) -> str:
    """Return how a question ended; empty while it is open."""
    if block.is_open:
        return ""
    return block.text or block.chosen_name or block.outcome or "not answered"
