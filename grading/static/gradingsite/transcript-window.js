// The window that the browser holds of a long transcript: pages of events come when an edge is near and go when they
// are far. The server escapes all text. Used by transcript.js.

const PAGE = 100, ROWS = 300, NEAR = 1200, FAR = NEAR + 300, MOST = 4e6;
export const POLL = 500;
const LOST = 'The events could not be loaded: reload the page.';
let log = null, live = null, turn = 0, filling = false, room = 0;

export function hold(found, status) {
  log = found;
  live = status;
  room = 0;
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

// What is above grew by `height` pixels: the empty room above it gives way, so that nothing moves; where there is too
// little of that, or no more than that is needed, the scroll follows.
function above(height, isStart) {
  const left = room - height;
  makeRoom(isStart ? 0 : left);
  if (room !== left) (scrolls() ? log : document.scrollingElement).scrollTop += room - left;
}

function makeRoom(height) {
  room = scrolls() ? Math.min(Math.max(height, 0), MOST) : 0;
  log.querySelector('.room').style.height = room + 'px';
}

// The page that is missing where somebody reads, or soon will: nothing where the pane is hidden or scrolled past.
function due() {
  const all = blocks(), seen = view(), box = log.getBoundingClientRect();
  if (!all.length || isReading(all[0]) || !box.height || box.bottom < 0) return null;
  const first = all[0], last = all[all.length - 1], top = first.getBoundingClientRect().top;
  if (last.dataset.following && last.getBoundingClientRect().bottom < seen.bottom + NEAR) {
    return { from: last.dataset.following, edge: 'following', beside: last };
  }
  if (!first.dataset.previous || top < seen.top - NEAR) return null;
  // Somebody pulled the scroll bar far up.
  if (top > seen.bottom + 4 * NEAR) return { from: Math.ceil(first.dataset.first * log.scrollTop / room) || 1, edge: 'previous', isFar: true };
  return { from: first.dataset.previous, edge: 'previous', beside: first };
}

// Both ends of the window say what follows. They are made anew each time: they don't move, others stand elsewhere.
function sayEdges() {
  const all = blocks(), { previous, reading } = all[0].dataset, { following } = all[all.length - 1].dataset;
  const isOpen = reading !== undefined;
  sayEdge('previous', previous || isOpen ? '…' : 'The transcript begins here');
  sayEdge('following', following || isOpen ? '…' : 'The transcript ends here');
}

function sayEdge(name, said) {
  const old = log.querySelector('[data-edge="' + name + '"]'), edge = old.cloneNode();
  edge.textContent = said;
  if (old.contains(document.activeElement)) log.focus({ preventScroll: true });
  old.replaceWith(edge);
}

// One page in the place of all, with about as much room above it as what is there would take.
function replace(block, height) {
  const all = blocks(), before = (block.dataset.first - 1) / PAGE;
  all[0].before(block);
  all.forEach((each) => each.remove());
  makeRoom(block.dataset.previous ? height || before * Math.max(block.offsetHeight, NEAR) : 0);
  sayEdges();
}

function drop(block) {
  const box = block.getBoundingClientRect(), seen = view(), isAbove = box.bottom < seen.top - FAR;
  if (rows().length <= ROWS || (!isAbove && box.top < seen.bottom + FAR)) return false;
  if (block.contains(document.activeElement)) log.focus({ preventScroll: true });
  block.remove();
  if (isAbove) above(-box.height);
  return true;
}

function add(block, wanted) {
  if (wanted.edge === 'following') wanted.beside.after(block);
  else {
    wanted.beside.before(block);
    above(block.getBoundingClientRect().height, !block.dataset.previous);
  }
  while (drop(wanted.edge === 'following' ? blocks()[0] : blocks().pop()));
  sayEdges();
}

export async function fill() {
  if (filling || !log) return;
  filling = true;
  let mine = turn, wanted;
  try {
    while (log && (wanted = due())) {
      const block = await load(wanted.from);
      if (mine !== turn) mine = turn;
      else if (isReading(block)) {
        sayEdge(wanted.edge, block.textContent.trim());
        await pause(POLL);
      } else if (wanted.isFar) replace(block, log.scrollTop);
      else add(block, wanted);
    }
  } catch (error) {
    if (mine === turn) complain(error);
    if (mine === turn && wanted) sayEdge(wanted.edge, words(error));
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
  let mine = ++turn;
  try {
    while (!holder(number)) {
      const block = await load(number);
      if (mine !== turn) return null;
      replace(block);
      // A page on its way to fill() belongs beside events that are gone.
      mine = ++turn;
      if (isReading(block)) await pause(POLL);
      if (mine !== turn) return null;
    }
  } catch (error) {
    if (mine === turn) complain(error);
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

function complain(error) {
  const edge = log.querySelector('.block[data-reading] .edge');
  tell(words(error));
  if (edge) edge.textContent = words(error);
}

function tell(said) { live.textContent = said; }

export function here() {
  const top = view().top, row = rows().find((each) => each.getBoundingClientRect().bottom > top);
  return row ? +row.dataset.n : 1;
}
