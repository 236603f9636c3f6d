import dataclasses
import json
import re
import shlex
import shutil
from datetime import date
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from knownminds.environments import Trials, make
from knownminds.validation import report as reports
from knownminds.validation.calibration.calibration import calibrate
from knownminds.validation.calibration.rank_uniformity import judge
from knownminds.validation.channel.channel_study import channel
from knownminds.validation.cli import main
from knownminds.validation.costs.budget import budget
from knownminds.validation.costs.priced_designs import DesignPower
from knownminds.validation.data.fit import fit, read_fit
from knownminds.validation.engine import engine as running
from knownminds.validation.engine.arguments import resolve_model
from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.engine.simulated_data import simulated_data
from knownminds.validation.engine.study import Study
from knownminds.validation.engine.verdicts import Word, judge_size
from knownminds.validation.pages.figures import ON_LIGHT, heat_map, size_curves, spaced
from knownminds.validation.pages.page import tone
from knownminds.validation.pages.tables import latex
from knownminds.validation.power.audit import audit
from knownminds.validation.power.power_study import power
from knownminds.validation.power.smallest_design import smallest_design
from knownminds.validation.recovery.model_recovery import confuse
from knownminds.validation.recovery.parameter_recovery import recover
from knownminds.validation.recovery.recovery_surface import recovery_surface
from knownminds.validation.report import (
    page_of,
    read_result,
    read_what_is_there,
    render,
    report,
    with_source,
)

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner"
EFFECT = {"optimism_bias": 0.4}
DAY = date(2026, 11, 1)
DESIGNS = (DesignPower(1, 4, 24, 0.31, 0.02), DesignPower(1, 8, 24, 0.57, 0.02))
STUDIES = ("recovery", "surface", "calibration", "power", "search", "audit", "confusion", "channel")
KINDS = (*STUDIES, "budget", "fit")
FIGURES = {
    "recovery": 3,
    "surface": 3,
    "calibration": 1,
    "power": 1,
    "search": 1,
    "audit": 2,
    "confusion": 2,
    "channel": 1,
    "budget": 3,
    "fit": 2,
}


def study_of(kind, **out):
    return {
        "recovery": lambda: recover(PLACE, MODEL, subjects=60, intervals="laplace", **out),
        "surface": lambda: recovery_surface(
            PLACE,
            MODEL,
            subjects=(40,),
            sessions=(1, 2),
            trials=(24, 48),
            intervals="laplace",
            **out,
        ),
        "channel": lambda: channel(
            PLACE, MODEL, contaminants=("none", "refusal=0.1"), subjects=4, trials=24, **out
        ),
        "calibration": lambda: calibrate(PLACE, MODEL, replicates=40, trials=24, **out),
        "power": lambda: power(
            PLACE, EFFECT, sessions=(4, 8), trials=24, replicates=20, truth={"beta": 4.5}, **out
        ),
        "search": lambda: smallest_design(
            PLACE, {"optimism_bias": 0.8}, target=0.4, trials=24, most=60, replicates=60, **out
        ),
        "audit": lambda: audit(
            "optimism_bias", effects=(0.2,), subjects=5, trials=(24, 48), replicates=100, **out
        ),
        "confusion": lambda: confuse(PLACE, [MODEL, "random_responder"], replicates=20, **out),
    }[kind]()


@pytest.fixture(scope="module")
def trials():
    return simulated_data(resolve_model(MODEL), make(PLACE), subjects=30, seed=2)


@pytest.fixture(scope="module")
def fitted(trials):
    return fit(trials, MODEL, workers=1)


@pytest.fixture(scope="module")
def priced():
    llms = ["openai:gpt-4o", "mine:own"]
    own = {"mine:own": {"input": "0.5", "output": 2, "cached_input": 0.125}}
    place = make(PLACE, n_visits=6, history="chat")
    return budget(
        place,
        llms,
        subjects=3,
        reasoning_tokens=(5, 60),
        prices=own,
        date=DAY,
        designs=DESIGNS,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory, fitted, priced):
    found = {}
    for kind in STUDIES:
        folder = tmp_path_factory.mktemp(kind) / "s"
        found[kind] = folder, study_of(kind, out=folder, workers=1)
    for kind, result in (("fit", fitted), ("budget", priced)):
        folder = tmp_path_factory.mktemp(kind)
        result.save(folder)
        found[kind] = folder, result
    return found


