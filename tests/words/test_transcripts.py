import numpy as np
import pytest

from knownminds.environments import Duration, check_environment, make
from knownminds.environments.words.transcripts import load_recordings, our_cast

CAST = our_cast()


def test_the_cast_speaks_at_2_5_words_per_second_with_a_standard_deviation_of_a_tenth():
    assert len(CAST.names) == len(set(CAST.names)) >= 10
    assert np.mean(CAST.rates) == pytest.approx(2.5, abs=0.005)
    assert np.std(CAST.rates, ddof=1) / np.mean(CAST.rates) == pytest.approx(0.1, abs=0.005)


def test_remarks_have_the_number_of_words_that_they_stand_for():
    for n, known in enumerate(CAST.remarks, start=1):
        assert {len(remark.split()) for remark in known} == {n}


def test_a_dialogue_takes_the_time_that_its_words_take():
    place = Duration(repeats=1)
    place.reset(seed=3)
    table = place.design.table
    for t in range(place.n_trials):
        who = int(table["first"][t]), int(table["second"][t])
        words = int(table["words_first"][t]), int(table["words_second"][t])
        lines = CAST.dialogue(*who, words, int(table["script"][t]))
        assert who[0] != who[1]
        spoken = [
            sum(len(said.split()) for name, said in lines if name == CAST.names[k]) for k in who
        ]
        assert tuple(spoken) == words
        seconds = sum(n / CAST.rates[k] for n, k in zip(words, who, strict=True))
        assert CAST.seconds(lines) == table["value"][t] == pytest.approx(seconds, abs=0.005)


def test_dialogues_last_nearly_what_they_should():
    place = Duration()
    table = place.tables(np.random.default_rng(1).random((200, place.n_draws)))
    for window, (low, high) in enumerate(place.ranges.values()):
        targets = np.linspace(low, high, 11)
        values = table["value"][table["window"] == window]
        off = np.abs(values[:, None] - targets).min(axis=1)
        assert np.median(off) < 0.02  # s; one word takes 0.4
        assert np.percentile(off, 99) < 0.15
        assert off.max() < 0.25


def recordings(folder, n_files=2, step=2.0):
    """Write a meeting of three people, in which an utterance takes 1.7 s and then 0.3 s pass."""
    for f in range(n_files):
        lines = ["# a comment", ""]
        for i in range(60):
            start = f + i * step
            lines.append(f"{start:.2f}\t{start + 1.7:.2f}\t{'ABC'[i % 3]}\tthis is number {f} {i}")
        (folder / f"meeting{f}.txt").write_text("\n".join(lines), encoding="utf-8")
    return str(folder)


def test_excerpts_of_recordings_last_from_their_first_word_to_their_last(tmp_path):
    place = make("duration", transcripts=recordings(tmp_path), n_values=4, repeats=2)
    check_environment(place)
    observation, _ = place.reset(seed=0)
    prompt = place.render(observation, [])
    spoken = [line for line in prompt.text.split("\n") if "this is number" in line]
    assert observation["value"] == pytest.approx(2 * (len(spoken) - 1) + 1.7)
    values = place.design.table["value"]
    assert set(place.design.table["words_first"]) == {0}
    assert np.abs(values - np.round(values)).max() == pytest.approx(0.3)  # 2k + 1.7
    assert values.min() == pytest.approx(9.7)


def test_who_talks_at_the_same_time_is_counted_once(tmp_path):
    (tmp_path / "a.txt").write_text("0\t9\tAnn\ta long story\n1\t2\tBen\tyes\n3\t4\tBen\tno\n")
    found = load_recordings(str(tmp_path), 1.0, 20.0)
    durations, places = found.excerpts
    told = {tuple(p[1:]): d for d, p in zip(durations.tolist(), places.tolist(), strict=True)}
    assert told == {(0, 0): 9.0, (0, 1): 9.0, (0, 2): 9.0, (1, 1): 1.0, (1, 2): 3.0, (2, 2): 1.0}


def test_an_excerpt_that_stands_in_several_places_needs_one_duration(tmp_path):
    (tmp_path / "a.txt").write_text("0\t2\tAnn\tyes\n3\t5\tAnn\tyes\n6\t9\tAnn\tyes\n")
    found = load_recordings(str(tmp_path), 1.0, 20.0)
    with pytest.raises(ValueError, match=r"'Ann: yes' is in 2 of them"):
        found.seconds([("Ann", "yes")])
    with pytest.raises(ValueError, match=r"'Ann: no' is in none of them"):
        found.seconds([("Ann", "no")])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"There are no transcripts \(\*\.txt\) in .*A transcript is a \.txt file"),
        ("", "a.txt has none"),
        ("0\t2\tAnn\n", r"line 1 of a\.txt is '0\\t2\\tAnn'"),
        ("0\ttwo\tAnn\tyes\n", "line 1 of a.txt"),
        ("0\t2\tAnn\tyes\n1\t1\tBen\tno\n", "line 2 of a.txt goes from 1 to 1 s"),
        ("3\t4\tAnn\tyes\n1\t2\tBen\tno\n", "begins no earlier than the one before; line 2"),
        ("0\t2\tAnn: B\tyes\n", "without a colon in the name"),
        ("0\t2\t\tyes\n", "has a speaker"),
        ("0\t2\tAnn\tyes\n", "wanted that last 9.5 to 73.5 s; the 1 transcripts in .* have none"),
        ("0\t12\tAnn\tyes\n", "need excerpts of about 10 s; the nearest in .* lasts 12 s"),
        ("0\tnan\tAnn\tyes\n", "ends after it begins"),
    ],
)
def test_transcripts_that_cannot_be_used_are_told(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        make("duration", transcripts=str(tmp_path))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ValueError, match="there is none at"):
        make("duration", transcripts=str(tmp_path / "none"))
