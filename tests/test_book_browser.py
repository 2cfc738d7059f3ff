"""The built book in a real browser, with every other host out of reach."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import BOOK, PAGES, ROOT, unavailable
from playwright.sync_api import Browser, Error, Page, sync_playwright

NAMES = [str(page.relative_to(BOOK)) for page in PAGES]
CHAPTERS = [name for name in NAMES if name.startswith("notebooks/")]
SCREENSHOTS = ROOT / "_build" / "screenshots"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
FLAGS = [
    "--no-sandbox",  # a container's root user may not sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
VIEWS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}

pytestmark = pytest.mark.browser


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(book: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(book)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except Error as error:
            unavailable(
                "No browser to open the book with: install Chromium or Chrome, or run "
                f"`.venv/bin/playwright install chromium` ({error.message.splitlines()[0]})."
            )
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, address: str, name: str, view: str) -> Iterator[Page]:
    """Open a page and wait until it is drawn; whatever goes wrong meanwhile fails the test."""
    theme, width = VIEWS[view]
    wrong: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, service_workers="block", color_scheme=theme
    )

    def only_the_book(route):
        if urlsplit(route.request.url).netloc == urlsplit(address).netloc:
            route.continue_()
        else:
            wrong.append(f"asks another host: {route.request.url}")
            route.abort()

    context.route("**/*", only_the_book)
    context.add_init_script(
        f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}');"
    )
    page = context.new_page()
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.goto(f"{address}/{name}", wait_until="networkidle")
    page.evaluate("window.MathJax?.startup?.promise")
    for chart in page.locator("[id^=altair-viz-]").all():
        chart.locator("svg").first.wait_for(state="attached")  # a slide may not be shown yet
    yield page
    assert wrong == []
    context.close()


# Text around charts and widgets whose contrast with the ground it stands on is below 4.5, with
# relative luminance and contrast as WCAG 2 defines them.
FAINT_TEXT = """() => {
  const rgba = colour => colour.match(/[\\d.]+/g).map(Number);
  const channel = value => (value /= 255) <= 0.04045
    ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = colour => {
    const [r, g, b] = rgba(colour).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return rgba(colour)[3] === 0 ? ground(element.parentElement) : colour;
  };
  const texts = document.querySelectorAll(
    '.vega-embed :is([class*=role-axis], [class*=role-legend], [class*=role-title]) text,' +
    '.vega-bind-name, .vega-bind span, .widget-label, .widget-readout');
  return [...texts].filter(text => {
    const style = getComputedStyle(text);
    const lights = [luminance(text.closest('svg') ? style.fill : style.color),
                    luminance(ground(text))];
    return (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05) < 4.5;
  }).map(text => text.textContent);
}"""


# What axe-core, the checker of accessibility, calls a serious or critical fault.
SERIOUS_FAULTS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(fault => ["serious", "critical"].includes(fault.impact))
  .flatMap(fault => fault.nodes.map(node => `${fault.id}: ${node.html.slice(0, 120)}`))"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", [*NAMES, "slides/index.html"])
def test_everybody_can_use_the_page(browser, address, name, view):
    with opened(browser, address, name, view) as page:
        page.add_script_tag(path=AXE)
        assert page.evaluate(SERIOUS_FAULTS) == []


def test_an_icon_that_is_drawn_late_has_no_words(browser, address):
    with opened(browser, address, "book/welcome.html", "light") as page:
        button = page.locator(".theme-switch-button").first
        button.evaluate("b => b.innerHTML += '<svg><title>Light</title></svg>'")
        page.wait_for_function("() => !document.querySelector('.theme-switch-button title')")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_page_is_whole(browser, address, name, view):
    with opened(browser, address, name, view) as page:
        picture = f"{name.removesuffix('.html').replace('/', '-')}-{view}.png"
        page.screenshot(path=SCREENSHOTS / picture, full_page=True)

        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels wider than the window"

        formulas = page.locator(".math")
        assert page.locator(".math mjx-container").count() >= formulas.count()
        assert page.locator("mjx-merror").count() == 0
        # A chapter has hundreds of formulas in its lines: none is a stop for the keyboard.
        assert page.locator("mjx-container:not([display])[tabindex]").count() == 0

        for chart in page.locator("[id^=altair-viz-]").all():
            marks = chart.locator("svg [class*=mark-]:is(.role-mark) > *")
            assert marks.count() > 0, "a chart without a mark"
            box = chart.locator("svg").first.bounding_box()
            assert box["width"] > 100
            assert box["height"] > 50

        if page.locator("script[type='application/vnd.jupyter.widget-view+json']").count():
            page.locator(".jupyter-widgets").first.wait_for()
        assert page.evaluate(FAINT_TEXT) == []


@pytest.mark.parametrize("view", ["light", "phone"])
@pytest.mark.parametrize("name", CHAPTERS)
def test_sliders_move_charts_without_python(browser, address, name, view):
    with opened(browser, address, name, view) as page:
        charts = page.locator("[id^=altair-viz-]:has(.vega-bind input[type=range])")
        for chart in charts.all():
            drawing = chart.locator("svg").first
            for slider in chart.locator("input[type=range]").all():
                start = slider.input_value()
                slider.press("Home")
                page.wait_for_timeout(200)
                at_lowest = drawing.inner_html()
                slider.press("End")
                page.wait_for_timeout(200)
                assert drawing.inner_html() != at_lowest
                slider.fill(start)  # what one slider leaves out, the next cannot move


def test_some_chapter_has_a_slider(browser, address):
    sliders = 0
    for name in CHAPTERS:
        with opened(browser, address, name, "light") as page:
            sliders += page.locator(".vega-bind input[type=range]").count()
    assert sliders >= 1


@pytest.mark.parametrize("name", CHAPTERS)
def test_solutions_are_folded_until_opened(browser, address, name):
    with opened(browser, address, name, "light") as page:
        for solution in page.locator(".solution.dropdown").all():
            body = solution.locator("section").first
            assert not body.is_visible()
            solution.locator(".toggle-button").click()
            body.wait_for(state="visible")


def test_dark_and_light_differ(browser, address):
    grounds = []
    for view in ("light", "dark"):
        with opened(browser, address, "book/welcome.html", view) as page:
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


@pytest.mark.parametrize("view", ["light", "dark"])
@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_prints_with_its_figures(browser, address, name, view):
    paper = 720  # pixels between the margins of an A4 page
    with opened(browser, address, name, view) as page:
        page.set_viewport_size({"width": paper, "height": 1000})
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.wait_for_timeout(200)
        page.add_script_tag(path=AXE)
        assert page.evaluate(FAINT_TEXT) == []
        assert page.evaluate(SERIOUS_FAULTS) == []
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        for furniture in (".bd-sidebar-primary", ".bd-header-article", ".prev-next-footer"):
            assert not page.locator(furniture).first.is_visible(), furniture
        figures = page.locator(".vega-embed svg.marks, .cell_output img, .bd-article > figure img")
        drawn = [figure for figure in figures.all() if figure.is_visible()]
        assert len(drawn) == figures.count() > 0
        boxes = [figure.bounding_box() for figure in drawn]
        assert [box for box in boxes if box["x"] < 0 or box["x"] + box["width"] > paper] == []
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == view


QUIZZES = [
    name
    for name in CHAPTERS
    if "```{quiz}" in (ROOT / name).with_suffix(".md").read_text(encoding="utf-8")
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", QUIZZES)
def test_a_quiz_is_answered_by_keyboard(browser, address, name, view):
    with opened(browser, address, name, view) as page:
        answers = page.locator(".quiz details")
        assert answers.count() >= 15
        assert page.locator(".quiz details[open]").count() == 0
        reasons = (
            answers.nth(0)
            .locator("p", has_text="Right.")
            .or_(answers.nth(0).locator("p", has_text="Not quite."))
        )
        assert not reasons.first.is_visible()
        answers.nth(0).locator("summary").focus()
        page.keyboard.press("Enter")
        reasons.first.wait_for(state="visible")
        page.keyboard.press("Tab")
        assert answers.nth(1).locator("summary").evaluate("s => s === document.activeElement")


@pytest.mark.slow
def test_search_finds_every_word_of_the_glossary(browser, address):
    with opened(browser, address, "book/glossary.html", "light") as page:
        terms = page.locator("dl.glossary dt").all_inner_texts()
    assert len(terms) > 30
    lost = []
    with opened(browser, address, "search.html", "light") as page:
        for term in terms:
            word = term.strip().removesuffix("#").strip()
            page.evaluate("document.getElementById('search-results').replaceChildren()")
            page.evaluate("word => Search.performSearch(word)", word)
            summary = page.locator(".search-summary")
            summary.filter(has_text="found").or_(summary.filter(has_text="match")).wait_for()
            if page.locator("#search-results a[href*='book/glossary.html']").count() == 0:
                lost.append(word)
        page.wait_for_load_state("networkidle")  # the search still reads the pages that it found
    assert lost == []


def test_every_slide_fits_and_shows_its_chart(browser, address):
    with opened(browser, address, "slides/index.html", "light") as page:
        page.set_viewport_size({"width": 1280, "height": 720})
        page.wait_for_function("window.Reveal?.isReady()")
        charts = 0
        for _ in range(page.evaluate("Reveal.getTotalSlides()")):
            slide = page.locator("section.present:not(:has(section))")
            height = slide.evaluate("slide => slide.scrollHeight")
            assert height <= 720, slide.inner_text()
            for chart in slide.locator("[id^=altair-viz-]").all():
                chart.locator("svg").first.wait_for()
                assert chart.locator("svg").first.bounding_box()["width"] > 150
                charts += 1
            page.evaluate("while (Reveal.availableFragments().next) Reveal.nextFragment()")
            page.keyboard.press("Space")
        assert page.evaluate("Reveal.isLastSlide()")
        assert charts > 8


def test_a_page_that_is_not_there(browser, address):
    with opened(browser, address, "404.html", "light") as page:
        assert page.get_by_role("heading", name="There is no such page").is_visible()
        links = page.locator(".bd-sidebar-primary a[href]").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))"
        )
    assert len(links) > 10
    assert all(link.startswith("/") for link in links)
