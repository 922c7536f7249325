"""`python -m spinney.cli` is the `spinney` command."""

from spinney.cli.main import main

main()
