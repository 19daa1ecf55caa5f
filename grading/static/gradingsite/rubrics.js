// Rubrics and runs: polls the progress of a run, and shows the sum of the weights while they are typed.
(function () {
  'use strict';

  const STEPS = [2000, 2000, 3000, 5000, 10000];

  function follow(box, step) {
    setTimeout(function () {
      if (document.hidden) { follow(box, step); return; }
      fetch(box.dataset.poll, { headers: { Accept: 'text/html' }, redirect: 'error' })
        .then(function (reply) {
          if (!reply.ok) throw new Error(reply.status);
          return reply.text();
        })
        .then(function (html) {
          box.innerHTML = html;
          // At the end of the run the rest of the page has changed too.
          if (box.querySelector('[data-over]')) location.reload();
          else follow(box, step);
        })
        .catch(function () { follow(box, Math.min(step + 1, STEPS.length - 1)); });
    }, STEPS[step]);
  }

  document.querySelectorAll('[data-poll]').forEach(function (box) { follow(box, 0); });

  const sum = document.querySelector('[data-sum]');
  if (sum) {
    document.addEventListener('input', function (event) {
      if (event.target.name !== 'dimension_weight') return;
      const fields = document.querySelectorAll('[name="dimension_weight"]');
      const total = Array.from(fields).reduce(function (all, field) { return all + Number(field.value); }, 0);
      sum.textContent = Number.isFinite(total) ? String(Math.round(total * 1000) / 1000).replace(/^0\./, '.') : '–';
    });
  }
})();
