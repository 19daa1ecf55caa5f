// What this does, before anything is saved: asks the server to draw it as the grade is typed. Without script, "Preview" does.
(function () {
  'use strict';
  const form = document.querySelector('form[data-preview]');
  const panel = document.getElementById('effect');
  const grade = form.elements.value;
  const exclude = form.elements.exclude;
  const submit = form.querySelector('[data-submit]');
  let timer, last = 0;

  function show() {
    const query = new URLSearchParams({ value: grade.value });
    if (exclude.checked) query.set('exclude', 'on');
    const mine = ++last;
    form.classList.add('stale');
    fetch(form.dataset.preview + '?' + query, { headers: { Accept: 'text/html' }, redirect: 'error' })
      .then(function (reply) {
        if (!reply.ok) throw new Error(reply.status);
        return reply.text();
      })
      .then(function (html) {
        if (mine !== last) return;
        panel.innerHTML = html;
        submit.textContent = panel.firstElementChild.dataset.names;
        form.classList.remove('stale');
      })
      .catch(function () { if (mine === last) form.classList.remove('stale'); });
  }

  form.addEventListener('input', function (event) {
    if (event.target === form.elements.reason) return;
    if (event.target.dataset.band) grade.value = event.target.dataset.band;
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  });
  // What was typed before this file had loaded, or stands here after "back".
  if (grade.value || exclude.checked) show();
})();
