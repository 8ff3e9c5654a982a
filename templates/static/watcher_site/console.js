// What the pages do beyond links and forms: the dialog, choosing many actions, and updating without losing one's place.
(() => {
  const dialog = document.getElementById("dialog");
  const boxes = () => [...document.querySelectorAll("input[name=actions]")];

  const markPage = () => {
    const links = [...document.querySelectorAll("[data-page]")];
    const here = links.filter((link) => location.pathname.startsWith(link.pathname));
    const longest = here.sort((a, b) => b.pathname.length - a.pathname.length)[0];
    if (longest) { longest.classList.add("active"); longest.setAttribute("aria-current", "page"); }
  };

  const countChosen = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    document.querySelectorAll("[data-chosen]").forEach((button) => {
      button.disabled = chosen === 0;
      button.textContent = chosen ? `Skip ${chosen} selected…` : "Skip selected…";
    });
    const all = document.querySelector("[data-choose-all]");
    if (all) {
      all.disabled = boxes().length === 0;
      all.checked = chosen > 0 && chosen === boxes().length;
      all.indeterminate = chosen > 0 && chosen < boxes().length;
    }
  };

  const hintAtScroll = () => {
    const graph = document.getElementById("graph");
    const hint = document.querySelector("[data-scroll-hint]");
    if (graph && hint) hint.hidden = graph.scrollWidth <= graph.clientWidth + 1;
  };

  const announce = () => {
    const news = document.querySelector("[data-announcement]")?.dataset.announcement;
    const place = document.getElementById("announcement");
    if (place && news && place.textContent !== news) place.textContent = news;
  };

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-choose-all]")) boxes().forEach((box) => { box.checked = event.target.checked; });
    countChosen();
  });

  document.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
    if (dialog.open && event.target.closest("[data-close]")) { event.preventDefault(); dialog.close(); }
  });

  // A fragment that is about to be replaced: remember what was chosen and how far it was scrolled.
  let kept = { state: "", chosen: new Set(), scrolled: new Map() };
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target === dialog) return;
    kept = {
      state: document.getElementById("progress")?.dataset.state,
      chosen: new Set(boxes().filter((box) => box.checked).map((box) => box.value)),
      scrolled: new Map([...document.querySelectorAll("[data-keep-scroll]")].map((part) => [part.id, part.scrollLeft])),
    };
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === dialog) {
      if (!dialog.open) dialog.showModal();
      return;
    }
    boxes().forEach((box) => { box.checked = kept.chosen.has(box.value); });
    kept.scrolled.forEach((left, id) => { const part = document.getElementById(id); if (part) part.scrollLeft = left; });
    countChosen();
    hintAtScroll();
    announce();
    // What was said of a step is past when the next one was made.
    const now = document.getElementById("progress")?.dataset.state;
    if (now !== kept.state) document.querySelectorAll("#messages .alert-success").forEach((message) => message.remove());
  });

  // Fields that the server draws anew: what was typed while it did so is put back.
  let typed = new Map();
  const remember = (event) => {
    const field = event.target;
    if (field.id && field.closest?.("#choices")) typed.set(field.id, { value: field.value, checked: field.checked });
  };
  document.addEventListener("input", remember);
  document.addEventListener("change", remember);
  document.addEventListener("htmx:beforeRequest", (event) => { if (event.detail.target.id === "choices") typed = new Map(); });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "choices") return;
    typed.forEach(({ value, checked }, id) => {
      const field = document.getElementById(id);
      if (!field || (field.options && ![...field.options].some((option) => option.value === value))) return;
      if (field.type === "checkbox") field.checked = checked; else field.value = value;
    });
  });

  // Where the server has no fragment to give, the page itself says why; a poll that found it down tries again.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.elt.id !== "progress" || event.detail.xhr.status < 500) location.reload();
  });

  window.addEventListener("resize", hintAtScroll);
  markPage();
  countChosen();
  hintAtScroll();
})();
