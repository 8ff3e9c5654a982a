// What the pages do beyond links and forms: the dialog, choosing many actions, and updating without losing one's place.
(() => {
  const dialog = document.getElementById("dialog");
  const boxes = () => [...document.querySelectorAll("input[name=actions]")];

  const markPage = () => {
    const links = [...document.querySelectorAll("[data-page]")];
    // The attribute may hold a second address, whose pages belong to the link as well.
    // All addresses begin with that of the overview, to which no other page belongs.
    const home = document.querySelector(".navbar-brand")?.pathname;
    const matches = (path) => path === location.pathname || (path && path !== home && location.pathname.startsWith(path));
    const match = (link) => Math.max(...[link.pathname, link.dataset.page].filter(matches).map((path) => path.length));
    const link = links.filter((link) => match(link) > 0).sort((a, b) => match(b) - match(a))[0];
    if (link) { link.classList.add("active"); link.setAttribute("aria-current", "page"); }
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

  // A button of a form may go to an address of its own.
  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    ctx.request.action = ctx.request.submitter?.getAttribute("formaction") ?? ctx.request.action;
  });

  // A part of the page that updates itself is changed in place: focus, selection, scrolling and checked boxes stay.
  // What a person unfolded stays, too: the server knows nothing of it.
  htmx.registerExtension("unfolded", {
    htmx_before_morph_attr: (element, { attrName }) => !(element.localName === "details" && attrName === "open"),
  });
  let state;
  document.addEventListener("htmx:before:swap", () => { state = document.getElementById("progress")?.dataset.state; });
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target === dialog) {
      if (!dialog.open) dialog.showModal();
      return;
    }
    countChosen();
    hintAtScroll();
    announce();
    // What was said of a step is past when the next one was made.
    const now = document.getElementById("progress")?.dataset.state;
    if (now !== state) document.querySelectorAll("#messages .alert-success").forEach((message) => message.remove());
  });

  // Fields that the server draws anew: what was typed while it did so is put back.
  let typed = new Map();
  const remember = (event) => {
    const field = event.target;
    if (field.id && field.closest?.("#choices")) typed.set(field.id, { value: field.value, checked: field.checked });
  };
  document.addEventListener("input", remember);
  document.addEventListener("change", remember);
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => { if (ctx.target.id === "choices") typed = new Map(); });
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx.target.id !== "choices") return;
    typed.forEach(({ value, checked }, id) => {
      const field = document.getElementById(id);
      if (!field || (field.options && ![...field.options].some((option) => option.value === value))) return;
      if (field.type === "checkbox") field.checked = checked; else field.value = value;
    });
  });

  // A part that cannot be updated shows the time of its last update, and keeps trying.
  const connection = document.getElementById("connection");
  let updated = new Date();
  const follows = ({ ctx }) => ctx.sourceElement.matches("[data-follows]");
  const disconnect = () => {
    connection.textContent = `No connection to the site. This page shows the state of ${updated.toLocaleTimeString()}.`;
    connection.hidden = false;
  };
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (!follows(detail) || detail.ctx.response.status >= 400) return;
    updated = new Date();
    connection.hidden = true;
  });
  // A page in a hidden tab sends no requests.
  document.addEventListener("htmx:before:request", (event) => {
    if (follows(event.detail) && document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.querySelectorAll("[data-follows]").forEach((part) => htmx.trigger(part, "every"));
  });
  // Where the server has no fragment to give, the page itself says why.
  document.addEventListener("htmx:response:error", ({ detail }) => {
    if (follows(detail) && detail.ctx.response.status >= 500) disconnect(); else location.reload();
  });
  document.addEventListener("htmx:error", ({ detail }) => {
    if (detail.ctx && follows(detail)) disconnect();
    else if (detail.ctx) connection.textContent = "No connection to the site: nothing was sent.", connection.hidden = false;
  });

  window.addEventListener("resize", hintAtScroll);
  markPage();
  countChosen();
  hintAtScroll();
  document.querySelector("form[data-send-at-once]")?.submit();
})();
