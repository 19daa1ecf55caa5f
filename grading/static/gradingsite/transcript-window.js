// The window that the browser holds of a long transcript: pages of events come when an edge is near and go when they
// are far. The server escapes all text. Used by transcript.js.

const PAGE = 100, ROWS = 300, NEAR = 1200, FAR = NEAR + 300;
export const POLL = 500;
const LOST = 'The events could not be loaded: reload the page.';
let log = null, live = null, turn = 0, filling = false;

export function hold(found, status) {
  log = found;
  live = status;
  turn += 1;
}

export const blocks = () => Array.from(log.querySelectorAll('.block'));
export const isReading = (block) => 'reading' in block.dataset;
export const pause = (time) => new Promise((go) => setTimeout(go, time));
export const comma = (number) => number.toLocaleString('en');
const rows = () => Array.from(log.querySelectorAll('.ev'));
const words = (error) => (error instanceof TypeError ? LOST : error.message);

async function load(from) {
  const query = new URLSearchParams({ from: from, cited: log.dataset.cited, flagged: log.dataset.flagged });
  const reply = await fetch(log.dataset.events + '?' + query, { headers: { Accept: 'text/html' }, redirect: 'error' });
  const text = await reply.text();
  if (!reply.ok) throw new Error((reply.headers.get('Content-Type') || '').startsWith('text/plain') ? text : LOST);
  const holder = document.createElement('template');
  holder.innerHTML = text;
  return holder.content.querySelector('.block');
}

// ---- the window ---------------------------------------------------------------------------------------------------

function scrolls() { return getComputedStyle(log).overflowY !== 'visible'; }

function view() {
  const box = log.getBoundingClientRect();
  return scrolls() ? { top: box.top, bottom: box.bottom } : { top: 0, bottom: innerHeight };
}

function steady(change) {
  const top = view().top;
  const anchor = rows().find((row) => row.getBoundingClientRect().bottom > top);
  const before = anchor && anchor.getBoundingClientRect().top;
  change();
  if (!anchor || !anchor.isConnected) return;
  (scrolls() ? log : document.scrollingElement).scrollTop += anchor.getBoundingClientRect().top - before;
}

// The page that is missing where somebody reads, or soon will: nothing where the pane is hidden or scrolled past.
function due() {
  const all = blocks(), seen = view(), box = log.getBoundingClientRect();
  if (!all.length || isReading(all[0]) || !box.height || box.bottom < 0) return null;
  const first = all[0], last = all[all.length - 1];
  if (last.dataset.following && last.getBoundingClientRect().bottom < seen.bottom + NEAR) {
    return { from: last.dataset.following, add: (block) => { log.append(block); }, far: () => blocks()[0], edge: last.querySelector('.later') };
  }
  if (first.dataset.previous && first.getBoundingClientRect().top > seen.top - NEAR) {
    return { from: first.dataset.previous, add: (block) => { log.prepend(block); }, far: () => blocks().pop(), edge: first.querySelector('.earlier') };
  }
  return null;
}

function drop(pick) {
  while (rows().length > ROWS) {
    const block = pick(), box = block.getBoundingClientRect(), seen = view();
    if (box.bottom > seen.top - FAR && box.top < seen.bottom + FAR) return;
    if (block.contains(document.activeElement)) log.focus({ preventScroll: true });
    block.remove();
  }
}

export async function fill() {
  if (filling || !log) return;
  filling = true;
  let mine = turn, wanted;
  try {
    while ((wanted = due())) {
      const block = await load(wanted.from);
      if (mine !== turn) { mine = turn; continue; }
      if (isReading(block)) {
        wanted.edge.textContent = block.textContent.trim();
        await pause(POLL);
      } else {
        steady(() => { wanted.add(block); });
        steady(() => { drop(wanted.far); });
      }
    }
  } catch (error) {
    complain(error, wanted && wanted.edge);
    await pause(4 * POLL);
  }
  filling = false;
}

// ---- jumping ------------------------------------------------------------------------------------------------------

function holder(number) {
  return blocks().find((block) => !isReading(block) && number >= +block.dataset.first && number < +block.dataset.first + PAGE);
}

// Shows event `number`, or the next that is shown; gives its row, or nothing where it was overtaken or cannot be.
export async function jump(number, focus, said) {
  const mine = ++turn;
  try {
    while (!holder(number)) {
      const block = await load(number);
      if (mine !== turn) return null;
      log.replaceChildren(block);
      if (isReading(block)) await pause(POLL);
      if (mine !== turn) return null;
    }
  } catch (error) {
    if (mine === turn) complain(error, log.querySelector('.block[data-reading] .edge'));
    return null;
  }
  const all = Array.from(holder(number).querySelectorAll('.ev'));
  const row = all.find((each) => +each.dataset.n >= number) || all[all.length - 1];
  if (row) show(row, focus);
  tell(said || 'Event ' + comma(number));
  fill();
  return row || null;
}

function show(row, focus) {
  log.querySelectorAll('.ev.at').forEach((each) => { each.classList.remove('at'); });
  row.classList.add('at');
  row.tabIndex = -1;
  if (focus) row.focus({ preventScroll: true });
  const seen = view();
  row.scrollIntoView({ block: row.offsetHeight > 0.8 * (seen.bottom - seen.top) ? 'start' : 'center' });
  history.replaceState(history.state, '', '#' + row.id);
}

function complain(error, edge) {
  tell(words(error));
  if (edge) edge.textContent = words(error);
}

function tell(said) { live.textContent = said; }

export function here() {
  const top = view().top, row = rows().find((each) => each.getBoundingClientRect().bottom > top);
  return row ? +row.dataset.n : 1;
}

// The same events again, with what is cited now.
export async function again() {
  const mine = ++turn, number = here(), block = await load(number);
  if (mine !== turn || isReading(block)) return;
  log.replaceChildren(block);
  jump(number);
}
