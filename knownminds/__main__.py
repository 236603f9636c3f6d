"""`python -m knownminds` is the `knownminds` command."""

from knownminds.validation.cli import main

main()
