"""Reading a program's code, which is most of what its start costs."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """Has the imports of the block made without the garbage collector.

    They make objects by the ten thousand and next to no garbage, and what they made stays: looking
    through it again and again is up to a third of a start. Later collections leave it out as well.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
