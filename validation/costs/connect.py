"""Sessions of a language model, or of a known agent that answers in its stead."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from knownminds.agents import AGENTS, Contaminants, Model
from knownminds.calling import Reach
from knownminds.environments import Environment, unknown
from knownminds.llm_adapters import ADAPTERS, HOSTS, Adapter, Failed, Synthetic, load
from knownminds.llm_adapters.configuration import FORM, Participant
from knownminds.llm_adapters.known_agents.replay import Replay
from knownminds.llm_adapters.providers.http import Http
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.prices import Price, price_of
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import RunOptions, check_run, run_sessions_in
from knownminds.validation.engine.arguments import check_count, resolve_model
from knownminds.validation.engine.notebook import notebook_bar
from knownminds.validation.engine.result import Text
from knownminds.validation.engine.usual_models import usual_model

from .dry_runs import dry_runs_of

Result = TypeVar("Result")

ABROAD = ("anthropic", "google", *HOSTS)  # adapters that have an address and a key


def run_sessions(
    environment: Environment,
    llm: Adapter | str,
    *,
    sessions: int,
    seed: int,
    out: Path,
    how: RunOptions,
    within: Path | None = None,
    **connection: Any,
) -> Run:
    """Let a language model play sessions and wait for them; see `run_sessions_in`.

    Session i lives at the address (0, i) of the study with this seed, as subject i of
    ``simulate`` does. The same call with the same folder goes on where it stopped.

    Parameters
    ----------
    within : A folder above whose ledger has several runs, with one cap; see `run_sessions_in`.
    connection : If `llm` is a name, further arguments of `connect`.
    """
    if isinstance(llm, str):
        who = Participant.read(llm)
        how = replace(how, settings=who.settings(how.settings), participant=who.own_name)

    async def run_all() -> Run:
        adapter: Adapter
        if isinstance(llm, str):  # here, for a ledger is read in the thread that has opened it
            adapter = connect(who.llm, environment, seed=seed, **connection)
        else:
            adapter = llm
        try:
            return await run_sessions_in(
                out, adapter, environment, sessions, seed, address=RUN, within=within, how=how
            )
        finally:
            if isinstance(llm, str):
                await adapter.close()

    with notebook_bar(f"run {environment.name}") as bar:
        if bar is not None and how.progress is None:
            how = replace(how, progress=lambda now: bar(now.trials, now.n_trials))
        return wait_for(run_all())


def connect(
    llm: str,
    environment: Environment,
    *,
    seed: int = 0,
    reach: Reach | None = None,
    images: bool = False,
    truth: Mapping[str, float] | None = None,
    contaminants: Contaminants | None = None,
    stream: int | None = None,
) -> Adapter:
    """Return the adapter of "provider:model".

    For "synthetic" the model is one of ours, for "replay" the folder of a run. For "transformers"
    it is a folder, a GGUF file or an installed package that carries one.

    Parameters
    ----------
    reach : Where it is; None for where the provider is.
    images : Whether the model is declared to see pictures, where its name does not tell.
    truth, contaminants : Of a synthetic participant; parameters without a value are at the centre
        of their prior.
    stream : Of a synthetic participant, see `Synthetic`.

    Raises
    ------
    ValueError : If the provider is not known, or takes no such argument.
    """
    provider, colon, model = llm.partition(":")
    known = ["replay", *ADAPTERS]
    if not (colon and model):
        raise ValueError(f"A language model is named {FORM}; got {llm!r}.")
    if "?" in model:
        raise ValueError(
            f"An adapter has no settings of its own; got {llm!r}. Name PROVIDER:MODEL alone."
        )
    if provider not in known:
        raise ValueError(unknown("provider", provider, known))
    given = {name: value for name, value in vars(reach or Reach()).items() if value is not None}
    if provider not in ABROAD and given:
        raise ValueError(
            f"{next(iter(given))} is for {', '.join(ABROAD)}; {provider} takes none. Leave it out."
        )
    if provider != "synthetic" and (truth or contaminants not in (None, Contaminants())):
        raise ValueError(
            f"True parameters and contaminants are those of a synthetic participant; {provider} "
            "is none. Leave them out."
        )
    adapter: Adapter
    if provider == "synthetic":
        agent = known_agent(model, environment, truth)
        adapter = Synthetic(
            agent, environment, seed, *RUN, contaminants=contaminants, stream=stream
        )
    elif provider == "replay":
        adapter = Replay(model)
    else:
        if "base_url" in given:
            given.setdefault("key_variable", None)
        adapter = load(provider)(model, **given)
    if images:
        _declare_images(adapter)
    return adapter


def _declare_images(adapter: Adapter) -> None:
    """Take the user's word that a model sees pictures."""
    if not isinstance(adapter, Http):
        raise ValueError(
            f"--images is for {', '.join(ABROAD)}, whose servers may see pictures; "
            f"{adapter.provider} tells by itself whether it does. Leave it out."
        )
    adapter.heeds |= {"images"}


