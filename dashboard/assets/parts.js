// Components of our own, in the namespace where Dash looks for them (dashboard/elements/static_elements.py).
(function () {
  "use strict";

  const { createContext, createElement, Fragment, Suspense, lazy, useCallback, useContext, useEffect, useLayoutEffect,
    useMemo, useState } = window.React;

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
  const StaticElements = ({ nodes }) => createElement(Fragment, null, ...nodes.map(made));

  // A page stands in an element of its own, which is in the document while the page is shown
  // (dashboard/slots.py). Taken out of it, what scrolls would be at its begin again.

  const slots = new Map();
  let inside = null; // the slot that is in the document
  let wanted = null; // the path that is shown, where its slot is still to come

  // Each of Dash's components looks at every step of every callback whether it changed. Those of a
  // page that is kept hear of the store through its slot: of all steps at once, when it is shown again.

  const contexts = []; // all that are made from here on; Dash has the store in one of them
  window.React.createContext = (value) => {
    const context = createContext(value);
    contexts.push(context);
    return context;
  };
  const none = createContext(null); // of a Dash that has its store elsewhere: kept pages hear of all steps then
  let ofStore = null;

  /** Find the context that has the store of Dash (react-redux). */
  function useContextOfStore() {
    ofStore = ofStore || contexts.find((context) => {
      const value = useContext(context);
      return value && value.store && value.subscription;
    });
    return ofStore || none;
  }

  class Place {
    constructor() {
      this.element = document.createElement("div");
      this.element.className = "slot";
      this.scrolled = new Map();
      const note = ({ target }) => this.scrolled.set(target, [target.scrollLeft, target.scrollTop]);
      this.element.addEventListener("scroll", note, { capture: true, passive: true });
      this.listeners = new Set();
      this.missed = false;
      this.hear = () => (inside === this ? this.tell() : (this.missed = true));
      this.addNestedSub = (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      };
    }

    tell() {
      this.missed = false;
      [...this.listeners].forEach((listener) => listener());
    }

    show() {
      this.home.append(this.element);
      for (const [element, [left, top]] of this.scrolled) Object.assign(element, { scrollLeft: left, scrollTop: top });
    }
  }

  /** Show the page at a path; that of none, what takes the place of one. */
  function turnTo(path) {
    const next = slots.get(path) || slots.get("");
    wanted = next ? null : path;
    if (!next || next === inside) return;
    if (inside) {
      const zoomed = inside.element.querySelectorAll("[data-zoomed]"); // assets/views.js
      if (zoomed.length) forget(inside.path);
      zoomed.forEach((plot) => delete plot.dataset.zoomed);
      inside.element.remove();
    }
    next.show();
    inside = next;
    if (next.missed) next.tell();
  }

  /** Have the page at a path laid out anew when it is opened again. */
  function forget(path) {
    setTimeout(() => {
      const { [path]: _, ...others } = window.dash_component_api.getLayout("kept").props.data;
      window.dash_clientside.set_props("kept", { data: others });
    });
  }

  const Slot = ({ path, children }) => {
    const [place] = useState(() => new Place());
    const context = useContextOfStore();
    const outer = useContext(context);
    const value = useMemo(() => outer && { ...outer, subscription: place }, [outer, place]);
    useEffect(() => (outer ? outer.subscription.addNestedSub(place.hear) : undefined), [outer, place]);
    const hold = (home) => {
      if (!home) return;
      slots.set(path, Object.assign(place, { home, path }));
      if (path === wanted) turnTo(path); // before its parts look for their size
    };
    const room = createElement("div", { className: "slot", ref: hold });
    const page = createElement(context.Provider, { value }, children);
    return createElement(Fragment, null, room, window.ReactDOM.createPortal(page, place.element));
  };

  /** Comes before all slots, so that a page that is new is in the document when its parts look for their size. */
  const Shown = ({ data }) => {
    useLayoutEffect(() => turnTo(data ? data.path : ""), [data]);
    return null;
  };

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

  // Dash's plots are loaded when the first one is laid out, and that one then waits until nothing else is to
  // do. One that is laid out beside the document and never drawn has them loaded, so that the first is drawn
  // with its page.

  function meetPlots() {
    if (document.querySelector(".dash-graph")) return; // Dash was first: what it loads is there, and would be drawn
    const { createRoot, flushSync } = window.ReactDOM;
    const root = createRoot(document.createElement("div"));
    flushSync(() => root.render(createElement(window.dash_core_components.Graph, { id: "unseen" })));
    root.unmount();
  }

  if (window.Plotly) document.addEventListener("DOMContentLoaded", meetPlots); // asked for in assets/early.js

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
  window.tilescope_parts = { StaticElements, Slot, Shown };
})();
