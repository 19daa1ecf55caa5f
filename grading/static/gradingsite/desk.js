// The review desk with the keyboard. The server renders everything: forms and links are fetched in the background, and
// the fetched page's <main> replaces the present one. Elements are looked up at each use, because they are replaced.
(function () {
  'use strict';
  const RENEW = 60000, PAUSE = 120, SECOND_DIGIT = 800;
  const $ = (selector, under) => (under || document).querySelector(selector);
  const desk = () => $('main.desk');
  const field = (name) => { const form = $('#answer'); return form && form.elements[name]; };
  const address = () => location.pathname + location.search;
  let busy = false, shownAddress = address();

  // ---------- requests ----------
  function csrf() {
    const name = desk().dataset.csrf + '=';
    const cookie = document.cookie.split('; ').find((part) => part.startsWith(name));
    return cookie ? cookie.slice(name.length) : '';
  }

  // Shows a message in the status line.
  function say(text, isError) {
    const status = $('#status') || $('.status');
    if (!status) return;
    const line = document.createElement('p');
    line.className = isError ? 'grave' : '';
    line.textContent = text;
    status.replaceChildren(line);
  }

  // Fetches a page of the desk and shows it. If that fails, the present page stays, with what was typed.
  async function go(url, options) {
    if (busy) return;
    busy = true;
    desk().setAttribute('aria-busy', 'true');
    clearTimeout(timer);
    try {
      const reply = await fetch(url, { headers: { Accept: 'text/html' }, ...options });
      const finalUrl = new URL(reply.url);
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const main = $('main.desk', page);
      if (finalUrl.pathname.startsWith('/login/')) say('You were logged out. Log in again in another tab, then submit again. Your input is kept.', true);
      else if (main) {
        finalUrl.hash = new URL(url, location).hash;
        show(page, main, finalUrl, { ...options, redirected: reply.redirected });
      }
      else if (reply.ok) location.assign(finalUrl);
      else say(refusal(reply.status), true);
    } catch (error) {
      say('The site could not be reached, and nothing was saved. Your input is kept. Try again.', true);
    } finally {
      busy = false;
      desk().removeAttribute('aria-busy');
    }
  }

  function refusal(status) {
    if (status === 403) return 'That was refused: your role does not allow it, or you have logged in again in the meantime. Your input is kept. Submit again, or reload the page.';
    return 'The site answered with an error (' + status + '), and nothing was saved. Your input is kept. Try again.';
  }

  function show(page, main, url, options) {
    const posted = options.method === 'POST';
    const scrolled = $('.rail-list') ? $('.rail-list').scrollTop : 0;
    const moved = options.still || (url.pathname !== location.pathname && !(posted && !options.redirected));
    if (posted && moved) forget();
    leave();
    document.title = page.title;
    for (const each of ['.topbar .nav', '.topbar .menu nav']) {
      const nav = $(each, page);
      if (nav && $(each)) $(each).replaceWith(nav);
    }
    desk().replaceWith(main);
    url.searchParams.delete('saved');
    // A refused form is shown again at the address of the page that sent it.
    const stays = options.still || (posted && !options.redirected);
    if (!stays) history[moved ? 'pushState' : 'replaceState'](null, '', url);
    shownAddress = address();
    if ($('.rail-list')) $('.rail-list').scrollTop = scrolled;
    if (moved) scrollTo(0, 0);
    begin();
    const wrongField = main.dataset.focus && $('#' + main.dataset.focus);
    if (wrongField) wrongField.focus();
    else if (moved || posted) main.focus({ preventScroll: true });
  }

  function send(form, button) {
    const action = (button && button.getAttribute('formaction')) || form.getAttribute('action');
    const body = new URLSearchParams(new FormData(form, button || undefined));
    // The page's token is outdated if the person has logged in again in another tab.
    body.set('csrfmiddlewaretoken', csrf());
    return go(action, { method: 'POST', body, headers: { Accept: 'text/html' } });
  }

  // ---------- the grade as it is typed ----------
  let timer, requests = 0;
  function typed() {
    const value = field('value');
    const button = $('[data-submit]');
    checkStop(value.value);
    if (button) { button.name = 'answer'; button.value = 'grade'; }
    keep();
    clearTimeout(timer);
    timer = setTimeout(() => effect(value.value), PAUSE);
    if (GRADE.test(value.value.trim())) labelSubmit('Submit ' + short(value.value));
  }

  // Checks the stop of the scale with the typed number, if there is one.
  function checkStop(text) {
    const grade = GRADE.test(text.trim()) ? Number(hundredths(text)) : NaN;
    for (const stop of document.querySelectorAll('.stops input')) stop.checked = Math.abs(Number(stop.value) - grade) < 1e-9;
  }

  const GRADE = /^(0?\.\d{1,2}|[01](\.0{0,2})?|\d\d)$/;
  const hundredths = (text) => (/^\d\d$/.test(text.trim()) ? '.' + text.trim() : text);
  const short = (text) => (Number(hundredths(text)) >= 1 ? '1' : Number(hundredths(text)).toFixed(2).replace(/^0/, ''));
  function labelSubmit(text) { const label = $('[data-names]', $('[data-submit]')); if (label) label.textContent = text; }

  async function effect(value) {
    const request = ++requests, form = $('#answer');
    try {
      const reply = await fetch(form.dataset.effect + '?' + new URLSearchParams({ value }), { redirect: 'error' });
      if (!reply.ok) throw new Error(reply.status);
      const parts = new DOMParser().parseFromString(await reply.text(), 'text/html').querySelectorAll('[data-part]');
      if (request !== requests || form !== $('#answer')) return;
      for (const part of parts) {
        const oldPart = $('.panel [data-part="' + part.dataset.part + '"]');
        if (oldPart) oldPart.replaceWith(part);
        if (part.dataset.names) labelSubmit(part.dataset.names);
      }
    } catch (error) { if (request === requests) say('The effect can’t be shown because the site did not answer. You can still submit.', false); }
  }

  let digits = '', digitAt = 0;
  function digit(key) {
    const value = field('value');
    if (!value || value.disabled) return;
    const second = digits.length === 1 && Date.now() - digitAt < SECOND_DIGIT;
    digits = second ? digits + key : key;
    digitAt = Date.now();
    value.value = key === '=' ? '1' : '.' + digits.padEnd(2, '0');
    if (key === '=') digits = '';
    typed();
  }

  function accept() {
    const button = $('[data-submit]'), hint = $('.keybar [data-key="a"]');
    const acceptable = hint && !hint.classList.contains('off') && hint.textContent.match(/accept\s+(\S+)/);
    if (!button) return;
    if (!acceptable) return say($('.reveal [data-key="r"]') ? 'The reward is hidden until you grade. Type your grade, or press R to reveal the reward.' : 'There is nothing to accept, because nobody has graded this session yet. Type a grade.', false);
    field('value').value = acceptable[1];
    typed();
    button.value = 'accept';
    labelSubmit('Accept ' + acceptable[1]);
  }

  function submit() {
    const button = $('[data-submit]');
    if (!button) return;
    if (!field('value').value.trim()) return say('Choose a grade first: click a mark on the scale, or press 0–9.', false);
    send($('#answer'), button);
  }

  // Appends a common reason to the typed one, once.
  function addReason(words) {
    const reason = field('reason'), text = reason.value.trim();
    if (!text.includes(words)) reason.value = text ? text + ', ' + words : words;
    keep();
  }

  // ---------- asking for a reason in one line, in place of the buttons ----------
  function ask(key) {
    const form = $('#ask'), button = form && $('[data-ask="' + key + '"]', form);
    if (!button) return;
    for (const each of form.querySelectorAll('[data-ask]')) delete each.dataset.chosen;
    button.dataset.chosen = '';
    $('[data-ask-label]', form).textContent = button.dataset.say;
    form.elements.reason.placeholder = button.dataset.say;
    $('.foot').dataset.asking = key;
    form.elements.reason.focus();
  }

  function unask() {
    const foot = $('.foot');
    if (foot) delete foot.dataset.asking;
    desk().focus({ preventScroll: true });
  }

  // ---------- moving about ----------
  function step(by) {
    const rows = [...document.querySelectorAll('.qrow')];
    const here = rows.findIndex((row) => row.hasAttribute('aria-current'));
    // Sessions that others have claimed are listed last: after one of them the first session follows.
    let at = by > 0 && rows[here] && 'held' in rows[here].dataset ? 0 : here + by;
    while (rows[at] && 'held' in rows[at].dataset) at += by;
    if (here < 0) at = by > 0 ? 0 : -1;
    if (rows[at]) return go(rows[at].href);
    if (here < 0 && by > 0) return go($('.rail-views').action);
    say(by > 0 ? 'This is the last session in the list.' : 'This is the first session in the list.', false);
  }

  // Opens the transcript's tab if necessary, and focuses its search.
  async function find() {
    const tab = $('.tabs a[data-tab][href*="tab=transcript"]');
    if (tab && !tab.hasAttribute('aria-current')) await go(tab.href);
    const input = $('#log-find');
    if (input) { input.focus(); input.select(); }
  }

  // ---------- drafts, which survive a reload ----------
  const draftOf = () => 'desk:' + ($('#answer') ? $('#answer').dataset.draft : '');
  function keep() { sessionStorage.setItem(draftOf(), JSON.stringify([field('value').value, field('reason').value])); }
  function forget() { sessionStorage.removeItem(draftOf()); }
  function recall() {
    const draft = field('value') && sessionStorage.getItem(draftOf());
    if (!draft || field('value').value || field('reason').value || field('value').disabled) return;
    [field('value').value, field('reason').value] = JSON.parse(draft);
    if (field('value').value) typed();
  }

  // ---------- the claim ----------
  let renewing, released = false;
  async function renew() {
    const main = desk(), url = main.dataset.renew;
    if (!url || document.visibilityState !== 'visible') return;
    const claim = field('claim').value;
    try {
      const reply = await fetch(url, { method: 'POST', body: new URLSearchParams({ claim, csrfmiddlewaretoken: csrf() }) });
      if (main !== desk()) return;
      const claimed = await reply.json();
      if (claimed.until) $('[data-until]').textContent = 'Yours until ' + claimed.until;
      else { $('[data-until]').textContent = 'Your claim has expired'; say(claimed.message, true); }
    } catch (error) { if (main === desk()) $('[data-until]').textContent = 'The claim could not be renewed'; }
  }

  function leave() {
    const url = desk().dataset.release;
    if (!url || released) return;
    released = true;
    navigator.sendBeacon(url, new URLSearchParams({ claim: field('claim').value, csrfmiddlewaretoken: csrf() }));
  }

  function begin() {
    released = false;
    clearInterval(renewing);
    renewing = setInterval(renew, RENEW);
    const current = $('.qrow[aria-current]'), list = $('.rail-list');
    if (current && (current.offsetTop < list.scrollTop + 32 || current.offsetTop > list.scrollTop + list.clientHeight - 56)) {
      list.scrollTop = current.offsetTop - list.clientHeight / 2;
    }
    recall();
    const value = field('value');
    if (value && !value.disabled && value.value !== value.defaultValue) typed();  // typed before this script ran
    document.dispatchEvent(new CustomEvent('gradingsite:shown'));
  }

  // ---------- keys, clicks, forms ----------
  const KEYS = {
    a: accept, r: () => { const button = $('.reveal [data-key="r"]'); if (button) send($('#answer'), button); else say('Nothing is hidden here.', false); },
    p: () => { const link = $('[data-pr]'); if (link) link.click(); else say('There is no pull request to open.', false); },
    w: () => { const reason = field('reason'); if (reason) reason.focus(); },
    x: () => ask('x'), e: () => ask('e'), f: () => ask('f'), s: () => ask('s'), c: () => ask('c'),
    j: () => step(1), k: () => step(-1), enter: submit, '/': find,
    u: () => { const form = $('#undo-last'); if (form) send(form); else say('You have no answer to undo.', false); },
  };

  function press(key) {
    if (busy) return false;
    if (/^[0-9=]$/.test(key)) { digit(key); return true; }
    if (!KEYS[key] || (key === '/' && $('[data-transcript]'))) return false;
    digits = '';
    KEYS[key]();
    return true;
  }

  document.addEventListener('keydown', function (event) {
    const target = event.target, inText = target.matches('input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]');
    if ($('#help').open) return;
    if (event.key === 'Escape' && inText && target.closest('.panel')) { event.preventDefault(); return unask(); }
    if (inText) {
      const enters = event.key === 'Enter' && (event.ctrlKey || event.metaKey || target.id === 'id_value' || target.id === 'id_reason' || target.form === $('#ask'));
      if (!enters || !target.closest('.panel') || event.isComposing) return;
      event.preventDefault();
      if (event.repeat || busy) return;
      return target.form === $('#ask') ? send(target.form, $('[data-chosen]')) : submit();
    }
    const sends = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
    if (((event.ctrlKey || event.metaKey) && !sends) || event.altKey || event.repeat || event.defaultPrevented) return;
    const onButton = target.matches('a, button, summary') && event.key === 'Enter' && !sends;
    if (!onButton && press(event.key.length === 1 ? event.key.toLowerCase() : event.key === 'Enter' ? 'enter' : '')) event.preventDefault();
  });

  document.addEventListener('click', function (event) {
    const key = event.target.closest('[data-key]'), link = event.target.closest('.qrow, a[data-go], .tabs a[data-tab], a.cite, .did a.evn');
    const words = event.target.closest('[data-reason]');
    if (words) return addReason(words.dataset.reason);
    if (key && !busy) { event.preventDefault(); press(key.dataset.key); }
    else if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); go(link.href); }
  });

  document.addEventListener('submit', function (event) {
    if (!desk().contains(event.target)) return;
    // The search of the transcript.
    if (event.target.matches('[data-go]')) {
      event.preventDefault();
      return go('?' + new URLSearchParams(new FormData(event.target)) + new URL(event.target.action).hash);
    }
    if (event.target.method !== 'post') return;
    event.preventDefault();
    if (!busy) send(event.target, event.submitter);
  });

  document.addEventListener('input', function (event) {
    if (event.target.id === 'id_value') typed();
    else if (event.target.id === 'id_reason') keep();
  });
  document.addEventListener('change', function (event) {
    if (event.target.matches('[data-views]')) event.target.form.submit();
    else if (event.target.matches('.stops input')) { field('value').value = event.target.value; digits = ''; typed(); }
  });
  document.addEventListener('visibilitychange', function () { if (document.visibilityState === 'visible' && !released) renew(); });
  // A jump to an event changes only the fragment, and fetches nothing.
  addEventListener('popstate', function () { if (address() !== shownAddress) go(location.href, { still: true }); });
  addEventListener('pagehide', leave);
  addEventListener('pageshow', function (event) { if (event.persisted) go(location.href, { still: true }); });
  begin();
})();
