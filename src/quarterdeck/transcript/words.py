"""Short wordings that the cockpit and the command line share."""

from quarterdeck.transcript.blocks import QuestionBlock, ResultBlock, ToolBlock

_REASONS = {
    "failed": "Failed",
    "cancelled": "Interrupted",
    "refusal": "The agent refused to go on",
    "max_tokens": "Stopped: the answer reached the token limit",
    "max_turn_requests": "Stopped: the turn reached its limit of model requests",
}


def result_text(block: ResultBlock) -> str:
    """How the turn ended, in one sentence."""
    said = _REASONS.get(block.reason, f"Ended: {block.reason}")
    return f"{said}: {block.error}" if block.error else said


def duration_text(seconds: float) -> str:
    """A duration as a person says it: `0.4 s`, `12 s`, `3 m 05 s`, `2 h 10 m`."""
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
    """What is asked."""
    return block.title or (tool.name if tool else None) or "The agent asks"


def outcome_text(block: QuestionBlock) -> str:
    """How a question ended; empty while it is open."""
    if block.is_open:
        return ""
    return block.text or block.chosen_name or block.outcome or "not answered"
