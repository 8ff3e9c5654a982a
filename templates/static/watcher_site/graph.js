// The graph of a plan: its size, and the edges, the parents and the children of the box under the pointer or the focus.
(() => {
  const LEAST = 0.05, MOST = 3;
  let zoom = 1;
  const graph = () => document.getElementById("graph");

  const apply = () => {
    const svg = graph()?.querySelector("svg");
    const buttons = document.querySelector("[data-zoom]");
    if (!svg || !buttons) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", Math.round(width * zoom));
    svg.setAttribute("height", Math.round(height * zoom));
    buttons.hidden = false;
    window.dispatchEvent(new Event("resize"));
  };

  const fitting = () => {
    const style = getComputedStyle(graph());
    const width = graph().clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return Math.min(1, width / graph().querySelector("svg").viewBox.baseVal.width);
  };

  document.addEventListener("click", (event) => {
    const by = event.target.closest("[data-zoom-by]")?.dataset.zoomBy;
    if (!by) return;
    zoom = by === "fit" ? fitting() : by === "reset" ? 1 : zoom * Number(by);
    zoom = Math.min(MOST, Math.max(LEAST, zoom));
    apply();
  });

  const clear = () => {
    graph()?.querySelectorAll(".traced").forEach((part) => part.classList.remove("traced"));
    graph()?.querySelector("svg")?.classList.remove("tracing");
  };

  const trace = (event) => {
    const box = event.target.closest?.("#graph .box");
    if (!box) return;
    clear();
    const before = box.dataset.in, after = new Set(box.dataset.out.split(" ").filter(Boolean)), own = box.dataset.key;
    const isOf = (end) => end === "" || end === own;
    box.classList.add("traced");
    graph().querySelectorAll(".edge").forEach(({ dataset, classList }) => {
      const isBefore = before !== "" && dataset.group === before && isOf(dataset.end);
      if (isBefore || (after.has(dataset.group) && isOf(dataset.start))) classList.add("traced");
    });
    graph().querySelectorAll(".box").forEach((other) => {
      const isParent = before !== "" && other.dataset.out.split(" ").includes(before);
      if (isParent || after.has(other.dataset.in)) other.classList.add("traced");
    });
    graph().querySelector("svg").classList.add("tracing");
  };

  document.addEventListener("mouseover", (event) => { if (!event.target.closest?.("#graph .box")) clear(); else trace(event); });
  document.addEventListener("focusin", trace);
  document.addEventListener("focusout", (event) => { if (event.target.closest?.("#graph .box")) clear(); });
  document.addEventListener("htmx:after:swap", apply);
  apply();
})();
