"""A local server for each of several "models": known minds of a plan that play all of its cells."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

from knownminds.agents import AGENTS, Contaminants
from knownminds.llm_adapters.adapter import Rejected
from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.known_minds.synthetic import Synthetic
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.benchmarks.plan import theta_of

REFUSING = Contaminants(refusal=0.2)


class Minds:
    """A known mind of a plan in all of its experiments: whose prompt it is tells which one."""

    def __init__(self, plan, name, contaminants=None, repeats=False):
        self.agent, self.repeats, self.first = name, repeats, None
        self.each = []
        for cell in plan.cells:
            mind = plan.mind(name, cell)
            if mind is not None:
                theta = theta_of(mind, cell.environment)
                actions = cell.environment.n_actions
                agent = AGENTS[mind["model"]].from_theta(theta, actions=actions)
                one = Synthetic(
                    agent, cell.environment, plan.seed, *RUN, contaminants=contaminants,
                    stream=cell.stream,
                )  # fmt: skip
                self.each.append(one)

    def answer(self, prompt, settings):
        for mind in list(self.each):
            own = settings
            if mind.agent.given != "action":  # numbers are drawn as they are
                own = replace(settings, temperature=None, top_p=None)
            try:
                reply = mind.answer(prompt, own)
            except Rejected:
                continue
            self.each.remove(mind)
            self.each.insert(0, mind)  # the next prompt is likely of the same experiment
            self.first = self.first or reply
            return replace(reply, text=self.first.text) if self.repeats else reply
        raise Rejected("This is a prompt of no experiment of the plan.")


@contextmanager
def serving(plan, **models):
    """Serve models by name, each (known mind, contaminants, repeats); give their servers."""
    place = next(cell for cell in plan.cells if plan.mind(next(iter(plan.known)), cell))
    mind = plan.mind(next(iter(plan.known)), place)
    theta = theta_of(mind, place.environment)
    agent = AGENTS[mind["model"]].from_theta(theta, actions=place.environment.n_actions)
    with ExitStack() as stack:
        found = {}
        for name, (known, contaminants, repeats) in models.items():
            one = Served(place.environment, agent, seed=plan.seed, address=RUN, model=name)
            one._endpoint.mind = Minds(plan, known, contaminants, repeats)
            found[name] = stack.enter_context(one)
        yield found


def with_models(text, servers, images=()):
    """Return a plan with the addresses of servers."""
    for name, server in servers.items():
        text += f'\n[models."openai:{name}"]\nbase_url = "{server.base_url}"\nprice = "1,2"\n'
        text += f"images = {'true' if name in images else 'false'}\n"
    return text
