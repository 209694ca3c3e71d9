"""A real Chromium without a window, driven through a pair of pipes.

Its DevTools protocol goes over two pipes as well as over a socket: so no client library and no
port are needed. Each message is JSON with a NUL at its end.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support import TIMEOUT

__all__ = ["Browser"]

LIMIT = 30  # seconds; only a failure uses them up

_FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests run as root in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
# Resolves when `what` is true; asked again at each change of the document.
_WHEN = """
new Promise((resolve, reject) => {{
  setTimeout(() => reject(new Error("it did not become true")), {limit});
  const look = () => {{ if ({what}) {{ observer.disconnect(); resolve(true); }} }};
  const observer = new MutationObserver(look);
  observer.observe(document, {{
    subtree: true, childList: true, characterData: true, attributes: true,
  }});
  look();
}})
"""


class Browser:
    """One page of a Chromium of its own; for one thread. A context manager.

    `program` is Chromium's path, and `profile` a directory that it may fill.
    """

    def __init__(self, program: str, profile: Path) -> None:
        commands, self._commands = os.pipe()
        answers, answers_end = os.pipe()
        # Chromium reads commands from 3 and writes answers to 4.
        pipes = f'exec "$@" 3<&{commands} 4>&{answers_end}'
        flags = [*_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", program, *flags],
            pass_fds=(commands, answers_end),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers_end)
        self._answers = os.fdopen(answers, "rb")
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._is_loaded = False
        self.console: list[str] = []  # errors and warnings of the page
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._commands)  # at which it ends
        self._answers.close()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and wait for what it returns."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def run(self, script: str) -> Any:
        """What the script evaluates to in the page; a promise is waited for."""
        result = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def when(self, what: str) -> None:
        """Wait until the expression is true, which it may become as the document changes.

        Raises `RuntimeError` when it did not for `LIMIT` seconds.
        """
        self.run(_WHEN.format(what=what, limit=LIMIT * 1000))

    def open(self, url: str) -> None:
        """Go there, and wait until all is loaded."""
        self._is_loaded = False
        self.call("Page.navigate", url=url)
        while not self._is_loaded:
            self._note(self._next())

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Have a screen of that many CSS pixels; narrow ones are telephones."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def dark(self, is_dark: bool) -> None:
        """Prefer dark colours, or light ones."""
        preference = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[preference])

    def picture(self, path: Path) -> None:
        """Save what is on the screen as PNG."""
        picture = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(picture["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            received = os.read(self._answers.fileno(), 1 << 20)
            if not received:
                raise RuntimeError("Chromium has ended")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Log.entryAdded":
            self.console.append(str(event["params"]["entry"]["text"]))
        elif event.get("method") == "Page.loadEventFired":
            self._is_loaded = True
        elif event.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(event["params"]["exceptionDetails"]))
