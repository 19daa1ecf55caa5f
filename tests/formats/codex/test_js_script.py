"""Reading what a small JavaScript program calls and prints."""

import time

import pytest

from grading.formats.codex.js_script import read_script
from grading.formats.codex.js_values import Joined, Json, Result, StepBudget, Unknown, UnreadableScriptError

pytestmark = pytest.mark.pure


def arguments(source: str) -> list:
    return [call.argument for call in read_script(source).calls]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('tools.x({"cmd":"a \\"b\\"\\n","n":10})', {"cmd": 'a "b"\n', "n": 10}),
        ("tools.x({cmd:'a', n: -1.5, t: true, f: false, z: null, u: undefined})",
         {"cmd": "a", "n": -1.5, "t": True, "f": False, "z": None, "u": None}),
        ("tools.x({a: [1, {b: 'c'},], /* why */ d: `e\nf`, // so\n})", {"a": [1, {"b": "c"}], "d": "e\nf"}),
        ("const cmd = 'git push'; const w = '/w'; tools.x({cmd, dir: w})", {"cmd": "git push", "dir": "/w"}),
        ("const n = 'b'; tools.x({cmd: 'a ' + n + ` ${n} ${1 + 1}`})", {"cmd": "a b b 2"}),
        ("tools.x(String.raw`a\\n`)", "a\\n"),
        ("tools.x({cmd: '\\u0061\\x62\\\nc'})", {"cmd": "abc"}),
        ("tools.x({cmd: 'a' + JSON.stringify(\"b c\")})", {"cmd": 'a"b c"'}),
        ("const o = {a: {b: ['x', 'y']}}; tools['x']({cmd: o.a.b[1]})", {"cmd": "y"}),
        ("const {x} = tools; const [a, {b}] = ['1', {b: '2'}]; x({cmd: a + b})", {"cmd": "12"}),
        ("tools.x({cmd: ['a', 'b'].join(' && ')})", {"cmd": "a && b"}),
        ("async function run(cmd) { return await tools.x({cmd}) }\nawait run('ls')", {"cmd": "ls"}),
        ("await tools.x({cmd: 'a'}).then(r => text(r.output))", {"cmd": "a"}),
        ("const o = {cmd: 'a'}; tools.x({...o, n: 1})", {"cmd": "a", "n": 1}),
    ],
)  # fmt: skip
def test_what_is_written_down_is_read(source: str, expected: object):
    assert arguments(source) == [expected]


@pytest.mark.parametrize(
    "source",
    [
        "['a', 'b'].map(cmd => tools.x({cmd}))",
        "await Promise.all(['a', 'b'].map(async (cmd) => { const r = await tools.x({cmd}); return r; }))",
        "for (const cmd of ['a', 'b']) { await tools.x({cmd}) }",
        "for (const [i, cmd] of ['a', 'b'].entries()) await tools.x({cmd})",
        "await Promise.all([tools.x({cmd: 'a'}), tools.x({cmd: 'b'})])",
    ],
)
def test_calls_over_a_list_are_as_many(source: str):
    assert arguments(source) == [{"cmd": "a"}, {"cmd": "b"}]


