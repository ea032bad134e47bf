"""Rules on commands, against lines that an agent could write to pass one."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quarterdeck.command_rules import (
    LONGEST_COMMAND,
    CommandRule,
    PatternError,
    judge,
    parse,
    suggest,
)


def allowed(command: str | list[str], *patterns: str) -> bool:
    judgement = judge(command, [CommandRule(True, pattern) for pattern in patterns])
    return bool(judgement.rules)


def rejection(command: str | list[str], *patterns: str) -> str:
    """Say what reject rules make of a command, beside a rule that would allow it."""
    rules = [CommandRule(False, pattern) for pattern in patterns]
    judgement = judge(command, [CommandRule(True, "git *"), *rules])
    if judgement.doubtful:
        return "doubtful"
    return "rejected" if any(not rule.allows for rule in judgement.rules) else "no"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status", "git status"),
        ("  git   status\n", "git status"),
        ("git 'status'", "git status"),
        ('g"i"t status', "git status"),
        ("git status -s", "git status *"),
        ("git status", "git status *"),
        ("git log --format=%H 'a; b' \"c | d\"", "git log *"),
        ("ls src/*.py ~/x", "ls *"),
        ("git push origin main", "git push * main"),
        ("git log 'a b'", "git log 'a b'"),
        ("CI=1 npm test", "CI=1 npm test"),
        ("ls *.py", "ls *.py"),
        (["git", "log", "a b"], "git log 'a b'"),
        (["git", "log", "$(x)"], "git log *"),
        ("bash -lc 'git status'", "git status"),
        ("/usr/bin/sh -c \"git status\"", "git status"),
        (["bash", "-c", "git status\ngit status"], "git status"),
        ("python3 -c 'print(1)\nprint(2)'", "python3 *"),
    ],
)  # fmt: skip
def test_what_a_rule_allows(command: str | list[str], pattern: str) -> None:
    assert allowed(command, pattern)


@pytest.mark.parametrize(
    "line",
    ["{} && {}", "{}; {}", "{} || {}", "{} | {}", "{}\n{}", "{}\n\n \t{}", "bash -c '{}; {}'"],
)
def test_every_command_of_a_line_needs_a_rule(line: str) -> None:
    both = line.format("git status", "npm test")
    assert allowed(both, "git status", "npm test")
    assert not allowed(both, "git status")
    assert not allowed(both, "npm test")


def test_the_rules_that_allow_a_line_are_named_once_each() -> None:
    rules = [CommandRule(True, pattern) for pattern in ("ls", "git *", "git status")]
    judgement = judge("git status && ls; git log", rules)
    assert [rule.pattern for rule in judgement.rules] == ["git *", "ls"]


HOSTILE = [
    *("git status & rm x", "git status && ", "git status ;; rm x", "; git status", "git status |& rm x"),
    *("git status $(rm x)", "git status `rm x`", 'git status "$(rm x)"', 'git status "`rm x`"'),
    *("git status <(rm x)", "git status >(rm x)", "git status =(rm x)", "(git status; rm x)"),
    *("git status > x", "git status >> x", "git status 2>x", "git status < x", "git status &> x"),
    *("git status <<E\nrm x\nE", "git status <<< x", "git status >| x", "git status 1<>x"),
    *("git status $HOME", "git status ${x}", "git status $'\\n'", 'git status "$x"', "git status $((1))"),
    *("git status \\\nrm", "git status \\; rm x", "git status 'a\\' 'b; rm x; c'", 'git status "a\\"'),
    *("git status # x", "git status #\nrm x", "git status !rm", 'git status "!rm"', "git status ^x"),
    *("git status {a,b}", "{ git status; }", "git() { rm x; }", "git status;rm() { x; }; rm"),
    *("git status 'x", 'git status "x', "git status \"a' b", "git status\rrm x", "git status\vrm x"),
    *("git status\0rm x", "git status\x0crm x", "git status\x1b[2Krm x", "git status '\x1b[2K'"),
    *("git\xa0status", "git status\xa0x", "git status\u2028rm x", "git status '\u202ex'", "git st\u0430tus"),
    *("git status \ud800", "FOO=1 git status", "LD_PRELOAD=x git status", "GIT_PAGER='rm x' git status"),
    *("/tmp/git status", "./git status", "sudo git status", "env git status", "exec git status"),
    *("eval git status", "bash -c 'git status' rm", "bash -ic 'git status'", "/tmp/bash -c 'git status'"),
    *("bash -c \"git status $x\"", "bash -c 'git status; rm x'", "bash -c bash -c 'git status'"),
    *("git -c alias.status='!rm x' status", "gi? status", "g*t status", "~/git status", "[ git status ]"),
    *("if git status; then rm x; fi", "for x in a; do git status; done", "git status; x=1 rm"),
    *("", " ", "\n", "git", "status", "git statuss", "Git status", "'git status'", "git 'status '"),
    *("git status " + "x" * LONGEST_COMMAND, "git status;" * 3 + "|", "&& git status", "git status\n;rm"),
]  # fmt: skip


@pytest.mark.parametrize("command", HOSTILE)
def test_what_no_rule_for_git_status_allows(command: str) -> None:
    assert not allowed(command, "git status", "git status *")


@pytest.mark.parametrize(
    "command", [["git", "status", "; rm x"], ["git", "status", "x"], [], ["git\0"]]
)
def test_the_words_of_a_command_are_not_read_by_a_shell(command: list[str]) -> None:
    assert not allowed(command, "git status")


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("rm '*'", "rm *"),
        ("rm a?", "rm 'a?'"),
        ("cp * dest", "cp * dest"),  # the shell may put several words there
        ("git status", "git status ''"),
        ("git push * main", "git push main"),
    ],
)
def test_what_the_shell_makes_of_a_word_counts(pattern: str, command: str) -> None:
    assert not allowed(command, pattern)


@pytest.mark.parametrize(
    "pattern",
    ["", " ", "*", "* status", "git; rm", "git $x", "git\nrm", "git\tx\x1b", "a > b", "g?t", "x" * 501, "'"],
)  # fmt: skip
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(PatternError):
        CommandRule(True, pattern)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git push", "rejected"),
        ("git push --force origin", "rejected"),
        ("git status && git push", "rejected"),
        ("git status | git push", "rejected"),
        ("/usr/bin/git push", "rejected"),
        ("FOO=1 BAR='x y' git push", "rejected"),
        ("bash -lc 'cd x; git push'", "rejected"),
        (["git", "push", "-f"], "rejected"),
        (["sh", "-c", "git push"], "rejected"),
        ("echo $x; git push", "rejected"),
        ("if true; then git push; fi", "rejected"),
        ("ls > x; git push", "rejected"),
        ("echo $(git push)", "rejected"),
        ("echo `git push`", "rejected"),
        ("(git push)", "rejected"),
        ("git >x push $y", "rejected"),
        ("git \\\npush", "rejected"),
        ("g'i't pu\"sh\" $x", "rejected"),
        ("! git push", "rejected"),
        ("git -C x push", "doubtful"),
        ("git -c a=b push origin", "doubtful"),
        ("sudo git push", "doubtful"),
        ("env -i git push", "doubtful"),
        ("find . -exec git push +", "doubtful"),
        ("git commit -m 'git push'", "doubtful"),
        ("python -c 'import os; os.system(\"git push\")'", "doubtful"),
        (["env", "git", "push"], "doubtful"),
        ("git " + "x" * LONGEST_COMMAND, "doubtful"),
        ("git status", "no"),
        ("git pushed", "no"),
        ("gitt push", "no"),
        ("git status; echo push", "no"),
    ],
)
def test_what_a_reject_rule_finds(command: str | list[str], said: str) -> None:
    assert rejection(command, "git push") == said
    assert rejection(command, "git push *") == said


def test_rejecting_comes_before_allowing() -> None:
    rules = [CommandRule(True, "git *"), CommandRule(False, "git push")]
    assert judge("git push", rules).rules == (rules[1],)
    assert judge("git pull", rules).rules == (rules[0],)
    assert not judge("npm test", rules).rules


def test_a_star_within_a_reject_rule_is_one_word() -> None:
    assert rejection("git push origin --force", "git push * --force") == "rejected"
    assert rejection("git push --force", "git push * --force") == "doubtful"


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("git status", ("git status",)),
        ("git status -s", ("git status *",)),
        ("git push --force", ("git push --force",)),
        ("rm -rf build/", ("rm -rf build/",)),
        ("ls -la src", ("ls *",)),
        ("cd src && npm test -- x", ("cd src", "npm test *")),
        ("pytest -q; pytest -q", ("pytest *",)),
        ("echo 'a; b'", ("echo 'a; b'",)),
        ("ls *.py", ("ls *",)),
        ("rm *.py", ("rm *.py",)),
        ("bash -lc 'git status -s'", ("git status *",)),
        (["git", "status", "-s"], ("git status *",)),
        (["touch", "a b"], ("touch 'a b'",)),
        ("rm *", ()),
        ("echo $x", ()),
        ("echo 'a\nb'", ()),
        ("touch a; touch b; touch c; touch d", ()),
        ("echo " + "x" * 600, ()),
        (["touch", "it's"], ()),
        (["touch", "*"], ("touch '*'",)),
        ([], ()),
        ("", ()),
    ],
)
def test_what_rule_is_suggested(command: str | list[str], patterns: tuple[str, ...]) -> None:
    assert suggest(command) == patterns
    assert not patterns or allowed(command, *patterns)


TEXTS = st.text(st.sampled_from("ab ;&|<>$`'\"\\\n\t(){}*?#!=~[]é\x01"), max_size=12)


@given(TEXTS)
@example("a 'b c'")
def test_a_line_that_is_understood_is_what_shells_make_of_it(text: str) -> None:
    """`shlex` is another implementation of the same rules for quotes."""
    commands = parse(f"true {text}")
    if commands is None or len(commands) != 1:
        return
    assert [word.text for word in commands[0]] == shlex.split(f"true {text}")


@given(TEXTS)
@example("a 'b c'")
def test_a_suggested_rule_allows_what_it_was_suggested_for(text: str) -> None:
    patterns = suggest(text)
    assert not patterns or allowed(text, *patterns)


PIECES = st.sampled_from(
    [*"'\"\\ ;&|\n#$`(){}<>!*a", "touch x", "echo ", "&&", "$(", "\\\n", " -e "]
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES, min_size=1, max_size=10))
@example(pieces=["'", ";", "touch x", "'"])
def test_a_real_shell_runs_nothing_else(pieces: list[str], tmp_path: Path) -> None:
    """What a rule for `echo` allows runs nothing but `echo`."""
    line = "echo " + "".join(pieces)
    if not allowed(line, "echo *"):
        return
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-c", line], cwd=tmp_path, check=False, capture_output=True)
        assert not (tmp_path / "x").exists()
