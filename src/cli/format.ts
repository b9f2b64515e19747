import { type Painter, visibleWidth } from "./terminal.ts";

/** An age in kubectl's short form: `45s`, `3m12s`, `25m`, `5h2m`, `3d4h`, `12d`. */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  if (days < 8) return hours % 24 === 0 ? `${days}d` : `${days}d${hours % 24}h`;
  return `${days}d`;
}

/** Columns as wide as their widest cell, three spaces apart; the first row is the heading. */
export function formatTable(rows: readonly (readonly string[])[], paint: Painter): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, visibleWidth(cell));
  }
  return rows.map((row, index) => {
    const cells = row.map((cell, column) => {
      const last = column === row.length - 1;
      return last ? cell : cell + " ".repeat((widths[column] ?? 0) - visibleWidth(cell) + 3);
    });
    return index === 0 ? paint.strong(cells.join("")) : cells.join("");
  });
}

/** `1 pod`, `2 pods`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
