// Keeps an open page up to date. Polls the feed every few seconds, except while the tab is hidden, and shows the judge's
// state, the counts and the banners. Parts marked `data-live` are loaded again from the page's address, unless the user
// types or selects text in them. Without JavaScript, pages stay as they were loaded.
(function () {
  'use strict';
  const script = document.currentScript;
  const SLOWEST = 30000, TIMEOUT = 10000;
  const REST = 10000, SOON = 1000;  // ms between two loads of a page; the same for a page on which the user waits
  const announcement = document.querySelector('[data-live-said]');
  const offline = document.querySelector('[data-live-state]');
  const top = document.getElementById('top');
  let version = script.dataset.version, etag = '', site = null, loadedAt = 0, failures = 0, failedAt, timer, polling = false;

  async function get(url, headers = {}) {
    const reply = await fetch(url, { headers, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(TIMEOUT) });
    if (!reply.ok && reply.status !== 304) throw new Error(reply.status);
    return reply;
  }

  function showState() {
    const pill = document.querySelector('[data-live-judge]');
    pill.dataset.liveJudge = site.judge.mark;
    pill.classList.toggle('c-alarm', site.judge.mark === 'trouble');
    pill.dataset.short = site.judge.short;
    pill.title = site.judge.title;
    pill.setAttribute('aria-label', site.judge.text);
    pill.querySelector('span').textContent = site.judge.text;
    document.querySelector('[data-live-clock]').textContent = site.at;
    document.querySelectorAll('[data-live-count]').forEach(function (entry) {
      const badge = entry.querySelector('b'), count = site.counts[entry.dataset.liveCount] || 0;
      badge.textContent = count;
      badge.hidden = !count;
    });
    const newer = document.querySelector('[data-live-newer]');
    if (newer) newer.hidden = site.newest <= Number(newer.dataset.liveNewer);
    document.title = (site.stopped ? '⚠ ' + site.stopped + ' · ' : '') + document.title.replace(/^⚠ .*? · /, '');
    const icon = document.querySelector('link[rel="icon"]'), iconUrl = icon.dataset[site.stopped ? 'stopped' : 'works'];
    if (iconUrl && icon.getAttribute('href') !== iconUrl) icon.href = iconUrl;
  }

  function isEdited(field) {
    if (field.matches('[type=checkbox], [type=radio]')) return field.checked !== field.defaultChecked;
    if (field.matches('select')) return Array.from(field.options).some((each) => each.selected !== each.defaultSelected);
    return field.type !== 'hidden' && field.value !== field.defaultValue;
  }

  function isBusy(region) {
    const active = document.activeElement, selection = getSelection();
    if (region.contains(active) && active.matches('input, select, textarea, [contenteditable]')) return true;
    if (!selection.isCollapsed && region.contains(selection.anchorNode)) return true;
    return Array.from(region.querySelectorAll('input, textarea, select')).some(isEdited);
  }

  // Replaces a part, and keeps open <details> and the keyboard's focus.
  function replace(old, fresh) {
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const unfolded = Array.from(old.querySelectorAll('details'), (each) => each.open);
    old.replaceWith(fresh);
    fresh.querySelectorAll('details').forEach((each, index) => { if (unfolded[index]) each.open = true; });
    if (!active) return;
    const same = Array.from(fresh.querySelectorAll('a, button, summary')).find((each) => each.tagName === active.tagName &&
      each.textContent === active.textContent && each.getAttribute('href') === active.getAttribute('href'));
    if (same) same.focus({ preventScroll: true });
  }

  async function loadRegions() {
    loadedAt = Date.now();
    const reply = await get(location.href, { Accept: 'text/html' });
    const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html').querySelectorAll('[data-live]');
    let news = '', isSkipped = false;
    document.querySelectorAll('[data-live]').forEach(function (old, index) {
      if (!fresh[index]) return;
      if (isBusy(old)) { isSkipped = true; return; }
      const before = old.dataset.told, after = fresh[index].dataset.told;
      if (before && after && before !== after) news = old.dataset.what + ': ' + before + ' → ' + after + ', ' + site.at;
      replace(old, fresh[index]);
    });
    if (isSkipped) news = 'Something on this page has changed. Reload the page when you have finished.';
    if (news) { announcement.textContent = news; announcement.hidden = false; }
    version = site.version;
  }

  async function refresh() {
    const reply = await get(script.dataset.feed, etag ? { 'If-None-Match': etag } : {});
    if (reply.status !== 304) {
      site = await reply.json();
      etag = reply.headers.get('ETag');
      showState();
    }
    if (site.top !== top.dataset.mark && !top.contains(document.activeElement)) {
      top.innerHTML = await (await get(script.dataset.top)).text();
      top.dataset.mark = site.top;
    }
    const isDue = Date.now() - loadedAt > (document.querySelector('[data-live-soon]') ? SOON : REST);
    if (isDue && site.version !== version && document.querySelector('[data-live]')) await loadRegions();
  }

  async function poll() {
    clearTimeout(timer);
    if (polling || document.hidden) return;
    polling = true;
    try {
      await refresh();
      failures = 0;
      offline.hidden = true;
    } catch (error) {
      failures += 1;
      const isSignedOut = error.message === '403';
      if (failures === 1) failedAt = new Date().toLocaleTimeString();
      const text = isSignedOut ? 'Signed out: reload to sign in' : 'Not live since ' + failedAt + ', trying again';
      if (offline.textContent !== text) offline.textContent = text;
      offline.hidden = failures === 1 && !isSignedOut; // one request may fail while the server restarts
    }
    polling = false;
    timer = setTimeout(poll, Math.min(1000 * script.dataset.seconds * Math.pow(2, Math.max(failures - 1, 0)), SLOWEST));
  }

  document.addEventListener('visibilitychange', poll);
  addEventListener('online', poll);
  poll();
})();
