import subprocess
import sys

import pytest

from knownminds.environments import ENVIRONMENTS, InstrumentalLearning

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from knownminds.environments.formats.gymnasium_wrapper import GymnasiumEnvironment  # noqa: E402


@pytest.mark.filterwarnings("ignore:.*infinity")  # points that are normal know no bounds
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_wrapper_passes_the_checks_of_gymnasium(name):
    check_env(GymnasiumEnvironment(ENVIRONMENTS[name]()), skip_render_check=True)


def test_the_wrapper_lives_the_same_session_as_the_experiment():
    plain, wrapped = InstrumentalLearning(n_visits=2), GymnasiumEnvironment(InstrumentalLearning(2))
    seen, _ = plain.reset(seed=4)
    shown, _ = wrapped.reset(seed=4)
    over = False
    while not over:
        assert shown == seen
        seen, reward, over, _, _ = plain.step(1)
        shown, same, ended, _, _ = wrapped.step(1)
        assert (reward, over) == (same, ended)
    assert shown["trial"] == 8
    assert shown in wrapped.observation_space


def test_resets_without_a_seed_go_on_in_the_same_stream():
    def two_sessions():
        wrapped = GymnasiumEnvironment(InstrumentalLearning())
        wrapped.reset(seed=1)
        designs = []
        for _ in range(2):
            wrapped.reset()
            designs.append(wrapped.environment.design.table["payoffs"].tolist())
        return designs

    first, second = two_sessions()
    assert first != second
    assert [first, second] == two_sessions()


def test_a_missing_gymnasium_is_answered_with_the_line_that_installs_it():
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "try:\n    import knownminds.environments.formats.gymnasium_wrapper\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "knownminds[gymnasium]"' in done.stdout
