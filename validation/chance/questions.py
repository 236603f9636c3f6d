"""Questions of `reveal`: arguments and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from knownminds.calling import check_least
from knownminds.validation.costs.questions import CallingQuestion
from knownminds.validation.engine.question import asked_by, option

if TYPE_CHECKING:
    from knownminds.llm_adapters import Adapter
    from knownminds.validation.chance.revealed import RevealAnswer  # noqa: F401 - named in a string


GRID = ("n_dice", "n_faces", "n_coins", "n_options")  # sizes of the grid


@asked_by(
    "reveal",
    "chance.reveal",
    holds="revealed.json",
    quiet="scenarios source form draws top distractors asking even_faces chat threshold wordings "
    "tokens space leak seed temperature max_tokens concurrency attempts re_ask",
)
class RevealQuestion(CallingQuestion["RevealAnswer"]):
    """Read how probable each outcome of chance is to a model, beside what it states.

    Parameters
    ----------
    llm : PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler. In Python adapters as
        well. "synthetic:belief_sampler" is an agent whose beliefs are known, seen through a way of
        cutting what it says into tokens.
    earlier : A folder of an earlier result, to compare with. Its models stand before the others.
    temperature : 0 to 2.
    max_tokens : Where an answer is cut off.
    out : Folder for the results and the report. The ledgers of a provider's model are in it, too.
    scenarios : dice, coins, choice, preference; all of them if none is named. Beyond the paper:
        counts, linked_coins.
    form : continuation or question, see `ContextGrid`; None for the former where the source is
        exact, and the latter elsewhere.
    source : exact, top-k or sampled; the best one there is. "exact": the probability of whole
        outcomes under a local model. "top-k": from the most probable tokens that an interface
        tells, with bounds. "sampled": from counts of answers. A model without log-probabilities is
        refused.
    draws : Answers to each context, if sampled. Also of a known agent's top-k tables.
    top : Alternatives reported with each token, if top-k.
    stated : Ask for probabilities as well: five options about one outcome of each context.
    distractors : published or plausible: the wrong probabilities on offer.
    asking : whole (as the original) or gap: how probabilities are elicited, see `ContextGrid`.
    even_faces : Leave odd dice out.
    only : NAME=VALUE: a parameter of a known agent, or n_dice, n_faces, n_coins, n_options. Sizes
        of the grid to stay with; those that a scenario does not have leave it whole.
    chat : Put texts that go on into the chat template; else the model gets the text alone.
    threshold : Least retained mass of a context without a flag.
    wordings : Wordings of each context, the shipped one first. All beliefs in the results are of
        the first; how far the others move them stands beside.
    truth : Parameters of a known agent.
    tokens : single, digits or pairs: how the outcomes of a known agent are cut (byte-pair).
    space : Of a known agent: share of its outcomes with a space before them.
    leak : Of a known agent: share of what it says that is no outcome.
    progress : Called with (contexts done, contexts in all).
    """

    llm: Sequence[str | Adapter] = option("--llm", default=(), kw_only=False)
    earlier: Sequence[Path] = option("--from", default=())
    temperature: float | None = None
    max_tokens: int | None = None
    out: Path | None = None
    scenarios: Sequence[str] = option(argument=True, default=(), kw_only=True)
    source: Literal["exact", "top-k", "sampled"] | None = None
    form: Literal["continuation", "question"] | None = None
    draws: int = 50
    top: int = 20
    stated: bool = True
    distractors: Literal["published", "plausible"] = "published"
    asking: Literal["whole", "gap"] = "whole"
    even_faces: bool = False
    chat: bool = False
    threshold: float = 0.5
    wordings: int = 1
    only: Mapping[str, float] = option("--set", default=())
    truth: Mapping[str, float] = field(default_factory=dict, metadata={"typed": False})
    tokens: Literal["single", "digits", "pairs"] = "digits"
    space: float = 0.5
    leak: float = 0.0
    seed: int = 0
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        from knownminds.environments.chance.scenarios import SCENARIOS

        super().__post_init__()
        alone = isinstance(self.llm, str) or hasattr(self.llm, "complete")
        object.__setattr__(self, "llm", (self.llm,) if alone else tuple(self.llm))
        scenarios = tuple(dict.fromkeys(self.scenarios or SCENARIOS))
        object.__setattr__(self, "scenarios", scenarios)
        given = {**dict(self.only or {}), **dict(self.truth or {})}
        only = {name: int(given.pop(name)) for name in GRID if name in given}
        for name, value in (("only", only), ("truth", given)):
            object.__setattr__(self, name, value)
        check_least(self, 1, "draws", "top", "wordings")

    def option_values(self) -> dict[str, Any]:
        """The options that are not as usual."""
        options = super().option_values()
        if self.scenarios == type(self)().scenarios:
            options["subject_matter"] = ""
        told = {"set": {**self.only, **self.truth}, "no_stated": not self.stated}
        return options | told | {"stated": None, "out": None}

    def command_line(self) -> str:
        """Return the command line that asks it again; "" for a user's own adapter."""
        return super().command_line() if all(isinstance(one, str) for one in self.llm) else ""
