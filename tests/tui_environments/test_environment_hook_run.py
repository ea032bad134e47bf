"""What a test of a hook said, as it is kept for the screen."""

from quarterdeck.store.environment_hooks import KEPT_LINES, Ending, HookRun
from quarterdeck.wire.hook_tests import HookTestEvent


def test_lines_come_in_pieces_and_do_no_harm() -> None:
    run = HookRun()
    for piece in ("on", "e\ntw", "o\x1b]52;c;", "aGk=\x07\n 10%\r100%\nthr", "ee"):
        run.output(piece)
    assert run.lines == ["one", "two", "100%", "three"]
    run.note("Hooks\nbegin\x1b[31m")
    run.output("four\n")
    assert run.lines[3:] == ["three", "· Hooks begin", "four"]


def test_no_more_is_kept_than_a_person_reads() -> None:
    run = HookRun()
    run.output("x\n" * (KEPT_LINES + 10) + "last")
    assert len(run.lines) == KEPT_LINES and run.lines[-1] == "last"


def test_how_a_test_ends() -> None:
    def ended(**fields: object) -> HookRun:
        run = HookRun()
        run.take(HookTestEvent.model_validate({"type": "complete", **fields}))
        return run

    assert ended(exit_code=0, timed_out=False).ending is Ending.PASSED
    failed = ended(exit_code=7, timed_out=False)
    assert failed.ending is Ending.FAILED and "7" in failed.end
    assert "too long" in ended(exit_code=None, timed_out=True).end
    broken = HookRun()
    broken.take(HookTestEvent(type="error", message="No\nspace\x07."))
    assert (broken.ending, broken.end) == (Ending.FAILED, "No space.")
