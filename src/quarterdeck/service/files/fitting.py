"""How one word of a search fits a path."""

from enum import IntEnum

_DELIMITERS = frozenset("/_-. ")


class Fit(IntEnum):
    """Worst first."""

    STREWN = 0
    """Its letters are there, in order."""
    IN_PATH = 1
    PART_OF_PATH = 2
    """It begins where a part of the path, or of a name in it, begins."""
    IN_NAME = 3
    PART_OF_NAME = 4
    BEGINS_NAME = 5
    ENDS_PATH = 6
    STEM = 7
    """It is the name without its ending."""
    NAME = 8
    PATH = 9


def fit_of(word: str, text: str, lowered: str) -> Fit:
    """The best fit of a word in small letters; `lowered` is `text` in small letters."""
    if word not in lowered:
        return Fit.STREWN
    start = lowered.rfind("/") + 1
    if word == lowered:
        return Fit.PATH
    if lowered.find(word, start) >= 0:
        return _in_name(word, text[start:], lowered[start:])
    if _ends(word, lowered):
        return Fit.ENDS_PATH
    return Fit.PART_OF_PATH if _begins_part(word, text, lowered) else Fit.IN_PATH


def _in_name(word: str, name: str, lowered: str) -> Fit:
    if word == lowered:
        return Fit.NAME
    if word in (lowered.rpartition(".")[0], lowered.partition(".")[0]):
        return Fit.STEM
    if lowered.startswith(word):
        return Fit.BEGINS_NAME
    return Fit.PART_OF_NAME if _begins_part(word, name, lowered) else Fit.IN_NAME


def _ends(word: str, lowered: str) -> bool:
    """Whether it is the end of the path, with or without the name's ending."""
    if "/" not in word:
        return False
    end = "/" + word.removeprefix("/")
    path = "/" + lowered
    stem, dot, ending = path.rpartition(".")
    return path.endswith(end) or (bool(dot) and "/" not in ending and stem.endswith(end))


def _begins_part(word: str, text: str, lowered: str) -> bool:
    at = lowered.find(word)
    while at >= 0:
        if at == 0 or text[at - 1] in _DELIMITERS or word[0] in _DELIMITERS:
            return True
        if len(text) == len(lowered) and text[at].isupper() and not text[at - 1].isupper():
            return True
        at = lowered.find(word, at + 1)
    return False
