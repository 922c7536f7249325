// Take tables and pictures along: CSV and PNG files.

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A cell that begins like a formula would be run by a spreadsheet.
function cell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Columns are [title, value of a row]. */
function csvText(columns, rows) {
  const lines = [columns.map(([title]) => cell(title)).join(",")];
  for (const row of rows) lines.push(columns.map(([, value]) => cell(value(row))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

export function saveCsv(name, columns, rows) {
  save(new Blob([csvText(columns, rows)], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
}

export function savePng(name, canvas) {
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`), "image/png");
}
