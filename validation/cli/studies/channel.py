"""`knownminds channel`."""

from __future__ import annotations

from knownminds.validation.channel.questions import AskChannel
from knownminds.validation.cli.study import study

study(AskChannel)
