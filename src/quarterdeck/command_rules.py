"""Rules by which commands of agents are allowed or rejected. Pure: the engine decides by them.

A rule is a pattern of words. `*` at its end stands for any further words, elsewhere for one word.

An allow rule has to be sure. It matches only what `parse` understands: simple commands, split at
`&&`, `||`, `;`, `|` and line ends, of plain and quoted words. Anything else is understood by nobody
here, so a person decides: substitutions, redirections, escapes, braces, comments, functions. The
grammar is the part that all shells share, since the agent chooses the shell.

A reject rule has to miss little. It matches the beginning of any part, also where a line is not
understood, and a line that might contain such a command is never allowed by a rule.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

LONGEST_COMMAND = 10_000
"""Characters of a command that are looked at; a longer one is not understood."""
LONGEST_PATTERN = 500
MOST_SUGGESTED = 3
"""Commands of one line for which rules are suggested."""

_DEPTH = 3
"""How deep `sh -c` is followed."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
    | (?P<separator>&&|\|\||;|\||\n[ \t\n]*)
    | (?P<plain>[A-Za-z0-9_./:=@%+,~*?\[\]-]+)
    | '(?P<single>[^'\\]*)'
    | "(?P<double>[^"$`\\!]*)"
    """,
    re.VERBOSE,
)
_EXPANDS = re.compile(r"[*?\[~]")
_BARE = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
_LAYOUT = str.maketrans("", "", "\n\t")

_SHELL = re.compile(r"(?:(?:/usr)?/bin/)?(?:bash|dash|sh|zsh)")
_SCRIPT_OPTIONS = ("-c", "-lc")

_LOOSE_SEPARATOR = re.compile(r"[;&|\n(){}`]")
_LOOSE_WORD = re.compile(r"[^\s<>]+|[<>]+")
_UNQUOTED = str.maketrans("", "", "'\"\\")
_BEFORE_COMMAND = re.compile(
    r"[A-Za-z_]\w*\+?=.*|!|if|then|elif|else|while|until|do|time", re.DOTALL
)


class PatternError(ValueError):
    """A pattern cannot be a rule; the text says why."""


class Word(NamedTuple):
    """A word of a command: what the shell makes of it, and how it is written."""

    text: str
    raw: str
    expands: bool = False
    """Whether the shell may put names of files in its place."""

    @property
    def is_wildcard(self) -> bool:
        """Whether it is a `*` without quotes."""
        return self.raw == "*"

    def equals(self, other: "Word") -> bool:
        """Return whether both mean the same to a shell."""
        if self.expands or other.expands:
            return self.raw == other.raw
        return self.text == other.text


Command = tuple[Word, ...]


def parse(line: str) -> list[Command] | None:
    """Return the simple commands of a line; None for a line that is not understood."""
    if len(line) > LONGEST_COMMAND:
        return None
    line = line.strip(" \t\n")
    commands: list[list[Word]] = [[]]
    joins, at = False, 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        match token.lastgroup:
            case "space":
                joins = False
            case "separator":
                commands.append([])
                joins = False
            case _:
                word = _word(token)
                if word is None:
                    return None
                if joins:
                    word = _joined(commands[-1].pop(), word)
                commands[-1].append(word)
                joins = True
    return [tuple(words) for words in commands] if all(commands) else None


def _word(token: re.Match[str]) -> Word | None:
    plain = token["plain"]
    if plain is not None:
        return Word(plain, plain, _EXPANDS.search(plain) is not None)
    text = token["single"] if token["single"] is not None else token["double"]
    return Word(text, token[0]) if text.translate(_LAYOUT).isprintable() else None


def _joined(first: Word, second: Word) -> Word:
    expands = first.expands or second.expands
    return Word(first.text + second.text, first.raw + second.raw, expands)


