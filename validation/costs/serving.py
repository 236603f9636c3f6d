"""`serve`: a known agent behind an OpenAI-compatible address."""

from __future__ import annotations

import os

from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.engine.arguments import resolve_environment
from knownminds.validation.engine.question import verb

from .connect import known_agent
from .questions import AskServe

serve = verb(AskServe, __name__)


def compute(question: AskServe) -> Served:
    """Answer `serve`; it is the caller who lets it run, and closes it."""
    environment = resolve_environment(question.environment, question.trials)
    return Served(
        environment,
        known_agent(question.agent, environment, question.truth),
        seed=question.seed,
        address=RUN,
        host=question.host,
        port=question.port,
        contaminants=question.contaminants,
        model=question.name,
        api_key=_key(question.key_variable),
        seed_is_session=question.seed_is_session,
    )


def _key(variable: str | None) -> str | None:
    """Read a key that requests must bear; None if they need none."""
    key = None if variable is None else os.environ.get(variable, "").strip()
    if key == "":
        raise ValueError(f"The key is read from the variable {variable}, which is empty. Set it.")
    return key
