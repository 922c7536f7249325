// Runs before the first paint, so that a chosen theme does not flash: the theme is always an attribute of the page.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem("theme");
    document.documentElement.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
  };
  apply();
  system.addEventListener("change", apply);
})();
