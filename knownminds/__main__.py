"""`python -m knownminds`, and the `knownminds` command."""

import sys


def main() -> None:
    """Run the command; an interrupt or a wrong list while it is imported is one line as well."""
    try:
        try:
            from knownminds.validation.cli import main as run
        except ValueError as error:  # of what packages list, see `knownminds.members`
            print(f"knownminds: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        run()
    except KeyboardInterrupt:
        print("knownminds: stopped. Nothing was begun.", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
