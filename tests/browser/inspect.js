// What no page of ours has: elements and attributes that only text could have brought, addresses that run or leave.
() => {
  const ALIEN = new Set([
    'iframe', 'frame', 'object', 'embed', 'base', 'math', 'marquee', 'style', 'foreignobject', 'plaintext', 'video',
    'source', 'noembed', 'animate', 'set', 'portal', 'applet', 'xmp',
  ]);
  const LOADS = new Set([
    'src', 'href', 'xlink:href', 'action', 'formaction', 'poster', 'data', 'background', 'manifest',
  ]);
  const HANDLER = /^on|pwned|^srcdoc$|^ping$|^hx-|^v-/;
  const found = [];

  function tell(element, why) { found.push(why + ': ' + element.outerHTML.slice(0, 200)); }

  function address(text) {
    try { return new URL(text, location.href); } catch { return { protocol: 'none:' }; }
  }

  function check(element, name, value) {
    if (HANDLER.test(name) || !/^[a-z][a-z0-9:-]*$/i.test(name)) tell(element, 'attribute from text');
    if ((name === 'id' || name === 'name') && /pwned|__proto__/.test(value)) tell(element, 'name from text');
    const loads = LOADS.has(name) || (name.startsWith('data-') && /^(\/|https?:|javascript:)/.test(value));
    if (!loads) return;
    const url = address(value);
    if (!['http:', 'https:'].includes(url.protocol)) tell(element, 'address that is none');
    else if (url.origin === location.origin) return;
    else if (element.localName !== 'a') tell(element, 'address of another site');
    else if (element.target === '_blank' && !/noopener|noreferrer/.test(element.rel)) tell(element, 'opener');
  }

  for (const element of document.querySelectorAll('*')) {
    const tag = element.localName.toLowerCase();
    if (ALIEN.has(tag) || tag.includes('-')) tell(element, 'element from text');
    if (tag === 'script' && !element.src && element.type !== 'application/json') tell(element, 'script from text');
    if (tag === 'meta' && element.httpEquiv) tell(element, 'meta from text');
    for (const { name, value } of element.attributes) check(element, name, value);
  }
  for (const violation of window.violations || []) found.push('the content policy had to stop ' + violation);
  if (window.pwned !== undefined) found.push('it ran');
  if ({}.pwned !== undefined) found.push('a prototype was changed');
  return found;
}
