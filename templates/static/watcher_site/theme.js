// Runs before the page is drawn: the colours follow the system until the person chooses, and then the choice.
(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const chosen = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const apply = () => root.setAttribute("data-bs-theme", chosen() || (system.matches ? "dark" : "light"));

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const next = root.getAttribute("data-bs-theme") === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", next); } catch { /* private window: until the next page */ }
    root.setAttribute("data-bs-theme", next);
  });
})();
