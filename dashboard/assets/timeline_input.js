// What pointer, wheel and keys do to a timeline; `timeline` is the one of timeline.js.
(function () {
  "use strict";

  /** Give the place on the timeline below a pointer. */
  function at(timeline, event) {
    const { GUTTER } = window.tilescope.paint;
    const box = timeline.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
    return timeline.view.begin + share * (timeline.view.end - timeline.view.begin);
  }

  /** Find the rectangle below a pointer, or -1. */
  function hit(timeline, event) {
    if (!timeline.placed || !timeline.data) return -1;
    const y = event.clientY - timeline.canvas.getBoundingClientRect().top;
    const { ROW, GUTTER } = window.tilescope.paint;
    const row = timeline.placed.rows.findIndex((place) => y >= place.top && y < place.top + ROW - 1);
    if (row < 0 || event.clientX - timeline.canvas.getBoundingClientRect().left < GUTTER) return -1;
    const value = at(timeline, event);
    const slack = (1.5 * (timeline.view.end - timeline.view.begin)) / timeline.canvas.clientWidth;
    let best = -1;
    for (let i = 0; i < timeline.data.n; i += 1) {
      if (timeline.data.row[i] !== row) continue;
      if (timeline.data.begin[i] <= value && value < timeline.data.end[i]) return i;
      if (timeline.data.begin[i] - slack <= value && value <= timeline.data.end[i] + slack) best = i;
    }
    return best;
  }

  function hover(timeline, event) {
    const i = hit(timeline, event);
    timeline.canvas.style.cursor = i >= 0 && timeline.data.item[i] >= 0 ? "pointer" : "grab";
    if (i < 0) {
      timeline.tip.style.display = "none";
      return;
    }
    timeline.tip.replaceChildren(...describe(timeline, i).map((text, index) => {
      const line = document.createElement("div");
      line.className = index ? "tip-line" : "tip-name";
      line.textContent = text;
      return line;
    }));
    timeline.tip.style.display = "block";
    const box = timeline.place.getBoundingClientRect();
    const x = event.clientX - box.left + 14;
    const left = x + timeline.tip.offsetWidth > box.width ? x - timeline.tip.offsetWidth - 28 : x;
    timeline.tip.style.left = Math.max(left, 0) + "px";
    timeline.tip.style.top = event.clientY - box.top + 16 + "px";
  }

  function describe(timeline, i) {
    const { amount } = window.tilescope.paint;
    const { data } = timeline;
    const name = data.label[i] === 0xffff ? "Zoom in to see the name" : data.labels[data.label[i]];
    const words = data.colours[data.colour[i]].words;
    const length = amount(data.end[i] - data.begin[i], data);
    if (data.count[i] > 1) {
      const many = data.count[i].toLocaleString("en-US");
      return [many + " together; the longest: " + name, words, length, "Zoom in to see each"];
    }
    return [name, words, length, "begins at " + amount(data.begin[i], data)];
  }

  function key(timeline, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      w: () => timeline.zoom(0.6), "+": () => timeline.zoom(0.6), "=": () => timeline.zoom(0.6),
      ArrowUp: () => timeline.zoom(0.6), ArrowDown: () => timeline.zoom(1 / 0.6),
      s: () => timeline.zoom(1 / 0.6), "-": () => timeline.zoom(1 / 0.6),
      a: () => timeline.pan(-0.2), ArrowLeft: () => timeline.pan(-0.2),
      d: () => timeline.pan(0.2), ArrowRight: () => timeline.pan(0.2),
      Home: () => timeline.show(...timeline.whole.extent), 0: () => timeline.show(...timeline.whole.extent),
      n: () => timeline.step(1), p: () => timeline.step(-1),
      Escape: () => window.tilescope.go({ [timeline.place.dataset.selects]: null }),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || !timeline.whole) return;
    event.preventDefault();
    action();
  }

  function listen(timeline) {
    const { canvas, strip } = timeline;
    canvas.addEventListener("wheel", (event) => {
      if (!timeline.whole) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan(event.deltaX / timeline.width());
      else timeline.zoom(Math.pow(1.0015, event.deltaY), at(timeline, event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => key(timeline, event));
    canvas.addEventListener("pointerleave", () => { timeline.tip.style.display = "none"; });
    drag(timeline, canvas, (event, from) => {
      const per = (from.view.end - from.view.begin) / (canvas.clientWidth - window.tilescope.paint.GUTTER);
      const by = (from.x - event.clientX) * per;
      timeline.show(from.view.begin + by, from.view.end + by);
    }, (event) => timeline.select(hit(timeline, event)));
    const centre = (event) => {
      const { GUTTER } = window.tilescope.paint;
      const box = strip.getBoundingClientRect();
      const [begin, end] = timeline.whole.extent;
      const place = begin + ((event.clientX - box.left - GUTTER) / (box.width - GUTTER)) * (end - begin);
      const half = (timeline.view.end - timeline.view.begin) / 2;
      timeline.show(place - half, place + half);
    };
    drag(timeline, strip, centre, centre);
    canvas.addEventListener("pointermove", (event) => { if (!event.buttons && timeline.whole) hover(timeline, event); });
    new ResizeObserver(() => { if (timeline.whole) { timeline.draw(); timeline.fetch(); } }).observe(timeline.place);
  }

  /** Tell a drag of more than a few pixels from a click. */
  function drag(timeline, element, move, click) {
    let from = null;
    let moved = false;
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !timeline.whole) return;
      from = { x: event.clientX, view: timeline.view };
      moved = false;
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      if (!from || (!moved && Math.abs(event.clientX - from.x) < 4)) return;
      moved = true;
      move(event, from);
    });
    element.addEventListener("pointerup", (event) => {
      if (from && !moved) click(event);
      from = null;
    });
    element.addEventListener("pointercancel", () => { from = null; });
  }

  window.tilescope = Object.assign(window.tilescope || {}, { listen, describe });
})();
