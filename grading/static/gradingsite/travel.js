// The two clocks as sliders. Without script there are a date, a moment and a button. All reckoning is on the wall clock
// of the page, as text: the browser's own zone plays no part.
(function () {
  'use strict';
  const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const HOUR = 3600000;
  const form = document.querySelector('[data-travel]');
  if (!form) return;

  function set(clock) {
    const field = clock.querySelector('input:not([type="range"])');
    const range = clock.querySelector('[type="range"]');
    const words = clock.querySelector('[data-words]');
    const start = Date.parse(clock.dataset.start.slice(0, 10) + 'T' + (clock.dataset.start.slice(11) || '00:00') + 'Z');
    const hours = Number(clock.dataset.hours);
    const steps = Number(clock.dataset.steps);

    function said() {
      const at = new Date(start + Number(range.value) * hours * HOUR);
      const isNow = Number(range.value) === steps;
      const day = at.getUTCDate() + ' ' + MONTHS[at.getUTCMonth()];
      words.textContent = isNow ? 'now' : hours === 1 ? day + ', ' + at.toISOString().slice(11, 16) : day;
      range.setAttribute('aria-valuetext', words.textContent);
      return isNow ? '' : at.toISOString().slice(0, hours === 1 ? 16 : 10);
    }

    const told = field.value ? Date.parse(field.value.slice(0, 10) + 'T' + (field.value.slice(11, 16) || '00:00') + 'Z') : NaN;
    range.value = isNaN(told) ? steps : Math.round((told - start) / HOUR / hours);
    range.setAttribute('aria-valuetext', words.textContent);
    range.hidden = false;
    field.hidden = true;
    range.addEventListener('input', function () { field.value = said(); });
    range.addEventListener('pointerup', function () { if (field.value !== field.defaultValue) form.requestSubmit(); });
  }

  form.querySelectorAll('[data-clock]').forEach(set);
  // What is empty is not in the address; it is back when the browser comes back to this page.
  form.addEventListener('submit', function () {
    form.querySelectorAll('[name]').forEach(function (field) { field.disabled = field.value === ''; });
  });
  addEventListener('pageshow', function () {
    form.querySelectorAll('[name]').forEach(function (field) { field.disabled = false; });
  });
})();
