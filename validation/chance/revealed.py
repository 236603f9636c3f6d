"""What models reveal of their beliefs about chance, beside what they state."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from knownminds.agents.parameters import Array
from knownminds.environments import Prompt
from knownminds.environments.chance.outcome_grid import (
    ASKINGS,
    DISTRACTORS,
    FORMS,
    Asking,
    Distractors,
    Form,
)
from knownminds.environments.chance.scenarios import SCENARIOS
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.result import plain
from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, fit_belief_samplers
from knownminds.inference.chance.distribution_distance import (
    MEASURES_OF_DISTANCE,
    distribution_distances,
    manhattan,
    set_bounds,
    stated_errors,
    units_of,
)
from knownminds.inference.chance.revealed_belief import (
    LITTLE_MASS,
    SOURCES,
    RevealedBeliefs,
    Source,
    wilson,
)
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.measure import t_tests
from knownminds.inference.ties import tied
from knownminds.llm_adapters import Adapter, NotCapable, Sampling
from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS, Tokenisation
from knownminds.validation.costs.connect import RUNS, connect, mind_of, price_for, wait_for
from knownminds.validation.engine.arguments import one_of
from knownminds.validation.engine.study import versions

from .asked_beliefs import (
    SENT,
    Asked,
    Progress,
    Told,
    contexts_of,
    exact_beliefs,
    known_beliefs,
    lived_beliefs,
    places_of,
    questions_of,
    sent_as,
    source_of,
)

FILE = "revealed.json"
BELIEFS = "beliefs.parquet"
FRAMES = ("distances", "biases", "stated")
DRAWS, TOP = 50, 20
ALL = "all"  # scenarios together
# Ends of what a fit of the nearest sampler searches, less rounding.
BEYOND = {
    name: (float(low), float(high))
    for name, low, high in zip(
        SAMPLER.names,
        SAMPLER.constrain(-0.999 * REACH * SAMPLER.sd),
        SAMPLER.constrain(0.999 * REACH * SAMPLER.sd),
        strict=True,
    )
}
NARROW = 5e-4  # of ends that three decimals do not tell apart
ERROR, NAIVE = "stated_error", "naive_manhattan"
COMPARED = (*MEASURES_OF_DISTANCE, "retained", ERROR)
# Columns of a stated answer.
STATED = (
    *("model", "scenario", "context", "outcome", "truth", "revealed", "revealed_low"),
    *("revealed_high", "stated", "error", "low", "high", "questions", "flag"),
)


@dataclass(frozen=True, eq=False)
class Revealed:
    """What models reveal of their beliefs, and what they state.

    Parameters
    ----------
    beliefs
        By model, over the contexts that it was asked.
    naive
        By model, what the tokens of each outcome alone would say, [rows]; NaN where not known.
    known
        By model, the beliefs of a mind whose beliefs are known, [rows]; NaN of others.
    distances
        One row per model, context and measure: value, low, high, noise, tight, flag.
    biases
        One row per model, scenario and mark, as in `BeliefBiases`.
    samplers
        One row per model: temperature and biases of the belief sampler that is nearest.
    stated
        One row per model and question: the true, the revealed and the stated probability of an
        outcome (the mean of the options by their letters' probabilities), and the stated error, 1 -
        P(correct letter), with its interval.
    options
        What was asked for.
    seconds
        Of computing.
    """

    beliefs: Mapping[str, RevealedBeliefs]
    naive: Mapping[str, Array]
    known: Mapping[str, Array]
    distances: pd.DataFrame
    biases: pd.DataFrame
    samplers: pd.DataFrame
    stated: pd.DataFrame
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float

    @property
    def models(self) -> tuple[str, ...]:
        """Their names; the first is what others are compared with."""
        return tuple(self.beliefs)

    def by_context(self) -> pd.DataFrame:
        """One row per model and context: each measure, the stated error beside the revealed ones.

        Flagged contexts have their retained mass alone; contexts without a question no stated
        error.
        """
        index = ["model", "scenario", "context"]
        wide = self.distances.pivot_table(
            index=index, columns="measure", values="value", sort=False, dropna=False, observed=True
        )
        wide = wide[wide.index.isin(pd.MultiIndex.from_frame(self.distances[index]))]
        flags = self.distances.drop_duplicates(index).set_index(index)[["source", "flag"]]
        parts = [flags, wide.reindex(columns=[*MEASURES_OF_DISTANCE, "retained"])]
        naive = pd.concat([self._naive_distances(name) for name in self.models])
        parts.append(naive.set_index(index))
        if len(self.stated):
            errors = self.stated.groupby(index, sort=False)["error"].mean()
            parts.append(errors.rename(ERROR).to_frame())
        joined = parts[0]
        for part in parts[1:]:
            joined = joined.join(part)
        return (joined if len(self.stated) else joined.assign(**{ERROR: np.nan})).reset_index()

    def _naive_distances(self, model: str) -> pd.DataFrame:
        beliefs = self.beliefs[model]
        found = []
        for k in range(len(beliefs)):
            own = beliefs.rows(k)
            found.append(manhattan(beliefs.truth[own], self.naive[model][own]))
        return pd.DataFrame(
            {"model": model, "scenario": beliefs.scenarios, "context": beliefs.contexts}
            | {NAIVE: np.array(found, dtype=float)}
        )

    def summary(self, mass: float = 0.95) -> pd.DataFrame:
        """One row per model, scenario and measure: mean with its t interval, and quartiles."""
        wide = self.by_context()
        rows = []
        for model in self.models:
            own = wide[wide["model"] == model]
            scenarios = list(dict.fromkeys(own["scenario"]))
            for scenario in (*scenarios, *([ALL] if len(scenarios) > 1 else [])):
                here = own if scenario == ALL else own[own["scenario"] == scenario]
                for name in (*COMPARED, NAIVE):
                    values = here[name].to_numpy(dtype=float)
                    known = values[np.isfinite(values)]
                    if not len(known):
                        continue
                    mean, low, high = _mean(values, mass)
                    rows.append(
                        {
                            "model": model,
                            "scenario": scenario,
                            "measure": name,
                            "mean": mean,
                            "low": low,
                            "high": high,
                            "median": float(np.median(known)),
                            "lower_quartile": float(np.quantile(known, 0.25)),
                            "upper_quartile": float(np.quantile(known, 0.75)),
                            "contexts": len(known),
                            "flagged": int((here["flag"] != "").sum()),
                        }
                    )
        return pd.DataFrame(rows)

    def comparison(self, mass: float = 0.95) -> pd.DataFrame:
        """One row per further model, scenario and measure: its difference from the first model.

        Differences are within contexts that neither has flagged, with their t intervals over
        contexts (retained mass: over all contexts of both).
        """
        wide = self.by_context()
        index = ["scenario", "context"]
        first, *others = (wide[wide["model"] == name].set_index(index) for name in self.models)
        rows = []
        for name, other in zip(self.models[1:], others, strict=True):
            both = first.index.intersection(other.index)
            scenarios = list(dict.fromkeys(both.get_level_values(0)))
            for scenario in (*scenarios, *([ALL] if len(scenarios) > 1 else [])):
                here = both if scenario == ALL else both[both.get_level_values(0) == scenario]
                for measure in COMPARED:
                    pairs = (t.loc[here, measure].to_numpy(dtype=float) for t in (other, first))
                    difference = np.subtract(*pairs)
                    n = int(np.isfinite(difference).sum())
                    if not n:
                        continue
                    mean, low, high = _mean(difference, mass)
                    rows.append(
                        {
                            "model": name,
                            "reference": self.models[0],
                            "scenario": scenario,
                            "measure": measure,
                            "difference": mean,
                            "low": low,
                            "high": high,
                            "contexts": n,
                        }
                    )
        columns = ["model", "reference", "scenario", "measure", "difference", "low", "high"]
        return pd.DataFrame(rows, columns=[*columns, "contexts"])

    def agreement(self) -> pd.DataFrame:
        """One row per model and scenario: what is stated against what is revealed.

        Rank correlations (Spearman 1904) over questions: of the revealed and the stated
        probability, and of their absolute errors; and the mean absolute errors of both.
        """
        rows = []
        for model in self.models:
            own = self.stated[(self.stated["model"] == model) & (self.stated["flag"] == "")]
            own = own.dropna(subset=["revealed", "stated"])
            scenarios = list(dict.fromkeys(own["scenario"]))
            for scenario in (*scenarios, *([ALL] if len(scenarios) > 1 else [])):
                here = own if scenario == ALL else own[own["scenario"] == scenario]
                errors = here[["revealed", "stated"]].sub(here["truth"], axis=0).abs()
                rows.append(
                    {
                        "model": model,
                        "scenario": scenario,
                        "questions": len(here),
                        "probabilities": _rank_correlation(here["revealed"], here["stated"]),
                        "errors": _rank_correlation(errors["revealed"], errors["stated"]),
                        "revealed_error": float(errors["revealed"].mean()),
                        "stated_error": float(errors["stated"].mean()),
                    }
                )
        columns = ["model", "scenario", "questions", "probabilities", "errors"]
        return pd.DataFrame(rows, columns=[*columns, "revealed_error", "stated_error"])

    def read_back(self) -> dict[str, tuple[float, float]]:
        """By model whose beliefs are known, how far the readings are from them at most.

        Of the reading of whole outcomes, and of the naive one, over contexts that are not flagged;
        minds without any are left out.
        """
        found = {}
        for name, own in self.beliefs.items():
            known = self.known[name]
            usable = ~own.flagged[own.context]
            if np.isfinite(known).all() and usable.any():
                off = (np.abs(read - known)[usable] for read in (own.normalised, self.naive[name]))
                whole, naive = (float(d.max(initial=0.0)) for d in off)
                found[name] = whole, naive
        return found

    def estimate_of(self, row: Mapping[Any, Any], name: str) -> str:
        """Say what a parameter of the nearest sampler is, and in brackets how far it is known.

        By 90% intervals for beliefs that were sampled, and by all that top-k tables allow. One at
        the end of what was searched is only known to lie beyond.
        """
        value = float(row[name])
        if not np.isfinite(value):
            return "-"
        if not BEYOND[name][0] < value < BEYOND[name][1]:
            return f"beyond {value:.3f}"
        sources = set(self.beliefs[row["model"]].sources)
        kind, ends = (
            ("90% interval", ("low", "high"))
            if sources == {"sampled"}
            else ("tables allow", ("least", "most"))
        )
        low, high = (float(row.get(f"{name}_{end}", np.nan)) for end in ends)
        if "exact" in sources or not high - low > NARROW:
            return f"{value:.3f}"
        return f"{value:.3f} ({kind} {low:.3f} to {high:.3f})"

    def sent(self, model: str) -> str:
        """Say in which form a model got what it was asked; empty where that is not known."""
        told = self.options.get("models", {}).get(model, {}).get("sent", {})
        return "; ".join(f"{what} were sent {SENT[how]}" for what, how in told.items())

    def _whole(self, model: str) -> str:
        """Return the name of all that a model was asked."""
        scenarios = set(self.beliefs[model].scenarios)
        return ALL if len(scenarios) > 1 else next(iter(scenarios))

    def to_frame(self) -> pd.DataFrame:
        """One row per model and context, see `by_context`."""
        return self.by_context()

    def to_dict(self) -> dict[str, Any]:
        """The content of `to_json`."""
        told = {
            "models": list(self.models),
            "contexts": {name: len(own) for name, own in self.beliefs.items()},
            "flagged": {name: int(own.flagged.sum()) for name, own in self.beliefs.items()},
            "summary": self.summary().to_dict("records"),
            "biases": self.biases.to_dict("records"),
            "samplers": self.samplers.to_dict("records"),
            "comparison": self.comparison().to_dict("records"),
            "read_back": {
                name: {"whole": whole, "naive": naive}
                for name, (whole, naive) in self.read_back().items()
            },
            "agreement": self.agreement().to_dict("records"),
            "options": dict(self.options),
            "versions": dict(self.versions),
            "seconds": self.seconds,
        }
        content: dict[str, Any] = plain(told)
        return content

    def to_json(self) -> str:
        """Return summary, biases, comparison and options as one JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything that a report needs."""
        frames = {name: getattr(self, name) for name in FRAMES}
        with writable(folder) as place:
            parts = []
            for k, (name, own) in enumerate(self.beliefs.items()):
                own.save(place / f".part-{k}.parquet")
                frame = pd.read_parquet((place / f".part-{k}.parquet").absolute())
                (place / f".part-{k}.parquet").unlink()
                more: dict[str, Any] = {
                    "naive": self.naive[name],
                    "known": self.known[name],
                    "model": name,
                }
                parts.append(frame.assign(**more))
            pd.concat(parts, ignore_index=True).to_parquet(place / BELIEFS, index=False)
            for name, frame in frames.items():
                frame.to_parquet(place / f"{name}.parquet", index=False)
            self.by_context().to_csv(place / "by_context.csv", index=False)
            write_text(place / FILE, self.to_json())

    def __str__(self) -> str:
        """Mean distances by model and scenario, what is flagged, and differences of models."""
        lines = []
        summary = self.summary()
        for model in self.models:
            beliefs = self.beliefs[model]
            flagged = int(beliefs.flagged.sum())
            sources = ", ".join(sorted(set(beliefs.sources)))
            lines.append(f"{model}: {len(beliefs)} contexts ({sources}), {flagged} flagged")
            lines.append(
                f"  {'scenario':<12}{'contexts':>9}{'chebyshev':>24}{'manhattan':>24}"
                f"{'KL both ways':>24}{'retained':>10}{'stated error':>24}"
            )
            own = summary[summary["model"] == model]
            for scenario in own["scenario"].unique().tolist():
                by = _by_measure(own[own["scenario"] == scenario])
                cells = [
                    _interval(by[name]) if name in by else "-"
                    for name in ("chebyshev", "manhattan", "kl_sum", ERROR)
                ]
                retained = f"{by['retained']['mean']:.3f}" if "retained" in by else "-"
                n = by["retained"]["contexts"] if "retained" in by else 0
                lines.append(
                    f"  {scenario:<12}{n:>9}{cells[0]:>24}{cells[1]:>24}{cells[2]:>24}"
                    f"{retained:>10}{cells[3]:>24}"
                )
            asked = self.stated[self.stated["model"] == model]
            if len(asked):
                known, n = int(asked["error"].notna().sum()), len(asked)
                others = "; the others are flagged" if known < n else ""
                lines.append(f"{model}: {known} of {n} questions have a stated error{others}")
        for model in self.models:
            if told := self.sent(model):
                lines.append(f"{model}: {told}")
        for row in summary[summary["measure"] == NAIVE].to_dict("records"):
            if row["scenario"] == self._whole(row["model"]):
                lines.append(
                    f"{row['model']}: by the tokens of outcomes alone, whatever follows them, "
                    f"manhattan would be {row['mean']:.3f} (the naive reading)"
                )
        for model, (whole, naive) in self.read_back().items():
            lines.append(
                f"{model}: its own beliefs, read back: off by {whole:.2g} at most; by the naive "
                f"reading, by {naive:.2g}"
            )
        for row in self.samplers.to_dict("records"):
            told = ", ".join(
                f"{name} {self.estimate_of(row, name)}"
                for name in SAMPLER.names
                if name in row and np.isfinite(row[name])
            )
            lines.append(
                f"{row['model']}: nearest belief sampler: {told}"
                if told
                else f"{row['model']}: no belief sampler was fitted: {row.get('status', '')}"
            )
            if told and row.get("status", "ok") != "ok":
                lines.append(f"{row['model']}: the fit of the belief sampler is {row['status']}")
        compared = self.comparison()
        compared = compared[compared["measure"].isin(["manhattan", ERROR])]
        for row in compared.to_dict("records"):
            lines.append(
                f"{row['model']} - {row['reference']}, {row['scenario']}, {row['measure']}: "
                f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f}, "
                f"{row['contexts']} contexts)"
            )
        lines.append(
            "Means over contexts with 95% t intervals; flagged contexts have no distances. "
            "Natural logarithms."
        )
        return "\n".join(lines)


def reveal(
    llm: str | Adapter | Sequence[str | Adapter] = (),
    *,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    form: Form | None = None,
    source: Source | None = None,
    draws: int = DRAWS,
    top: int = TOP,
    stated: bool = True,
    distractors: Distractors = "published",
    asking: Asking = "whole",
    even_faces: bool = False,
    only: Mapping[str, int] | None = None,
    chat: bool = False,
    signs: bool = True,
    threshold: float = LITTLE_MASS,
    truth: Mapping[str, float] | None = None,
    tokens: Tokenisation = "digits",
    space: float = 0.5,
    leak: float = 0.0,
    earlier: Sequence[str | os.PathLike[str]] = (),
    seed: int = 0,
    settings: Sampling | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **connection: Any,
) -> Revealed:
    """Ask models for the probability of each outcome of each context, and for stated answers.

    Parameters
    ----------
    llm
        "provider:model" or adapters, one or more. "synthetic:belief_sampler" is a mind whose
        beliefs are known, seen through a way of cutting what it says into tokens.
    scenarios
        Of dice, coins, choice and preference.
    form
        "continuation" or "question", see `BrokenOff`; None for the former where the source is
        exact, and the latter elsewhere.
    source
        "exact": the probability of whole outcomes under a local model. "top-k": from the most
        probable tokens that an interface tells, with bounds. "sampled": from counts of answers.
        None for the best one that a model has; one without log-probabilities is refused.
    draws
        Answers to each context, of sampled beliefs, and of a known mind's top-k tables.
    top
        Alternatives that are told with each token.
    stated
        Whether the five-option question about one outcome of each context is asked as well.
    distractors
        Its wrong options: "published" or "plausible".
    asking
        How it is asked: "whole", as the original does, or "gap", see `BrokenOff`.
    even_faces
        Whether only dice with an even number of faces are thrown.
    only
        Sizes of the grid to stay with: n_dice, n_faces, n_coins, n_options.
    chat
        Whether a context that a local model continues stands in its chat template, as a message
        that it has begun; otherwise the model gets the text alone.
    signs
        Whether an exact reading looks at what follows a sign behind an outcome ("7.5").
    threshold
        Least retained mass of a context that is not flagged.
    truth, tokens, space, leak
        Of a known mind: its parameters; "single", "digits" or "pairs" (byte-pair); the share of
        its outcomes with a space before them; and of what it says that is no outcome.
    earlier
        Folders of earlier results whose models are put beside these, before them.
    settings, connection
        Of a provider's model, see `run`.
    out
        Folder of the result, and of the ledgers of a provider's model.

    Raises
    ------
    ValueError
        If something is asked for that the model cannot do, or nothing is asked at all.
    """
    begin = time.perf_counter()
    named: list[str | Adapter] = [llm] if isinstance(llm, str | Adapter) else list(llm)
    scenarios = tuple(dict.fromkeys(scenarios))
    _check(form, source, draws, top, distractors, asking, tokens, named, earlier)
    found: dict[str, tuple[Told, pd.DataFrame]] = {}
    options: dict[str, Any] = {}
    before = [read_revealed(folder) for folder in earlier]
    for one in named:
        told = _Asking(
            scenarios, form, source, draws, top, stated, distractors, asking, even_faces,
            dict(only or {}), chat, signs,
            threshold, dict(truth or {}), tokens, space, leak, seed, settings,
            Path(out) if out is not None else None, progress, connection,
        ).ask(one)  # fmt: skip
        name = told.name
        while name in found or any(name in old.beliefs for old in before):
            name += "'"
        found[name] = told.told, told.stated.assign(model=name)
        options[name] = told.options
    beliefs, naive, known = (
        {name: own for old in before for name, own in getattr(old, kind).items()}
        for kind in ("beliefs", "naive", "known")
    )
    for old in before:
        options = {**old.options["models"], **options}
    beliefs |= {name: told.beliefs for name, (told, _) in found.items()}
    naive |= {name: told.naive for name, (told, _) in found.items()}
    known |= {name: told.known for name, (told, _) in found.items()}
    frames = [old.stated for old in before] + [frame for _, frame in found.values()]
    frames = [frame for frame in frames if len(frame)]
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(STATED))
    result = summarise(
        beliefs,
        naive,
        known,
        table[list(STATED)],
        options={
            "models": options,
            "scenarios": list(scenarios),
            "seed": seed,
            **({"only": dict(only)} if only else {}),
        },
        seed=seed,
        seconds=time.perf_counter() - begin + sum(old.seconds for old in before),
    )
    if out is not None:
        result.save(out)
    return result


def summarise(
    beliefs: Mapping[str, RevealedBeliefs],
    naive: Mapping[str, Array],
    known: Mapping[str, Array],
    stated: pd.DataFrame,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    seconds: float = 0.0,
) -> Revealed:
    """Compute all measures of models whose beliefs are known."""
    begin = time.perf_counter()
    distances, biases = [], []
    for name, own in beliefs.items():
        distances.append(distribution_distances(own, seed=seed).to_frame().assign(model=name))
        biases.append(belief_biases(own).to_frame().assign(model=name))
    fits = []
    for name, own in beliefs.items():
        try:
            fit = fit_belief_samplers({name: own}).to_frame()
        except ValueError as error:  # too little is left to be fitted, which is no misuse here
            fit = pd.DataFrame({"status": [str(error)]})
        fits.append(fit.assign(model=name))
    return Revealed(
        beliefs=dict(beliefs),
        naive=dict(naive),
        known=dict(known),
        distances=pd.concat(distances, ignore_index=True),
        biases=pd.concat(biases, ignore_index=True),
        samplers=pd.concat(fits, ignore_index=True),
        stated=stated,
        options=dict(options or {}),
        versions=versions(),
        seconds=seconds + time.perf_counter() - begin,
    )


def read_revealed(folder: str | os.PathLike[str]) -> Revealed:
    """Read what `reveal` left in a folder; nothing is computed anew.

    Raises
    ------
    ValueError
        If the folder holds no such result.
    """
    place = Path(folder)
    try:
        told = json.loads((place / FILE).read_text(encoding="utf-8"))
        table = pd.read_parquet((place / BELIEFS).absolute())
        frames = {name: pd.read_parquet((place / f"{name}.parquet").absolute()) for name in FRAMES}
    except (OSError, json.JSONDecodeError, ArrowException) as error:
        raise ValueError(
            f"Beliefs are read from a folder of `knownminds reveal`; {place} cannot be read: "
            f"{error}"
        ) from None
    parts = {str(name): own for name, own in table.groupby("model", sort=False)}
    return Revealed(
        beliefs={name: RevealedBeliefs.of_frame(own) for name, own in parts.items()},
        naive={name: own["naive"].to_numpy(dtype=float) for name, own in parts.items()},
        known={name: own["known"].to_numpy(dtype=float) for name, own in parts.items()},
        samplers=pd.DataFrame(told["samplers"]),
        options=told["options"],
        versions=told["versions"],
        seconds=told["seconds"],
        **frames,
    )


@dataclass(frozen=True)
class _Answered:
    """What one model has told."""

    name: str
    told: Told
    stated: pd.DataFrame
    options: Mapping[str, Any]


@dataclass(frozen=True)
class _Asking:
    """Everything that is asked of each model."""

    scenarios: tuple[str, ...]
    form: Form | None
    source: Source | None
    draws: int
    top: int
    stated: bool
    distractors: Distractors
    asking: Asking
    even_faces: bool
    only: dict[str, int]
    chat: bool
    signs: bool
    threshold: float
    truth: dict[str, float]
    tokens: Tokenisation
    space: float
    leak: float
    seed: int
    settings: Sampling | None
    out: Path | None
    progress: Progress | None
    connection: Mapping[str, Any]

    def ask(self, llm: str | Adapter) -> _Answered:
        """Ask one model everything."""
        if isinstance(llm, str) and llm.partition(":")[0] == "synthetic":
            return self._known(llm)
        if not isinstance(llm, str):
            return self._asked(llm, f"{llm.provider}:{llm.model}")
        grid = places_of(self.scenarios, "question", self.distractors, self.even_faces, self.only)
        adapter = connect(llm, grid[0], seed=self.seed, **self._reach)
        try:
            return self._asked(adapter, llm)
        finally:
            wait_for(adapter.close())

    def _asked(self, adapter: Adapter, name: str) -> _Answered:
        source = source_of(adapter, self.source)
        form = self.form or ("continuation" if source == "exact" else "question")
        places = places_of(self.scenarios, form, self.distractors, self.even_faces, self.only)
        questions = places_of(
            self.scenarios, "stated", self.distractors, self.even_faces, self.only, self.asking
        )
        letters: tuple[Told, list[Asked]] | None = None
        plain = source == "exact" and form == "continuation" and not self.chat
        sent = {"contexts": sent_as(adapter, _prompts(contexts_of(places[:1], plain=plain)))}
        if self.stated:
            sent["questions"] = sent_as(adapter, _prompts(questions_of(questions[:1], self.seed)))
        if source == "exact":
            asked = contexts_of(places, plain=plain)
            told = self._exact(adapter, asked)
            if self.stated:
                about = questions_of(questions, self.seed)
                letters = self._exact(adapter, about), about
        else:
            told, _ = self._lived(adapter, places, source, name)
            if self.stated:
                letters = self._lived(adapter, questions, source, name)
        stated = _stated_frame(name, told.beliefs, letters)
        options = self._options(source, form) | (
            {"chat": self.chat, "signs": self.signs} if source == "exact" else {}
        )
        return _Answered(name, told, stated, options | {"sent": sent})

    @property
    def _reach(self) -> dict[str, Any]:
        given = {k: self.connection.get(k) for k in ("base_url", "key_variable", "timeout")}
        return {k: v for k, v in given.items() if v is not None}

    def _options(self, source: Source, form: Form) -> dict[str, Any]:
        told: dict[str, Any] = {"source": source, "form": form}
        told |= {"draws": self.draws} if source != "exact" else {}
        told |= {"top": self.top} if source == "top-k" else {}
        told |= {"even_faces": True} if self.even_faces else {}
        told |= (
            {"distractors": self.distractors, "asking": self.asking}
            if self.stated
            else {"stated": False}
        )
        return told | {"threshold": self.threshold}

    def _exact(self, adapter: Any, asked: Sequence[Asked]) -> Told:
        return exact_beliefs(
            adapter, asked, threshold=self.threshold, signs=self.signs, progress=self.progress
        )

    def _lived(
        self, adapter: Adapter, places: Sequence[Any], source: Source, name: str
    ) -> tuple[Told, list[Asked]]:
        called = re.sub(r"[^\w.=-]+", "-", name).strip("-")
        folder = (self.out or Path(RUNS) / f"reveal-{called}") / f"answers-{called}"
        how = {k: v for k, v in self.connection.items() if k not in self._reach and v is not None}
        how.setdefault("price", price_for(name, {}, elsewhere="base_url" in self._reach))
        return lived_beliefs(
            adapter,
            places,
            source=source,
            draws=self.draws,
            top=self.top,
            threshold=self.threshold,
            seed=self.seed,
            folder=folder,
            settings=self.settings,
            progress=self.progress,
            **how,
        )

    def _known(self, llm: str) -> _Answered:
        model = llm.partition(":")[2]
        source = self.source or "exact"
        form = self.form or "continuation"
        places = places_of(self.scenarios, form, self.distractors, self.even_faces, self.only)
        how: dict[str, Any] = {
            "source": source,
            "tokens": self.tokens,
            "space": self.space,
            "leak": self.leak,
            "draws": self.draws,
            "top": self.top,
            "threshold": self.threshold,
            "seed": self.seed,
        }
        minds = {place: mind_of(model, place, self.truth) for place in places}
        asked = contexts_of(places, plain=True)
        told = known_beliefs(minds, asked, progress=self.progress, **how)
        letters = None
        questions = places_of(
            self.scenarios, "stated", self.distractors, self.even_faces, self.only, self.asking
        )
        speaks = type(next(iter(minds.values()))).plays(questions[0])
        if self.stated and speaks:
            about = questions_of(questions, self.seed)
            own = {place: mind_of(model, place, self.truth) for place in questions}
            letters = known_beliefs(own, about, progress=self.progress, **how), about
        name = f"{llm} ({self.tokens})"
        options = self._options(source, form) | {"tokens": self.tokens, "space": self.space}
        options |= {"leak": self.leak, "truth": self.truth} | ({} if letters else {"stated": False})
        return _Answered(name, told, _stated_frame(name, told.beliefs, letters), options)


def _prompts(asked: Sequence[Asked]) -> list[str | Prompt]:
    return [one.prompt for one in asked]


def _stated_frame(
    model: str, beliefs: RevealedBeliefs, letters: tuple[Told, list[Asked]] | None
) -> pd.DataFrame:
    """Join stated answers to the revealed beliefs of their contexts, by context and outcome."""
    if letters is None:
        return pd.DataFrame(columns=list(STATED))
    told, about = letters
    table = told.beliefs
    errors = stated_errors(table, [one.set_up.outcomes[one.correct] for one in about])
    place = {name: k for k, name in enumerate(beliefs.contexts)}
    groups: dict[tuple[str, int], list[int]] = {}
    for i, one in enumerate(about):
        groups.setdefault((one.context, one.outcome), []).append(i)
    rows = []
    for (context, outcome), several in groups.items():
        k = place.get(context)
        if k is None:
            continue
        shares, low, high = shares_of(beliefs, k)
        own = beliefs.rows(k)
        usable = [i for i in several if not table.flagged[i]]
        means = [
            float(np.dot(_normalised(table.probability[table.rows(i)]), about[i].options))
            for i in usable
        ]
        error, error_low, error_high = _joint_error(table, errors, about, several, usable)
        flag = beliefs.flags[k] or ("" if usable else f"question: {table.flags[several[0]]}")
        rows.append(
            {
                "model": model,
                "scenario": beliefs.scenarios[k],
                "context": context,
                "outcome": beliefs.outcome[own][outcome],
                "truth": float(beliefs.truth[own][outcome]),
                "revealed": np.nan if beliefs.flagged[k] else float(shares[outcome]),
                "revealed_low": np.nan if beliefs.flagged[k] else float(low[outcome]),
                "revealed_high": np.nan if beliefs.flagged[k] else float(high[outcome]),
                "stated": float(np.mean(means)) if means else np.nan,
                "error": error,
                "low": error_low,
                "high": error_high,
                "questions": len(several),
                "flag": flag,
            }
        )
    return pd.DataFrame(rows, columns=list(STATED))


def _joint_error(
    table: RevealedBeliefs,
    errors: Any,
    about: Sequence[Asked],
    several: Sequence[int],
    usable: Sequence[int],
) -> tuple[float, float, float]:
    """Return the stated error of questions about one outcome that differ in their letters."""
    if table.draws[several[0]]:
        right = sum(int(table.count[table.rows(i)][about[i].correct]) for i in several)
        given = sum(int(table.count[table.rows(i)].sum()) for i in several)
        if not given:
            return float("nan"), float("nan"), float("nan")
        low, high = wilson(np.array([float(right)]), np.array([float(given)]))
        return 1.0 - right / given, 1.0 - float(high[0]), 1.0 - float(low[0])
    if not usable:
        return float("nan"), float("nan"), float("nan")
    return tuple(  # type: ignore[return-value]
        float(np.mean(getattr(errors, name)[list(usable)])) for name in ("value", "low", "high")
    )


def shares_of(beliefs: RevealedBeliefs, context: int) -> tuple[Array, Array, Array]:
    """Return the normalised belief of a context, and the ends of the interval of each share."""
    own = beliefs.rows(context)
    p = beliefs.probability[own]
    if beliefs.draws[context]:
        counts = beliefs.count[own].astype(float)
        low, high = wilson(counts, np.full(len(counts), counts.sum()))
    else:
        low, high = set_bounds(p, units_of(beliefs, context), np.eye(len(p)))
    return _normalised(p), low, high


def _normalised(p: Array) -> Array:
    total = p.sum()
    share: Array = p / total if total > 0 else np.full(len(p), np.nan)
    return share


def _mean(values: Array, mass: float) -> tuple[float, float, float]:
    tests = t_tests(values[None], mass=mass)
    if tests.n[0] > 1 and not np.isfinite(tests.low[0]):  # all the same
        return (float(tests.mean[0]),) * 3
    return float(tests.mean[0]), float(tests.low[0]), float(tests.high[0])


def _by_measure(summary: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows of one model and scenario by measure."""
    rows: list[dict[Any, Any]] = summary.to_dict("records")
    return {str(row["measure"]): row for row in rows}


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def _rank_correlation(one: pd.Series, other: pd.Series) -> float:
    ranks = [pd.Series(tied(side, scale=1.0)[0]).rank() for side in (one, other)]
    if len(one) < 3 or min(side.nunique() for side in ranks) < 2:
        return float("nan")
    return float(ranks[0].corr(ranks[1]))


def _check(
    form: str | None,
    source: str | None,
    draws: int,
    top: int,
    distractors: str,
    asking: str,
    tokens: str,
    named: Sequence[Any],
    earlier: Sequence[Any],
) -> None:
    if form is not None:
        one_of("form", form, [name for name in FORMS if name != "stated"])
    if source is not None:
        one_of("source", source, SOURCES)
    one_of("distractors", distractors, DISTRACTORS)
    one_of("asking", asking, ASKINGS)
    one_of("tokens", tokens, TOKENISATIONS)
    if draws < 1 or top < 1:
        raise ValueError(f"draws and top are at least 1; got {draws} and {top}.")
    if not named and not earlier:
        raise ValueError("At least one model reveals its beliefs; got none. Name it with --llm.")


__all__ = ["FILE", "NotCapable", "Revealed", "read_revealed", "reveal", "shares_of", "summarise"]
