// The documentation: what a link leads to is scrolled to, and keys go from hit to hit.
(function () {
  "use strict";

  const { onArrival, read, typing } = window.tilescope;
  const PATH = "/documentation";
  const BOX = JSON.stringify({ box: "find", column: "", page: PATH });
  let seen = ""; // the place that was scrolled to last

  /** Show the section of the address, what was searched for in it first. */
  function scroll() {
    const place = window.location.pathname === PATH ? `${read("chapter") || "start"}/${read("section") || ""}` : "";
    const now = place && `${place} ${read("find") || ""}`;
    const section = place && document.querySelector(`[data-section="${CSS.escape(place)}"]`);
    if (now === seen || (place && !place.endsWith("/") && !section)) return;
    seen = now;
    const mark = section && section.querySelector("mark");
    const isFar = mark && mark.offsetTop - section.offsetTop > window.innerHeight / 2;
    if (isFar) mark.scrollIntoView({ block: "center" });
    else if (section === document.querySelector("[data-section]")) window.scrollTo(0, 0);
    else if (section) section.scrollIntoView();
    const hit = document.querySelector(".manual-hits .active");
    if (hit) hit.scrollIntoView({ block: "nearest" });
  }

  onArrival(scroll);
  window.addEventListener("popstate", () => requestAnimationFrame(scroll));

  function press(name) {
    const link = document.querySelector(`.manual-side .button.${name}`);
    if (link) link.click();
  }

  /** Help leads to what the chapter says of tabs where one was chosen. */
  document.addEventListener("click", (event) => {
    const help = event.target.closest(".page-help");
    if (!help) return;
    const link = new URL(help.href);
    if (read("tab")) link.searchParams.set("section", "tabs");
    else link.searchParams.delete("section");
    help.setAttribute("href", link.pathname + link.search);
  }, true);

  document.addEventListener("keydown", (event) => {
    if (window.location.pathname !== PATH || event.altKey || event.ctrlKey || event.metaKey) return;
    const { id, value } = event.target;
    if (id === BOX && event.key === "Enter" && value.trim() && value.trim() === read("find")) {
      return press(event.shiftKey ? "previous" : "next");
    }
    const by = { n: "next", p: "previous" }[event.key];
    if (by && !typing(event.target)) press(by);
  });
})();
