"""A headless Chromium, driven by its DevTools protocol."""

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.cluster.containers import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1500,1000")

LOGIN = """
const set = (id, text) => { const field = document.getElementById(id); field.value = text; };
set("username", "admin"); set("password", %s);
document.querySelector("form [type=submit]").click();
"""


@dataclass(slots=True)
class Page:
    """One page of a browser."""

    line: ClientConnection
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, method: str, **params: object) -> Mapping[str, Any]:
        """Send a command; return its result."""
        number = next(self.numbers)
        self.line.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            reply = json.loads(self.line.recv(timeout=120))
            if reply.get("id") == number:
                assert "error" not in reply, reply
                result: Mapping[str, Any] = reply["result"]
                return result

    def value(self, script: str) -> Any:
        """Return what a script gives."""
        return self.send("Runtime.evaluate", expression=script)["result"].get("value")

    def wait_for_text(self, text: str, seconds: float = 180) -> None:
        """Wait until the page shows a text."""
        for _ in wait_until(f"the page shows {text!r}", seconds):
            if text in str(self.value("document.body ? document.body.innerText : ''")):
                return

    def go(self, url: str) -> None:
        """Open a URL."""
        self.send("Page.navigate", url=url)

    def login(self, url: str, password: str) -> None:
        """Log in at Airflow's form."""
        self.go(f"{url}/auth/login/")
        for _ in wait_until("there is a form", 180):
            if self.value("document.getElementById('password') !== null"):
                break
        self.value(LOGIN % json.dumps(password))
        self.wait_for_text("Dags")

    def screenshot(self, path: Path) -> None:
        """Write what the page shows."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def page() -> Iterator[Page]:
    """Start a browser, and yield its page."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as name:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={name}", "about:blank"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = Path(name) / "DevToolsActivePort"
            for _ in wait_until("Chromium answers", 120):
                if port.exists() and port.read_text():
                    break
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port.read_text().split()[0]}/json/list", timeout=60
            ) as reply:
                [address] = [tab["webSocketDebuggerUrl"] for tab in json.load(reply) if tab["type"] == "page"]
            with connect(address, max_size=None) as line:
                yield Page(line)
        finally:
            browser.terminate()
            browser.wait()
