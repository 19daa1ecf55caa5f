// The theme: light, dark or the system's. Stored in this browser and applied before the first paint.
(function () {
  'use strict';
  const root = document.documentElement;
  // Style sheets hide what works only with JavaScript unless this class is set.
  root.classList.add('scripted');
  const stored = localStorage.getItem('theme');
  if (stored === 'light' || stored === 'dark') root.dataset.theme = stored;
  document.addEventListener('click', function (event) {
    if (!event.target.closest('[data-theme-switch]')) return;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    localStorage.setItem('theme', root.dataset.theme);
  });
})();
