// Draws the charts of the trends with Chart.js, with the data of each canvas and the colours of the style sheet.
(() => {
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  const draw = (canvas) => {
    window.Chart.getChart(canvas)?.destroy();
    const { kind, unit, days, series } = JSON.parse(canvas.dataset.chart);
    const bars = kind === "bar";
    const text = colour("quiet"), line = colour("line");
    new window.Chart(canvas, {
      type: kind,
      data: {
        labels: days,
        datasets: series.map(({ label, tone, values, dashed }) => ({
          label, data: values, borderColor: colour(tone), backgroundColor: colour(tone), borderDash: dashed ? [6, 4] : [],
          borderWidth: bars ? 0 : 2, pointRadius: 2, spanGaps: true,
        })),
      },
      options: {
        locale: root.lang, animation: false, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
        scales: {
          x: { stacked: bars, grid: { display: false }, ticks: { color: text, maxRotation: 0, autoSkipPadding: 12 } },
          y: { stacked: bars, beginAtZero: true, grid: { color: line }, ticks: { color: text, precision: bars ? 0 : undefined },
            title: { display: Boolean(unit), text: unit, color: text } },
        },
        plugins: { legend: { position: "bottom", labels: { color: text, boxWidth: bars ? 12 : 24, usePointStyle: !bars, pointStyle: "line" } } },
      },
    });
  };
  const drawAll = () => document.querySelectorAll("canvas[data-chart]").forEach(draw);
  const drawNew = () => document.querySelectorAll("canvas[data-chart]").forEach((canvas) => {
    if (!window.Chart.getChart(canvas)) draw(canvas);
  });

  drawAll();
  document.addEventListener("htmx:after:swap", drawNew);
  new MutationObserver(drawAll).observe(root, { attributes: true, attributeFilter: ["data-bs-theme"] });
})();
