// Filters a list while its form is changed: fetches the filtered page in the background and replaces the list. Without
// JavaScript the form has a button.
(function () {
  'use strict';
  const PAUSE = 250;
  const form = document.querySelector('form[data-narrows]');
  if (!form) return;
  let timer, requests = 0;

  function query() {
    const filters = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...filters]) if (!value) filters.delete(name);
    return filters.toString();
  }

  async function show() {
    const request = ++requests, list = document.querySelector(form.dataset.narrows), url = location.pathname + '?' + query();
    list.setAttribute('aria-busy', 'true');
    try {
      const reply = await fetch(url, { headers: { Accept: 'text/html' } });
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      if (request !== requests) return;
      const newList = page.querySelector(form.dataset.narrows);
      if (!newList) return location.assign(url);
      document.querySelector(form.dataset.narrows).replaceWith(newList);
      for (const part of ['.page .lede', '.page-head .actions', '.page-head .view-tabs']) {
        const newPart = page.querySelector(part), oldPart = document.querySelector(part);
        if (newPart && oldPart) oldPart.replaceWith(newPart);
      }
      history.replaceState(null, '', url);
      document.dispatchEvent(new CustomEvent('gradingsite:shown'));
    } catch { if (request === requests) form.submit(); }
  }

  form.addEventListener('input', function (event) {
    if (!event.target.name) return;
    clearTimeout(timer);
    timer = setTimeout(show, event.target.matches('[type=search]') ? PAUSE : 0);
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); clearTimeout(timer); show(); });
})();
