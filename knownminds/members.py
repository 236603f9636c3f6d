"""What is known by name: experiments, models, measures, and what else a package brings.

A package lists its members in the file `members.toml` beside its `__init__.py`, a table for each
kind: name = "module". Packages are the ones of `PACKAGES` and those that have an entry point of the
group `knownminds`. So all names are known without an import, and a member is imported when it is
asked for. All floors may import this module; it imports none.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

PACKAGES = ("knownminds",)
GROUP, FILE = "knownminds", "members.toml"
MANY = 30  # names that a sentence does not list
ELSEWHERE = "elsewhere"  # the table of what other packages of this project have
# The tables of a file of members, and what the module of an entry holds.
KINDS: Mapping[str, str] = {
    "environments": "a class derived from Environment, with this name",
    "models": "a class derived from Model, with this name",
    "measures": "a Measure with this name, by itself or in a tuple or list",
    "adapters": 'a class; the line is "module:Class"',
    "papers": "PAPER; its plan is the TOML file of this name in the folder plans beside it",
    "formats": "FORMATS, the shapes of tables that import reads",
    "maps": "no module: a TOML file of columns for import, its path from the package's folder",
    "commands": "a class derived from Question, with this command",
    "audits": "study, work, say and OPTIONS, as the modules of shipped audits do",
}
T = TypeVar("T")


class Place(NamedTuple):
    """Where a member is written."""

    package: str
    path: str

    @property
    def module(self) -> str:
        """The module's whole name."""
        return f"{self.package}.{self.path}"

    @property
    def file(self) -> Path:
        """The file of this path, if it is no module."""
        return folder_of(self.package) / self.path


class Members(MutableMapping[str, T]):
    """The members of a kind by name, in the order of their lists.

    Parameters
    ----------
    kind
        A table of the files of members.
    fits
        Whether a value is such a member; it then has a `name`.
    """

    def __init__(self, kind: str, fits: Callable[[Any], bool]):
        self.kind, self.fits = kind, fits
        self._found: dict[str, T] = {}  # of those that are listed, the ones that were imported

    @cached_property
    def _known(self) -> dict[str, T | Place]:
        return {**listed(self.kind)}

    def __getitem__(self, name: str) -> T:
        """Return a member; it is imported if it was not yet."""
        known = self._known[name]
        if isinstance(known, Place):
            known = self._known[name] = self._found[name] = self._within(known, name)
        return known

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a member; nothing is imported."""
        return name in self._known

    def __setitem__(self, name: str, member: T) -> None:
        """Add a member, or put one in the place of another."""
        self._known[name] = member

    def __delitem__(self, name: str) -> None:
        """Forget a member."""
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names; nothing is imported."""
        return iter(tuple(self._known))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._known)

    def __repr__(self) -> str:
        """Return the names."""
        return f"{self.kind}: {', '.join(self)}"

    def is_listed(self, name: str) -> bool:
        """Say whether a member is the one that a package lists under this name."""
        place = listed(self.kind).get(name)
        known = self._known.get(name)
        return place is not None and known in (place, self._found.get(name))

    def _within(self, place: Place, name: str) -> T:
        for value in vars(import_module(place.module)).values():
            for one in value if isinstance(value, tuple | list) else (value,):
                if self.fits(one) and getattr(one, "name", None) == name:
                    member: T = one
                    return member
        raise ValueError(
            f"{FILE} of {place.package} lists {name!r} among its {self.kind}; {place.module} holds "
            f"none: {KINDS[self.kind]}. Correct one of them."
        )


@cache
def packages() -> tuple[str, ...]:
    """Return the packages that list members: those of `PACKAGES`, then installed ones by name."""
    points = importlib.metadata.entry_points(group=GROUP)
    return tuple(dict.fromkeys((*PACKAGES, *sorted(point.value for point in points))))


@cache
def folder_of(package: str) -> Path:
    """Return the folder of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ValueError(f"{package} is not installed whole; install it again.")
    return Path(spec.origin).parent


@cache
def listed(kind: str) -> Mapping[str, Place]:
    """Return where the members of a kind are written, by name, over all packages.

    Raises
    ------
    ValueError
        If two packages list the same name, or one lists what is no kind.
    """
    found: dict[str, Place] = {}
    for package in packages():
        for name, path in _tables(package).get(kind, {}).items():
            if name in found:
                raise ValueError(
                    f"Each name is one package's; {package} lists {name!r} among its {kind}, and "
                    f"so does {found[name].package}. Uninstall one of them."
                )
            found[name] = Place(package, path)
    return found


@cache
def elsewhere() -> Mapping[str, str]:
    """Return the distribution in which each member is that is known and not installed, by name."""
    here = {name for kind in ("environments", "models", "measures") for name in listed(kind)}
    return {
        name: distribution
        for distribution, names in _tables(PACKAGES[0])[ELSEWHERE].items()
        for name in names.split()
        if name not in here
    }


@cache
def _tables(package: str) -> dict[str, dict[str, str]]:
    file = folder_of(package) / FILE
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{package} lists its members in {file}: {error}. Mend it.") from None
    strange = sorted(tables.keys() - KINDS.keys() - {ELSEWHERE})
    if strange:
        raise ValueError(f"{file} has tables {', '.join(KINDS)}; got {strange[0]!r}. Rename it.")
    return tables


def unknown(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """Return a sentence that a name is unknown, with the nearest names or else all names.

    A member of a package that is not installed is named with the package.
    """
    package = elsewhere().get(name)
    if package is not None:
        return (
            f"The {kind} {name!r} is part of {package}, which is not installed: "
            f"pip install {package} (in a checkout: pip install -e ./more)."
        )
    known = sorted(names)
    near = nearest(name, known)
    hint = f"Nearest: {', '.join(near)}." if near else f"There are: {', '.join(known) or 'none'}."
    if not near and len(known) > MANY:
        hint = f"There are {len(known)}; `knownminds list` shows experiments, models and measures."
    return f"There is no {kind} named {name!r}{where}. {hint}"


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return at most three names that are like a name, the likest first.

    A name is like another one, like a word of it (alpha_positive has alpha), or its initials.
    """
    from difflib import SequenceMatcher  # only for what is wrong

    def likeness(known: str) -> float:
        words = known.split("_")
        if len(words) > 1 and "".join(word[:1] for word in words).startswith(name):
            return 1.0
        whole, *parts = (SequenceMatcher(None, one, name).ratio() for one in (known, *words))
        return max(whole, max(parts) - 0.1)

    like = {known: likeness(known) for known in names}
    return sorted((one for one in like if like[one] >= 0.4), key=lambda one: -like[one])[:3]
