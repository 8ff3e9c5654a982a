// Runs before the page is rendered: the theme is that of the system, unless the user has chosen another one.
(() => {
  // The site shows times in the time zone of the browser, unless the user chooses another one.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) document.cookie = `browser_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;

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
