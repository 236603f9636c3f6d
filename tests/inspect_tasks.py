"""How tests evaluate a task of Inspect's against a local server."""

import gc
import warnings

from inspect_ai import eval as eval_task
from inspect_ai.model import get_model


def evaluate(task, base_url, folder, **options):
    """Evaluate a task with a model behind an address, and return the log."""

    model = get_model(
        "openai-api/ours/known-agent",
        base_url=base_url,
        api_key="none",
        memoize=False,
        max_retries=0,
    )
    given = {
        "display": "none",
        "log_dir": str(folder),
        "log_level": "error",
        "log_realtime": False,
        **options,
    }
    with warnings.catch_warnings():
        # Inspect leaves its connections to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        [log] = eval_task(task, model=model, **given)
        del model
        gc.collect()
    return log
