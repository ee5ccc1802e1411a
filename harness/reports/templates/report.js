"use strict";
(() => {
  const view = document.getElementById("window"), plot = document.getElementById("plot");
  const opened = () => { // a link to an element in a closed section opens that section
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", opened);
  opened();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
  if (!plot) return;

  const hair = document.getElementById("hair"), cursor = document.getElementById("cursor");
  const begin = Number(plot.dataset.begin), length = Number(plot.dataset.length), labels = plot.querySelectorAll("text[data-w]");
  let zoom = 1;
  document.querySelector(".tools").hidden = false;

  const seconds = (share) => (begin + share * length).toFixed(3) + " s";
  const show = (factor, share, at) => { // zoom, with the moment `share` of the axis at `at` pixels of the window
    zoom = Math.min(Math.max(factor, 1), 200);
    plot.style.width = zoom === 1 ? "" : zoom * 100 + "%";
    plot.classList.toggle("z1", zoom >= 4);
    plot.classList.toggle("z2", zoom >= 16);
    view.scrollLeft = share * plot.clientWidth - at;
    fit();
    keep();
  };
  const fit = () => { // data-w: the room for the label in a picture of 976 pixels; 1 is enough
    const scale = plot.clientWidth / 976;
    labels.forEach((label) => label.classList.toggle("tight", Number(label.dataset.w) * scale < 1));
  };
  const places = Array.from(labels, (label) => [label, parseFloat(label.getAttribute("x")) / 100, Number(label.dataset.room) / 100]);
  const keep = () => { // the label of a bar that begins left of the window stays visible
    const width = plot.clientWidth, left = view.scrollLeft;
    for (const [label, x, room] of places) {
      const hidden = left - x * width;
      const dx = hidden > 0 && hidden < room * width - 40 ? Math.round(hidden) + 4 : 4;
      if (label.getAttribute("dx") !== String(dx)) label.setAttribute("dx", dx);
    }
  };
  let due = false;
  view.addEventListener("scroll", () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; keep(); });
  });
  addEventListener("resize", fit);
  fit();
  const middle = () => (view.scrollLeft + view.clientWidth / 2) / plot.clientWidth;

  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
    const factor = Number(button.dataset.zoom);
    show(factor ? zoom * factor : 1, middle(), view.clientWidth / 2);
  }));
  document.querySelectorAll("a.jump").forEach((link) => link.addEventListener("click", () => {
    const from = Number(link.dataset.from) / 100, to = Number(link.dataset.to) / 100;
    show(0.25 / Math.max(to - from, 0.004), (from + to) / 2, view.clientWidth / 2);
  }));
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = event.clientX - view.getBoundingClientRect().left;
    show(zoom * Math.exp(-event.deltaY / 300), (view.scrollLeft + at) / plot.clientWidth, at);
  }, { passive: false });
  view.addEventListener("keydown", (event) => {
    const factor = { "+": 2, "=": 2, "-": 0.5, "0": 0 }[event.key];
    if (factor === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(factor ? zoom * factor : 1, middle(), view.clientWidth / 2);
  });

  let held = null;
  view.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && zoom > 1) held = [event.clientX, view.scrollLeft]; });
  addEventListener("pointerup", () => { held = null; });
  view.addEventListener("pointermove", (event) => {
    if (held) view.scrollLeft = held[1] - (event.clientX - held[0]);
    const share = (event.clientX - plot.getBoundingClientRect().left) / plot.clientWidth;
    hair.setAttribute("x1", share * 100 + "%");
    hair.setAttribute("x2", share * 100 + "%");
    cursor.textContent = seconds(share);
  });
  view.addEventListener("pointerleave", () => {
    hair.setAttribute("x1", "-9");
    hair.setAttribute("x2", "-9");
    cursor.textContent = "";
  });
})();
