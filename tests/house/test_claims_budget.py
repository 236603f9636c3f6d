"""Each sentence of a budget is true of sessions that are lived here and counted byte by byte."""

import asyncio
import json
import re
from datetime import date
from itertools import takewhile
from types import SimpleNamespace

import pytest
from claims import check
from claims.budget import REPORT

from knownminds.agents import AGENTS
from knownminds.environments import InstrumentalLearning, make, session_stream
from knownminds.llm_adapters import Sampling, Synthetic
from knownminds.llm_adapters.runs.participant import Asked, live
from knownminds.validation.costs.budget import budget
from knownminds.validation.costs.budget_page import budget_page
from knownminds.validation.costs.priced_designs import DesignPower

DAY = date(2026, 11, 1)
LLMS = ["openai:gpt-4o-mini", "anthropic:claude-3-5-haiku-latest"]


def lived(found):
    """The dry runs' sessions, as a known mind lives them in a language model's chair."""
    place = make(found.environment, **found.settings)
    model, sessions = AGENTS[found.model], []
    for i in range(found.dry_runs):
        theta = model.parameters.draw(session_stream(found.seed, i, 0), 1)[0]
        mind = Synthetic(model.from_theta(theta, actions=place.n_actions), place, found.seed)
        calls, before = [], []

        async def ask(turn, prompt, judge, i=i, mind=mind, calls=calls, before=before):
            reply = await mind.complete(prompt, settings=Sampling(seed=i))
            # One list of bytes per prompt, with a mark where each message begins.
            now = [x for m in prompt.messages for x in (m.role, *m.content.encode())]
            same = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
            repeated = sum(not isinstance(one, str) for one, _ in same)
            said = len(reply.text.encode())
            calls.append((len(now) - len(prompt.messages), repeated, len(prompt.messages), said))
            before[:] = now
            return Asked(judge(reply), reply, 1)

        asyncio.run(live(place, found.seed, (i,), "m", ask))
        sessions.append(calls)
    return sessions


def said_of(found):
    page = budget_page(found)
    told = [*page.sentences, *page.notes, *(caption for caption, _ in page.figures)]
    lines = [line.strip() for line in str(found).splitlines() if line.strip()]
    words = ("Budget of ", "dry run ", "input  ", "output  ", "Calls that", "A picture", "One dry")
    words += tuple(f"{llm}: " for llm in LLMS)
    told += [line for line in lines if line.startswith(words)]
    assert {page.title} | {cell for _, cell in page.asked if "tokens" in cell}
    return [*told, page.title, *(cell for _, cell in page.asked if "tokens" in cell)]


def prove(found, aloud=False):
    facts = SimpleNamespace(content=json.loads(found.to_json()), sessions=lived(found), aloud=aloud)
    told = said_of(found)
    check(REPORT, told, facts)
    return told


@pytest.mark.parametrize(
    ("place", "model", "options"),
    [
        (InstrumentalLearning(n_visits=3), "rescorla_wagner", {}),
        (InstrumentalLearning(n_visits=3), "rescorla_wagner", {"dry_runs": 1, "subjects": 1}),
        (InstrumentalLearning(n_visits=3, history="chat"), "rescorla_wagner", {"sessions": 3}),
        (InstrumentalLearning(n_visits=3), "rescorla_wagner", {"reasoning_tokens": (5, 50)}),
        (InstrumentalLearning(n_visits=3, reasoning="step_back"), "rescorla_wagner", {}),
        (make("temporal_discounting"), "hyperbolic_discounter", {"dry_runs": 3}),
        (make("collider", domains=["weather"], senses=["ppp"]), "noisy_or", {}),
    ],
    ids=["plain", "one dry run", "chat", "reasoning", "thoughts", "ends early", "alone"],
)
def test_what_is_said_of_a_budget_is_so(place, model, options):
    options = {"subjects": 7, "sessions": 2, "dry_runs": 2, "seed": 3, **options}
    prove(budget(place, LLMS, model=model, date=DAY, **options))


def test_what_is_said_of_thoughts_within_answers_is_so():
    place = InstrumentalLearning(n_visits=3, history="chat", reasoning="chain_of_thought")
    found = budget(place, LLMS, dry_runs=2, reasoning_tokens=(5, 50), date=DAY)
    told = prove(found, aloud=True)
    assert any("thoughts within the answers" in text for text in told)


def test_what_is_said_of_designs_is_so():
    designs = [DesignPower(n, 1, 12, power, 0.01) for n, power in
               ((10, 0.4), (20, 0.4), (20, 0.6), (40, 0.6), (40, 0.9), (5, 0.1))]  # fmt: skip
    place = InstrumentalLearning(n_visits=3)
    told = prove(budget(place, LLMS, dry_runs=2, designs=designs, date=DAY))
    assert any("the frontier" in text for text in told)


def test_what_no_cache_has_a_price_for_is_not_drawn():
    own = {LLMS[0]: {"input": 1, "output": 4}}
    found = budget(InstrumentalLearning(n_visits=2), LLMS[:1], dry_runs=2, prices=own, date=DAY)
    assert not any("Thin lines" in text for text in prove(found))


def test_pictures_are_counted_as_is_said():
    found = budget(
        make("marker_location", modality="image"), LLMS[:1], model="linear_observer",
        dry_runs=1, date=DAY, trials=33,
    )  # fmt: skip
    (told,) = (text for text in found.notes if text.startswith("A picture"))
    check(REPORT, [told], SimpleNamespace(content=json.loads(found.to_json())))
    assert re.search(r"counts 85 to 8,500 tokens", told)


def test_designs_whose_sessions_end_early_are_told_with_the_calls_they_send():
    place = make("temporal_discounting")
    designs = [DesignPower(10, 2, place.n_trials, 0.5, 0.01)]
    found = budget(place, LLMS, model="hyperbolic_discounter", subjects=10, sessions=2,
                   designs=designs, date=DAY)  # fmt: skip
    calls = [len(session) for session in lived(found)]
    (told,) = {row.calls for row in found.designs}
    assert told == found.usage.calls == -(-20 * sum(calls) // len(calls))
    assert told < 20 * place.n_trials
