// The connect page follows what a new token brings, until its first session is there. Without script, the list of tokens
// says when each was last used.
(function () {
  'use strict';

  const box = document.querySelector('[data-arrival]');
  if (!box) return;

  function look() {
    if (document.hidden) { setTimeout(look, 2000); return; }
    fetch(box.dataset.arrival, { headers: { Accept: 'text/html' }, redirect: 'error' })
      .then(function (reply) {
        if (!reply.ok) throw new Error(reply.status);
        return reply.text();
      })
      .then(function (html) {
        if (html.trim() !== box.innerHTML.trim()) box.innerHTML = html;
        if (!box.querySelector('[data-over]')) setTimeout(look, 2000);
      })
      .catch(function () { setTimeout(look, 10000); });
  }

  setTimeout(look, 2000);
})();
