// What a finger misses: everything that can be tapped and whose hit area is less than 44 pixels high or wide.
// Exempt, as in WCAG 2.5.5: links within sentences, and the stops of a scale whose number can be typed instead.
() => {
  const SIZE = 44, STEP = 1;
  const squeezed = (text) => text.replace(/\s+/g, ' ').trim();

  function inSentence(element) {
    if (getComputedStyle(element).display !== 'inline') return false;
    let block = element.parentElement;
    while (getComputedStyle(block).display === 'inline') block = block.parentElement;
    const words = block.cloneNode(true);
    words.querySelectorAll('a, button').forEach((each) => each.remove());
    return /\p{L}{2}/u.test(squeezed(words.textContent));
  }

  function extent(element, x, y, dx, dy) {
    let reached = 0;
    while (reached < SIZE) {
      const hit = document.elementFromPoint(x + dx * (reached + STEP), y + dy * (reached + STEP));
      const label = hit && hit.closest('label');
      if (!hit || !(element.contains(hit) || (label && label.control === element))) break;
      reached += STEP;
    }
    return reached;
  }

  const small = [];
  for (const element of document.querySelectorAll('a[href], button, summary, select, textarea, input:not([type=hidden])')) {
    if (!element.checkVisibility() || element.disabled || element.closest('.sr, .stops')) continue;
    const target = (element.labels && element.type !== 'text' && element.closest('label')) || element;
    if (target !== element && ['checkbox', 'radio'].indexOf(element.type) < 0) continue;
    target.scrollIntoView({ block: 'center', inline: 'center' });
    const box = target.getClientRects()[0];
    if (!box || box.width < 2 || box.height < 2 || inSentence(element)) continue;
    const x = Math.min(Math.max(box.left + box.width / 2, 1), innerWidth - 1), y = box.top + box.height / 2;
    const high = 1 + extent(element, x, y, 0, 1) + extent(element, x, y, 0, -1);
    const wide = 1 + extent(element, x, y, 1, 0) + extent(element, x, y, -1, 0);
    if (high < SIZE || wide < SIZE) {
      const name = squeezed(element.textContent || element.getAttribute('aria-label') || element.name || '').slice(0, 40);
      small.push(`${wide} × ${high}: ${element.tagName.toLowerCase()}.${element.className} “${name}”`);
    }
  }
  return small;
}
