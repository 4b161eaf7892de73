// The front end of the controls: one kind each, in the notebook's own colours.
const text = "color:var(--jp-ui-font-color1,inherit);font:var(--jp-ui-font-size1,13px) var(--jp-ui-font-family,sans-serif)";

function part(kind, style, properties) {
  const made = Object.assign(document.createElement(kind), properties);
  made.style.cssText = style;
  return made;
}

function slider(model) {
  const input = part("input", "flex:0 1 20em", {
    type: "range", min: model.get("min"), max: model.get("max"), step: model.get("step"), value: model.get("value"),
  });
  const number = part("output", "min-width:4em;font-variant-numeric:tabular-nums", {});
  const show = () => { number.textContent = String(Number(Number(input.value).toPrecision(6))); };
  input.addEventListener("input", () => {
    show();
    model.set("value", Number(input.value));
    model.save_changes();
  });
  const changed = () => { input.value = model.get("value"); show(); };
  show();
  return [[input, number], changed];
}

function checkbox(model) {
  const input = part("input", "", { type: "checkbox", checked: model.get("value") });
  input.addEventListener("change", () => { model.set("value", input.checked); model.save_changes(); });
  return [[input], () => { input.checked = model.get("value"); }];
}

function dropdown(model) {
  const select = part("select", text + ";background:var(--jp-layout-color1,inherit)", {});
  model.get("options").forEach((name) => select.append(part("option", "", { textContent: name, value: name })));
  select.value = model.get("value");
  select.addEventListener("change", () => { model.set("value", select.value); model.save_changes(); });
  return [[select], () => { select.value = model.get("value"); }];
}

function button(model) {
  const pressed = part("button", text + ";padding:.3em 1.2em;cursor:pointer;border:1px solid var(--jp-border-color1,#888);"
    + "border-radius:3px;background:var(--jp-layout-color2,#eee)", { textContent: model.get("label") });
  pressed.addEventListener("click", () => model.send({ event: "click" }));
  return [[pressed], () => {}];
}

function render({ model, el }) {
  const kinds = { slider, checkbox, dropdown, button };
  const [parts, changed] = kinds[model.get("kind")](model);
  const row = part(model.get("kind") === "button" ? "div" : "label", text + ";display:flex;align-items:center;gap:.6em", {});
  if (model.get("kind") !== "button") {
    row.append(part("span", "", { textContent: model.get("label") }));
  }
  row.append(...parts);
  const below = part("div", "", {});
  const made = () => {
    below.innerHTML = (model.get("made") ?? [""])[0];
    // Scripts that come as text do not run.
    below.querySelectorAll("script").forEach((s) => s.replaceWith(part("script", "", { textContent: s.textContent })));
  };
  made();
  el.append(row, below);
  model.on("change:value", changed);
  model.on("change:made", made);
  return () => {
    model.off("change:value", changed);
    model.off("change:made", made);
  };
}

export default { render };
