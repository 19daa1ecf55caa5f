// Before Tab is pressed ("count"): how many things it should reach, and an ear for what it does reach.
// Afterwards ("tell"): what was left out, out of order, or focused without a ring, in words.
ask => {
  const REACHED = 'a[href], area[href], button, input, select, textarea, summary, [tabindex]';
  const brief = element => element.outerHTML.slice(0, 120);

  function wanted() {
    return Array.from(document.querySelectorAll(REACHED)).filter(element => {
      if (element.disabled || element.tabIndex < 0 || element.type === 'hidden') return false;
      if (!element.checkVisibility({ visibilityProperty: true }) || element.closest('[inert]')) return false;
      if (element.localName === 'summary' && element.parentElement.localName !== 'details') return false;
      if (element.type !== 'radio') return true;
      // Of a group of radio buttons Tab reaches the chosen one, or the first.
      const group = Array.from(document.querySelectorAll('input[type=radio]'))
        .filter(each => each.name === element.name && each.form === element.form);
      return element === (group.find(each => each.checked) || group[0]);
    });
  }

  function ringed(element) {
    const style = getComputedStyle(element);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    return outlined || style.boxShadow !== element.shadowAtRest;
  }

  if (ask === 'count') {
    window.wanted = wanted();
    window.reached = [];
    window.wanted.forEach(element => { element.shadowAtRest = getComputedStyle(element).boxShadow; });
    document.addEventListener('focusin', event => {
      window.reached.push({ element: event.target, ringed: ringed(event.target) });
    });
    // From the top, also where a field has taken the focus by itself.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
    // A date has a stop for each of its parts.
    return window.wanted.length + 4 * document.querySelectorAll('input[type=date], input[type=time]').length;
  }
  // A page may have taken something away meanwhile, such as the link to what has loaded by itself.
  const stays = element => element.isConnected;
  const reached = window.reached.map(each => each.element).filter(stays);
  const found = window.wanted.filter(each => stays(each) && !reached.includes(each)).map(each => 'not reached: ' + brief(each));
  window.reached.filter(each => stays(each.element) && !each.ringed).forEach(each => found.push('no ring: ' + brief(each.element)));
  window.wanted.filter(each => stays(each) && each.tabIndex > 0).forEach(each => found.push('an order of its own: ' + brief(each)));
  reached.slice(1).forEach((element, n) => {
    const before = reached[n];
    const follows = before.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (!follows && reached.indexOf(element) === n + 1) found.push('out of order: ' + brief(element));
  });
  return found.slice(0, 8);
}
