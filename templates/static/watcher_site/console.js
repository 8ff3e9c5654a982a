// The dialog, the selection of actions, and updates of pages that keep focus and scroll position.
(() => {
  const dialog = document.getElementById("dialog");
  const boxes = () => [...document.querySelectorAll("input[name=actions], input[name=skipped]")];

  const countChosen = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    document.querySelectorAll("[data-chosen]").forEach((button) => {
      const number = boxes().filter((box) => box.checked && box.name === button.dataset.chosen).length;
      button.dataset.none ??= button.textContent;
      button.disabled = number === 0;
      button.textContent = number ? button.dataset.label.replace("{number}", number.toLocaleString(document.documentElement.lang)) : button.dataset.none;
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
    document.querySelectorAll("[data-menu][open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
    if (dialog.open && event.target.closest("[data-close]")) { event.preventDefault(); dialog.close(); }
  });

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.("[data-menu][open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  // A closed dialog returns the focus to the button that opened it, which an update of the page may have replaced.
  let opener;
  document.addEventListener("click", (event) => { opener = event.target.closest("[hx-target='#dialog']") ?? opener; });
  dialog.addEventListener("close", () => {
    const current = opener?.isConnected ? opener : opener?.id && document.getElementById(opener.id);
    (current || document.getElementById("content")).focus({ preventScroll: true });
  });

  // After a form was sent, the focus is on the changed row, and the message is announced; or else it is on the message.
  const showOutcome = () => {
    const outcome = document.getElementById("messages");
    if (!outcome?.childElementCount || document.activeElement !== document.body) return;
    const row = location.hash && document.getElementById(location.hash.slice(1));
    const place = row || outcome;
    if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
    place.focus({ preventScroll: true });
    // Screen readers announce additions to an existing live region.
    if (row) setTimeout(() => [...outcome.children].forEach((message) => message.replaceWith(message.cloneNode(true))), 200);
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-dismiss]")) return;
    event.target.closest(".alert").remove();
    document.getElementById("content").focus({ preventScroll: true });
  });

  // A button of a form may have its own URL.
  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    ctx.request.action = ctx.request.submitter?.getAttribute("formaction") ?? ctx.request.action;
  });

  // An updated part of the page is changed in place, to keep focus, selection, scroll position and check boxes.
  // Opened details are kept, too, because the server does not know them.
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
    // The message of an operation is removed after the next one.
    const now = document.getElementById("progress")?.dataset.state;
    if (now !== state) document.querySelectorAll("#messages .alert-success").forEach((message) => message.remove());
  });

  // Input that was entered while the server rendered fields again is restored.
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

  // The address of a form with its choices, for "back" in the browser. htmx itself would also request pages on "back".
  document.addEventListener("htmx:before:history:update", (event) => {
    event.preventDefault();
    history.replaceState(history.state, "", event.detail.history.path);
  });

  // A part that cannot be updated shows the time of its last update, and is tried again.
  const connection = document.getElementById("connection");
  let updated = new Date();
  const follows = ({ ctx }) => ctx.sourceElement.matches("[data-follows]");
  const disconnect = () => {
    connection.textContent = connection.dataset.lost.replace("{time}", updated.toLocaleTimeString(document.documentElement.lang));
    connection.hidden = false;
  };
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (!follows(detail) || detail.ctx.response.status >= 400) return;
    updated = new Date();
    connection.hidden = true;
  });
  // Pages in hidden tabs and pages of deleted objects send no requests.
  let isDeleted = false;
  document.addEventListener("htmx:before:request", (event) => {
    if (follows(event.detail) && (document.hidden || isDeleted)) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.querySelectorAll("[data-follows]").forEach((part) => htmx.trigger(part, "every"));
  });
  // If the server responds without a fragment, the page is loaded, which shows the reason.
  document.addEventListener("htmx:response:error", ({ detail }) => {
    const { deleted } = detail.ctx.sourceElement.dataset;
    const { status } = detail.ctx.response;
    if (status >= 500 && follows(detail)) return disconnect();
    if (status < 500 && (!deleted || ![404, 410].includes(status))) return location.reload();
    if (status < 500) isDeleted = true;
    connection.textContent = status < 500 ? deleted : connection.dataset.failed;
    connection.hidden = false;
  });
  document.addEventListener("htmx:error", ({ detail }) => {
    if (detail.ctx && follows(detail)) disconnect();
    else if (detail.ctx) connection.textContent = connection.dataset.unsent, connection.hidden = false;
  });

  // A button copies an identifier and confirms it. Without HTTPS, browsers have no clipboard API, but can copy a selection.
  const copy = async (text, place) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea");
    field.value = text;
    place.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    place.focus();
    if (!done) throw new Error("not copied");
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const status = document.getElementById("copied");
    status.textContent = "";
    try { await copy(button.dataset.copy, button); } catch { return; }
    status.textContent = status.dataset.text;
    button.classList.add("copied");
    setTimeout(() => { button.classList.remove("copied"); status.textContent = ""; }, 2000);
  });

  window.addEventListener("resize", hintAtScroll);
  countChosen();
  hintAtScroll();
  showOutcome();
  document.querySelector("form[data-send-at-once]")?.submit();
})();
