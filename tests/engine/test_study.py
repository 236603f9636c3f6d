import pytest

from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.study import Study, claim, read_study, versions

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner"


def cell(**fields):
    return Cell(**{"environment": PLACE, "settings": {"n_visits": 2}, "model": MODEL} | fields)


# Seeds by content


def test_seeds_ignore_the_method_and_heed_the_design():
    key = cell().data_key
    for same in (
        cell(method="hierarchical"),
        cell(analysis=CellAnalysis(fixed={"kappa": 0.0})),
        cell(sessions=3),
        cell(subjects=50),
        cell(batch=7),
    ):
        assert same.data_key == key
    others = [
        cell(settings={"n_visits": 3}),
        cell(model="rescorla_wagner_dual"),
        cell(truth={"alpha": 0.2}),
        cell(truth={"alpha": 0.3}),
        cell(lapse=0.1),
        cell(population=Population(group="hyperprior")),
    ]
    assert len({key, *(other.data_key for other in others)}) == 1 + len(others)


# Units and batches


@pytest.mark.parametrize("unit", ["subject", "replicate"])
@pytest.mark.parametrize("batch", [1, 4, 512])
def test_batches_go_once_through_every_unit(unit, batch):
    cells = (cell(subjects=3, batch=batch), cell(subjects=5, batch=batch, lapse=0.1))
    study = Study("t", cells, 4, unit=unit)
    batches = list(study.batches())
    for c in range(2):
        units = [u for b in batches if b.cell == c for u in range(b.first, b.last)]
        assert units == list(range(study.units(c)))
    assert study.units(1) == (20 if unit == "subject" else 4)
    assert all(1 <= len(b) <= batch for b in batches)


# Identity


def test_a_study_is_read_back_as_it_was(tmp_path):
    cells = (
        cell(subjects=3, truth={"alpha": 1 / 3}, population=Population(group="hyperprior")),
        cell(batch=9),
    )
    study = Study("recover", cells, 2, 7, "replicate", {"trials": 8, "set": {"alpha": 1 / 3}})
    assert claim(study, tmp_path) == (versions(),)
    again, used = read_study(tmp_path)
    assert again == study
    assert [c.data_key for c in again.cells] == [c.data_key for c in cells]
    assert [again.part_name(b) for b in again.batches()] == [
        study.part_name(b) for b in study.batches()
    ]
    assert used == (versions(),)
