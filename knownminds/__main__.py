"""`python -m knownminds`, and the `knownminds` command."""

import sys


def main() -> None:
    """Run the command; an interrupt while it is imported is one line as well."""
    try:
        from knownminds.validation.cli import main as run

        run()
    except KeyboardInterrupt:
        print("knownminds: stopped. Nothing was begun.", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
