// A list that follows its filters as they are chosen or typed: the form is asked for in the background, and what it
// narrows is put in the place of the old one. Without a script the form has its button.
(function () {
  'use strict';
  const PAUSE = 250;
  const form = document.querySelector('form[data-narrows]');
  if (!form) return;
  let timer, asked = 0;

  function query() {
    const given = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...given]) if (!value) given.delete(name);
    return given.toString();
  }

  async function show() {
    const mine = ++asked, list = document.querySelector(form.dataset.narrows), url = location.pathname + '?' + query();
    list.setAttribute('aria-busy', 'true');
    try {
      const reply = await fetch(url, { headers: { Accept: 'text/html' } });
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      if (mine !== asked) return;
      const found = page.querySelector(form.dataset.narrows);
      if (!found) return location.assign(url);
      document.querySelector(form.dataset.narrows).replaceWith(found);
      for (const part of ['.page .lede', '.page-head .actions', '.page-head .view-tabs']) {
        const came = page.querySelector(part), held = document.querySelector(part);
        if (came && held) held.replaceWith(came);
      }
      history.replaceState(null, '', url);
      document.dispatchEvent(new CustomEvent('gradingsite:shown'));
    } catch { if (mine === asked) form.submit(); }
  }

  form.addEventListener('input', function (event) {
    if (!event.target.name) return;
    clearTimeout(timer);
    timer = setTimeout(show, event.target.matches('[type=search]') ? PAUSE : 0);
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); clearTimeout(timer); show(); });
})();