@pytest.mark.parametrize(
    "source",
    [
        "tools.x({cmd: load('a')})",
        "tools.x({cmd: ready ? 'a' : 'b'})",
        "let c = 'a'; if (ready) c = 'b'; tools.x({cmd: c})",
        "let c = 'a'; while (ready) { tools.x({cmd: c}); c = 'b' }",
        "let c = 'a'; for (let i = 0; i < 3; i++) { tools.x({cmd: c}); c += 'b' }",
        "const r = await tools.y({}); tools.x({cmd: r.output})",
        "const a = ['b']; a.sort(); tools.x({cmd: a[0]})",
        "tools.x({cmd: 'a'.replace('a', 'b')})",
    ],
)
def test_what_is_not_written_down_is_not_guessed(source: str):
    assert not isinstance(arguments(source)[-1]["cmd"], str)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('while (more) { const r = (await tools.x({cmd: "ls"})).output.split("\\n").sort(); text(r) }', 1),
        ("while (more) { (await tools.x({a: 1})).items.push(1) }", 1),
        ("const run = c => tools.x({c}); while (more) { run('a').output.split('a').push(1) }", 1),
        ("const run = c => tools.x({c}); while (more) { run.count += 1; run('a') }", 1),
        ("do { await tools.x({}) } while ((await tools.y({})).output)", 2),
        ("for (;;) { await tools.x({}); if (ready) break }", 1),
        ("for (let i = 0; i < (await tools.x({})).n; i++) { await tools.y({}) }", 2),
        (
            "for (const a of await tools.x({})) for (const b of a) { await tools.y({b}); while (c) await tools.z({}) }",
            3,
        ),
        ("const {a = await tools.x({})} = JSON.parse('{}')", 1),
        ("const {a = await tools.x({})} = await tools.y({})", 2),
        ("const [a = await tools.x({})] = []", 1),
        ("const o = {}; o[await tools.x({})] = 1; o[await tools.x({})]++; delete o[await tools.x({})]", 3),
        ("let a; [a = await tools.x({})] = []; ({a = await tools.x({})} = {})", 2),
        ("const o = {n: 1}; (await tools.x({})).n += 1; (await tools.x({})).n++; delete (await tools.x({})).n", 3),
        ("let a; a ??= await tools.x({}); a += await tools.x({})", 2),
        ("function f() { try { return 1 } finally { tools.x({}) } } f()", 1),
        ("async function f() { throw await tools.x({}) } await f().catch(e => tools.y({e})); await tools.z({})", 3),
        ("try { throw 1 } catch { await tools.x({}) } await tools.y({})", 2),
        ("names.map(async name => tools.x({name}))", 1),
        ("await tools.x({}).then(r => tools.y({r}), async e => { await tools.z({}) })", 3),
        ("/* a */ await tools.x(/* b */ {} /* c */ /* d */) // e", 1),
    ],
)
def test_every_call_is_recorded(source: str, count: int):
    assert len(read_script(source).calls) == count


def test_a_call_inside_text_or_a_comment_is_none():
    comments, text = "// tools.x({cmd: 'a'})\n/* tools.x({cmd: 'b'}) */", "\"tools.x({cmd: 'c'})\""
    assert arguments(f"{comments} const s = {text}; const r = /tools.x()/; text(s)") == []


@pytest.mark.parametrize(
    ("source", "items"),
    [
        ("const r = await tools.x({}); text(r.output)", [Result(0, ("output",))]),
        ("text(await tools.x({}))", [Result(0)]),
        (
            "const r = await tools.x({}); text(JSON.stringify({a: r.exit_code}))",
            [Json({"a": Result(0, ("exit_code",))})],
        ),
        ("const r = await tools.x({}); text('exit=' + r.exit_code)", [Joined(("exit=", Result(0, ("exit_code",))))]),
        ("text((await tools.x({})).output.trim())", [Unknown(frozenset({0}))]),
        ("const {output} = await tools.x({}); text(output); text('done')", [Result(0, ("output",)), "done"]),
        ("const r = await tools.x({}); if (r.exit_code) text(r.output)", None),
        ("for (const c of ['a', 'b']) { const r = await tools.x({c}); text(r.output); if (r.exit_code) break }", None),
        ("try { text((await tools.x({})).output) } catch (e) { text(String(e)) }", None),
        ("const r = await tools.x({}); let a; a ||= text('b'); text(r)", None),
        ("const l = [await tools.x({})]; if (l[0].ok) l.push('a'); text(l[0])", None),
        ("const r = await tools.x({}); const l = [r]; l.reverse(); text(r)", None),
        ("const [a, b = 'c'] = [await tools.x({})]; text(a); text(b)", [Result(0), "c"]),
        ("const {a = 'b'} = await tools.x({}); text(a)", [Result(0, ("a",))]),
        ("function f() { throw 1 } f(); text(await tools.x({}))", None),
        ("const {a = await tools.y({})} = await tools.x({}); text(a)", [Unknown(frozenset({0, 1}))]),
    ],
)
def test_what_is_printed_is_known_where_it_is_certain(source: str, items: object):
    assert read_script(source).items == items


