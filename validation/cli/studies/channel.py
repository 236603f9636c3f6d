"""`knownminds channel`."""

from __future__ import annotations

from knownminds.validation.channel.questions import Channel
from knownminds.validation.cli.study import study

study(Channel)
