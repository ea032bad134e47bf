"""The check that a run's message asks to report: its blocks are fixed, so variables carry it."""

import re

_HEAD = re.compile(r"^## Check$", re.MULTILINE)
_ID = re.compile(r"^- id: (\S+)$", re.MULTILINE)
_TOKEN = re.compile(r"^- token: (\S+)$", re.MULTILINE)


def check_variables(message: str) -> dict[str, str]:
    """`QD_CHECK_ID` and `QD_CHECK_TOKEN` of the message's last section, as `qd check` reads them."""
    heads = list(_HEAD.finditer(message))
    if not heads:
        return {}
    section = message[heads[-1].end() :]
    found = {"QD_CHECK_ID": _ID.search(section), "QD_CHECK_TOKEN": _TOKEN.search(section)}
    if not all(found.values()):
        return {}
    return {name: match[1] for name, match in found.items() if match is not None}
