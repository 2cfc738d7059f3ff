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
