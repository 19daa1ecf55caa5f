"""What the browser tests of whole pages share: a signed-in browser, and ears for everything that must not happen."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

# Counts what the content policy stopped: something that it had to stop is a hole, even where it did.
LISTEN = """
window.violations = [];
document.addEventListener('securitypolicyviolation', function (event) {
  window.violations.push(event.effectiveDirective + ' ' + event.blockedURI);
});
"""
INSPECT = Path(__file__).with_name("inspect.js").read_text()
# Everything that opens in place; nothing that leaves or sends.
OPEN = """() => {
  document.querySelectorAll('details:not([open]) > summary').forEach(each => each.click());
  document.querySelectorAll('button[type=button][aria-expanded=false], [popovertarget]').forEach(each => each.click());
}"""


@dataclass
class Watch:
    """Listens to a page for as long as it lives."""

    page: Any
    site: str
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.on("pageerror", lambda error: self.heard.append(f"uncaught: {error}"))
        self.page.on("popup", lambda popup: self.heard.append(f"opened {popup.url}"))

    def _dialog(self, dialog: Any) -> None:
        self.heard.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self.site):
            self.heard.append(f"asked {request.url}")

    def _said(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and "Failed to load resource: the server responded with a status" not in text:
            self.heard.append(f"console: {text}")

    def looked(self) -> list[str]:
        """What was wrong since it was asked last, on this page with everything opened."""
        self.page.evaluate(OPEN)
        found = [*self.page.evaluate(INSPECT), *self.heard]
        self.heard.clear()
        return found


def listen(page: Any) -> list[str]:
    """Everything the browser complains about: console errors (content policy included) and uncaught exceptions."""
    complaints: list[str] = []
    page.on("console", lambda message: message.type in {"error", "warning"} and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def log_in(page: Any, name: str = "olga") -> None:
    """Without the log-in page, which `test_pages.py` goes through."""
    sign_in(page.context, User.objects.get(username=name), domain="localhost", path="/")


def sign_in(context: Any, user: User, **place: str) -> None:
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, **place}])


def signed_in(chromium: Any, live_site: str, user: User, **options: Any) -> Any:
    """A browser context of `user`, without a log-in page."""
    context = chromium.new_context(base_url=live_site, **options)
    sign_in(context, user, url=live_site)
    context.set_default_timeout(30_000)
    return context
