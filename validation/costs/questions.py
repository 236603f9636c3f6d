"""Questions of `budget`, `run` and `serve`: arguments and options."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from knownminds.calling import Calling, InBatches, Reach, Sampling
from knownminds.members import listed
from knownminds.validation.engine.question import (
    PlayedQuestion,
    Question,
    asked_by,
    frozen_question,
    load,
    option,
    take_usual_model,
)
from knownminds.validation.studies import RUN

if TYPE_CHECKING:
    from knownminds.agents import Contaminants, Model
    from knownminds.environments import Environment
    from knownminds.inference import Analysis
    from knownminds.llm_adapters import Adapter
    from knownminds.llm_adapters.known_agents.serve import Served
    from knownminds.llm_adapters.runs.prices import Price
    from knownminds.llm_adapters.runs.run_result import Run  # noqa: F401
    from knownminds.validation.engine.result import Result, Text  # noqa: F401 - named in strings

    from .several_runs import Runs  # noqa: F401

R = TypeVar("R", covariant=True)

RUNS = "runs"  # the folder of runs that were given none
# A picture of 512 x 512 counts 85 tokens with OpenAI's models at low detail, 255 with gpt-4o, 258
# with Google's, 350 with Anthropic's, and 8,500 with gpt-4o-mini.
IMAGE_TOKENS = (85, 8500)


@asked_by(
    "budget",
    "costs.budget",
    holds="",
    rare="reasoning image_tokens price date system dry_runs",
    quiet="reasoning image_tokens dry_runs",
)
class AskBudget(Question["Result"]):
    """Reckon calls, tokens and money of a design from its real prompts.

    A synthetic agent plays some sessions through the real prompts, answers in words, and is
    read by the real parser. Bytes are counted exactly, with all growth of the history. Tokens are
    bracketed from them (see `llm_adapters.prices`). The ends of a range are those of the 95%
    prediction interval (Student's t) for the total of all sessions.

    Parameters
    ----------
    llm : PROVIDER:MODEL, openai:gpt-4o-mini for instance. In Python prices as well.
    trials : Trials per session. Each session begins with an empty history.
    power : Folder of a power study: price its designs.
    pilot : A run in several wordings: split `dollars` into wordings and sessions, see `power
        --from`.
    effect : NAME=SIZE, with --from: the measure, on the natural scale.
    dollars : With --from: what all sessions may cost, at the upper end.
    reasoning : LOW-HIGH: tokens of thought before each answer. They are charged as output, and sent
        again at the upper end where the answer may hold them and later prompts repeat it.
    image_tokens : LOW-HIGH: tokens that a picture counts. The default holds for all known models.
    batch : Requests go in batches, at half the price.
    system : What a system message says before every prompt.
    dry_runs : Sessions that the synthetic agent plays.
    """

    environment: Environment | str = option(argument=True, kw_only=False)
    llm: Sequence[str | Price] | str = option("--llm", default=(), kw_only=False)
    model: type[Model] | str | None = None
    subjects: int | None = None
    sessions: int | None = None
    trials: int | None = None
    power: Path | None = None
    pilot: str | Path | None = None
    effect: Mapping[str, float] | None = None
    dollars: float | None = None
    reasoning: tuple[int, int] = (0, 0)
    image_tokens: tuple[int, int] = IMAGE_TOKENS
    price: Sequence[str] = ()
    batch: bool = False
    date: datetime.date | None = None
    settings: Mapping[str, Any] | None = None
    system: str | None = None
    dry_runs: int = 4
    seed: int = 0
    out: Path | None = None

    def __post_init__(self) -> None:
        """Take the experiment's usual model where none is named."""
        take_usual_model(self)

    def option_values(self) -> dict[str, Any]:
        """The options as they are typed; usual values are not named."""
        from knownminds.validation.engine.arguments import changed_settings, resolve_environment

        environment = resolve_environment(self.environment, listed=False)
        settings = {**changed_settings(environment), **(self.settings or {})}
        return super().option_values() | {"set": settings, "out": None}


@frozen_question
class CallingQuestion(Question[R], Reach, Calling):
    """A question whose answer needs calls of language models."""

    rare: ClassVar[tuple[str, ...]] = (
        "key_variable", "timeout", "concurrency", "attempts", "re_ask", "retry_errors", "no_seed",
        "durable",
    )  # fmt: skip


@asked_by(
    "run",
    "costs.asked_run",
    holds=RUN,
    rare="stop questions adaptive images top_p verbosity system answer_prefix "
    "top_log_probabilities batch_turns batch_size price contaminants paraphrases "
    "control show",
)
class AskRun(
    PlayedQuestion["Run | Runs | Text"], CallingQuestion["Run | Runs | Text"], InBatches, Sampling
):
    """Let a language model take sessions; the same command goes on where it stopped.

    The exit code is 0 once all sessions are taken to their end, 1 if some are not, 3 if not one
    answer could be read or questions in a row had no answer, 2 for bad input or a run in vain.

    Parameters
    ----------
    llm : PROVIDER:MODEL, or PROVIDER:MODEL?reasoning_effort=low&name=... with settings of its own.
        In Python an adapter as well, which is then the caller's to close.
    sessions : How many sessions; 1 if not given.
    stop : A stopping rule (TOML), which looks after some sessions.
    truth : NAME=VALUE: a true parameter of a known agent, or a setting of the experiment.
    images : Treat the model as able to read images.
    paraphrases : Number of prompt wordings, each a run of its own below --out.
    controls : Add sessions that show whether the player heeds its instruction and what its choices
        bring.
    control : Only this control: instruction, shuffled, reversed, relabelled or paraphrase.
    price : IN,OUT or IN,OUT,CACHED dollars per million tokens.
    show : With --dry-run: the first so many prompts; in --out as files, with their pictures.
    out : Folder of the run; one in `runs` that bears the names of both if none.
    progress : Called with how much is over, of how much, and where it stands in words.
    """

    llm: Adapter | str = option(kw_only=False)
    sessions: int | None = None
    stop: str | Path | Analysis | None = None
    trials: int | None = None
    seed: int = 0
    questions: int | None = None
    adaptive: type[Model] | str | None = None
    images: bool = False
    paraphrases: int | None = None
    controls: bool = False
    control: Sequence[str] = ()
    price: str | None = None
    contaminants: Contaminants | None = None
    dry_run: bool = False
    show: int | None = None
    out: str | Path | None = None
    progress: Callable[[int, int | None, str], None] | None = None

    @property
    def playing(self) -> Sequence[str]:
        """The known agent that plays, if one does."""
        from knownminds.agents import AGENTS

        named = self.llm.partition("?")[0] if isinstance(self.llm, str) else ""
        provider, _, model = named.partition(":")
        return [model] if provider == "synthetic" and model in AGENTS else []

    def option_values(self) -> dict[str, Any]:
        """The options as they are typed."""
        options = super().option_values()
        options["llm"] = self.llm if isinstance(self.llm, str) else f"{self.llm.provider}:..."
        if not isinstance(self.stop, str | Path):  # an analysis of a program, which no line names
            options["stop"] = None
        return options

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        from knownminds.llm_adapters.configuration import Participant
        from knownminds.validation.engine.arguments import resolve_environment

        if self.out is not None:
            return Path(self.out)
        if isinstance(self.llm, str):
            who = str(Participant.read(self.llm))
        else:
            who = f"{self.llm.provider}:{self.llm.model}"
        name = resolve_environment(self.environment, self.trials).name
        return Path(RUNS) / re.sub(r"[^\w.=-]+", "-", f"{name}-{who}").strip("-")


@asked_by(
    "serve", "costs.serving", screened=False, rare="contaminants seed_is_session key_variable"
)
class AskServe(PlayedQuestion["Served"]):
    """Put a known agent behind an OpenAI-compatible address.

    The command serves until Ctrl-C. In Python it is served until `close` is called.

    Parameters
    ----------
    environment : The experiment; or a benchmark, all of whose cells that it can play the agent then
        plays.
    plan : Of a benchmark: a plan of your own.
    small : Of a benchmark: as `benchmark --small` asks.
    seed : Everything random follows from it; 0 if left out, of a benchmark the plan's.
    host : Where to listen.
    port : 0 for a free one.
    name : The model that requests must ask for.
    seed_is_session : Whether a request's seed is the session's number, as `run` sends it.
    key_variable : Variable with a key that requests must bear.
    tell : Called with the address, once it answers.
    """

    environment: Environment | str = option(
        argument=True, of=("environment", "paper"), kw_only=False
    )
    model: type[Model] | str | None = option(default=None, kw_only=False)
    trials: int | None = None
    plan: str | None = None
    small: bool = False
    seed: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    name: str = "known-agent"
    contaminants: Contaminants | None = None
    seed_is_session: bool = True
    key_variable: str | None = None
    tell: Callable[[str], None] | None = None

    def said(self) -> Any:
        """Serve until an interrupt."""
        return load("costs.serving", "until_interrupted")(self, self.answer())

    def answer(self) -> Served:
        """Serve; it is the caller who lets it run, and closes it."""
        served: Served = super().said()
        return served

    def __post_init__(self) -> None:
        """Take the usual model where none is named; each cell of a benchmark has its own."""
        if self.environment not in listed("papers"):
            super().__post_init__()
        elif self.design is not None or self.trials is not None:
            raise ValueError("The plan of a benchmark has designs and trials; leave both out.")


@asked_by("look", "costs.looked", holds="")
class Look(Question["Result"]):
    """Write a page with what an experiment or a paper shows, and how answers are read.

    It has the first prompts in every wording and under every condition, stimuli as pictures, what
    the parser makes of some texts, and trials that a known agent plays.

    Parameters
    ----------
    name : An experiment, or a paper: all of its experiments and variants.
    trials : Trials of each wording.
    out : Folder of the page; look-NAME if none.
    """

    name: str = option(argument=True, kw_only=False)
    settings: Mapping[str, Any] | None = None
    trials: int = 6
    seed: int = 0
    out: str | Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the page."""
        return Path(self.out or f"look-{self.name}")
