// The menu: folded to its icons or not, and `g` with the letter of a page (dashboard/declared.py).
(function () {
  "use strict";

  const { onArrival, typing } = window.tilescope;
  const root = document.documentElement;
  const WAITS = 1500; // milliseconds between `g` and the letter

  function tell() {
    const button = document.querySelector(".fold-menu");
    if (!button) return;
    const expanded = String(root.dataset.menu !== "folded");
    if (button.getAttribute("aria-expanded") === expanded) return;
    button.setAttribute("aria-expanded", expanded);
    button.lastChild.textContent = expanded === "true" ? "Fold the menu" : "Unfold the menu";
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest || !event.target.closest(".fold-menu")) return;
    if (root.dataset.menu === "folded") delete root.dataset.menu;
    else root.dataset.menu = "folded";
    const kept = root.dataset.menu || "unfolded"; // assets/early.js reads it before the first paint
    document.cookie = "tilescope-menu=" + kept + "; path=/; max-age=31536000; samesite=strict";
    tell();
    window.dispatchEvent(new Event("resize")); // plots take the width that is theirs now
  });
  onArrival(tell);

  function linkOf(letter) {
    const row = document.querySelector(`#keys-sheet [data-key="${CSS.escape(letter)}"]`);
    const links = [...document.querySelectorAll(".nav-link")];
    return row && links.find((link) => new URL(link.href).pathname === row.dataset.page);
  }

  let begun = -Infinity;

  // Before all others hear of a key: a timeline has letters of its own.
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || typing(event.target)) return;
    if (event.key === "Shift") return;
    const second = performance.now() - begun < WAITS;
    begun = !second && event.key === "g" ? performance.now() : -Infinity;
    const link = second && linkOf(event.key);
    if (!link) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const sheet = document.getElementById("keys-sheet");
    if (sheet && sheet.open) sheet.close();
    link.click();
  }, true);
})();
