// The strip above a plot (dashboard/overview.py): which part is shown, dragged or moved by keys.
(function () {
  "use strict";

  const { go, onArrival, read } = window.tilescope;
  const HANDLE = 9; // pixels at an end of the window that change it
  const LEAST = 6; // pixels that a drag must have, or it is a click
  const strips = () => document.querySelectorAll(".overview");
  const countOf = (strip) => Number(strip.dataset.count);

  /** The window of the address, as first place and the one after the last; all without it. */
  function windowOf(strip) {
    const found = (read("range") || "").match(/^(\d+)-(\d+)$/);
    const count = countOf(strip);
    const [begin, end] = found ? [Number(found[1]), Math.min(Number(found[2]), count)] : [0, count];
    return begin < end ? [begin, end] : [0, count];
  }

  function draw(strip, [begin, end]) {
    const place = strip.querySelector(".overview-window").style;
    place.left = `${(100 * begin) / countOf(strip)}%`;
    place.width = `${(100 * (end - begin)) / countOf(strip)}%`;
    strip.classList.toggle("whole", begin === 0 && end === countOf(strip));
  }

  /** Lie above the plot's axis, whose left end depends on what is written there. */
  function align(strip) {
    const plot = document.getElementById(strip.dataset.overview);
    const area = plot && plot.querySelector(".nsewdrag");
    if (!area) return;
    const [inner, outer] = [area.getBoundingClientRect(), strip.parentElement.getBoundingClientRect()];
    strip.style.marginLeft = `${Math.max(inner.left - outer.left, 0)}px`;
    strip.style.width = `${inner.width}px`;
  }

  function show() {
    for (const strip of strips()) {
      align(strip);
      if (strip !== dragging) draw(strip, windowOf(strip));
    }
  }

  function choose(strip, begin, end) {
    const count = countOf(strip);
    const width = Math.min(Math.max(Math.round(end - begin), 1), count);
    const first = Math.min(Math.max(Math.round(begin), 0), count - width);
    go({ range: width === count ? null : `${first}-${first + width}` }, true);
  }

  let dragging = null;

  /** What a drag makes of the window: an end moves, all of it moves, or a new one is drawn. */
  function dragOf(strip, event) {
    const box = strip.getBoundingClientRect();
    const at = (x) => Math.min(Math.max(((x - box.left) / box.width) * countOf(strip), 0), countOf(strip));
    const [begin, end] = windowOf(strip);
    const pixel = (place) => box.left + (place / countOf(strip)) * box.width;
    const down = at(event.clientX);
    const whole = end - begin === countOf(strip);
    if (Math.abs(event.clientX - pixel(begin)) < HANDLE) return (x) => [at(x), end].sort((a, b) => a - b);
    if (Math.abs(event.clientX - pixel(end)) < HANDLE) return (x) => [begin, at(x)].sort((a, b) => a - b);
    if (whole || down < begin || down > end) return (x) => [down, at(x)].sort((a, b) => a - b);
    const room = (by) => Math.min(Math.max(by, -begin), countOf(strip) - end);
    return (x) => [begin + room(at(x) - down), end + room(at(x) - down)];
  }

  document.addEventListener("pointerdown", (event) => {
    const strip = event.target.closest && event.target.closest(".overview");
    if (!strip || event.button) return;
    const drag = dragOf(strip, event);
    const from = event.clientX;
    dragging = strip;
    strip.setPointerCapture(event.pointerId);
    const move = (now) => draw(strip, drag(now.clientX));
    const done = (now) => {
      strip.removeEventListener("pointermove", move);
      dragging = null;
      if (Math.abs(now.clientX - from) < LEAST || now.type === "pointercancel") return show();
      choose(strip, ...drag(now.clientX));
    };
    strip.addEventListener("pointermove", move);
    strip.addEventListener("pointerup", done, { once: true });
    strip.addEventListener("pointercancel", done, { once: true });
  });
  document.addEventListener("dblclick", (event) => {
    if (event.target.closest && event.target.closest(".overview")) go({ range: null }, true);
  });

  const KEYS = {
    ArrowLeft: (begin, width) => [begin - width / 5, width],
    ArrowRight: (begin, width) => [begin + width / 5, width],
    "+": (begin, width) => [begin + width / 4, width / 2],
    "-": (begin, width) => [begin - width / 2, width * 2],
    0: (begin, width, count) => [0, count],
  };

  document.addEventListener("keydown", (event) => {
    const strip = event.target.closest && event.target.closest(".overview");
    if (!strip || !KEYS[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const [begin, end] = windowOf(strip);
    const [next, width] = KEYS[event.key](begin, end - begin, countOf(strip));
    const kept = Math.min(Math.max(width, 1), countOf(strip));
    const first = Math.min(Math.max(next, 0), countOf(strip) - kept);
    choose(strip, first, first + kept);
  }, true);

  onArrival(show);
  window.addEventListener("popstate", show);
  window.addEventListener("resize", show);
})();
