"""Drive a headless Chromium through the DevTools protocol, over two pipes."""

import base64
import io
import json
import os
import select
import shutil
import subprocess
import sys
import time

from matplotlib.image import imread

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-pipe",
)
#: What a browser says of itself, not of the page.
NOT_OURS = ("favicon.ico",)


def find_browser():
    if sys.platform == "win32":  # has no descriptors to inherit
        return None
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A running browser with one tab."""

    def __init__(self, path, profile):
        import fcntl

        # Chromium reads commands from descriptor 3 and writes answers to 4.
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)

        def connect():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        self._process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in theirs:
            os.close(fd)
        self._rest, self._number, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Tall enough that nothing needs to scroll.
        size = {"width": 1280, "height": 9000, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, url, *, scheme="light"):
        self.call("Page.navigate", url="about:blank")
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def run(self, code):
        """Evaluate JavaScript and return its value."""
        result = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def picture(self, selector):
        """Return the pixels of the first element that the selector finds."""
        box = self.run(
            f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()"
        )
        clip = {name: box[name] for name in ("x", "y", "width", "height")}
        shot = self.call("Page.captureScreenshot", format="png", clip={**clip, "scale": 1})
        return imread(io.BytesIO(base64.b64decode(shot["data"])), format="png")[..., :3]

    def complaints(self):
        """Return what went wrong on the page: exceptions and messages of warning or worse."""
        self.run("0")  # everything that happened before has been reported once this is answered
        found = []
        for event in self.events:
            details = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(details["exceptionDetails"]["text"])
                case "Runtime.consoleAPICalled" if details["type"] in ("error", "warning"):
                    found.append(str(details["args"]))
                case "Log.entryAdded" if details["entry"]["level"] in ("error", "warning"):
                    found.append(details["entry"]["text"])
        return [text for text in found if not any(part in text for part in NOT_OURS)]

    def requests(self):
        """Return the addresses that were asked for, data inside the page left out."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith("data:")]

    def _read(self, patience=150.0):
        deadline = time.monotonic() + patience
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._in, 2**16)
            assert chunk, "the browser has ended"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)
