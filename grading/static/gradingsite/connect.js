// Polls the connect page until the first session of a new token arrives. Without JavaScript, the list of tokens shows when
// each was last used.
(function () {
  'use strict';

  const box = document.querySelector('[data-arrival]');
  if (!box) return;

  function poll() {
    if (document.hidden) { setTimeout(poll, 2000); return; }
    fetch(box.dataset.arrival, { headers: { Accept: 'text/html' }, redirect: 'error' })
      .then(function (reply) {
        if (!reply.ok) throw new Error(reply.status);
        return reply.text();
      })
      .then(function (html) {
        if (html.trim() !== box.innerHTML.trim()) box.innerHTML = html;
        if (!box.querySelector('[data-over]')) setTimeout(poll, 2000);
      })
      .catch(function () { setTimeout(poll, 10000); });
  }

  setTimeout(poll, 2000);
})();
