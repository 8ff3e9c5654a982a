// Keyboard shortcuts, which users may disable. They are ignored in text fields and while a dialog is open.
(() => {
  const help = document.getElementById("shortcuts");
  if (!help) return;
  const choice = document.getElementById("shortcuts-on");
  const isOn = () => { try { return localStorage.getItem("shortcuts") !== "off"; } catch { return true; } };
  choice.checked = isOn();
  choice.addEventListener("change", () => {
    try { localStorage.setItem("shortcuts", choice.checked ? "on" : "off"); } catch { /* private window: until the next page */ }
  });
  document.querySelectorAll("[data-shortcuts]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => help.showModal());
  });

  const ENTRY = "textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=submit], [type=button])";
  const isOurs = (event) => choice.checked && !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing &&
    !event.target.closest?.(ENTRY) && !document.querySelector("dialog[open]");
  const currentRow = () => document.activeElement.closest?.("main tbody tr");
  const goToRow = (step) => {
    const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.checkVisibility());
    const place = rows.indexOf(currentRow());
    const row = rows[place < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(place + step, 0), rows.length - 1)];
    row?.querySelector("a[href], button, input")?.focus();
  };
  const actions = {
    "?": () => help.showModal(),
    "/": () => document.getElementById("search")?.select(),
    j: () => goToRow(1),
    k: () => goToRow(-1),
    x: () => currentRow()?.querySelector("input[type=checkbox]")?.click(),
  };
  // The second key of a shortcut is accepted for one second after g.
  let begun = 0;
  document.addEventListener("keydown", (event) => {
    if (!isOurs(event)) return;
    const place = Date.now() - begun < 1000 && help.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    begun = event.key === "g" ? Date.now() : 0;
    const act = place ? () => place.click() : actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