@pytest.mark.parametrize(
    "change",
    [
        "r.exit_code = 0",
        "r.exit_code++",
        "[r.exit_code] = [0]",
        "while (ready) { r.exit_code = 0 }",
        "for (r.exit_code of [0]) {}",
        "const l = [r]; l[0].exit_code = 0",
        "const l = [r]; l.sort(); l[0].exit_code = 0",
        "Object.assign(r, {exit_code: 0})",
        "delete r.exit_code",
        "const q = r; q.exit_code = 0",
    ],
)
def test_a_result_that_the_script_changed_proves_nothing(change: str):
    script = read_script(f"const r = await tools.x({{}}); {change}; text(JSON.stringify(r))")
    assert (len(script.calls), script.items) == (1, None)


def test_literal_arguments_are_taken_from_a_script_that_is_not_followed():
    source = "let r = await tools.x({cmd: 'a'}); while (r.id) r = await tools.y({id: r.id, chars: ''}); text(r.output)"
    script = read_script(source)
    assert [call.name for call in script.calls] == ["x", "y"]
    assert script.calls[0].argument == {"cmd": "a"}
    assert script.calls[1].argument["chars"] == ""
    assert script.items is None


def test_a_changed_environment_says_nothing():
    assert read_script("const r = await tools.x({}); globalThis.text = 1; text(r)").items is None


@pytest.mark.parametrize(
    "source",
    [
        "if (",
        "const a = {get x() { return 1 }}",
        "'a",
        "`a${",
        "class A {}",
        "class A { b = tools.x({}); c = tools.y }",
        "tools = {}; await tools.x({})",
        "[tools.zzz] = [1]; await tools.x({})",
        "while (more) { tools.zzz = 1; await tools.x({}) }",
        "let f = tools.x; f({}); f = tools.y; f({})",
        "let a = 'b'; a = a + 'c'; text(a)",
        "function f() { text('a'); exit() } f(); text('b')",
        "a b",
        "eval('tools.x()')",
        "switch (a) {}",
        "\\",
    ],
)
def test_what_cannot_be_parsed_is_unreadable(source: str):
    with pytest.raises(UnreadableScriptError):
        read_script(source)


@pytest.mark.parametrize(
    "source",
    [
        "[" * 100_000,
        "`${" * 30_000,
        "/*" * 100_000,
        "-" * 30_000 + "1",
        "let x = 'aa';" + "x = x + x;" * 60,
        "const a = [1,2,3,4,5,6,7,8,9];" + "a.map(x => " * 9 + "1" + ")" * 9,
        "for (const x of [1,2,3,4,5,6,7,8,9,10]) " * 30 + "text(x)",
        "const l = [1];" + "l.push(...l);" * 30,
        "const o = {};" + "".join(f"const o{n} = {{a: o{n - 1}, b: o{n - 1}}};" for n in range(1, 60)) + "text(o59)",
        "if (a) " * 5_000 + "b",
        "function f() { f() } f()",
        "/[" * 200_000,
        "<a " * 130_000,
        "(a," * 130_000,
        "a b" * 10_000,
        "(" * 20_000 + "1" + ")" * 20_000,
        "a(" * 20_000 + ")" * 20_000,
        "[" * 20_000 + "]" * 20_000,
        "const f = () => '" + "\\x41" * 25_000 + "';" + "f();" * 5_000,
        "const f = () => `" + "\\x41" * 25_000 + "`;" + "f();" * 5_000,
        "function f() { return 1;" + "a;" * 50_000 + "}" + "f();" * 5_000,
        "function f() { return 1;" + "/**/" * 50_000 + "}" + "f();" * 5_000,
        "const f = () => g(" + "/**/" * 50_000 + ");" + "f();" * 5_000,
        "const f = () => a " + "/**/" * 50_000 + " + b;" + "f();" * 5_000,
        "const f = () => ({a " + "/**/" * 50_000 + ": b});" + "f();" * 5_000,
        "const s = '" + "a" * 300_000 + "'; let t = '';" + "t += s;" * 5_000,
        "const s = '" + "a" * 300_000 + "'; text(JSON.stringify([" + "s," * 5_000 + "]))",
        "const s = '" + "a" * 300_000 + "';" + "text([s, s, s]);" * 5_000,
        "const s = ' " + "a" * 300_000 + "';" + "s.trim();" * 15_000,
        "const s = '" + "a" * 300_000 + "';" + "s.split('a');" * 5_000,
        "const s = '" + "\\n" * 100_000 + "'; text(JSON.stringify([" + "s," * 9 + "], null, 10))",
        "while (a) { " * 50 + "b = [c]; c = [b];" * 200 + "}" * 50,
        "while (a) " * 50 + "{" + "b += 'c';" * 400 + "}",
    ],
)
def test_hostile_code_costs_little(source: str):
    start = time.process_time()
    with pytest.raises(UnreadableScriptError):
        read_script(source)
    assert time.process_time() - start < 2


