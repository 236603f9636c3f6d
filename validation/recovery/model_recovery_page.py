"""The page of a model-recovery study: words, tables and figures."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from knownminds.validation.engine.verdicts import (
    ABOVE_CHANCE,
    CONFUSED_SHARE,
    LEAST_DATA_SETS,
    RECOVERABLE_SHARE,
)
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    counted,
    listed,
    number,
    table,
)

from .model_recovery import (
    CRITERIA,
    MASS,
    Confusion,
    ModelRecovery,
    Shares,
)

MATRICES = ("confusion", "inversion")
MEANINGS = ("p(best fit | simulated)", "p(simulated | best fit)")


def model_recovery_page(recovery: ModelRecovery) -> Page:
    """Return the page of a model-recovery study."""
    study, cell = recovery.study, recovery.study.cells[0]
    held = listed({c.model: dict(c.truth) for c in study.cells if c.truth})
    lapse = f"; lapse rate {cell.lapse:g}" if cell.lapse else ""
    fitted = cell.options["lapse_in"]
    asked = [
        *about_experiment(cell),
        ("trials per session", str(cell.make().n_trials)),
        ("sessions per subject", str(cell.sessions)),
        ("models", ", ".join(recovery.models)),
        ("compared by", ", ".join(CRITERIA[name][0] for name in recovery.criteria)),
        ("true values", f"drawn from the priors{', but ' + held if held else ''}{lapse}"),
        *([("lapse rate fitted in", ", ".join(fitted))] if fitted else []),
        (
            "data sets",
            f"{study.replicates:,} of each model, each of {counted(cell.subjects, 'subject')}",
        ),
        ("seed", str(study.seed)),
        about_time(recovery.seconds),
    ]
    several = len(recovery.confusions) > 1
    return Page(
        title=f"Does {cell.environment} tell {_all_of(recovery.models)} apart?",
        asked=asked,
        findings=[
            Finding.of(f"{model} by {CRITERIA[c.criterion][0]}" if several else model, verdict)
            for c in recovery.confusions
            for model, verdict in zip(c.models, c.verdicts, strict=True)
        ],
        sentences=[recovery.missed],
        notes=[
            *recovery.notes,
            f"{MASS:.0%} intervals in brackets. Data sets without a winner and data sets that one "
            "of the models could not be fitted to stay in the denominators; models are equally "
            "probable beforehand.",
            f"Recoverable: both shares on the diagonals are {RECOVERABLE_SHARE} or more; weak: at "
            f"least {ABOVE_CHANCE} above chance; where the interval of one holds a limit, the "
            "verdict is between two words. Taken for another: the interval of that share begins "
            f"above {CONFUSED_SHARE}. At least {LEAST_DATA_SETS} data sets are needed.",
        ],
        tables=[table for c in recovery.confusions for table in _tables(c)],
        figures=[
            (
                f"{CRITERIA[c.criterion][0]}: confusion matrix (left, rows sum to 1 but for "
                "undecided and failed data sets) and inversion matrix (right, columns sum to 1). "
                "Rows: simulated; columns: best fit.",
                matrices(c),
            )
            for c in recovery.confusions
        ],
        command=study.command_line(),
        versions=recovery.versions,
    )


def _all_of(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _tables(confusion: Confusion) -> list[Table]:
    title, _ = CRITERIA[confusion.criterion]
    models = confusion.models
    each = range(len(models))
    simulated = ("simulated", lambda i: models[i])
    tables = []
    for name, meaning in zip(MATRICES, MEANINGS, strict=True):
        shares: Shares = getattr(confusion, name)
        columns = [(model, partial(_share, shares, j)) for j, model in enumerate(models)]
        tables.append(table(f"{title}: {meaning}", each, simulated, *columns))
    counts = {
        "data sets": confusion.n,
        "best fitted by itself": confusion.counts.diagonal(),
        "undecided": confusion.undecided,
        "failed": confusion.failed,
    }
    if confusion.criterion == "loo":
        counts["poor Pareto k"] = confusion.unreliable
    columns = [(head, partial(_count, values)) for head, values in counts.items()]
    verdict = ("verdict", lambda i: confusion.verdicts[i].word)
    return [*tables, table(f"{title}: data sets", each, simulated, *columns, verdict)]


def _count(values: NDArray[np.int64], i: int) -> str:
    return f"{values[i]:,}"


def _share(shares: Shares, j: int, i: int) -> str:
    value, low, high = (matrix[i, j] for matrix in (shares.value, shares.low, shares.high))
    return "-" if value != value else f"{number(value, 2)} [{number(low, 2)}, {number(high, 2)}]"


def matrices(confusion: Confusion) -> str:
    """Draw the confusion and the inversion matrix, with the share in each cell."""
    models, m = confusion.models, len(confusion.models)
    figure, axes = draw.panels(2)
    figure.set_size_inches(3.4 + 1.5 * m, 1.5 + 0.5 * m)
    for axis, name, meaning in zip(axes, MATRICES, MEANINGS, strict=True):
        rows = models if name == "confusion" else [""] * m
        draw.heat_map(axis, getattr(confusion, name).value, rows, models)
        draw.entitle(axis, meaning)
        axis.set_xlabel("best fit")
    axes[0].set_ylabel("simulated")
    return draw.svg(figure)
