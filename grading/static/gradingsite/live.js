// Keeps an open page true: the judge's state, the counts and the lines at the top on every page; whatever is marked
// `data-live` where a page has such parts. Those are read anew from the page's own address and put in place, unless
// somebody types or marks text there. Without script, pages stay as they were loaded.
(function () {
  'use strict';
  const script = document.currentScript;
  const SPEAK = 30000;    // to the poller, so that it knows that this page is still open
  const REST = 10000;     // between two readings of a page
  const SPREAD = 4000;    // what concerns every page, not all read at the same moment
  const SOON = 1000;      // between two readings where something is under way that somebody waits for
  const said = document.querySelector('[data-live-said]');
  const state = document.querySelector('[data-live-state]');
  const top = document.getElementById('top');
  let news = script.dataset.news, port, readAt = 0, timer, reading = false, wanted = false, latest = null;

  function regions(root) { return Array.from(root.querySelectorAll('[data-live]')); }

  function watched() {
    return Array.from(document.querySelectorAll('[data-session]')).map(function (each) { return each.dataset.session; });
  }

  function text(element, words) { if (element && element.textContent !== words) element.textContent = words; }

  // --- what every page shows -----------------------------------------------------------------------------------------
  function showState(now) {
    const pill = document.querySelector('[data-live-judge]');
    if (pill) {
      pill.dataset.liveJudge = now.judge.look;
      pill.classList.toggle('c-alarm', now.judge.look === 'trouble');
      pill.title = now.judge.title;
      text(pill.querySelector('span'), now.judge.words);
    }
    text(document.querySelector('[data-live-clock]'), now.at);
    document.querySelectorAll('[data-live-count]').forEach(function (entry) {
      const count = now.counts[entry.dataset.liveCount] || 0;
      const place = entry.querySelector('b');
      text(place, String(count));
      place.hidden = !count;
    });
    document.querySelectorAll('[data-live-newer]').forEach(function (line) {
      line.hidden = now.newest <= Number(line.dataset.liveNewer);
    });
    const title = document.title.replace(/^⚠ .*? · /, '');
    const wanted = now.stopped ? '⚠ ' + now.stopped + ' · ' + title : title;
    if (document.title !== wanted) document.title = wanted;
    const icon = document.querySelector('link[rel="icon"][data-works]');
    const drawn = now.stopped ? 'stopped' : 'works';
    if (icon && icon.getAttribute('href') !== icon.dataset[drawn]) icon.setAttribute('href', icon.dataset[drawn]);
  }

  // --- parts of the page ---------------------------------------------------------------------------------------------
  function isBusy(region) {
    const active = document.activeElement;
    if (region.contains(active) && active.matches('input, select, textarea, [contenteditable]')) return true;
    const marked = getSelection();
    if (marked && !marked.isCollapsed && region.contains(marked.anchorNode)) return true;
    return Array.from(region.querySelectorAll('input, textarea, select')).some(function (field) {
      if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
      if (field.matches('select')) {
        return Array.from(field.options).some(function (option) { return option.selected !== option.defaultSelected; });
      }
      return field.type !== 'hidden' && field.value !== field.defaultValue;
    });
  }

  function replace(old, fresh) {
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const opened = Array.from(old.querySelectorAll('details')).map(function (each) { return each.open; });
    old.replaceChildren.apply(old, Array.from(fresh.childNodes));
    Array.from(old.attributes).forEach(function (each) { if (!fresh.hasAttribute(each.name)) old.removeAttribute(each.name); });
    Array.from(fresh.attributes).forEach(function (each) { old.setAttribute(each.name, each.value); });
    old.querySelectorAll('details').forEach(function (each, at) { if (opened[at]) each.open = true; });
    if (!active) return;
    // Where the keyboard was.
    const same = Array.from(old.querySelectorAll('a, button, summary')).find(function (each) {
      return each.tagName === active.tagName && each.textContent === active.textContent &&
        each.getAttribute('href') === active.getAttribute('href');
    });
    if (same) same.focus({ preventScroll: true });
  }

  function tell(words) {
    said.textContent = words;
    said.hidden = false;
  }

  function compare(old, fresh) {
    const before = old.dataset.told, after = fresh.dataset.told;
    if (before && after && before !== after) tell(fresh.dataset.what + ': ' + before + ' → ' + after + ', ' + latest.at);
  }

  async function read() {
    reading = true;
    wanted = false;
    const asked = latest.news;
    try {
      const reply = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error', cache: 'no-store' });
      if (!reply.ok) throw new Error(reply.status);
      const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const others = regions(fresh);
      const left = regions(document).filter(function (old, at) {
        if (!others[at]) return false;
        if (isBusy(old)) return true;
        compare(old, others[at]);
        replace(old, others[at]);
        return false;
      });
      takeTop(fresh.getElementById('top'));
      if (left.length) tell('Something on this page has changed. Reload it when you have finished here.');
      news = asked;
    } catch (error) {
      wanted = true; // the next answer tries again
    } finally {
      reading = false;
      readAt = Date.now();
    }
  }

  function takeTop(fresh) {
    if (fresh && !top.contains(document.activeElement)) replace(top, fresh);
  }

  async function readTop(mark) {
    try {
      const reply = await fetch(script.dataset.top, { redirect: 'error', cache: 'no-store' });
      if (!reply.ok) throw new Error(reply.status);
      const html = await reply.text();
      if (top.contains(document.activeElement)) return;
      top.innerHTML = html;
      top.dataset.mark = mark;
    } catch (error) { /* the next answer tries again */ }
  }

  function isStale(now) {
    const own = watched();
    // A page about one session follows that session, any other follows everything.
    if (!own.length) return now.news !== news;
    return own.some(function (key) {
      const mark = document.querySelector('[data-session="' + key + '"]').dataset.mark;
      return key in now.sessions && now.sessions[key] !== mark;
    }) || now.top !== top.dataset.mark;
  }

  function take(now) {
    latest = now;
    showState(now);
    if (!regions(document).length) {
      if (now.top !== top.dataset.mark) readTop(now.top);
      return;
    }
    if (!(isStale(now) || wanted) || reading) return;
    clearTimeout(timer);
    const soon = document.querySelector('[data-live-soon]');
    const rest = Math.max(readAt + (soon ? SOON : REST) - Date.now(), 0);
    timer = setTimeout(function () {
      if (document.hidden) wanted = true; // when somebody looks again
      else read();
    }, rest + (soon || watched().length ? 0 : Math.random() * SPREAD));
  }

  // --- the poller ----------------------------------------------------------------------------------------------------
  function hear(message) {
    if (message.news) take(message.news);
    if (message.found) state.hidden = true;
    if (message.lost) {
      const since = new Date(message.lost).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
      text(state, message.isSignedOut ? 'Signed out: reload to sign in' : 'Not live since ' + since + ', trying again');
      state.hidden = false;
    }
  }

  function speak(more) {
    port.postMessage(Object.assign({ visible: !document.hidden, sessions: watched() }, more));
  }

  function begin(own) {
    port = own;
    port.onmessage = function (event) { hear(event.data); };
    speak({ feed: new URL(script.dataset.feed, location.href).href, seconds: Number(script.dataset.seconds) });
    setInterval(speak, SPEAK);
    document.addEventListener('visibilitychange', function () {
      speak({ now: !document.hidden });
      if (!document.hidden && wanted && latest) take(latest);
    });
    addEventListener('online', function () { speak({ now: true }); });
    addEventListener('pagehide', function () { port.postMessage({ gone: true }); });
    addEventListener('pageshow', function (event) { if (event.persisted) speak({ now: true }); });
  }

  if (window.SharedWorker) {
    begin(new SharedWorker(script.dataset.poller).port);
  } else {
    const other = document.createElement('script');
    other.src = script.dataset.poller;
    other.onload = function () {
      const channel = new MessageChannel();
      window.openPoller(channel.port2);
      begin(channel.port1);
    };
    document.head.append(other);
  }
})();
