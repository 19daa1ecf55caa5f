// Turns marks such as [redacted token] into buttons that show the hidden text; the site records each use. Works inside
// elements with data-reveal (the URL), data-csrf (the cookie's name) and data-part (the kind of evidence).
const MARK = /\[redacted [A-Za-z][\w ]{0,40}\]/g;

function wrap(root) {
  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.closest('.hidden-mark') && node.data.search(MARK) >= 0) texts.push(node);
  }
  for (const node of texts) {
    const parts = document.createDocumentFragment();
    let done = 0;
    for (const match of node.data.matchAll(MARK)) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'hidden-mark';
      button.textContent = match[0];
      button.title = 'Show the hidden text; this is recorded';
      parts.append(node.data.slice(done, match.index), button);
      done = match.index + match[0].length;
    }
    parts.append(node.data.slice(done));
    node.replaceWith(parts);
  }
}

async function open(button) {
  const root = button.closest('[data-reveal]');
  const event = button.closest('.ev');
  const marks = [...(event || root).querySelectorAll('.hidden-mark')];
  const cookie = document.cookie.split('; ').find((each) => each.startsWith(root.dataset.csrf + '='));
  const body = new URLSearchParams({
    part: event ? 'event' : root.dataset.part,
    event: event ? event.dataset.n : '',
    mark: marks.indexOf(button),
    csrfmiddlewaretoken: cookie ? cookie.split('=')[1] : '',
  });
  button.disabled = true;
  try {
    const reply = await fetch(root.dataset.reveal, { method: 'POST', body });
    const result = await reply.json();
    button.textContent = result.text ?? button.textContent;
    button.title = result.error ?? 'As it came';
    button.classList.toggle('open', result.text !== undefined);
  } catch {
    button.disabled = false;
    button.title = 'The site did not answer; try again';
  }
}

function attach() {
  for (const root of document.querySelectorAll('[data-reveal]:not([data-attached])')) {
    root.dataset.attached = '';
    wrap(root);
    root.addEventListener('click', (click) => {
      const button = click.target.closest('.hidden-mark');
      if (button && !button.disabled) open(button);
    });
  }
}

attach();
document.addEventListener('gradingsite:shown', attach);