@dataclass(frozen=True)
class CommandRule:
    """A rule.

    Raises:
        PatternError: the pattern is not the words of one command.
    """

    allows: bool
    pattern: str

    def __post_init__(self) -> None:
        self._words  # noqa: B018 (checks the pattern)

    @cached_property
    def _words(self) -> Command:
        if len(self.pattern) > LONGEST_PATTERN:
            raise PatternError(f"A pattern has at most {LONGEST_PATTERN} characters.")
        commands = parse(self.pattern) if self.pattern.isprintable() else None
        if commands is None or len(commands) != 1:
            raise PatternError(
                "A pattern is the words of one command, such as `git status` or `npm test *`, "
                "without shell syntax."
            )
        if commands[0][0].expands:
            raise PatternError("A pattern begins with the name of a program.")
        return commands[0]

    @cached_property
    def _texts(self) -> list[str | None]:
        """The words of a reject rule; None for any word."""
        words = self._words[:-1] if self._words[-1].is_wildcard else self._words
        return [None if word.is_wildcard else word.text for word in words]

    def matches(self, command: Command) -> bool:
        """Return whether an allow rule matches a command."""
        words = self._words
        if words[-1].is_wildcard:
            words, command = words[:-1], command[: len(words) - 1]
        return len(words) == len(command) and all(
            not given.expands if word.is_wildcard else word.equals(given)
            for word, given in zip(words, command, strict=True)
        )

    def rejects(self, texts: Sequence[str]) -> bool:
        """Return whether a reject rule matches the beginning of a part, given its words."""
        first = next((n for n, text in enumerate(texts) if not _BEFORE_COMMAND.fullmatch(text)), 0)
        given = texts[first : first + len(self._texts)]
        return len(given) == len(self._texts) and all(
            word in (None, text, "" if n else _program(text))
            for n, (word, text) in enumerate(zip(self._texts, given, strict=True))
        )

    def may_reject(self, texts: Sequence[str]) -> bool:
        """Return whether the words of a reject rule are among those of a part, in this order."""
        left = iter(texts)
        wanted = (word for word in self._texts if word is not None)
        return all(any(word in (text, _program(text)) for text in left) for word in wanted)


def _program(text: str) -> str:
    return text.rpartition("/")[2]


class Judgement(NamedTuple):
    """What rules say of a command.

    `rules` are those that allow its parts, or the one that rejects it; none where a person decides.
    """

    rules: tuple[CommandRule, ...] = ()
    doubtful: bool = False
    """Whether it may contain what a rule rejects."""


def judge(command: str | Sequence[str], rules: Iterable[CommandRule]) -> Judgement:
    """Judge a command line, or the words of a single command. Rejecting comes before allowing."""
    known = list(rules)
    rejecting = [rule for rule in known if not rule.allows]
    if len(command if isinstance(command, str) else " ".join(command)) > LONGEST_COMMAND:
        return Judgement(doubtful=bool(rejecting))
    parts, loose = _parts(command), _loose_parts(command)
    texts = loose if parts is None else [[word.text for word in part] for part in parts]
    for rule in rejecting:
        if any(rule.rejects(part) for part in texts):
            return Judgement((rule,))
    if any(rule.may_reject(part) for rule in rejecting for part in loose):
        return Judgement(doubtful=True)
    return Judgement(tuple(_allowing(command, [rule for rule in known if rule.allows])))


def _allowing(
    command: str | Sequence[str], rules: Sequence[CommandRule], depth: int = _DEPTH
) -> list[CommandRule]:
    """Return the rules that allow the parts of a command; none unless each part is allowed."""
    used: list[CommandRule] = []
    for words in _commands(command) or ():
        found = [rule for rule in rules if rule.matches(words)][:1]
        if not found and depth and (script := _script(words)) is not None:
            found = _allowing(script, rules, depth - 1)
        if not found:
            return []
        used += [rule for rule in found if rule not in used]
    return used


