// What a panel shows is asked for as soon as the address is new, or where a click is expected, and shown as it comes.
// A callback of Dash takes the browser as long again as showing the answer. It goes that way only where a panel has
// parts that Dash has to know.
(function () {
  "use strict";

  const CALLBACKS = "/_dash-update-component";
  const KEPT = 1000; // milliseconds in which Dash takes over an answer
  const request = window.fetch;
  const shown = new Map(); // by panel: the view that it shows without Dash, and what Dash knows instead
  const answers = new Map(); // that Dash takes over, by what was asked
  let ahead = new Map(); // to what a click would ask, where one is expected
  let due = false; // whether one of these is under way

  /** What Dash asks when a view is new: its callback has one input and one output (`fill` in dashboard/view.py). */
  function questionOf(panel, view) {
    const id = { view: panel };
    return JSON.stringify({
      output: `${panel}.children`,
      outputs: { id: panel, property: "children" },
      inputs: [{ id, property: "data", value: view }],
      changedPropIds: [`${JSON.stringify(id)}.data`],
      parsedChangedPropsIds: [id],
    });
  }

  const tellDash = (panel, view) => window.dash_clientside.set_props({ view: panel }, { data: view });

  /** Tell whether a callback of Dash follows what a panel shows. */
  const isFollowed = (panel) => Boolean(window.store.getState().graphs.inputMap[panel]);

  /** Tell whether Dash has to know a part of this: it has an id for callbacks. */
  const hasParts = (children) => JSON.stringify(children ?? null).includes('"id":');

  /** The view that a panel shows: of Dash, or the one that followed it here. */
  function viewNow(panel, dash) {
    const own = shown.get(panel);
    return own && own.dash === dash ? own.view : dash;
  }

  function ask(body) {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    return request(CALLBACKS, { method: "POST", credentials: "same-origin", headers, body });
  }

  /** Read an answer to its end, as one that nobody takes keeps its connection otherwise. */
  async function whole(answer) {
    const response = await answer;
    const text = await response.text();
    if (response.status !== 200) throw new Error(response.statusText);
    return new Response(text, { headers: response.headers });
  }

  /** Ask what panels would show of views; only what is asked last is kept, and nothing is while answers are due. */
  async function askAhead(views) {
    if (due) return;
    const bodies = views.map((each) => questionOf(...each));
    ahead = new Map(bodies.map((body) => [body, ahead.get(body) || whole(ask(body))]));
    due = true;
    const asked = [...ahead];
    const all = await Promise.allSettled(asked.map(([, answer]) => answer));
    due = false;
    all.forEach(({ value }, n) => value || ahead.delete(asked[n][0])); // a click asks again
  }

  /** Ask what a panel shows of a view, and show it; `of` are the properties of the panel, `dash` the view of Dash. */
  function showView(panel, view, of, dash) {
    const body = questionOf(panel, view);
    const answer = ahead.get(body) || ask(body);
    ahead.delete(body); // an answer is read once
    if (isFollowed(panel) || hasParts(of.children)) {
      handOver(body, answer);
      return tellDash(panel, view);
    }
    shown.set(panel, { dash, view });
    const place = document.getElementById(panel);
    if (place) place.setAttribute("aria-busy", "true");
    settle(panel, view, dash, body, answer).catch(() => isLast(panel, view, dash) && tellDash(panel, view)) // says why
      .finally(() => shown.get(panel).view === view && place && place.removeAttribute("aria-busy"));
  }

  /** Tell whether a panel is still to show a view: no other was asked for since, here or by Dash. */
  function isLast(panel, view, dash) {
    const { data } = window.tilescope.propertiesOf({ view: panel }) || {};
    return data === dash && shown.get(panel).view === view;
  }

  /** Show an answer when it is there, or have Dash show it. */
  async function settle(panel, view, dash, body, answer) {
    const response = await answer;
    const text = await response.clone().text();
    if (!isLast(panel, view, dash) || response.status === 204) return;
    const children = response.ok && JSON.parse(text).response[panel].children;
    if (response.ok && !hasParts(children)) return window.dash_clientside.set_props(panel, { children });
    handOver(body, Promise.resolve(response));
    tellDash(panel, view);
  }

  /** Have Dash take over an answer when it asks the same. */
  function handOver(body, answer) {
    answer.catch(() => null);
    answers.set(body, answer);
    setTimeout(() => answers.delete(body), KEPT);
  }

  window.fetch = (...asked) => {
    const body = answers.size && asked[1] && asked[1].body;
    const answer = answers.get(body);
    answers.delete(body); // an answer is read once
    return answer || request(...asked);
  };

  Object.assign(window.tilescope, { askAhead, showView, viewNow });
})();
