// Components of our own, in the namespace where Dash looks for them (dashboard/still.py).
(function () {
  "use strict";

  const { createElement, Fragment, Suspense, lazy, useCallback } = window.React;

  /** Follow a link inside of the application as Dash's own links do. */
  function follow(event) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    window.history.pushState(null, "", event.currentTarget.getAttribute("href"));
    window.dispatchEvent(new PopStateEvent("popstate"));
    window.scrollTo(0, 0);
  }

  /** Make the element of [tag, properties, child, ...]; text is text. */
  function made(node) {
    if (!Array.isArray(node)) return node;
    const [tag, properties, ...children] = node;
    const link = tag === "link";
    return createElement(link ? "a" : tag, link ? { ...properties, onClick: follow } : properties, ...children.map(made));
  }

  /** What no callback changes, as plain elements: Dash does not look at each of them at each step. */
  const Still = ({ nodes }) => createElement(Fragment, null, ...nodes.map(made));

  // AG Grid and plotly.js are large: loaded when something needs them, or when the browser is idle.

  const IDLE = 1500; // milliseconds after the first page was loaded
  let loading = null;

  function load() {
    loading = loading || new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = document.querySelector("meta[name=tilescope-grid]").content;
      script.onload = () => {
        const real = window.dash_ag_grid;
        window.dash_ag_grid = Object.assign({}, real, { AgGrid });
        resolve({ default: real.AgGrid });
      };
      script.onerror = reject;
      document.head.append(script);
    });
    return loading;
  }

  function later() {
    load();
    window.tilescope.plotly();
  }

  // The rows of a long table come straight from the server (dashboard/tables.py): a callback of Dash
  // for them takes the browser longer than showing them.

  const asking = new Map(); // what each table asked for last

  async function sendRows(table, asked) {
    const { startRow, endRow, sortModel } = asked;
    asking.set(table, asked);
    const answer = await fetch(`/rows/${encodeURIComponent(table)}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ search: window.location.search, startRow, endRow, sortModel }),
    }).catch(() => null);
    if (!answer || !answer.ok) return asked.failCallback();
    const { rowData, rowCount, note } = await answer.json();
    asked.successCallback(rowData, rowCount);
    const place = document.getElementById(`${table}-note`);
    if (place && asking.get(table) === asked) place.textContent = note;
  }

  const Grid = lazy(load);
  const AgGrid = (properties) => {
    const { id, setProps } = properties;
    const tell = useCallback(({ getRowsRequest, ...rest }) => {
      if (getRowsRequest) sendRows(id, getRowsRequest);
      if (Object.keys(rest).length) setProps(rest);
    }, [id, setProps]);
    const grid = createElement(Grid, { ...properties, setProps: tell });
    return createElement(Suspense, { fallback: null }, grid);
  };
  AgGrid.dashRenderType = true; // as the real one has it
  window.addEventListener("load", () => setTimeout(() => requestIdleCallback(later), IDLE));

  window.dash_ag_grid = { AgGrid };
  window.tilescope_parts = { Still };
})();
