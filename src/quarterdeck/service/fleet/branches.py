"""The branch that a workspace's repositories are on."""

import re

PREFIX = "qd/"

_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//+")


def branch_of(replica_name: str) -> str:
    """`qd/<replica name>`, with what git refuses in a branch's name replaced by a dash."""
    parts = [_part(part) for part in _REFUSED.sub("-", replica_name).split("/")]
    return PREFIX + ("/".join(part for part in parts if part) or "replica")


def _part(text: str) -> str:
    text = text.rstrip(".")
    if text.startswith((".", "-")):
        text = f"_{text[1:]}"
    return text.removesuffix(".lock") + "-lock" if text.endswith(".lock") else text