def rehearse(
    llm: str, environment: Environment, sessions: int, how: RunOptions, **connection: Any
) -> None:
    """Raise what would stop a run before its first call, as far as no key is needed to tell."""
    try:
        who = Participant.read(llm)
        how = replace(how, settings=who.settings(how.settings))
        check_run(connect(who.llm, environment, **connection), environment, sessions, how)
    except ImportError:
        pass
    except Failed as error:
        if error.kind != "key":
            raise


def known_agent(
    model: type[Model] | str, environment: Environment, truth: Mapping[str, float] | None = None
) -> Model:
    """Return an agent with these parameters; the others are at the centre of their prior."""
    agent = resolve_model(model)
    agent.check_plays(environment)
    parameters = agent.parameters
    theta = parameters.constrain(parameters.mean)
    for name, value in (truth or {}).items():
        theta[parameters.index(name)] = value
    parameters.check(theta)
    return agent.from_theta(theta, actions=environment.n_actions)


def price_for(
    llm: str, overrides: Mapping[str, Mapping[str, Any]], *, elsewhere: bool = False
) -> Price | None:
    """Return what a language model costs; None if nothing says so.

    Parameters
    ----------
    elsewhere : Whether another server than the provider's is called, to which its prices do not
        apply; only the user's count then.
    """
    who = Participant.read(llm)
    said = bool(who.price) or not {llm, str(who), who.llm}.isdisjoint(overrides)
    if not said and (elsewhere or llm.partition(":")[0] not in ABROAD):
        return None
    try:
        return price_of(llm, overrides=overrides)
    except ValueError:
        if said:
            raise
        return None


def estimate(
    environment: Environment,
    llm: str,
    sessions: int,
    price: Price | None,
    system: str | None = None,
) -> Text:
    """Say in words and numbers what a run will send, and what it will cost if a price is known.

    Parameters
    ----------
    system : What a system message says before every prompt; None for none.
    """
    check_count("sessions", sessions)
    agent = AGENTS[usual_model(environment)]
    runs = dry_runs_of(environment, agent, 4, 0, system=system)
    usage = runs.usage(sessions)
    dollars = None if price is None else runs.dollars(price, sessions)
    money = "no price is known" if dollars is None else f"{dollars} ({price})"
    content: dict[str, Any] = {"calls": usage.calls}
    for name, ends in (("input_tokens", usage.input_tokens), ("output_tokens", usage.output_tokens),
                       ("dollars", dollars)):  # fmt: skip
        for end in ("low", "high"):
            content[f"{name}_{end}"] = None if ends is None else float(getattr(ends, end))
    return Text(
        f"estimate of the whole run: {usage.calls:,} calls, {usage.input_tokens} tokens sent, "
        f"{usage.output_tokens} received; {money}",
        content,
    )


class _Loop(threading.local):
    """One event loop in each thread, for an adapter's connections belong to the loop of a call."""

    runner: asyncio.Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end; the loop stays open for the next one."""
        if self.runner is None:
            self.runner = asyncio.Runner()
            atexit.register(self.runner.close)
        return self.runner.run(coroutine)


_LOOP = _Loop()
_ASIDE = ThreadPoolExecutor(1, "run")  # begins its thread when it is first used


def wait_for(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Wait for a coroutine, also where an event loop is already running, as in a notebook.

    All that is waited for in a thread shares one loop, so that several runs can share an adapter.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _LOOP.run(coroutine)
    return _ASIDE.submit(_LOOP.run, coroutine).result()
