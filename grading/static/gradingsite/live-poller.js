// Asks the site what is new, once for all open pages of a browser. A shared worker where there are such, else a part of
// the page itself (`live.js` loads it as a script and gives it a port of its own).
//
// A page sends {feed, seconds} first, then {visible, sessions} whenever that changes and once in a while, {gone} at its
// end. It hears {news: what the site answered}, and {lost: milliseconds} or {found: true} when answers stop or come again.
(function () {
  'use strict';
  const HIDDEN = 30000;   // between two questions while nobody looks
  const SLOWEST = 30000;  // after many failures
  const PATIENCE = 10000; // for one answer
  const SILENT = 150000;  // a page unheard of for so long has been closed; hidden ones speak once a minute
  const pages = new Map();
  let feed, seconds, version = '', news = null, failures = 0, lost = 0, isSignedOut = false, asking = false, timer;

  function each(message) { pages.forEach(function (_, port) { port.postMessage(message); }); }

  function wait(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(ask, milliseconds);
  }

  function gap() {
    if (isSignedOut) return SLOWEST;
    if (failures) return Math.min(seconds * 1000 * Math.pow(2, failures - 1), SLOWEST);
    return Array.from(pages.values()).some(function (page) { return page.visible; }) ? seconds * 1000 : HIDDEN;
  }

  function address() {
    const sessions = new Set();
    pages.forEach(function (page) { page.sessions.forEach(function (key) { sessions.add(key); }); });
    const query = new URLSearchParams();
    Array.from(sessions).slice(0, 50).forEach(function (key) { query.append('session', key); });
    if (version) query.set('since', version);
    return feed + '?' + query;
  }

  async function ask() {
    if (asking) return;
    pages.forEach(function (page, port) { if (Date.now() - page.heard > SILENT) pages.delete(port); });
    if (!pages.size) return;
    asking = true;
    try {
      const reply = await fetch(address(), { cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(PATIENCE) });
      isSignedOut = reply.status === 403;
      if (reply.status === 200) {
        news = await reply.json();
        version = news.version;
      } else if (reply.status !== 304) {
        throw new Error(reply.status);
      }
      if (lost) each({ found: true });
      failures = lost = 0;
      pages.forEach(function (page, port) {
        if (news && (reply.status === 200 || page.isNew)) port.postMessage({ news: news });
        page.isNew = false;
      });
    } catch (error) {
      failures++;
      if (!lost) lost = Date.now();
      // One question may fail where a program is started anew.
      if (failures > 1 || isSignedOut) each({ lost: lost, isSignedOut: isSignedOut });
    } finally {
      asking = false;
      wait(gap());
    }
  }

  function open(port) {
    port.onmessage = function (event) {
      const said = event.data;
      if (said.gone) {
        pages.delete(port);
        return;
      }
      if (said.feed) {
        feed = said.feed;
        seconds = said.seconds;
      }
      const before = pages.get(port) || { visible: false, sessions: [] };
      const page = { visible: before.visible, sessions: before.sessions, heard: Date.now(), isNew: before.isNew || 'feed' in said };
      if ('visible' in said) page.visible = said.visible;
      if (said.sessions) page.sessions = said.sessions;
      pages.set(port, page);
      // Somebody came, came back, or wants to know of more.
      if (said.feed || said.now || (page.visible && !before.visible)) wait(0);
      else if (!timer) wait(gap());
    };
    if (port.start) port.start();
  }

  if (self.SharedWorkerGlobalScope) {
    self.onconnect = function (event) { open(event.ports[0]); };
  } else {
    window.openPoller = open;
  }
})();
