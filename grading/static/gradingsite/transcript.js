// A long transcript: citations and the search jump in it, by keys too ([ and ], / and Enter). Without script, Earlier
// and Later are plain links.
//
// A page that puts a transcript in another's place fires "gradingsite:shown" on the document.
import { POLL, blocks, comma, fill, here, hold, isReading, jump, pause } from './transcript-window.js';

const ROWS = 300, HITS = 10000, TYPED = 250;
let log = null, tools = null, cites = [], cite = -1, search = 0, sought = '', hits = [], hit = -1, more = false, timer;

const one = (name) => (tools ? tools.querySelector('[data-' + name + ']') : null);

// Shows an event; where it is a citation, the next one is counted from there.
function goTo(number, focus, said) {
  if (cites.includes(number)) { cite = cites.indexOf(number); sayCite(); }
  return jump(number, focus, said);
}

function sayCite() { if (one('cite-words')) one('cite-words').textContent = 'citation ' + (cite + 1) + ' of ' + cites.length; }

function nextCite(by) {
  if (!cites.length) return;
  cite = cite < 0 ? (by > 0 ? 0 : cites.length - 1) : (cite + by + cites.length) % cites.length;
  goTo(cites[cite], true, 'Event ' + comma(cites[cite]) + ', citation ' + (cite + 1) + ' of ' + cites.length);
}

function readCites() {
  cites = (log.dataset.cited || '').split(',').filter(Boolean).map(Number).sort(function (a, b) { return a - b; });
  cite = -1;
  if (!tools) return;
  tools.querySelector('.log-cites').hidden = !cites.length;
  one('cite-words').textContent = cites.length + (cites.length === 1 ? ' citation' : ' citations');
}

// ---- find ---------------------------------------------------------------------------------------------------------

function isFinding() { return Boolean(one('find-form')) && !one('find-form').hidden; }

function openFind(isOpen) {
  if (!one('find-form')) return;
  one('find-form').hidden = !isOpen;
  one('find-open').hidden = isOpen;
  if (isOpen) { one('find-form').elements.q.select(); return; }
  search += 1;
  if (window.CSS && CSS.highlights) CSS.highlights.delete('hit');
  (log.querySelector('.ev.at') || log).focus({ preventScroll: true });
}

function sayHit(words) { one('find-words').textContent = words; }

async function seek(query) {
  const mine = ++search, from = here();
  sought = query; hits = []; hit = -1; more = Boolean(query.trim());
  sayHit(more ? 'searching' : '');
  for (let after = 0; more && hits.length < HITS;) {
    let answer;
    try {
      const reply = await fetch(log.dataset.find + '?' + new URLSearchParams({ q: query, after: after }), { redirect: 'error' });
      answer = await reply.json();
    } catch (error) { answer = { error: 'The search failed: reload the page.' }; }
    if (mine !== search) return;
    if (answer.error) { sayHit(answer.error); return; }
    if (answer.reading) { sayHit(answer.reading); await pause(POLL); if (mine !== search) return; continue; }
    hits = hits.concat(answer.hits); after = answer.searched; more = answer.more;
    const next = hits.findIndex((number) => number >= from);
    if (hit < 0 && next >= 0) { hit = next; showHit(); } else if (hit >= 0) countHits();
  }
  if (!hits.length) { if (query.trim()) sayHit('no event has it'); } else if (hit < 0) { hit = 0; showHit(); } else countHits();
}

function countHits() {
  sayHit(comma(hit + 1) + (more ? ' of the first ' : ' of ') + comma(hits.length));
}

async function showHit() {
  countHits();
  const row = await goTo(hits[hit], false, 'Event ' + comma(hits[hit]) + ', ' + one('find-words').textContent + ' hits');
  if (row) mark(row);
}

function nextHit(by) {
  if (one('find-form').elements.q.value !== sought) { clearTimeout(timer); seek(one('find-form').elements.q.value); return; }
  if (!hits || !hits.length) return;
  hit = (hit + by + hits.length) % hits.length;
  showHit();
}

// Marks the words without touching the text; opens a fold that they are in.
function mark(row) {
  if (!window.Highlight || !CSS.highlights) return;
  const ranges = [], wanted = sought.toLowerCase(), texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode, text = node.data.toLowerCase(), fold = node.parentElement.closest('details');
    for (let at = text.indexOf(wanted); at >= 0 && text.length === node.length; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      if (fold && !ranges.length) fold.open = true;
      ranges.push(range);
    }
  }
  CSS.highlights.set('hit', new Highlight(...ranges.slice(0, ROWS)));
}

// ---- keys and clicks ----------------------------------------------------------------------------------------------

document.addEventListener('keydown', (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!log || event.defaultPrevented || !(isPlain || event.getModifierState('AltGraph'))) return;
  const field = event.target.closest('input, textarea, select, [contenteditable]');
  const mine = isFinding() && field === one('find-form').elements.q;
  const last = blocks().pop()?.dataset.last;
  const does = {
    Enter: mine && (() => nextHit(event.shiftKey ? -1 : 1)),
    Escape: isFinding() && (() => openFind(false)),
    '/': !mine && (() => openFind(true)),
    '[': !mine && (() => nextCite(-1)),
    ']': !mine && (() => nextCite(1)),
    n: !mine && isFinding() && (() => nextHit(1)),
    N: !mine && isFinding() && (() => nextHit(-1)),
    Home: event.target === log && (() => goTo(1)),
    End: event.target === log && last && (() => goTo(+last)),
  }[event.key];
  if (!does || (field && !mine)) return;
  event.preventDefault();
  does();
});

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href*="#e"]');
  const number = link && link.pathname === location.pathname && /^#e([1-9]\d{0,8})$/.exec(link.hash);
  if (log && number && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); goTo(+number[1], true); return; }
  const button = tools && event.target.closest('[data-transcript-tools] button');
  if (!button) return;
  if (button.dataset.cite) nextCite(+button.dataset.cite);
  else if (button.dataset.hit) nextHit(+button.dataset.hit);
  else openFind('findOpen' in button.dataset);
});

function go() {
  const number = /^#e([1-9]\d{0,8})$/.exec(location.hash);
  if (number) goTo(+number[1], true);
  else if (blocks().length && isReading(blocks()[0])) jump(+blocks()[0].dataset.first);
  else fill();
}

function start() {
  const found = document.querySelector('[data-transcript]');
  if (found && found === log) return;
  log = found;
  tools = document.querySelector('[data-transcript-tools]');
  hold(log, document.querySelector('[data-transcript-say]'));
  search += 1; hits = []; sought = '';
  if (!log) return;
  readCites();
  if (tools) {
    tools.removeAttribute('data-off');
    one('find-form').addEventListener('submit', (event) => { event.preventDefault(); });
    one('find-form').addEventListener('input', (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => { seek(event.target.value); }, TYPED);
    });
  }
  new ResizeObserver(fill).observe(log);
  go();
}

document.addEventListener('scroll', () => { if (log) fill(); }, { capture: true, passive: true });
document.addEventListener('gradingsite:shown', start);
window.addEventListener('hashchange', () => { if (log) go(); });
start();
