// What axe does not look at: one heading of the first rank, headings in order, a way past the navigation, colours that
// stand alone, text that is cut off and said nowhere.
() => {
  const found = [];
  const brief = element => element.outerHTML.slice(0, 140);
  const shown = element => element.checkVisibility({ checkVisibilityCSS: true }) && element.getClientRects().length > 0;
  const all = (query, root) => Array.from((root || document).querySelectorAll(query));

  const headings = all('h1, h2, h3, h4, h5, h6').filter(shown);
  const ranks = headings.map(each => Number(each.localName[1]));
  if (ranks.filter(rank => rank === 1).length !== 1) found.push('not one h1 but ' + headings.filter((h, n) => ranks[n] === 1).map(h => h.textContent.trim().slice(0, 40)).join(' | '));
  const early = headings.slice(0, ranks.indexOf(1)).find(each => !each.closest('nav, aside, [role=complementary]'));
  if (early) found.push('before the first heading stands ' + brief(early));
  ranks.forEach((rank, n) => { if (n && rank > ranks[n - 1] + 1) found.push('a rank is left out before ' + brief(headings[n])); });

  if (all('main, [role=main]').length !== 1) found.push('not one main landmark');
  if (!document.documentElement.lang) found.push('no language');
  if (!document.title.trim()) found.push('no title');
  const first = all('a[href], button, input, select, textarea').find(each => each.tabIndex >= 0);
  const target = first && first.localName === 'a' && first.hash ? document.getElementById(first.hash.slice(1)) : null;
  if (!target || !target.closest('main')) found.push('the first link does not lead past the navigation');

  for (const source of ['judge', 'trajectory', 'journal', 'consumption', 'floor', 'human', 'alarm']) {
    for (const element of all('.c-' + source).filter(shown)) {
      const mark = each => all('use', each).some(use => use.getAttribute('href') === '#i-' + source);
      const beside = element.closest('.graded, li, tr, .tile, .src, header, p, label, .field') || element.parentElement;
      const says = /[a-z]{3}/i.test(element.textContent);
      const words = (element.getAttribute('aria-label') || element.textContent + beside.textContent).trim();
      if (!mark(element) && !mark(beside) && !says) found.push('colour alone: ' + brief(element));
      if (element.matches('svg') && !words) found.push('a shape without a word: ' + brief(element));
    }
  }

  for (const element of all('main *').filter(shown)) {
    const style = getComputedStyle(element);
    const cut = style.textOverflow === 'ellipsis' && element.scrollWidth > element.clientWidth + 1;
    if (cut && !element.closest('[title]') && !element.querySelector('[title]')) found.push('cut off: ' + brief(element));
  }
  return [...new Set(found)].slice(0, 12);
}
