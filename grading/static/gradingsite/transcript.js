// Keys of the transcript (/ n N [ ]), highlights of the search's hits, and polling while a large transcript is indexed.
// Each key clicks a link or focuses a field that also works without this script.
//
// A script that replaces the transcript dispatches "gradingsite:shown" on the document.
const LINKS = { n: '[data-hit=next]', N: '[data-hit=previous]', '[': '[data-cite=previous]', ']': '[data-cite=next]' };
const MOST_MARKS = 300, WAIT = 2000;

document.addEventListener('keydown', (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.defaultPrevented || !(isPlain || event.getModifierState('AltGraph'))) return;
  if (event.target.closest('input, textarea, select, [contenteditable]')) return;
  const field = event.key === '/' && document.getElementById('log-find');
  const link = Object.hasOwn(LINKS, event.key) && document.querySelector(LINKS[event.key]);
  if (!field && !link) return;
  event.preventDefault();
  if (!field) return link.click();
  field.focus();
  field.select();
});

// Highlights the query without changing the text, and opens folds that contain it.
function mark(log) {
  if (!window.Highlight) return;
  const query = log.dataset.query.toLowerCase(), ranges = [], texts = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
  while (query && texts.nextNode() && ranges.length < MOST_MARKS) {
    const node = texts.currentNode, text = node.data.toLowerCase(), fold = node.parentElement.closest('.at details');
    for (let at = text.indexOf(query); at >= 0 && text.length === node.length; at = text.indexOf(query, at + query.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      if (fold) fold.open = true;
      ranges.push(range);
    }
  }
  CSS.highlights.set('hit', new Highlight(...ranges));
}

async function reload() {
  const reply = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error' });
  const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  document.getElementById('transcript').replaceWith(page.getElementById('transcript'));
  document.dispatchEvent(new CustomEvent('gradingsite:shown'));
}

function show() {
  const log = document.querySelector('[data-transcript]');
  if (!log) return;
  mark(log);
  const row = document.getElementById(location.hash.slice(1))?.closest('.ev') || log.querySelector('.ev.at');
  if (row) {
    row.scrollIntoView({ block: row.offsetHeight > 0.8 * log.clientHeight ? 'start' : 'center' });
    row.focus({ preventScroll: true });
  }
  if (document.querySelector('[data-waits]')) setTimeout(() => reload().catch(show), WAIT);
}

document.addEventListener('gradingsite:shown', show);
// After the browser has scrolled to the fragment by itself.
addEventListener('load', () => requestAnimationFrame(show));
