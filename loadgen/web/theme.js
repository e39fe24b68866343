// Light or dark, as chosen on Locust's page, else as the system prefers. Owns data-theme of the document.
"use strict";

function theme() {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage may be forbidden */ }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

addEventListener("storage", theme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
theme();
