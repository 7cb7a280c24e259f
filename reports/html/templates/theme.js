"use strict";
document.documentElement.classList.add("js");
try {
  const kept = localStorage.getItem("parity-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch (blocked) {
  // Storage may be switched off; the theme then follows the system.
}