def _commands(command: str | Sequence[str]) -> list[Command] | None:
    if isinstance(command, str):
        return parse(command)
    if not command or not all(text.translate(_LAYOUT).isprintable() for text in command):
        return None
    return [tuple(Word(text, text if _BARE.fullmatch(text) else f"'{text}'") for text in command)]


def _script(words: Command) -> str | None:
    """Return the command line that a shell is given."""
    match words:
        case [shell, option, script] if option.text in _SCRIPT_OPTIONS and not script.expands:
            return script.text if _SHELL.fullmatch(shell.text) else None
        case _:
            return None


def _parts(command: str | Sequence[str], depth: int = _DEPTH) -> list[Command] | None:
    """Return the simple commands, with those of a shell's command line in its place."""
    commands = _commands(command)
    if commands is None:
        return None
    parts: list[Command] = []
    for words in commands:
        script = _script(words) if depth else None
        inner = [words] if script is None else _parts(script, depth - 1)
        if inner is None:
            return None
        parts += inner
    return parts


def _loose_parts(command: str | Sequence[str]) -> list[list[str]]:
    """Return the words of every part as if there were no quotes: more parts than a shell finds."""
    line = command if isinstance(command, str) else "\n".join((" ".join(command), *command))
    parts = _LOOSE_SEPARATOR.split(line.replace("\\\n", ""))
    return [words for part in parts if (words := list(_loose_words(part)))]


def _loose_words(part: str) -> Iterator[str]:
    skips = False
    for text in _LOOSE_WORD.findall(part):
        if text[0] in "<>":
            skips = True  # the next word is a file
        elif skips:
            skips = False
        elif word := text.translate(_UNQUOTED):
            yield word


_BEYOND_COMMAND = frozenset(
    {"args", "arguments", "argv", "dangerouslyDisableSandbox", "env", "environment", "input", "stdin"}
)  # fmt: skip
"""Fields of a call that change what its command does."""


def command_in(fields: Mapping[str, Any]) -> str | list[str] | None:
    """Return the command in the input of a call: its line, or its words."""
    command: object = fields.get("command")
    if isinstance(command, str):
        return command
    words = cast("list[object]", command) if isinstance(command, list) else []
    texts = [word for word in words if isinstance(word, str)]
    return texts if texts and len(texts) == len(words) else None


def runs_command_alone(kind: object, fields: Mapping[str, Any]) -> bool:
    """Return whether a call of this kind and with this input runs its command and nothing else."""
    command = command_in(fields)
    return (
        kind == "execute"
        and command is not None
        and not any(fields.get(name) for name in _BEYOND_COMMAND)
        and fields.get("commands") in (None, [command])
    )


_FAMILIES = frozenset(
    {
        *("cargo build", "cargo check", "cargo clippy", "cargo fmt", "cargo test"),
        *("git add", "git diff", "git log", "git show", "git status"),
        *("go build", "go test", "go vet"),
        *("npm test", "pnpm test", "yarn test"),
        *("cat", "grep", "head", "ls", "pytest", "tail", "wc"),
    }
)
"""Commands for which a rule with any further words is suggested."""


def suggest(command: str | Sequence[str]) -> tuple[str, ...]:
    """Return patterns of allow rules that let a command pass from now on, one for each part.

    Empty where no rule can: a person decides each time.
    """
    parts = _parts(command) or []
    patterns = tuple(dict.fromkeys(map(_pattern, parts)))
    if not 0 < len(patterns) <= MOST_SUGGESTED:
        return ()
    try:
        rules = [CommandRule(True, pattern) for pattern in patterns]
    except PatternError:
        return ()
    return patterns if _allowing(command, rules) else ()


def _pattern(words: Command) -> str:
    for length in (2, 1):
        stem = " ".join(word.raw for word in words[:length])
        if stem in _FAMILIES:
            return f"{stem} *" if len(words) > length else stem
    # A `*` of the command would be a wildcard of the rule.
    return "" if any(word.is_wildcard for word in words) else " ".join(word.raw for word in words)
