// Previews the effect of a bulk correction while it is typed; nothing is saved. Without JavaScript, "Preview" does this.
(function () {
  'use strict';
  const form = document.querySelector('form[data-bulk]');
  if (!form) return;
  const panel = document.getElementById('effect');
  const submit = form.querySelector('[data-submit]');
  let timer, requests = 0;

  function show() {
    const request = ++requests;
    const body = new FormData(form);
    body.set('preview', 'panel');
    form.classList.add('stale');
    fetch(form.action, { method: 'POST', body: body, redirect: 'error' })
      .then(function (reply) {
        if (!reply.ok) throw new Error(reply.status);
        return reply.text();
      })
      .then(function (html) {
        if (request !== requests) return;
        panel.innerHTML = html;
        submit.textContent = panel.firstElementChild.dataset.names;
        form.classList.remove('stale');
      })
      .catch(function () { if (request === requests) form.classList.remove('stale'); });
  }

  form.addEventListener('input', function (event) {
    if (event.target.name === 'reason') return;
    if (event.target.name === 'value') form.querySelector('[value="grade"]').checked = true;
    clearTimeout(timer);
    timer = setTimeout(show, 200);
  });
  // Ctrl+Enter in the reason submits, as everywhere in review.
  form.addEventListener('keydown', function (event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit(submit);
  });
  if (form.elements.value.value || form.querySelector('[name="answer"]:checked').value !== 'grade') show();
})();
