"""Headless Chromium, steered over its DevTools pipe: what a page shows and what it asks for."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from time import monotonic

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
WITHIN = 60.0  # seconds for any answer; machines may be busy
ERRORS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


class Chromium:
    """A browser without a window, and one page in it."""

    def __enter__(self):
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium reads commands from file 3 and answers in file 4; dash cannot move files above 9.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        words = [
            "bash",
            "-c",
            script,
            "bash",
            PROGRAM,
            *FLAGS,
            f"--user-data-dir={self._home.name}",
        ]
        self._process = subprocess.Popen(
            [*words, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._read, self._number, self._session, self.events = b"", 0, None, []
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._home.cleanup()

    def ask(self, method, **parameters):
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda got: got.get("id") == self._number)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, file, *, width=1100, height=1400, scheme="light", media="", query=""):
        """Load a file as on a screen so wide, in a colour scheme."""
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        self.ask("Page.navigate", url=file.resolve().as_uri() + query)
        self._until(lambda got: got.get("method") == "Page.loadEventFired")

    def value(self, script):
        """Return what a script says of the page."""
        reply = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def screenshot(self):
        """Return the window as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])

    def printed(self):
        """Return the page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF")["data"])

    @property
    def asked_for(self):
        """Addresses of the requests of the page."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    @property
    def complaints(self):
        """The lines of the console."""
        return [event for event in self.events if event["method"] in ERRORS]

    def _until(self, wanted):
        ends = monotonic() + WITHIN
        while True:
            message, zero, rest = self._read.partition(b"\0")
            if not zero:
                ready, _, _ = select.select([self._in], [], [], max(ends - monotonic(), 0))
                assert ready, f"Chromium gave no answer in {WITHIN:g} s"
                read = os.read(self._in, 1 << 16)
                assert read, "Chromium ended"
                self._read += read
                continue
            self._read = rest
            got = json.loads(message)
            if "method" in got:
                self.events.append(got)
            if wanted(got):
                return got
