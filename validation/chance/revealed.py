"""What models reveal of their beliefs about chance, beside what they state."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from knownminds.agents.parameters import Array
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import writable, write_text
from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, fit_belief_samplers
from knownminds.inference.chance.distribution_distance import (
    MEASURES_OF_DISTANCE,
    distribution_distances,
    manhattan,
)
from knownminds.inference.chance.idle_evidence import belief_shifts
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.inference.chance.wording_variance import (
    joined_wordings,
    split_models,
    split_wordings,
)
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.measure import t_tests
from knownminds.llm_adapters import Adapter, Sampling
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions

from .agreement import COLUMNS, agreement_of
from .asked_beliefs import SENT, Progress
from .interview import Interview
from .questions import RevealQuestion
from .revealed_sentences import idle_lines, wording_sentences
from .stated_answers import STATED

FILE = "revealed.json"
BELIEFS, REWORDED = "beliefs.parquet", "reworded.parquet"
FRAMES = ("distances", "biases", "stated")
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


@dataclass(frozen=True, eq=False)
class Revealed(Reported):
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
    reworded
        By model that was asked in several wordings, its beliefs in all of them, as
        `joined_wordings` makes them; everything else is of the first one.
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
    reworded: Mapping[str, RevealedBeliefs] = field(default_factory=dict)

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
        beliefs, naive = self.beliefs[model], self.naive[model]
        rows = map(beliefs.rows, range(len(beliefs)))
        distances = np.array([manhattan(beliefs.truth[r], naive[r]) for r in rows], dtype=float)
        return pd.DataFrame(
            {"model": model, "scenario": beliefs.scenarios, "context": beliefs.contexts}
            | {NAIVE: distances}
        )

    def summary(self, mass: float = 0.95) -> pd.DataFrame:
        """One row per model, scenario and measure: mean with its t interval, and quartiles."""
        rows = []
        for key, here in _by_scenario(self.by_context()):
            for name in (*COMPARED, NAIVE):
                values = here[name].to_numpy(dtype=float)
                known = values[np.isfinite(values)]
                if not len(known):
                    continue
                lower, upper = np.quantile(known, [0.25, 0.75]).tolist()
                rows.append(
                    {
                        **key,
                        "measure": name,
                        **_mean("mean", values, mass),
                        "median": float(np.median(known)),
                        "lower_quartile": lower,
                        "upper_quartile": upper,
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
        wide, reference = self.by_context(), self.models[0]
        first = wide[wide["model"] == reference]
        rows = []
        for _, other in wide[wide["model"] != reference].groupby("model", sort=False):
            pairs = first.merge(other, on=["scenario", "context"], suffixes=("_first", ""))
            for key, here in _by_scenario(pairs):
                for name in COMPARED:
                    difference = (here[name] - here[f"{name}_first"]).to_numpy(dtype=float)
                    n = int(np.isfinite(difference).sum())
                    if n:
                        mean = _mean("difference", difference, mass)
                        about = {**key, "reference": reference, "measure": name}
                        rows.append({**about, **mean, "contexts": n})
        columns = ["model", "reference", "scenario", "measure", "difference", "low", "high"]
        return pd.DataFrame(rows, columns=[*columns, "contexts"])

    def agreement(self) -> pd.DataFrame:
        """One row per model and scenario: what is stated against what is revealed.

        Rank correlations over questions and mean absolute errors, each with the ends of its 95%
        bootstrap interval over contexts (NAME_low, NAME_high), see `agreement_of`.
        """
        return self._agreement

    @cached_property
    def _agreement(self) -> pd.DataFrame:
        answered = self.stated[self.stated["flag"] == ""].dropna(subset=["revealed", "stated"])
        rows = [
            {**key, "questions": len(here), **agreement_of(here)}
            for key, here in _by_scenario(answered)
        ]
        return pd.DataFrame(rows, columns=["model", "scenario", "questions", *COLUMNS])

    @cached_property
    def wording_parts(self) -> pd.DataFrame:
        """One row per model, scenario, value and part of its variance, see `WordingSplit`."""
        return self._of_wordings("parts")

    @cached_property
    def wording_effects(self) -> pd.DataFrame:
        """One row per model, scenario, value and wording, see `WordingSplit`."""
        return self._of_wordings("effects")

    @cached_property
    def wordings_and_models(self) -> pd.DataFrame:
        """One row per scenario, value and part of the variance of means, see `split_models`."""
        return split_models(self.reworded)

    def _of_wordings(self, what: str) -> pd.DataFrame:
        frames = [
            getattr(split_wordings(own), what).assign(model=name)
            for name, own in self.reworded.items()
        ]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def shifts(self) -> pd.DataFrame:
        """One row per model, scenario and evidence that should not matter, see `BeliefShifts`."""
        frames = [
            belief_shifts(own).shifts.assign(model=name) for name, own in self.beliefs.items()
        ]
        return pd.concat(frames, ignore_index=True)

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

        By 90% intervals: of counts for beliefs that were sampled, over contexts for exact ones
        (how much these contexts differ from any sampler); and by all that top-k tables allow. One
        at the end of what was searched is only known to lie beyond.
        """
        value = float(row[name])
        if not np.isfinite(value):
            return "-"
        if not BEYOND[name][0] < value < BEYOND[name][1]:
            return f"beyond {value:.3f}"
        sources = set(self.beliefs[row["model"]].sources)
        kind, ends = {
            "sampled": ("90% interval", ("low", "high")),
            "exact": ("90% interval over contexts", ("low", "high")),
        }.get("".join(sources), ("tables allow", ("least", "most")))
        low, high = (float(row.get(f"{name}_{end}", np.nan)) for end in ends)
        if not high - low > NARROW:
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

    def content(self) -> dict[str, Any]:
        """What `to_json` holds: summary, biases, comparison and options."""
        return {
            "models": list(self.models),
            "contexts": {name: len(own) for name, own in self.beliefs.items()},
            "flagged": {name: int(own.flagged.sum()) for name, own in self.beliefs.items()},
            "summary": self.summary(),
            "biases": self.biases,
            "samplers": self.samplers,
            "comparison": self.comparison(),
            "read_back": {
                name: {"whole": whole, "naive": naive}
                for name, (whole, naive) in self.read_back().items()
            },
            "agreement": self.agreement(),
            "idle_evidence": self.shifts,
            "wordings": self.wording_parts,
            "wording_effects": self.wording_effects,
            "wordings_and_models": self.wordings_and_models,
            "options": self.options,
            "versions": self.versions,
            "seconds": self.seconds,
        }

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything that a report needs."""
        frames = {name: getattr(self, name) for name in FRAMES}
        with writable(folder) as path:
            more = {
                kind: np.concatenate([getattr(self, kind)[name] for name in self.beliefs])
                for kind in ("naive", "known")
            }
            _stacked(path, self.beliefs, **more).to_parquet(path / BELIEFS, index=False)
            for name, frame in frames.items():
                frame.to_parquet(path / f"{name}.parquet", index=False)
            if self.reworded:
                _stacked(path, self.reworded).to_parquet(path / REWORDED, index=False)
            write_text(path / "by_context.csv", csv_text(self.by_context()))
            write_text(path / FILE, self.to_json())

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
                f"{'KL both ways':>24}{'retained':>24}{'stated error':>24}"
            )
            own = summary[summary["model"] == model]
            for scenario in own["scenario"].unique().tolist():
                by = _by_measure(own[own["scenario"] == scenario])
                cells = [
                    _interval(by[name]) if name in by else "-"
                    for name in ("chebyshev", "manhattan", "kl_sum", ERROR)
                ]
                retained = _interval(by["retained"]) if "retained" in by else "-"
                n = by["retained"]["contexts"] if "retained" in by else 0
                lines.append(
                    f"  {scenario:<12}{n:>9}{cells[0]:>24}{cells[1]:>24}{cells[2]:>24}"
                    f"{retained:>24}{cells[3]:>24}"
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
                    f"manhattan would be {row['mean']:.3f} ({row['low']:.3f} to "
                    f"{row['high']:.3f}), the naive reading"
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
        lines += idle_lines(self)
        lines += wording_sentences(self, {name: name for name in self.models})
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
    earlier: Sequence[str | os.PathLike[str]] = (),
    settings: Sampling | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Revealed:
    """Ask models for the probability of each outcome of each context, and for stated answers.

    Parameters
    ----------
    llm
        "provider:model" or adapters, one or more. "synthetic:belief_sampler" is an agent whose
        beliefs are known, seen through a way of cutting what it says into tokens.
    earlier
        Folders of earlier results whose models are put beside these, before them.
    settings
        Of a provider's model, see `run`.
    out
        Folder of the result, and of the ledgers of a provider's model.
    options
        What is asked, by the names of `RevealQuestion` (scenarios, form, source, draws, top,
        stated, distractors, asking, even_faces, only, chat, signs, threshold, truth, tokens, space,
        leak, wordings, seed), and for a provider's model further arguments of `run`.

    Raises
    ------
    ValueError
        If something is asked for that the model cannot do, or nothing is asked at all.
    """
    begin = time.perf_counter()
    several: Any = [llm] if isinstance(llm, str) or hasattr(llm, "complete") else llm
    models: list[str | Adapter] = list(several)
    names = [field.name for field in fields(RevealQuestion)]
    question = RevealQuestion(**{k: v for k, v in options.items() if k in names})
    if not models and not earlier:
        raise ValueError("At least one model reveals its beliefs; got none. Name it with --llm.")
    interview = Interview(
        question,
        settings,
        None if out is None else Path(out),
        progress,
        {k: v for k, v in options.items() if k not in names},
    )
    before = [read_revealed(folder) for folder in earlier]
    beliefs, naive, known = (
        {name: own for old in before for name, own in getattr(old, kind).items()}
        for kind in ("beliefs", "naive", "known")
    )
    reworded = {name: own for old in before for name, own in old.reworded.items()}
    how: dict[str, Any] = {}
    stated = [old.stated for old in before]
    for one in models:
        asked = interview.ask(one)
        name = asked.name
        while name in beliefs:
            name += "'"
        read = asked.contexts
        beliefs[name], naive[name], known[name] = read.beliefs, read.naive, read.known
        if asked.reworded:
            reworded[name] = joined_wordings([read.beliefs, *asked.reworded])
        stated.append(asked.stated.assign(model=name))
        how[name] = asked.options
    for old in before:
        how = {**old.options["models"], **how}
    stated = [frame for frame in stated if len(frame)]
    table = pd.concat(stated, ignore_index=True) if stated else pd.DataFrame(columns=list(STATED))
    result = summarise(
        beliefs,
        naive,
        known,
        table[list(STATED)],
        options={
            "models": how,
            "scenarios": list(question.scenarios),
            "seed": question.seed,
            **({"only": question.only} if question.only else {}),
        },
        seed=question.seed,
        reworded=reworded,
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
    reworded: Mapping[str, RevealedBeliefs] | None = None,
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
        reworded=dict(reworded or {}),
    )


def read_revealed(folder: str | os.PathLike[str]) -> Revealed:
    """Read what `reveal` left in a folder; nothing is computed anew.

    Raises
    ------
    ValueError
        If the folder holds no such result.
    """
    path = Path(folder)
    try:
        told = json.loads((path / FILE).read_text(encoding="utf-8"))
        table = pd.read_parquet((path / BELIEFS).absolute())
        frames = {name: pd.read_parquet((path / f"{name}.parquet").absolute()) for name in FRAMES}
        several = (path / REWORDED).absolute()
        again = pd.read_parquet(several) if several.exists() else pd.DataFrame({"model": []})
    except (OSError, json.JSONDecodeError, ArrowException) as error:
        raise ValueError(
            f"Beliefs are read from a folder of `knownminds reveal`; {path} cannot be read: {error}"
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
        reworded={
            str(name): RevealedBeliefs.of_frame(own)
            for name, own in again.groupby("model", sort=False)
        },
        **frames,
    )


def _stacked(folder: Path, several: Mapping[str, RevealedBeliefs], **more: Array) -> pd.DataFrame:
    """Return the tables of models one below the other, as they are kept."""
    parts = []
    for k, (name, own) in enumerate(several.items()):
        place = folder / f".part-{k}.parquet"
        own.save(place)
        parts.append(pd.read_parquet(place.absolute()).assign(model=name))
        place.unlink()
    return pd.concat(parts, ignore_index=True).assign(**more)


def _by_scenario(table: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the rows of each model and scenario, and of several scenarios together."""
    for model, own in table.groupby("model", sort=False):
        parts = list(own.groupby("scenario", sort=False))
        for scenario, part in [*parts, *([(ALL, own)] if len(parts) > 1 else [])]:
            yield {"model": model, "scenario": scenario}, part


def _mean(name: str, values: Array, mass: float) -> dict[str, float]:
    """Return a mean by this name, with the ends of its t interval."""
    tests = t_tests(values[None], mass=mass)
    mean, low, high = (float(column[0]) for column in (tests.mean, tests.low, tests.high))
    if tests.n[0] > 1 and not np.isfinite(low):  # all the same
        low = high = mean
    return {name: mean, "low": low, "high": high}


def _by_measure(summary: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows of one model and scenario by measure."""
    rows: list[dict[Any, Any]] = summary.to_dict("records")
    return {str(row["measure"]): row for row in rows}


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
