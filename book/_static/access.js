/* What the theme and the widgets leave out for whoever reads by keyboard, by ear or on paper. */

// Icons are no words: a button's label alone is read out. The theme turns each i into an svg, with
// the title that the i had, and may do so after this.
function silenceIcons(button) {
  for (const icon of button.querySelectorAll("i, svg")) {
    icon.ariaHidden = "true";
    icon.removeAttribute("title");
    icon.querySelector("title")?.remove();
  }
}
for (const button of document.querySelectorAll("button")) {
  silenceIcons(button);
  const again = new MutationObserver(() => silenceIcons(button));
  again.observe(button, { childList: true, subtree: true });
}

// This button shows words of its own.
document.querySelector(".search-button-field")?.removeAttribute("aria-label");

// A formula in a line of text is read with it, and is no place of its own to stop at by keyboard: a
// chapter has hundreds. (MathJax makes each one such a place for its menu; a mouse still opens it.)
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
    formula.removeAttribute("tabindex");
  }
});

// The arrow that folds a part of the contents says which part.
for (const summary of document.querySelectorAll(".bd-links summary")) {
  const page = summary.closest("li").querySelector("a");
  summary.ariaLabel = `Pages under ${page.textContent.trim()}`;
}

// Entries of a bibliography are items of its list.
for (const entry of document.querySelectorAll(".citation-list > .citation")) {
  entry.setAttribute("role", "listitem");
}

// What scrolls in a box of its own can be reached by keyboard while it is too wide.
const article = document.querySelector(".bd-article");
function reachScrollBoxes() {
  for (const box of article.querySelectorAll("table, pre, div.math, .vega-embed")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
if (article) new ResizeObserver(reachScrollBoxes).observe(article);

// A widget's slider has the name that stands before it. Widgets are drawn late, and again.
function nameSliders(drawn) {
  for (const slider of drawn.querySelectorAll(".widget-slider .noUi-handle:not([aria-label])")) {
    slider.ariaLabel = slider.closest(".widget-slider").querySelector(".widget-label").textContent;
  }
}
const views = "script[type='application/vnd.jupyter.widget-view+json']";
for (const { parentElement } of document.querySelectorAll(views)) {
  new MutationObserver(() => nameSliders(parentElement)).observe(parentElement, {
    childList: true,
    subtree: true,
  });
}

// Paper is white: what is printed is the light page.
const root = document.documentElement;
let shown;
addEventListener("beforeprint", () => {
  shown = root.dataset.theme;
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  root.dataset.theme = shown;
});
