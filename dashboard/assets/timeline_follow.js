// A timeline whose files change: what is drawn stays until the new answer is there, the window keeps
// its place or its distance from the end, and what is selected is found again.
(function () {
  "use strict";

  /** Note where the selected rectangle stands: numbers of events change when threads grow. */
  function noted(timeline) {
    const { data, layout, selected } = timeline;
    const i = data && selected >= 0 ? data.item.indexOf(selected) : -1;
    if (i < 0) return null;
    const [row] = [...data.places].find(([, place]) => i >= place[0] && i < place[1]);
    const lane = layout.lanes.findIndex((each) => each.first <= row && row < each.stop);
    return { key: window.tilescope.rows.keyOf(layout, lane), down: row - layout.lanes[lane].first, begin: data.begin[i] };
  }

  function again(timeline, place) {
    const { data, layout } = timeline;
    const lane = layout.lanes.find((_, index) => window.tilescope.rows.keyOf(layout, index) === place.key);
    const [first, stop] = (lane && data.places.get(lane.first + place.down)) || [0, 0];
    for (let i = first; i < stop; i += 1) if (data.begin[i] === place.begin && data.count[i] === 1) return data.item[i];
    return -1;
  }

  /** Give the window to show after the end has moved: all, as far from the end, or as it was. */
  function moved(view, before, after) {
    if (view.begin <= before.begin && view.end >= before.end) return after;
    const by = after.end - before.end;
    return view.end >= before.end ? { begin: view.begin + by, end: view.end + by } : view;
  }

  /** Take over a new layout and what it has in the window; nothing is drawn in between. */
  async function refresh(timeline) {
    const [before, place] = [timeline.extent(), noted(timeline)];
    const layout = await (await timeline.get("/layout")).json();
    timeline.paused = true;
    try {
      timeline.layout = layout;
      timeline.view = moved(timeline.view, before, timeline.extent());
      timeline.placed = timeline.strip_ = timeline.colours = timeline.data = null;
      timeline.locate();
      const wanted = timeline.wanted();
      timeline.data = await timeline.window_(wanted.begin, wanted.end, wanted.rows);
    } finally {
      timeline.paused = false;
    }
    timeline.stale = false;
    window.tilescope.findAgain(timeline);
    if (timeline.written && timeline.view.end > before.end) timeline.settle();
    if (!place) return;
    const item = again(timeline, place);
    if (item !== timeline.selected) timeline.choose(item);
  }

  window.tilescope = Object.assign(window.tilescope || {}, { refresh });
})();
