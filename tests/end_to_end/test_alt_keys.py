"""Keys with Alt while a message is being written, as a terminal sends them."""

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import ESCAPE, wait_for_keys

pytestmark = pytest.mark.end_to_end


@pytest.mark.long
def test_they_do_what_they_say_and_write_nothing(place: Place) -> None:
    place.serve()
    place.qd("replica", "create", "--name", "alpha", "--wait")
    with place.cockpit() as program:
        program.wait_for("alpha")
        program.type("\r")
        wait_for_keys(program, "enter send")
        program.type("half")
        program.wait_for("half")
        for key, title in (("m", "Model (from the next message)"), ("g", "Goal")):
            program.type(f"{ESCAPE}{key}")
            program.wait_for(title)
            program.type(ESCAPE)
            program.wait_gone(title)
        program.type(f"{ESCAPE}z!")  # nobody's key
        program.wait_for("half!")