def test_a_deep_function_that_is_not_called_costs_little():
    start = time.process_time()
    assert arguments("a=>" * 10_000 + "1; tools.x({})") == [{}]
    assert time.process_time() - start < 2


def test_a_large_patch_is_read():
    patch = "*** Update File: a\\n+b\\n" * 15_000
    assert len(arguments(f'const patch = "{patch}"; text(await tools.apply_patch(patch))')[0]) > 300_000


def test_a_long_sum_of_texts_is_read():
    (patch,) = arguments("tools.apply_patch(" + " + ".join(["'a'"] * 390) + ")")
    assert patch == "a" * 390


@pytest.mark.parametrize(
    "source",
    [
        "const o = {cmd: 'a'}; const same = o; same.cmd = 'b'; tools.x({cmd: o.cmd})",
        "const o = {cmd: 'a'}; delete o.cmd; tools.x({cmd: o.cmd})",
        "const o = {cmd: 'a'}; Object.assign(o, {cmd: 'b'}); tools.x({cmd: o.cmd})",
        "const o = {cmd: 'a'}; while (ready) { tools.x({cmd: o.cmd}); o.cmd = 'b' }",
        "const a = ['b']; while (ready) { tools.x({cmd: a[0]}); a.push('c'); a.sort() }",
        "const o = {cmd: 'a'}; while (ready) { tools.x({cmd: o.cmd}); delete o.cmd }",
        "const o = {cmd: 'a'}; const same = o; while (ready) { tools.x({cmd: o.cmd}); same.cmd = 'b' }",
        "let c = 'a'; const change = () => { c = 'b' }; while (ready) { tools.x({cmd: c}); change() }",
        "let c = 'a'; names.forEach(name => { tools.x({cmd: c}); c = 'b' })",
        "let c = 'a'; for (c of ['b']) {} if (ready) [c] = ['d']; tools.x({cmd: c})",
        "let c = 'a'; for (c of names) {} tools.x({cmd: c})",
        "const a = ['a']; a.sort(); tools.x({cmd: '' + a.length})",
        "const a = ['a']; if (ready) a.push('b'); tools.x({cmd: '' + a.length})",
        "const a = [1, 2, 3]; a.splice(0, 1); tools.x({cmd: JSON.stringify(a)})",
        "const a = ['a']; a.sort(); a.push('b'); tools.x({cmd: a[1]})",
        "const o = {cmd: 'a'}; Array.prototype.push.call(o, 'b'); tools.x({cmd: o.cmd})",
        "tools.x({cmd: ['a'].forEach(c => c)[0]})",
    ],
)
def test_what_the_script_changed_is_not_read_as_it_was(source: str):
    assert not isinstance(arguments(source)[-1]["cmd"], str)


def test_a_logs_scripts_share_an_allowance():
    allowance = StepBudget(total=100)
    read_script("tools.x({cmd: 'a'})", allowance)
    with pytest.raises(UnreadableScriptError):
        read_script("tools.x({cmd: 'a'});" * 20, allowance)
    with pytest.raises(UnreadableScriptError):
        read_script("tools.x({cmd: 'a'})", allowance)
