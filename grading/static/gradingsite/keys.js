// The dialog of the page's keys at ?, explanations of terms beside them, and copy buttons. Without JavaScript the first
// two are links, and copy buttons are hidden.
(function () {
  'use strict';
  const help = () => document.getElementById('help');

  function open() {
    if (help() && !help().open) help().showModal();
  }

  function explain(link) {
    const line = document.getElementById('term-line'), place = link.getBoundingClientRect();
    line.textContent = link.dataset.term;
    line.showPopover();
    line.style.left = Math.max(8, Math.min(place.left, innerWidth - line.offsetWidth - 8)) + 'px';
    const below = place.bottom + 6;
    line.style.top = (below + line.offsetHeight > innerHeight ? place.top - line.offsetHeight - 6 : below) + 'px';
  }

  document.addEventListener('keydown', function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches('input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]')) return;
    const search = document.querySelector('[data-search]');
    if (event.key === '?') { event.preventDefault(); open(); }
    else if (event.key === '/' && search) { event.preventDefault(); search.focus(); search.select(); }
  });

  function copy(button) {
    const text = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(text);
    // The clipboard needs https or localhost; elsewhere the text stays selected.
    if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(() => { button.textContent = 'Copied'; });
  }

  document.querySelectorAll('[data-copy]').forEach((button) => { button.hidden = false; });
  document.addEventListener('click', function (event) {
    const copied = event.target.closest('[data-copy]');
    if (copied) copy(copied);
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const term = event.target.closest('a[data-term]');
    if (event.target.closest('[data-help]') && help()) { event.preventDefault(); open(); }
    else if (event.target.closest('[data-close]')) help().close();
    else if (term) { event.preventDefault(); explain(term); }
  });
})();