@pytest.fixture(scope="module")
def pages(results):
    return {kind: page_of(result) for kind, (_, result) in results.items()}


@pytest.fixture(scope="module")
def drawn(results, pages):
    return {kind: render(with_source(page, results[kind][0])) for kind, page in pages.items()}


def html(result):
    return render(page_of(result))


def text_of(page):
    """What a reader reads of a page, without its figures."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<svg.*?</svg>", "", page)))


def pictures(page):
    """The figures of a page, without the dots that lie in them as pixels."""
    figures = re.findall(r"(?s)<svg.*?</svg>", page)
    return [re.sub(r'base64,[^"]+|aria-label="[^"]+"', "", svg) for svg in figures]


def nothing_is_computed(*_, **__):
    raise AssertionError("a report computes nothing")


# What all pages have in common


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_drawn_from_the_folder_alone_and_always_the_same(
    results, drawn, kind, monkeypatch
):
    folder, _ = results[kind]
    monkeypatch.setattr(running, "_finish", nothing_is_computed)
    page = report(folder)
    assert page == folder / "report.html"
    assert page.read_text(encoding="utf-8") == drawn[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fetches_nothing_and_has_its_figures(drawn, kind):
    page = drawn[kind]
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|url\((?!#)|@import", page)
    assert not re.search(r"<script[^>]+src", page)
    assert len(pictures(page)) == FIGURES[kind] == page.count("<figcaption>")
    for picture in pictures(page):
        assert not re.search(r"href=\"(?!#|data:)", picture)
        assert "nan" not in picture


@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_of_a_table_holds_what_is_no_number(pages, kind):
    for title, head, rows in pages[kind].tables:
        assert rows, title
        for row in rows:
            assert len(row) == len(head), title
            assert not {"nan", "None", "inf"} & set(" ".join(row).split()), (title, row)


@pytest.mark.parametrize("kind", STUDIES)
def test_the_command_on_the_page_is_that_of_the_study(results, pages, kind, monkeypatch):
    folder, result = results[kind]
    found = []
    monkeypatch.setattr(running, "_finish", nothing_is_computed)  # all of it is there already
    monkeypatch.setattr(reports, "write_report", lambda result, _: found.append(result))
    words = [*shlex.split(pages[kind].command)[1:], "--out", str(folder)]
    # A folder goes on only with the very study that it holds.
    main_done(words)
    assert found[0].to_json() == result.to_json()
    with pytest.raises(SystemExit):
        main_done([*words, "--seed", "1"])


def main_done(words):
    try:
        main(words)
    except SystemExit as end:
        if end.code:
            raise


def test_the_command_on_the_page_reckons_the_budget_again(results, pages, tmp_path):
    folder, result = results["power"]
    command = pages["budget"].command
    words = shlex.split(command)[1:]
    assert words[-2:] == ["--power", "FOLDER"]
    main_done([*words[:-2], "--out", str(tmp_path)])
    again = read_result(tmp_path)
    assert dataclasses.replace(results["budget"][1], designs=()) == again
    main_done([*words[:-1], str(folder), "--out", str(tmp_path)])
    assert len(read_result(tmp_path).designs) == 2 * len(result.designs)
    assert page_of(dataclasses.replace(again, dry_runs=3)).command == ""  # no option says so


def test_markup_in_names_is_escaped(fitted):
    page = html(dataclasses.replace(fitted, source="<script>alert(1)</script>.csv"))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("kind", [kind for kind in STUDIES if kind != "search"])
def test_a_study_in_which_everything_failed_still_has_a_page(results, kind, tmp_path):
    folder = shutil.copytree(results[kind][0], tmp_path / "s")
    n = 0
    (folder / "parts.sha256").unlink()  # which would tell that they were edited
    for part in (folder / "parts").iterdir():
        kept = ("cell", "replicate", "subject", "seconds")
        rows = pd.read_parquet(part)
        rows = rows[[c for c in kept if c in rows]].assign(status="failed", message="planted")
        rows.to_parquet(part, index=False, write_page_checksum=True)
        n += len(rows)
    page = html(read_result(folder))
    assert "planted" in page
    assert 'class="good"' not in page
    if kind in ("recovery", "calibration"):
        assert f"failed {n} 100.0%" in text_of(page)


def test_every_verdict_has_a_colour_but_for_what_is_not_judged():
    colours = {word: tone(word) for word in get_args(Word)}
    assert colours.pop("not judged") == ""
    assert set(colours.values()) == {"good", "fair", "bad"}
    assert {word for word, colour in colours.items() if colour == "good"} == {
        "recoverable",
        "size holds",
        "confirmed",
    }
    assert tone("calibrated") == "good"
    assert tone("biased high, over-confident") == "bad"
    assert tone("96") == ""


# What each page says


def test_a_recovery_page_has_verdicts_scores_and_regions(results, drawn):
    recovery = results["recovery"][1]
    page = text_of(drawn["recovery"])
    for s in recovery.parameters:
        assert f"{s.name} {s.verdict.word}. {' '.join(s.verdict.reasons)}" in page
        for score in (s.bias, s.rmse, s.r, s.concordance, s.shrinkage, s.width["90"]):
            assert str(score) in page
        for region in s.regions:
            told = f"{region.n} {region.bias} {region.relative_error} {region.relative_width} "
            told += str(region.coverage)
            assert f"{told} {region.verdict.word}" in page
    assert "below" in page  # a region of kappa has no lower end
    assert "inf" not in page.split()
    assert "ok 5" in page or "ok 6" in page


def test_a_surface_answers_for_each_parameter_with_a_colour(results, drawn):
    surface = results["surface"][1]
    page = drawn["surface"]
    for name, answer in zip(surface.parameters, surface.answers(), strict=True):
        assert answer.replace(": ", " ", 1) in text_of(page)
        word = surface.recoveries[-1][name].verdict.word  # of the largest design
        assert f'<li class="{tone(word)}"><strong>{name}</strong>' in page
    for (n, k, t), recovery in zip(surface.sizes, surface.recoveries, strict=True):
        for s in recovery.parameters:
            told = f"{s.name} {n} {k} {t} {s.bias} {s.rmse} {s.r} {s.coverage['90']} "
            assert f"{told}{recovery.failed} {s.verdict.word}" in text_of(page)
    heat = pictures(page)[2]
    widths = [g.relative_width.value for g in surface.recoveries[0].parameters[0].regions]
    assert all(f">{width:.2f}<" in heat for width in widths)
    assert "40 x 2 x 48" in heat


def test_what_a_session_cannot_tell_is_on_the_page(results):
    recovery = results["recovery"][1]
    told = dataclasses.replace(recovery, identifiability=("beta: not at all",))
    assert "One session: beta: not at all." in html(told)
    surface = results["surface"][1]
    recoveries = tuple(
        dataclasses.replace(one, identifiability=("beta: not at all",))
        for one in surface.recoveries
    )
    page = html(dataclasses.replace(surface, recoveries=recoveries))
    assert page.count("One session of 24 trials: beta: not at all.") == 1


def test_a_calibration_page_has_a_word_for_each_quantity(results, drawn):
    calibration = results["calibration"][1]
    rng = np.random.default_rng(0)
    ranks = {
        "right": rng.integers(0, 100, 200),
        "narrow": (100 * rng.beta(0.4, 0.4, 200)).astype(int),
        "wide": (100 * rng.beta(3, 3, 200)).astype(int),
        "few": rng.integers(0, 100, 15),
    }
    judged = {name: judge(found, 99, 0.0125) for name, found in ranks.items()}
    page = html(dataclasses.replace(calibration, quantities=judged))
    tones = {"calibrated": "good", "over-confident": "bad", "under-confident": "bad"}
    words = [u.word for u in judged.values()]
    assert words == [*tones, "not judged"]
    for name, u in judged.items():
        said = f'<li class="{tones.get(u.word, "")}"><strong>{name}</strong> {u.word}.'
        assert said in page
        assert name in pictures(page)[0]
    u = judged["narrow"]
    told = f"narrow 200 {u.mean:.3f} ({u.mean_error:.3f}) {u.spread:.2f} ({u.spread_error:.2f})"
    assert f"{told} {u.gamma:.2g} {u.p_value:.3f} outside" in text_of(page)
    u = judged["right"]
    told = f"inside {u.chi_square:.1f} ({u.bins} bins) {u.chi_square_p:.3f} calibrated"
    assert f"{u.gamma:.2g} {u.p_value:.3f} {told}" in text_of(page)
    for quantity in calibration.quantities:
        assert f"<strong>{quantity}</strong>" in drawn["calibration"]


def test_a_power_page_has_every_design_and_names_the_sampling_unit(results, drawn):
    found = results["power"][1]
    page = text_of(drawn["power"])
    for d in found.designs:
        head = f"1 {d.cell.sessions} 24 {d.rejected}"
        assert head in page
        assert f"{d.width} {d.bias} {d.coverage} {d.failed} {d.excluded}" in page
    assert "The sampling unit is a repeat: sessions of one mind." in page
    assert "those of the priors, but beta: 4.5" in page


def test_designs_of_one_mind_and_of_several_have_each_their_sampling_unit(results):
    found = results["power"][1]
    group = dataclasses.replace(
        found.designs[0], cell=dataclasses.replace(found.designs[0].cell, subjects=9)
    )
    page = html(dataclasses.replace(found, designs=(*found.designs, group)))
    assert "Designs of one mind: The sampling unit is a repeat" in page
    assert "Designs of several subjects: The sampling unit is a participant" in page


def test_failed_data_sets_are_said_with_their_reason(results):
    found = results["power"][1]
    lost = dataclasses.replace(found.designs[1], failed=3, messages={"planted": 3})
    page = text_of(html(dataclasses.replace(found, designs=(found.designs[0], lost))))
    assert "1 x 8 x 24 (subjects, sessions, trials): 3 of 20 data sets failed" in page
    assert "3 x planted" in page


def test_a_search_shows_its_way_its_answer_and_the_fresh_run(results, drawn):
    folder, found = results["search"]
    assert found.size is not None
    page = drawn["search"]
    word = "confirmed" if found.confirmed else "not confirmed"
    assert f'<li class="{tone(word)}"><strong>The answer is</strong> {word}.' in page
    text = text_of(page)
    assert f"{found.size} sessions are the smallest number for 40% power" in text
    assert f"fresh run {found.size} 60 {found.design.rejected}" in text
    for step in found.steps:
        assert f"search {step.cell.sessions} 100 {step.rejected}" in text
    assert f">{found.size}<" in pictures(page)[0]  # a tick
    assert "sessions of one mind" in text
    for name in ("step-00", "confirmation-0"):
        step = text_of(report(folder / name).read_text())
        assert f"One step ({name}) of a search" in step
        assert "The power is 0." in step


def test_a_search_without_an_answer_says_so():
    found = smallest_design(
        PLACE, {"optimism_bias": 0.1}, trials=24, most=10, replicates=20, workers=1
    )
    page = html(found)
    assert found.size is None
    assert '<li class="bad"><strong>No number of sessions up to 10</strong> reaches 80%' in page
    assert found.message in text_of(page)
    assert "fresh run" not in pictures(page)[0]


def test_an_audit_page_judges_the_size_and_shows_power_and_bias(results, drawn):
    found = results["audit"][1]
    page = drawn["audit"]
    for entry in found.null:
        verdict = found.verdicts[entry.trials]
        said = f'<li class="{tone(verdict.word)}"><strong>{entry.trials} trials</strong>'
        assert f"{said} {verdict.word}." in page
        # 5% up to 1.96 standard errors of 100 data sets: .05 -+ 1.96 sqrt(.05 x .95 / 100)
        assert f"{entry.trials} {entry.rejected} 0.7% to 9.3% 100" in text_of(page)
    for entry in found.entries:
        scores = (entry.rejected, entry.bias, entry.spread, entry.standard_error, entry.coverage)
        assert f"{entry.trials} {' '.join(map(str, scores))}" in text_of(page)
    bad = {trials: judge_size(0.2, 100) for trials in found.verdicts}
    assert '<li class="bad"><strong>24 trials</strong> too many false alarms.' in html(
        dataclasses.replace(found, verdicts=bad)
    )
    alone = dataclasses.replace(found, violators=())
    assert len(pictures(html(alone))) == 1


def test_a_budget_page_has_the_dated_prices_and_the_frontier(results, drawn):
    found = results["budget"][1]
    page = drawn["budget"]
    text = text_of(page)
    for cost in found.costs:
        tokens = f"{found.usage.input_tokens} {found.usage.output_tokens}"
        assert f"{cost.price.llm} {found.usage.calls} {tokens} {cost.dollars}" in text
        assert f"{cost.price.source} 2026-11-01" in text
        assert cost.price.llm in pictures(page)[0]
    assert "mine:own 0.5 2 0.125 given by the user" in text
    for row in found.designs:
        told = f"{row.design.power:.3f} ({row.design.power_error:.3f}) {row.dollars}"
        assert f"{row.calls} {told} {row.power_per_dollar:.3g} frontier" in text
    assert len(pictures(html(dataclasses.replace(found, designs=())))) == 2


def test_what_is_free_has_a_budget_page_too():
    free = {"local:own": {"input": 0, "output": 0}}
    found = budget(PLACE, "local:own", prices=free, trials=8, designs=DESIGNS, date=DAY)
    assert "local:own costs $0.00." in html(found)


def test_a_model_recovery_page_has_both_matrices_with_intervals(results, drawn):
    found = results["confusion"][1]
    page = drawn["confusion"]
    text = text_of(page)
    for confusion, picture in zip(found.confusions, pictures(page), strict=True):
        for shares in (confusion.confusion, confusion.inversion):
            for i, j in np.ndindex(2, 2):
                value, low, high = (m[i, j] for m in (shares.value, shares.low, shares.high))
                assert f"{value:.2f} [{low:.2f}, {high:.2f}]" in text
                assert f">{value:.2f}<" in picture
        name = {"aic": "AIC", "bic": "BIC"}[confusion.criterion]
        for model, verdict in zip(confusion.models, confusion.verdicts, strict=True):
            said = f'<li class="{tone(verdict.word)}"><strong>{model} by {name}</strong>'
            assert f"{said} {verdict.word}." in page


# Figures


def test_the_size_with_most_values_goes_along_the_axis_and_the_others_are_curves():
    axis = Figure().add_subplot()
    sizes = [(9, k, t) for k in (1, 2) for t in (96, 24, 48)]
    size_curves(axis, sizes, [Score(float(i), 0.5) for i in range(6)])
    assert axis.get_xlabel() == "trials"
    first, second = axis.get_lines()
    assert [first.get_label(), second.get_label()] == ["1 session", "2 sessions"]
    assert list(first.get_xdata()) == [24, 48, 96]
    assert list(first.get_ydata()) == [1, 2, 0]
    assert first.get_linestyle() != second.get_linestyle()  # for prints without colour
    assert first.get_marker() != second.get_marker()
    bars = [path.vertices.tolist() for path in axis.collections[0].get_paths()]
    assert bars[0] == [[24, 0], [24, 2]]  # 2 standard errors to either side


def test_ticks_keep_clear_of_each_other_but_the_answer_has_one():
    assert spaced([8, 32, 71, 72, 73, 74, 81], log=True) == [8, 32, 71]
    assert spaced([8, 32, 71, 72, 73, 74, 81], 74, log=True) == [8, 32, 74]
    assert spaced([5, 5], log=True) == [5]


def test_each_cell_of_a_heat_map_has_its_number():
    axis = Figure().add_subplot()
    heat_map(axis, np.array([[0.9, np.nan], [0.1, 0.25]]), ["a", "b"], ["c", "d"])
    assert [text.get_text() for text in axis.texts] == ["0.90", "-", "0.10", "0.25"]
    assert [text.get_color() for text in axis.texts] == ["white", *[ON_LIGHT] * 3]


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    """The folder of a power study, drawn anew elsewhere."""
    folder = tmp_path_factory.mktemp("written") / "s"
    shutil.copytree(results["power"][0], folder, ignore=shutil.ignore_patterns("*.html", "figures"))
    report(folder)
    return folder


def test_every_figure_is_there_as_svg_png_and_numbers(written, results):
    (caption, _), *_ = page_of(results["power"][1]).figures
    name = "1-share-of-data-sets-that-reject"
    assert caption.startswith("Share of data sets that reject (")
    files = {file.name for file in (written / "figures").iterdir()}
    assert files == {f"{name}.{kind}" for kind in ("svg", "png", "pdf", "csv")}
    assert (written / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    with Image.open(written / "figures" / f"{name}.png") as picture:
        assert picture.format == "PNG"
        shades = np.asarray(picture.convert("L"))
        assert min(picture.size) > 300
        assert 0.005 < (shades < 128).mean() < 0.5  # ink on paper
    assert (written / "figures" / f"{name}.svg").read_text().startswith("<?xml")


def test_every_table_is_there_as_csv_latex_and_markdown(written, results):
    (_, head, rows), *_ = page_of(results["power"][1]).tables
    (file,) = (written / "tables").glob("1-*.csv")
    plain = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert plain.columns.tolist() == list(head)
    # what begins with a minus and is no number is kept from being a formula, see `csv_cells`
    assert [[c.removeprefix("'") for c in row] for row in plain.to_numpy().tolist()] == [
        list(row) for row in rows
    ]
    marked = file.with_suffix(".md").read_text().splitlines()
    assert len(marked) == len(rows) + 2
    assert [cell.strip() for cell in marked[2].strip("|").split("|")] == list(rows[0])
    printed = file.with_suffix(".tex").read_text()
    assert printed.count(r"\\") == len(rows) + 1
    assert printed.count("{") == printed.count("}")
    assert latex("a_b & 50%", ["x"], [["$"]]).count("\\") > 5


def test_a_result_is_short_as_a_line_and_drawn_and_summed_up(results):
    for _, result in results.values():
        assert len(repr(result)) < 160
        assert "\n" not in repr(result)
        assert len(result.summary()) >= 1
    assert results["power"][1].plot().axes
    with pytest.raises(ValueError, match="got number=99"):
        results["power"][1].plot(99)


def test_the_numbers_of_a_figure_are_those_of_the_study(written, results):
    found = pd.read_csv(next((written / "figures").glob("*.csv")))
    designs = results["power"][1].designs
    curve = found[(found["panel"] == "power") & (found["mark"] == "line")]
    assert curve["x"].tolist() == [design.cell.sessions for design in designs]
    assert curve["y"].tolist() == pytest.approx([design.rejected.value for design in designs])
    bars = found[(found["panel"] == "power") & (found["mark"] == "interval")]
    reach = [4 * design.rejected.error for design in designs]  # 2 standard errors to either side
    assert (bars["y_to"] - bars["y"]).tolist() == pytest.approx(reach)
    limits = found[(found["panel"] == "power") & (found["mark"] == "limit")]
    assert limits["y"].tolist() == [0.8]
    assert limits["x"].isna().all()


def test_the_page_of_a_study_names_the_code_that_computed_it(drawn, results):
    folder, found = results["power"]
    source = json.loads((folder / "study.json").read_text())["source"]
    assert f"source {source[:12]}" in drawn["power"]
    assert "source" not in found.versions


# Folders


def test_a_folder_without_a_result_is_refused_with_what_was_looked_for(tmp_path):
    with pytest.raises(ValueError, match=r"study.json, .* or a ledger.sqlite; .* none"):
        report(tmp_path)
    with pytest.raises(ValueError, match="none of them"):
        report(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_two_results_is_refused(results, tmp_path):
    folder = shutil.copytree(results["budget"][0], tmp_path / "b")
    results["fit"][1].save(folder)
    with pytest.raises(ValueError, match=r"has fit\.json and budget\.json\. Each result needs"):
        report(folder)


def test_an_unknown_kind_of_study_is_named_with_the_nearest(results, tmp_path):
    folder = shutil.copytree(results["recovery"][0], tmp_path / "s")
    change(folder / "study.json", command="recovr")
    with pytest.raises(ValueError, match=r"'recovr'.*recover"):
        report(folder)


def begun(folder, parts, to):
    """A copy of a study in which only some parts are there."""
    copy = shutil.copytree(folder, to / "s", ignore=shutil.ignore_patterns("*.html", "figures"))
    for file in copy.rglob("*.parquet"):
        if file.name not in parts:
            file.unlink()
    return copy


def parts_of(folder, cells):
    study, _ = Study.read(folder)
    return [study.part_name(batch) for batch in study.batches() if batch.cell in cells]


@pytest.mark.parametrize("kind", STUDIES)
def test_what_is_begun_is_no_result_but_has_a_page_that_says_so(results, kind, tmp_path):
    folder = begun(results[kind][0], (), tmp_path)
    with pytest.raises(ValueError, match="not finished"):
        read_result(folder)
    text = text_of(html(read_what_is_there(folder)))
    assert "This study is not finished. " in text
    study, _ = Study.read(folder)
    units = sum(study.units(c) for c in range(len(study.cells)))
    told = "0 steps of the search are finished" if kind == "search" else f"0 of {units}"
    assert told in text
    assert "Nothing is judged yet" in text
    assert study.command_line() in text.replace("&#39;", "'").replace("&#34;", '"')


def test_scores_of_what_is_there_are_those_of_these_rows_alone(results, tmp_path):
    folder, surface = results["surface"]
    there = begun(folder, parts_of(folder, (0, 3)), tmp_path)
    found = read_what_is_there(there)
    assert (list(found.done), found.of) == ([40, 0, 0, 40], [40] * 4)
    kept = [surface.recoveries[c] for c in (0, 3)]
    for now, then in zip(found.result.recoveries, kept, strict=True):
        assert now.cell == then.cell
        assert now.parameters == then.parameters
    text = text_of(html(found))
    assert "80 of 160 fits are there" in text
    assert "All below is of what is there" in text
    assert "rescorla_wagner; 40 subjects x 1 session x 48 trials 0 40 40" in text
    missing = surface.recoveries[1]["alpha"]
    assert f"{missing.bias} {missing.rmse}" not in text


@pytest.mark.parametrize(("kind", "cells"), [("power", (1,)), ("audit", (0,)), ("channel", (0,))])
def test_designs_that_are_there_are_judged_as_in_the_end(results, kind, cells, tmp_path):
    folder, whole = results[kind]
    found = read_what_is_there(begun(folder, parts_of(folder, cells), tmp_path)).result
    entries = {"power": "designs", "audit": "entries", "channel": "entries"}[kind]
    now, then = getattr(found, entries), getattr(whole, entries)
    assert [str(one) for one in now] == [str(then[c]) for c in cells]
    assert text_of(html(found))


def test_what_needs_all_of_it_is_not_judged_before(results, tmp_path):
    folder, _ = results["confusion"]
    there = begun(folder, parts_of(folder, (0,)), tmp_path)
    found = read_what_is_there(there)
    assert found.result is None
    assert "20 of 40 fits are there" in str(found)
    folder, _ = results["audit"]
    violators = [c for c, cell in enumerate(Study.read(folder)[0].cells) if "effect" in cell.law]
    there = begun(folder, parts_of(folder, violators), tmp_path / "audit")
    assert read_what_is_there(there).result is None  # no minds without an effect yet


def test_a_search_under_way_shows_its_steps(results, tmp_path):
    folder, search = results["search"]
    last = f"confirmation-{len(list(folder.glob('confirmation-*'))) - 1}"
    names = {file.name for file in folder.rglob("*.parquet") if file.parent.parent.name != last}
    names.remove(next((folder / "step-00" / "parts").iterdir()).name)
    found = read_what_is_there(begun(folder, names, tmp_path))
    text = text_of(html(found))
    first, second = search.steps[:2]
    assert f"step-01 {second.cell.sessions} {second.rejected} 100 100" in text
    (there,) = found.steps["step-00"].done
    assert 0 < there < 100  # some batches of its only design
    so_far = found.steps["step-00"].result.designs[0]
    assert so_far.attempted == there
    assert f"step-00 {first.cell.sessions} {so_far.rejected} {there} 100" in text
    assert f"{last} - - 0 60" in text
    assert f"{len(found.steps) - 2} steps of the search are finished" in text


def test_the_command_draws_what_is_there_and_says_what_is_missing(results, tmp_path, capsys):
    folder = begun(results["power"][0], parts_of(results["power"][0], (0,)), tmp_path)
    main_done(["report", str(folder)])
    captured = capsys.readouterr()
    assert captured.out == f"{folder / 'report.html'}\n"
    assert "20 of 40 data sets are there. Run the same command again" in captured.err


@pytest.mark.parametrize(
    ("kind", "name"), [("recovery", "study.json"), ("budget", "budget.json"), ("fit", "fit.json")]
)
@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}'])
def test_a_damaged_or_foreign_file_is_refused(results, kind, name, content, tmp_path):
    folder = shutil.copytree(
        results[kind][0], tmp_path / "s", ignore=shutil.ignore_patterns("report.html")
    )
    (folder / name).write_text(content)
    with pytest.raises(ValueError, match=f"{name}.*(damaged|not a )"):
        report(folder)
    assert not (folder / "report.html").exists()


def change(file, **changed):
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


# Fits


def test_a_fit_reads_back_what_it_wrote(fitted, tmp_path):
    fitted.save(tmp_path)
    again = read_fit(tmp_path)
    assert again.to_json() == fitted.to_json()
    assert len(pd.read_csv(tmp_path / "estimates.csv")) == 30


def test_a_fit_page_has_group_support_and_subjects(fitted, drawn):
    page = drawn["fit"]
    text = text_of(page)
    for name, v in fitted.group.items():
        assert f"{name} {v.estimate:.3f} {v.low:.3f} to {v.high:.3f} {v.meaning}" in text
        verdict = fitted.support[name].verdict
        assert f'<li class="{tone(verdict)}"><strong>{name}</strong> {verdict}.' in page
        assert f'<td class="words {tone(verdict)}">{verdict}</td>' in page
    row = fitted.subjects.to_dict("records")[7]
    assert f"{row['subject']} 96 {row['alpha']:.2f} ({row['alpha_low']:.2f} to" in text


def test_a_fit_says_what_so_many_trials_support(fitted):
    text = " ".join(fitted.sentences)
    assert "What 96 trials per subject support" in text
    assert set(fitted.support) == {"alpha", "beta", "kappa"}
    assert all(0 <= s.reliability <= 1 for s in fitted.support.values())
    for name, value in fitted.group.items():
        assert value.low <= value.estimate <= value.high, name
    assert set(fitted.comparison) == {"rescorla_wagner", "random_responder"}
    assert sum(v["best_for"] for v in fitted.comparison.values()) == 30


@pytest.fixture
def small_check(monkeypatch):
    """Let the check of a fit's design, which is not what is asked about, rest on few learners."""
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 50)


@pytest.mark.usefixtures("small_check")
def test_chance_players_are_best_described_by_chance():
    random = simulated_data(resolve_model("random_responder"), make(PLACE), subjects=30)
    frame = random.frame.drop(columns=[c for c in random.frame if c.startswith("true_")])
    found = fit(Trials.from_frame(frame), "rescorla_wagner_dual", workers=1)
    assert found.comparison["random_responder"]["best_for"] > 25


def test_group_medians_do_not_depend_on_the_scale(fitted):
    for name, value in fitted.group.items():
        assert value.estimate == pytest.approx(np.median(fitted.subjects[name]))


@pytest.mark.usefixtures("small_check")
def test_constant_subjects_and_those_of_two_trials_get_a_status(trials):
    frame = trials.to_frame()
    always = frame["subject"] == "0"
    frame.loc[always, "action"] = 1
    keep = (frame["subject"] != "1") | (frame["trial"] < 2)
    for method in ("map", "mle"):
        found = fit(Trials.from_frame(frame[keep]), MODEL, method=method, workers=1)
        status = found.subjects.set_index("subject")["status"]
        assert status["1"] != "ok"
        assert status["0"] in ("ok", "boundary", "flat")
        assert html(found)
