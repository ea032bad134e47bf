"""`python -m quarterdeck` is `qd`."""

from quarterdeck.cli import main

main()
