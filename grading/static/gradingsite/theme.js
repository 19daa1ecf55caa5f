// Light, dark, or what the system says: kept in this browser, applied before the first paint.
(function () {
  'use strict';
  const root = document.documentElement;
  // For style sheets: what only a script can do is not offered without one.
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
