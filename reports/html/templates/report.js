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
  for (const text of document.querySelectorAll(".tokens-text")) {
    const first = text.querySelector(".first-token");
    if (first) text.scrollTop = first.offsetTop - text.offsetTop - text.clientHeight / 3;
  }

  // A place in a prompt: text, cosine and map point at the same token.
  const scaled = (view, step) => (step === "0" ? "no difference" : `at most ${view.dataset.scale.split(" ")[step - 1]}`);
  for (const view of document.querySelectorAll(".prompt-view[data-tokens]")) {
    const slider = view.querySelector(".token-slider");
    const told = view.querySelector(".token-told");
    const { left, right, edges } = view.dataset;
    const count = Number(view.dataset.tokens);
    const starts = edges ? edges.split(",").map(Number) : [];
    const levels = view.dataset.levels ? view.dataset.levels.split("/") : [];
    const pitch = (right - left) / count;
    const place = (token) => {
      const piece = view.querySelector(`.tk[data-t="${token}"]`);
      for (const other of view.querySelectorAll(".tk.at")) other.classList.remove("at");
      if (piece) piece.classList.add("at");
      const x = Number(left) + (token + 0.5) * pitch;
      for (const line of view.querySelectorAll(".cursor")) {
        line.setAttribute("d", `M${x} 16V${line.ownerSVGElement.viewBox.baseVal.height - 30}`);
      }
      const parts = [`token ${token}${piece ? ` “${piece.textContent}”` : ""}`];
      if (starts.length) parts.push(`chunk ${starts.filter((s) => s <= token).length}`);
      if (levels.length) {
        const column = Math.floor(token / Number(view.dataset.perColumn));
        const first = levels.findIndex((row) => row[column] > "0");
        if (first < 0) parts.push("no layer differs");
        else {
          parts.push(`differs from layer ${first * Number(view.dataset.perRow)} on (${scaled(view, levels[first][column])})`);
          parts.push(`last layer: ${scaled(view, levels[levels.length - 1][column])}`);
        }
      }
      told.textContent = parts.join("; ");
    };
    slider.addEventListener("input", () => place(Number(slider.value)));
    view.addEventListener("click", (event) => {
      const piece = event.target.closest(".tk");
      const drawing = event.target.closest("svg.tokens");
      let token = piece ? Number(piece.dataset.t) : -1;
      if (drawing) {
        const box = drawing.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
        token = Math.floor((x - left) / pitch);
      }
      if (token < 0 || token >= count) return;
      slider.value = token;
      place(token);
    });
    place(Number(slider.value));
  }

  // Findings: those that hold every word.
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const findingQuery = document.getElementById("finding-q");
  if (findingQuery) {
    const articles = [...document.querySelectorAll(".finding")];
    const texts = articles.map((a) => a.textContent.toLowerCase());
    const count = document.getElementById("finding-count");
    findingQuery.addEventListener("input", () => {
      const wanted = words(findingQuery.value);
      let shown = 0;
      articles.forEach((article, i) => {
        article.hidden = !wanted.every((word) => texts[i].includes(word));
        shown += !article.hidden;
      });
      // What is folded unfolds where a search finds it, and goes where nothing in it is left.
      for (const fold of document.querySelectorAll(".variants")) {
        fold.hidden = !fold.querySelector(".finding:not([hidden])");
        fold.open = wanted.length > 0 && !fold.hidden;
      }
      count.textContent = `${shown} of ${articles.length} findings`;
    });
  }

  // Cases: packed rows, searched here and drawn a page at a time.
  const body = document.getElementById("case-rows");
  if (body) {
    const PAGE = 50;
    const SCREEN = 15;
    const data = JSON.parse(document.getElementById("case-data").textContent);
    const word = (i) => data.words[i];
    const rows = data.rows;
    const hay = rows.map((r) =>
      [r[0], word(r[1]), word(r[2]), r[6].map(word).join(" "), r[7].map(word).join(" "), r[8], r[9]].join(" ").toLowerCase(),
    );
    const query = document.getElementById("case-q");
    const outcome = document.getElementById("case-outcome");
    const checkpoint = document.getElementById("case-checkpoint");
    const count = document.getElementById("case-count");
    const more = document.getElementById("case-more");
    const marks = JSON.parse(document.getElementById("looks").textContent);
    let found = [];
    let limit = PAGE;
    let chosen = "";
    const element = (tag, text, css) => {
      const made = document.createElement(tag);
      if (text !== undefined) made.textContent = text;
      if (css) made.className = css;
      return made;
    };
    const drawn = (r) => {
      const line = element("tr", undefined, r[0] === chosen ? "shown" : "");
      const head = element("th", undefined, "mono");
      head.scope = "row";
      const link = element("a", r[0]);
      link.href = `#case=${encodeURIComponent(r[0])}`;
      head.append(link);
      const look = marks[word(r[3])];
      const state = element("td");
      const tag = element("abbr", `${look.glyph} ${look.word}`, `tag ${look.css}`);
      tag.title = look.meaning;
      state.append(tag);
      const model = element("td", word(r[1]));
      model.append(element("br"), element("span", word(r[2]), "quiet"));
      const notes = element("td", r[6].map(word).join("; "));
      for (const anchor of r[7]) {
        const to = element("a", "finding");
        to.href = `#${word(anchor)}`;
        notes.append(" ", to);
      }
      if (r[9]) notes.append(element("br"), element("span", r[9], "quiet"));
      let share = r[5] < 0 ? "" : String(r[5]);
      if (r[5] >= 1e4) share = r[5].toExponential(2).replace("e+", "e");
      line.append(head, state, model, element("td", r[4], "num"), element("td", share, "num"), notes, element("td", r[8], "mono"));
      return line;
    };
    const show = (to) => {
      body.append(...found.slice(body.childElementCount, to).map((i) => drawn(rows[i])));
      more.hidden = found.length <= limit;
      const all = rows.length.toLocaleString("en");
      count.textContent = `${found.length.toLocaleString("en")} of ${all} cases${found.length > limit ? `; the first ${limit} are shown` : ""}`;
    };
    // The first screen at once, what is below it after the browser has painted: a key is answered sooner.
    let drawing = 0;
    const draw = () => {
      drawing += 1;
      const mine = drawing;
      body.replaceChildren();
      show(Math.min(SCREEN, limit));
      requestAnimationFrame(() => setTimeout(() => mine === drawing && show(limit)));
    };
    const search = () => {
      const wanted = words(query.value);
      found = [];
      for (let i = 0; i < rows.length; i += 1) {
        if (outcome.value && word(rows[i][3]) !== outcome.value) continue;
        if (checkpoint.value && word(rows[i][1]) !== checkpoint.value) continue;
        if (wanted.every((w) => hay[i].includes(w))) found.push(i);
      }
      draw();
    };
    // The filter is part of the address, so that a view can be sent. It is written when the hand rests:
    // browsers ration how often a page may change its address.
    let resting = 0;
    const keep = () => {
      clearTimeout(resting);
      resting = setTimeout(write, 120);
    };
    const write = () => {
      const set = new URLSearchParams();
      if (query.value) set.set("q", query.value);
      if (outcome.value) set.set("outcome", outcome.value);
      if (checkpoint.value) set.set("checkpoint", checkpoint.value);
      const filter = String(set);
      history.replaceState(null, "", filter ? `#cases?${filter}` : "#cases");
    };
    const changed = () => {
      limit = PAGE;
      chosen = "";
      search();
      keep();
    };
    const follow = () => {
      const hash = location.hash;
      if (hash.startsWith("#cases?")) {
        const set = new URLSearchParams(hash.slice(7));
        query.value = set.get("q") || "";
        outcome.value = set.get("outcome") || "";
        checkpoint.value = set.get("checkpoint") || "";
      } else if (hash.startsWith("#case=")) {
        try {
          chosen = decodeURIComponent(hash.slice(6));
        } catch (malformed) {
          return;
        }
        query.value = chosen;
        outcome.value = "";
        checkpoint.value = "";
      } else return;
      limit = PAGE;
      search();
      document.getElementById("cases").scrollIntoView({ behavior: "instant" });
    };
    query.addEventListener("input", changed);
    outcome.addEventListener("change", changed);
    checkpoint.addEventListener("change", changed);
    document.getElementById("case-clear").addEventListener("click", () => {
      query.value = outcome.value = checkpoint.value = "";
      changed();
      query.focus();
    });
    more.addEventListener("click", () => {
      limit += PAGE;
      show(limit);
    });
    addEventListener("hashchange", follow);
    search();
    follow();
  }

  // Slash goes to the search, as in other places where one reads code.
  document.addEventListener("keydown", (event) => {
    const box = document.getElementById("case-q");
    if (event.key !== "/" || !box || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    box.focus();
    box.scrollIntoView({ block: "center" });
  });

  // Links into a folded part unfold it; not every browser does so by itself.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e instanceof HTMLDetailsElement) e.open = true;
    // What is taller than the screen is read from its beginning.
    const tall = target.getBoundingClientRect().height > innerHeight;
    // At once: a smooth way there is broken off when the browser restores its own place.
    target.scrollIntoView({ block: tall ? "start" : "center", behavior: "instant" });
  };
  addEventListener("hashchange", reveal);
  if (location.hash) {
    reveal();
    addEventListener("load", () => setTimeout(reveal));
  }

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
