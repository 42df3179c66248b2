// A map of texts: the text of the point that is pointed at, or reached by keys.

function mapView(box) {
  const [svg, said] = [box.querySelector("svg"), box.querySelector("[role=status]")];
  const points = [...svg.querySelectorAll("circle")];
  const hint = said.textContent;
  const NEAR = 24; // pixels
  // Keys go from left to right.
  const order = [...points].sort((a, b) => a.cx.baseVal.value - b.cx.baseVal.value);
  let chosen = null;
  function choose(point) {
    if (point === chosen) return;
    chosen?.classList.remove("chosen");
    chosen = point;
    chosen?.classList.add("chosen");
    said.textContent = chosen ? chosen.querySelector("title").textContent : hint;
  }
  function nearest(event) {
    let [best, least] = [null, NEAR];
    for (const point of points) {
      const { left, top, width, height } = point.getBoundingClientRect();
      const distance = Math.hypot(event.clientX - left - width / 2, event.clientY - top - height / 2);
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  }
  svg.addEventListener("pointermove", (event) => choose(nearest(event)));
  svg.addEventListener("pointerdown", (event) => choose(nearest(event)));
  order.forEach((point, i) => {
    point.setAttribute("tabindex", i ? "-1" : "0");
    point.addEventListener("focus", () => {
      order.forEach((other) => other.setAttribute("tabindex", other === point ? "0" : "-1"));
      choose(point);
    });
    point.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: order.length - 1 }[event.key];
      if (order[to]) {
        event.preventDefault();
        order[to].focus();
      }
    });
  });
}
