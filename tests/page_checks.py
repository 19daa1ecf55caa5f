"""What must be true of every answer of the site and of the markup of every page. Each check returns faults in words."""

from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# No page of the site has these; only text from outside could have brought them.
ALIEN = {
    "iframe", "frame", "object", "embed", "base", "math", "marquee", "style", "foreignobject", "plaintext", "video",
    "source", "noembed", "animate", "set", "portal", "applet", "xmp",
}  # fmt: skip
LOADS = {"src", "href", "xlink:href", "action", "formaction", "poster", "data", "background", "manifest"}
DATA_BLOCKS = {"application/json"}


def header_faults(response) -> list[str]:
    """Where the content policy and the other headers that keep a browser careful differ from what is expected."""
    parts = [part.strip().partition(" ") for part in response.headers.get("Content-Security-Policy", "").split(";")]
    faults = [] if {name: value for name, _, value in parts} == POLICY else [f"policy {parts}"]
    faults += [
        f"{name}: {response.headers.get(name)}"
        for name, value in HEADERS.items()
        if response.headers.get(name) != value
    ]
    if "Content-Security-Policy-Report-Only" in response.headers:
        faults.append("a policy that only reports")
    return faults


def markup_faults(response) -> list[str]:
    """What in the HTML of a response the content policy would stop, what only foreign text brings, repeated ids."""
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return []
    reader = Markup()
    reader.feed(response.content.decode())
    reader.close()
    repeated = [f"id {name} {count} times" for name, count in reader.ids.items() if count > 1]
    titles = [] if reader.is_part or reader.title.strip() else ["no title"]
    return [*reader.faults, *repeated, *titles]


class Markup(HTMLParser):
    """Reads a page and notes its faults, its ids and its title."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.ids: Counter[str] = Counter()
        self.title = ""
        self.is_part = True  # of a page, until its <html> comes
        self.is_in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_part = self.is_part and tag != "html"
        self.is_in_title = self.is_in_title or (tag == "title" and not self.title)
        fields = {name: value or "" for name, value in attrs}
        if "id" in fields:
            self.ids[fields["id"]] += 1
        self.faults += [f"{fault}: {self.get_starttag_text()[:200]}" for fault in faults_of(tag, fields)]

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self.is_in_title = False

    def handle_data(self, data: str) -> None:
        if self.is_in_title:
            self.title += data


def faults_of(tag: str, fields: dict[str, str]) -> Iterator[str]:
    if tag in ALIEN or "-" in tag:
        yield "foreign element"
    if tag == "script" and "src" not in fields and fields.get("type") not in DATA_BLOCKS:
        yield "inline script"
    if tag == "meta" and "http-equiv" in fields:
        yield "meta that acts as a header"
    for name, value in fields.items():
        if name == "style":
            yield "inline style"
        elif name.startswith(("on", "hx-", "v-")) or name in {"srcdoc", "ping"} or "pwned" in name:
            yield "handler"
        elif name in {"id", "name"} and ("pwned" in value or "__proto__" in value):
            yield "name from text"
        elif name in LOADS:
            yield from address_faults(tag, fields, value)


def address_faults(tag: str, fields: dict[str, str], value: str) -> Iterator[str]:
    """An address runs nothing, and only a link leads to another site, which cannot reach back."""
    address = "".join(char for char in value if char > " ").lower()
    scheme = address.partition(":")[0] if ":" in address.partition("/")[0] else ""
    if scheme not in {"", "http", "https"}:
        yield "address that runs"
    elif scheme or address.startswith("//"):
        if tag != "a":
            yield "address of another site"
        elif fields.get("target") == "_blank" and not {"noopener", "noreferrer"} & set(fields.get("rel", "").split()):
            yield "opener"
