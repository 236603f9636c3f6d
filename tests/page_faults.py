"""What a reader would stumble over on a page, measured as boxes in a browser."""

import numpy as np

WIDTHS = (390, 768, 1280)  # CSS pixels: a telephone, a tablet, a laptop
WIDE_ENOUGH = 1280  # where every table fits without being pushed

# Names every box that leaves the page, the text of a figure that leaves its figure or lies on
# another text, the empty box, and, where there is room enough, the table that has to be pushed.
MEASURE = r"""((across, roomy) => {
  const all = (where, what) => [...where.querySelectorAll(what)];
  const label = (one) => (one.id ? '#' + one.id + ' ' : '') + one.textContent.trim().slice(0, 50);
  const seen = (box) => box.width > 0 && box.height > 0;
  const askew = (text) => {
    const turned = (text.getAttribute('transform') || '').match(/rotate\(([-0-9.]+)/);
    return turned !== null && Number(turned[1]) % 90 !== 0;
  };
  const faults = [];
  const page = document.documentElement;
  if (page.scrollWidth > across) faults.push(`the page is ${page.scrollWidth} px wide`);
  const blocks = 'p, li, h1, h2, h3, h4, figure, figcaption, table, code, .said';
  for (const one of all(document, blocks)) {
    const box = one.getBoundingClientRect();
    if (!seen(box) || one.closest('svg, details:not([open])')) continue;
    const holder = one.closest('.wide, code') || one;
    const edge = holder.getBoundingClientRect().right;
    if (edge > across + 1) faults.push(`beyond the page: ${label(one)}`);
    if (!one.matches('.wide *, code') && one.scrollWidth > one.clientWidth + 1
        && getComputedStyle(one).overflowX === 'visible' && one.clientWidth > 0
        && !all(one, '.wide, code').length && !one.matches('table'))
      faults.push(`runs over: ${label(one)}`);
  }
  for (const wide of all(document, '.wide')) {
    if (!seen(wide.getBoundingClientRect())) continue;
    if (!wide.textContent.trim()) faults.push('an empty box');
    if (roomy && wide.scrollWidth > wide.clientWidth + 1 && wide.clientWidth)
      faults.push(`a table leaves its box: ${wide.getAttribute('aria-label')}, ${label(wide)}`);
  }
  for (const svg of all(document, 'svg')) {
    const frame = svg.getBoundingClientRect();
    if (!seen(frame)) continue;
    const name = (svg.getAttribute('aria-label') || '').slice(0, 40);
    const boxed = (text) => [text.textContent.trim(), text.getBoundingClientRect(), askew(text)];
    const texts = all(svg, 'text').map(boxed)
      .filter(([text, box]) => text && seen(box));
    for (const [text, box] of texts)
      if (box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        faults.push(`clipped in "${name}": ${text.slice(0, 40)}`);
    for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
      const [a, b] = [texts[i][1], texts[j][1]];
      if (texts[i][2] || texts[j][2]) continue; // the box of words at an angle holds much besides
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 2 && down > 0.4 * Math.min(a.height, b.height) && Math.min(a.width, b.width) > 2
          && across > 0.15 * Math.min(a.width, b.width))
        faults.push(`one on another in "${name}": ${texts[j][0]} | ${texts[i][0]}`);
    }
  }
  return [...new Set(faults)];
})"""


def faults_of(browser, file, width):
    """Return a sentence for each fault of a page on a screen so wide."""
    browser.open(file, width=width, height=900)
    roomy = "true" if width >= WIDE_ENOUGH else "false"
    return browser.value(f"{MEASURE}({width}, {roomy})")


def empty_panels(figure):
    """Return the titles of panels in which nothing is drawn, or lines across them alone."""
    titles = []
    for k, axis in enumerate(figure.axes):
        drawn = np.isfinite(axis.dataLim.get_points()).all()
        if axis.get_visible() and axis.axison and not drawn:
            titles.append(axis.get_title() or axis.get_title(loc="left") or str(k + 1))
    return titles
