"""A browser without a window, driven over a pipe by the DevTools protocol; Python's own library suffices.

    with Browser() as browser:
        page = browser.open(path, width=1400, dark=True)
        page.evaluate("document.title")
        page.faults      # what went wrong in the page: exceptions, errors in the log, requests that are no file
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
WAIT_SECONDS = 120  # for an answer; a browser that hangs must not hang the tests


def find_browser():
    """Its path; $BURIN_BROWSER names another. None: there is none."""
    named = os.environ.get("BURIN_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    def __init__(self, browser, session):
        self.browser, self.session, self.faults = browser, session, []

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def note(self, method, told):
        if method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.faults.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.faults.append(f"console: {told['args']}")
        elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith("file:"):
            self.faults.append(f"asks for {told['request']['url']}")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.pages, self.number, self.rest = {}, 0, b""
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def pass_pipe():  # the protocol's ends are descriptors 3 and 4
            ends = os.dup(to_browser), os.dup(from_browser)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)
        command = [find_browser(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--disable-background-networking",
                   f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=pass_pipe, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        self.profile.cleanup()

    def next_message(self):
        while b"\0" not in self.rest:
            part = os.read(self.reader, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(message)
        if "method" in message and message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].note(message["method"], message["params"])
        return message

    def call(self, method, parameters=None, session=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.writer, text):]
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1400, height=1000, dark=False):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Page.navigate", url="file://" + os.path.abspath(path))
        page.evaluate("new Promise(done => document.readyState === 'complete' && location.protocol === 'file:' "
                      "? done() : addEventListener('load', done))")
        return page
