// What pointer, wheel and keys do to a timeline; `timeline` is the one of timeline.js.
(function () {
  "use strict";

  const HANDLE = 7; // pixels on each side of an edge of the strip's window
  const PIN = 20; // pixels at the right of the names

  /** Give the place on the timeline below a pointer. */
  function at(timeline, event, element) {
    const { GUTTER } = window.tilescope.paint;
    const box = (element || timeline.canvas).getBoundingClientRect();
    const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
    return timeline.view.begin + share * (timeline.view.end - timeline.view.begin);
  }

  const inNames = (timeline, event) =>
    event.clientX - timeline.canvas.getBoundingClientRect().left < window.tilescope.paint.GUTTER;

  /** Find the entry at the height of a pointer. */
  function entryAt(timeline, event) {
    const y = event.clientY - timeline.canvas.getBoundingClientRect().top;
    if (!timeline.placed || y < window.tilescope.paint.RULER) return null;
    const inside = y - window.tilescope.paint.RULER + timeline.scroller.scrollTop;
    const [from] = window.tilescope.rows.between(timeline.placed.entries, inside, inside + 1);
    const entry = timeline.placed.entries[from];
    return entry && entry.top <= inside ? entry : null;
  }

  /** Find the rectangle below a pointer, or -1. */
  function hit(timeline, event) {
    const entry = entryAt(timeline, event);
    if (!entry || entry.kind !== "row" || !timeline.data || inNames(timeline, event)) return -1;
    const place = timeline.data.places.get(entry.row);
    if (!place) return -1;
    const { data } = timeline;
    const value = at(timeline, event);
    const pixel = (timeline.view.end - timeline.view.begin) / timeline.canvas.clientWidth;
    const slack = pixel * (entry.rowKind === "flag" ? 7 : 1.5);
    let best = -1;
    for (let i = place[0]; i < place[1]; i += 1) {
      const end = data.begin[i] + data.length[i];
      if (data.begin[i] <= value && value < end) return i;
      if (data.begin[i] - slack <= value && value <= end + slack) best = i;
    }
    return best;
  }

  function showTip(timeline, event, lines) {
    const { tip, place } = timeline;
    tip.replaceChildren(...lines.map((text, index) => {
      const line = document.createElement("div");
      line.className = index ? "tip-line" : "tip-name";
      line.textContent = text;
      return line;
    }));
    tip.style.display = lines.length ? "block" : "none";
    if (!lines.length) return;
    const box = place.getBoundingClientRect();
    const x = event.clientX - box.left + 14;
    const left = x + tip.offsetWidth > box.width ? x - tip.offsetWidth - 28 : x;
    tip.style.left = Math.max(left, 0) + "px";
    tip.style.top = event.clientY - box.top + 16 + "px";
  }

  function hover(timeline, event) {
    const i = hit(timeline, event);
    const entry = entryAt(timeline, event);
    const names = inNames(timeline, event);
    const clickable = names ? entry && (entry.foldable || entry.kind !== "row") : i >= 0;
    timeline.canvas.style.cursor = clickable ? "pointer" : names ? "default" : "grab";
    if (names && entry) {
      const many = entry.kind === "row" && entry.first ? ["Click to fold or open, the dot to pin"] : [];
      return showTip(timeline, event, [entry.laneName || entry.name, ...many]);
    }
    if (i >= 0) return showTip(timeline, event, describe(timeline, i));
    const down = entry ? event.clientY - timeline.canvas.getBoundingClientRect().top - window.tilescope.paint.RULER + timeline.scroller.scrollTop - entry.top : 0;
    const values = entry && entry.kind === "chart" ? window.tilescope.chartValues(timeline, entry, at(timeline, event), down) : [];
    showTip(timeline, event, values);
  }

  function describe(timeline, i) {
    const { amount, clocked, NO_LABEL, wallClock } = window.tilescope.paint;
    const { data, layout } = timeline;
    const by = clocked(timeline, i);
    const name = data.label[i] === NO_LABEL ? "Zoom in to see the name" : data.labels[data.label[i]];
    const words = layout.colours[data.colour[i]].words;
    const begin = timeline.state.absolute && layout.wall_ms ? wallClock(data.begin[i], layout, 1e-7) : amount(data.begin[i], by);
    if (data.count[i] > 1) {
      const share = Math.round((100 * data.share[i]) / 255);
      return [data.count[i].toLocaleString("en-US") + " together", amount(data.time[i], by) + " within " + amount(data.length[i], by),
        share + " % " + name + " (" + words + ")", "begins at " + begin, "Click to zoom in"];
    }
    const length = data.length[i] ? (layout.unit === "ns" && data.length[i] < 1000 ? Math.round(data.length[i]) + " ns (<1 µs)" : amount(data.length[i], by)) : "an instant";
    return [name, words, length, "begins at " + begin];
  }

  function fitChosen(timeline) {
    const { data, state, selected } = timeline;
    if (state.chosen) return timeline.fit(state.chosen.begin, state.chosen.end);
    const i = data && selected >= 0 ? data.item.indexOf(selected) : -1;
    if (i >= 0) return timeline.fit(data.begin[i], data.begin[i] + data.length[i]);
    return timeline.show(...timeline.layout.extent);
  }

  function mark(timeline) {
    const { view, state, pointer } = timeline;
    const place = Math.round(pointer === undefined ? (view.begin + view.end) / 2 : pointer);
    const near = (view.end - view.begin) / 200;
    const kept = state.marks.filter((other) => Math.abs(other - place) > near);
    const marks = kept.length < state.marks.length ? kept : [...kept, Math.max(place, 0)].sort((a, b) => a - b);
    window.tilescope.go({ marks: marks.slice(0, 40).join(",") }, true);
  }

  function key(timeline, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const select = timeline.place.dataset.selects;
    const scroll = (by) => { timeline.scroller.scrollTop += by; };
    const actions = {
      w: () => timeline.zoom(0.6, timeline.pointer), "+": () => timeline.zoom(0.6), "=": () => timeline.zoom(0.6),
      s: () => timeline.zoom(1 / 0.6, timeline.pointer), "-": () => timeline.zoom(1 / 0.6),
      a: () => timeline.pan(-0.2), ArrowLeft: () => timeline.pan(-0.2),
      d: () => timeline.pan(0.2), ArrowRight: () => timeline.pan(0.2),
      ArrowUp: () => scroll(-40), ArrowDown: () => scroll(40),
      Home: () => timeline.show(...timeline.layout.extent), 0: () => timeline.show(...timeline.layout.extent),
      n: () => timeline.step(1), p: () => timeline.step(-1),
      f: () => fitChosen(timeline), Enter: () => fitChosen(timeline), m: () => mark(timeline),
      x: () => timeline.place.dataset.axes && window.tilescope.switchAxis(),
      "/": () => timeline.search.focus(), "]": () => window.tilescope.nextHit(timeline, 1), "[": () => window.tilescope.nextHit(timeline, -1),
      Escape: () => window.tilescope.go({ [select]: null, selection: null }),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || !timeline.layout) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  function wheel(timeline, event) {
    if (!timeline.layout) return;
    if (inNames(timeline, event) && !event.ctrlKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) timeline.scroller.scrollTop += (event.deltaY || event.deltaX) * unit;
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan((event.deltaX * unit) / timeline.width());
    else timeline.zoom(Math.pow(event.ctrlKey ? 1.01 : 1.0015, event.deltaY * unit), Math.max(at(timeline, event), timeline.view.begin));
  }

  function click(timeline, event) {
    if (!inNames(timeline, event)) return timeline.select(hit(timeline, event));
    const entry = entryAt(timeline, event);
    if (!entry || entry.plain) return;
    const x = event.clientX - timeline.canvas.getBoundingClientRect().left;
    const pins = entry.kind === "row" && entry.first && x > window.tilescope.paint.GUTTER - PIN;
    if (pins) timeline.toggle("pinned", entry.key);
    else if (entry.kind !== "row" || entry.foldable) timeline.toggle("closed", entry.key);
  }

  /** Choose a range while Shift is held; it goes into the address at the end. */
  function choosing(timeline, from, event) {
    const [begin, end] = [from.value, at(timeline, event)].sort((a, b) => a - b);
    const [first, last] = timeline.layout.extent;
    timeline.choosing = { begin: Math.max(begin, first), end: Math.min(end, last) };
    timeline.draw();
  }

  function chosen(timeline) {
    const { begin, end } = timeline.choosing;
    timeline.choosing = null;
    const [from, to] = [Math.max(Math.floor(begin), 0), Math.ceil(end)];
    window.tilescope.go({ selection: from < to ? from + "-" + to : null }, true);
    timeline.draw();
  }

  /** Note the place below the pointer; legends of line graphs have the values there. */
  function point(timeline, value) {
    timeline.pointer = value;
    if (window.tilescope.hasLegend(timeline)) timeline.draw();
  }

  function listen(timeline) {
    const { canvas, strip, scroller } = timeline;
    canvas.addEventListener("wheel", (event) => wheel(timeline, event), { passive: false });
    canvas.addEventListener("keydown", (event) => key(timeline, event));
    canvas.addEventListener("pointerleave", () => {
      timeline.tip.style.display = "none";
      point(timeline, undefined);
    });
    canvas.addEventListener("dblclick", (event) => {
      const i = hit(timeline, event);
      if (i >= 0) timeline.fit(timeline.data.begin[i], timeline.data.begin[i] + timeline.data.length[i]);
    });
    scroller.addEventListener("scroll", () => {
      timeline.tip.style.display = "none";
      timeline.draw();
      timeline.fetch();
    });
    drag(timeline, canvas, {
      move: (event, from) => {
        if (from.shift) return choosing(timeline, from, event);
        const per = (from.view.end - from.view.begin) / (canvas.clientWidth - window.tilescope.paint.GUTTER);
        const by = (from.x - event.clientX) * per;
        scroller.scrollTop = from.scroll + from.y - event.clientY;
        timeline.show(from.view.begin + by, from.view.end + by);
      },
      click_: (event) => click(timeline, event),
      done: () => timeline.choosing && chosen(timeline),
      pinch: (from, now) => pinched(timeline, from, now),
    });
    listenStrip(timeline, strip);
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons || !timeline.layout) return;
      point(timeline, inNames(timeline, event) ? undefined : at(timeline, event));
      hover(timeline, event);
    });
    new ResizeObserver(() => {
      timeline.placed = null;
      if (timeline.layout && timeline.place.clientWidth) { timeline.draw(); timeline.fetch(); }
    }).observe(timeline.place);
  }

  /** In the strip the window is dragged, its edges are moved, and a click centres it. */
  function listenStrip(timeline, strip) {
    const value = (event) => {
      const { GUTTER } = window.tilescope.paint;
      const box = strip.getBoundingClientRect();
      const [begin, end] = timeline.layout.extent;
      return begin + ((event.clientX - box.left - GUTTER) / (box.width - GUTTER)) * (end - begin);
    };
    const centre = (event) => {
      const half = (timeline.view.end - timeline.view.begin) / 2;
      timeline.show(value(event) - half, value(event) + half);
    };
    const edge = (event, view) => {
      const [begin, end] = timeline.layout.extent;
      const near = (HANDLE * (end - begin)) / (strip.clientWidth - window.tilescope.paint.GUTTER);
      const place = value(event);
      if (Math.abs(place - view.begin) < near) return "begin";
      return Math.abs(place - view.end) < near ? "end" : "";
    };
    const move = (event, from) => {
      from.edge = from.edge === undefined ? edge({ clientX: from.x }, from.view) : from.edge;
      if (from.edge === "begin") timeline.show(Math.min(value(event), from.view.end - 8), from.view.end);
      else if (from.edge === "end") timeline.show(from.view.begin, Math.max(value(event), from.view.begin + 8));
      else centre(event);
    };
    drag(timeline, strip, { move, click_: centre });
    strip.addEventListener("pointermove", (event) => {
      if (timeline.layout) strip.style.cursor = edge(event, timeline.view) ? "ew-resize" : "pointer";
    });
  }

  /** Tell a drag of more than a few pixels from a click; `pinch` is what two fingers do. */
  function drag(timeline, element, { move, click_, done, pinch }) {
    let from = null;
    let moved = false;
    const fingers = new Map();
    const begin = (event) => {
      from = { x: event.clientX, y: event.clientY, view: timeline.view, shift: event.shiftKey, scroll: timeline.scroller.scrollTop, value: at(timeline, event) };
      if (fingers.size === 2 && pinch) from.fingers = between(timeline, fingers);
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !timeline.layout) return;
      fingers.set(event.pointerId, event);
      moved = fingers.size > 1;
      element.setPointerCapture(event.pointerId);
      begin(event);
    });
    element.addEventListener("pointermove", (event) => {
      if (!from || !fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, event);
      if (fingers.size > 1) return from.fingers && pinch(from, between(timeline, fingers));
      if (!moved && Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) < 4) return;
      moved = true;
      move(event, from);
    });
    const end = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      if (!moved && event.type === "pointerup") click_(event);
      from = null;
      if (fingers.size) begin([...fingers.values()][0]); // the finger that stays goes on
      else if (done) done();
    };
    element.addEventListener("pointerup", end);
    element.addEventListener("pointercancel", end);
  }

  /** Give how far two fingers are from each other, and the place on the timeline between them. */
  function between(timeline, fingers) {
    const [a, b] = [...fingers.values()];
    const { GUTTER } = window.tilescope.paint;
    const box = timeline.canvas.getBoundingClientRect();
    const share = ((a.clientX + b.clientX) / 2 - box.left - GUTTER) / (box.width - GUTTER);
    return {
      apart: Math.max(Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), 8),
      share,
      value: timeline.view.begin + share * (timeline.view.end - timeline.view.begin),
    };
  }

  /** Keep the time that was between two fingers there, as much larger as they are farther apart. */
  function pinched(timeline, from, now) {
    const factor = from.fingers.apart / now.apart;
    const span = Math.max((from.view.end - from.view.begin) * factor, window.tilescope.asked.SMALLEST);
    timeline.show(from.fingers.value - now.share * span, from.fingers.value + (1 - now.share) * span);
  }

  window.tilescope = Object.assign(window.tilescope || {}, { listen, describe });
})();
