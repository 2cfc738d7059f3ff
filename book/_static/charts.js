/* Vega fits a chart to its column when the window changes; the column also changes on its own,
   while the page is still loading and when a sidebar opens. */
let width = 0;
new ResizeObserver(([column]) => {
  if (column.contentRect.width !== width) {
    width = column.contentRect.width;
    dispatchEvent(new Event("resize"));
  }
}).observe(document.querySelector("article"));
addEventListener("load", () => dispatchEvent(new Event("resize")));

/* The rectangle that is dragged over dots is no picture to be read out. */
const charts = document.querySelector("article");
new MutationObserver(() => {
  for (const brush of charts.querySelectorAll(".vega-embed g[class*='brush_brush']")) {
    if (brush.ariaHidden !== "true") brush.ariaHidden = "true";
  }
}).observe(charts, { attributes: true, childList: true, subtree: true });
