/** Draws tasks into a list. The row of a task is always the same element, so it keeps the focus. */
export function draw(list, tasks, setDone) {
  const present = new Map([...list.children].map((row) => [row.dataset.id ?? row, row]));
  const rows = tasks.map((task) => {
    const row = present.get(String(task._id)) ?? create(task, setDone);
    row.querySelector("input").checked = task.done;
    row.querySelector("span").textContent = task.title;
    return row;
  });
  for (const row of present.values()) if (!rows.includes(row)) row.remove();
  rows.forEach((row, index) => {
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
  });
}

function create({ _id }, setDone) {
  const [row, label, box, title] = ["li", "label", "input", "span"].map((name) =>
    document.createElement(name),
  );
  row.dataset.id = String(_id);
  box.type = "checkbox";
  box.addEventListener("change", () => setDone(_id, box.checked));
  label.append(box, title);
  row.append(label);
  return row;
}
