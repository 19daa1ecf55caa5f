// Checkboxes of a list of sessions: one checkbox ticks all, and shift-click ticks a range.
(function () {
  'use strict';
  function begin() {
    const boxes = Array.from(document.querySelectorAll('[name="session"][type="checkbox"]'));
    const all = document.querySelector('[data-tick-all]');
    let last = -1;

    function count() {
      const ticked = boxes.filter(function (box) { return box.checked; }).length;
      if (all) {
        all.checked = ticked === boxes.length;
        all.indeterminate = ticked > 0 && ticked < boxes.length;
      }
      document.querySelectorAll('[data-ticked]').forEach(function (place) { place.textContent = ticked ? String(ticked) : 'the'; });
    }

    boxes.forEach(function (box, index) {
      box.addEventListener('click', function (event) {
        if (event.shiftKey && last >= 0) {
          for (let at = Math.min(last, index); at <= Math.max(last, index); at++) boxes[at].checked = box.checked;
        }
        last = index;
      });
      box.addEventListener('change', count);
    });
    if (all && boxes.length) {
      all.hidden = false;
      all.addEventListener('change', function () {
        boxes.forEach(function (box) { box.checked = all.checked; });
        count();
      });
      count();
    }
  }

  begin();
  // The list was replaced.
  document.addEventListener('gradingsite:shown', begin);
})();
