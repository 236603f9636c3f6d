import asyncio

import pandas as pd
from scripted import Scripted

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.llm_adapters import Reply, Synthetic, Usage, run_session
from knownminds.llm_adapters.runs.runner import Retries, RunOptions, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)


class Noting(Scripted):
    """Notes what it was asked."""

    def __init__(self, *script):
        super().__init__(*script)
        self.prompts, self.settings = [], []

    async def complete(self, prompt, *, settings):
        self.prompts.append(prompt)
        self.settings.append(settings)
        return await super().complete(prompt, settings=settings)


def run(adapter, **options):
    patient = Retries(pause=0.0)
    return asyncio.run(run_session(adapter, ENVIRONMENT, 0, 4, retries=patient, **options))


def test_tokens_models_and_prompts_are_recorded(tmp_path):
    adapter = Noting(Reply("x", usage=Usage(7, 2), model_served="m"))
    trials = run(adapter)
    row = trials.frame.iloc[0]
    assert (row["input_tokens"], row["output_tokens"]) == (7, 2)
    assert (row["model"], row["model_served"]) == ("scripted", "m")
    assert trials.frame["prompt_hash"].tolist() == [p.hash for p in adapter.prompts]
    for name in ("trials.csv", "trials.parquet"):
        trials.save(tmp_path / name)
        pd.testing.assert_frame_equal(Trials.load(tmp_path / name).frame, trials.frame)


def test_many_sessions_are_those_lived_one_by_one_whatever_the_concurrency():
    def together(concurrency):
        speaker = Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(malformed=0.2))
        lived = run_sessions_in(
            None, speaker, ENVIRONMENT, 5, 9, how=RunOptions(concurrency=concurrency)
        )
        return asyncio.run(lived).trials.frame

    pd.testing.assert_frame_equal(together(1), together(4))
    speaker = Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(malformed=0.2))
    alone = [asyncio.run(run_session(speaker, ENVIRONMENT, 9, i)) for i in range(5)]
    pd.testing.assert_frame_equal(Trials.concatenate(alone).frame, together(4))
