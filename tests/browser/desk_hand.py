"""A person's hand at the desk, for the browser tests: keys only, with what the browser had to complain of kept."""

from dataclasses import dataclass, field

from playwright.sync_api import Page, Response

# Before any script of the page: counts what a mouse would do, and how far things jumped.
WATCH = """
(() => {
  window.mouse = 0;
  for (const kind of ['mousedown', 'mousemove', 'pointerdown', 'touchstart', 'wheel'])
    addEventListener(kind, (event) => { if (event.isTrusted) window.mouse += 1; }, true);
  window.shifted = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shifted += each.value; })
    .observe({ type: 'layout-shift', buffered: true });
})();
"""


@dataclass
class Hand:
    """Presses keys on a page. `complaints` are the console's and the content policy's; `seconds` each request took."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.add_init_script(WATCH)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfinished", lambda request: self._timed(request.response()))

    def _heard(self, message) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _timed(self, reply: Response | None) -> None:
        if reply is not None and "/review/" in reply.url:
            self.seconds.append(reply.request.timing["responseEnd"] / 1000)

    def fill_in_the_log_in(self, name: str) -> None:
        """Through the form, by keyboard: the name field has the focus."""
        self.page.goto("/login/")
        self.page.locator("[name=username]").focus()
        self.page.keyboard.type(name)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type("correct horse battery")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("nav.nav")

    def open(self, path: str = "/review/") -> None:
        self.page.goto(path)
        self.ready()

    def ready(self) -> None:
        """Until nothing is being asked of the server."""
        self.page.wait_for_selector("main.desk:not([aria-busy])")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def goes_on(self, *keys: str) -> None:
        """Press keys, and wait until another session is on the desk, or none."""
        here = self.where()
        self.press(*keys)
        self.page.wait_for_function("here => location.pathname !== here", arg=here)
        self.ready()

    def where(self) -> str:
        return str(self.page.evaluate("location.pathname"))

    def says(self) -> str:
        return self.page.inner_text(".status")

    def value(self) -> str:
        return self.page.input_value("#id_value")

    def shifted(self) -> float:
        return float(self.page.evaluate("window.shifted"))

    def mouse(self) -> int:
        return int(self.page.evaluate("window.mouse"))
