// Sliders for the day and the time of the past state to show. Without JavaScript there are two fields and a button. Times
// are in the site's zone, whatever the browser's is.
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

    // Shows the slider's time, and returns the field's value, "" for now.
    function readSlider() {
      const at = new Date(start + Number(range.value) * hours * HOUR);
      const isNow = Number(range.value) === steps;
      const day = at.getUTCDate() + ' ' + MONTHS[at.getUTCMonth()];
      words.textContent = isNow ? 'now' : hours === 1 ? day + ', ' + at.toISOString().slice(11, 16) : day;
      range.setAttribute('aria-valuetext', words.textContent);
      return isNow ? '' : at.toISOString().slice(0, hours === 1 ? 16 : 10);
    }

    const chosen = field.value ? Date.parse(field.value.slice(0, 10) + 'T' + (field.value.slice(11, 16) || '00:00') + 'Z') : NaN;
    range.value = isNaN(chosen) ? steps : Math.round((chosen - start) / HOUR / hours);
    range.setAttribute('aria-valuetext', words.textContent);
    range.hidden = false;
    field.hidden = true;
    range.addEventListener('input', function () { field.value = readSlider(); });
    range.addEventListener('pointerup', function () { if (field.value !== field.defaultValue) form.requestSubmit(); });
  }

  form.querySelectorAll('[data-clock]').forEach(set);
  // Empty fields are left out of the URL. They are enabled again when the browser returns to this page.
  form.addEventListener('submit', function () {
    form.querySelectorAll('[name]').forEach(function (field) { field.disabled = field.value === ''; });
  });
  addEventListener('pageshow', function () {
    form.querySelectorAll('[name]').forEach(function (field) { field.disabled = false; });
  });
})();
