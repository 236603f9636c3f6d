"""What is judged, a model in a file or by name, and the worst of the verdicts of a part."""

from __future__ import annotations

import inspect

from knownminds.agents import Model
from knownminds.validation.engine.arguments import resolve_model
from knownminds.validation.engine.members import load_file, members_of
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import Verdict


def model_of(model: type[Model] | str) -> type[Model]:
    """Return a model by its name, or the one in a Python file.

    Raises
    ------
    ValueError : If there is no such model, or a file holds none or several.
    """
    if not isinstance(model, str) or not model.endswith(".py"):
        return resolve_model(model)
    module = load_file(model)
    models = [one for one in members_of(module)
              if inspect.isclass(one) and issubclass(one, Model)]  # fmt: skip
    if len(models) == 1:
        return models[0]
    names = ", ".join(one.name for one in models)
    raise ValueError(
        f"The referee reads a file with one model, a class derived from Model; {model} has "
        + (f"{names}. Name one of them, with --plugin {model}." if models else "none.")
    )


def worst_of(name: str, result: Result, model: str) -> Verdict:
    """Return the worst verdict of a part, with what it is about; of rivals, that of the model."""
    about = {key: one for key, one in result.verdicts.items()
             if name != "rivals" or key.startswith(f"{model}, ")}  # fmt: skip
    if not about:
        return Verdict("not judged", ("there is no result",))
    order = ["predicts the same", "bad", "fair", "", "good"]  # a rival may predict the same

    def rank(verdict: Verdict) -> int:
        worst = Verdict(verdict.word.rpartition(" and ")[2])  # of "between weak and not identified"
        return order.index(worst.word if worst.word in order else worst.tone)

    key, verdict = min(about.items(), key=lambda item: rank(item[1]))
    others = [f"{one} {v.word}" for one, v in about.items() if one != key]
    first = verdict.reasons if len(about) == 1 else (f"{key} {'; '.join(verdict.reasons)}",)
    return Verdict(verdict.word, (*first, *others), verdict.more)
