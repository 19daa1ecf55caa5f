// Previews the sessions that a rule matches while it is typed; nothing is saved. Without JavaScript, "Preview" does this.
(function () {
  'use strict';
  const form = document.querySelector('form[data-draft]');
  if (!form) return;
  const panel = document.getElementById('reach');
  const set = form.querySelector('[data-set]');
  const add = form.querySelector('[data-add]');
  const rows = Array.from(form.querySelectorAll('[data-cond]'));
  let timer, requests = 0;

  function blank(row) { return !row.querySelector('input').value; }

  // Blank conditions are hidden until they are added.
  rows.forEach(function (row, index) { row.hidden = index > 0 && blank(row); });
  function more() { add.hidden = !rows.some(function (row) { return row.hidden; }); }
  add.addEventListener('click', function () {
    const next = rows.find(function (row) { return row.hidden; });
    next.hidden = false;
    next.querySelector('select').focus();
    more();
  });
  more();

  function show() {
    const request = ++requests;
    const body = new FormData(form);
    body.set('do', 'panel');
    form.setAttribute('aria-busy', 'true');
    fetch(form.action, { method: 'POST', body: body, redirect: 'error' })
      .then(function (reply) {
        if (!reply.ok) throw new Error(reply.status);
        return reply.text();
      })
      .then(function (html) {
        if (request !== requests) return;
        panel.innerHTML = html;
        const count = Number(panel.firstElementChild.dataset.count) || 0;
        form.elements.expected.value = count;
        set.hidden = !count;
        set.textContent = 'Save and set ' + count + (count === 1 ? ' category' : ' categories');
      })
      .catch(function () {})
      .finally(function () { if (request === requests) form.removeAttribute('aria-busy'); });
  }

  form.addEventListener('input', function () {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
  // Typed before this ran, or filled in again by the browser.
  const inputs = rows.map(function (row) { return row.querySelector('input'); });
  if (inputs.some(function (input) { return input.value !== input.defaultValue; })) show();
})();
