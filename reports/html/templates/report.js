"use strict";
(() => {
  const root = document.documentElement;
  const said = document.getElementById("said");

  // Theme: follows the system until the button is used.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("parity-theme", root.dataset.theme);
    } catch (blocked) {
      // Not kept, but shown.
    }
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  // Copy: the clipboard, or a selection where a page may not write to it.
  const copy = async (source) => {
    const text = source.textContent;
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (refused) {
      getSelection().selectAllChildren(source);
      return document.execCommand("copy");
    }
  };
  document.addEventListener("click", async (event) => {
    const pressed = event.target.closest("button[data-copy]");
    if (!pressed) return;
    const done = await copy(document.getElementById(pressed.dataset.copy));
    said.textContent = done ? "Copied" : "Selected: copy with the keyboard";
    pressed.classList.toggle("done", done);
    pressed.firstChild.data = done ? "Copied" : "Selected";
    setTimeout(() => {
      pressed.firstChild.data = "Copy";
      pressed.classList.remove("done");
      said.textContent = "";
    }, 2000);
  });

  // Maps: one tab stop each, arrow keys inside, figures of what is pointed at below.
  const readouts = JSON.parse(document.getElementById("readouts").textContent);
  for (const map of document.querySelectorAll(".map")) {
    const line = map.querySelector(".readout");
    const cells = [...map.querySelectorAll("a.cell")];
    const read = (event) => {
      const target = event.target.closest("[data-readout]");
      if (target) line.textContent = readouts[target.dataset.readout];
    };
    map.addEventListener("pointerover", read);
    map.addEventListener("focusin", read);
    cells.forEach((cell, i) => cell.setAttribute("tabindex", i === 0 ? "0" : "-1"));
    const at = (row, column) =>
      cells.find((c) => Number(c.dataset.row) === row && Number(c.dataset.column) === column);
    map.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const from = event.target.closest("a.cell");
      if (!from || !(event.key in step)) return;
      const [down, right] = step[event.key];
      const next = at(Number(from.dataset.row) + down, Number(from.dataset.column) + right);
      if (!next) return;
      event.preventDefault();
      from.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }

  // A drawing wider than the screen opens at what it is about.
  for (const frame of document.querySelectorAll(".along")) {
    const first = frame.querySelector(".first");
    if (!first) continue;
    const there = first.getBoundingClientRect().left - frame.getBoundingClientRect().left;
    frame.scrollLeft = there - frame.clientWidth / 2;
  }

  // Links into a folded part unfold it; not every browser does so by itself.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e instanceof HTMLDetailsElement) e.open = true;
    target.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // Paper shows everything that is folded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
})();
