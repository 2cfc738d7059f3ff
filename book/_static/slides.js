/* Vega fits a chart to its column when the window changes; a slide has no width until it is shown. */
addEventListener("load", () => {
  const fit = () => dispatchEvent(new Event("resize"));
  Reveal.on("slidechanged", fit);
  fit();
});
