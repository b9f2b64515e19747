/** A goal and its measured value. */
export interface Goal {
  readonly name: string;
  readonly value: number;
  readonly atMost: number;
  /**
   * `×` (of the floor), `× other` (of the other kubelet), `× few` (of the value with few pods), `× without` (of pods
   * without claims), `× before` (of an earlier program), `× emptyDirs` (of as many emptyDirs), `ms`, `%` (of one
   * processor core), or `KiB/s`.
   */
  readonly unit: "×" | "× other" | "× few" | "× without" | "× before" | "× emptyDirs" | "ms" | "%" | "KiB/s";
}

type Cell = string | number;

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** The result of a bench: a table for people, and all data for programs. */
export interface Report extends Table {
  readonly bench: string;
  /** Lines that describe the environment. */
  readonly setting: readonly string[];
  /** Further tables, below the first. */
  readonly more?: readonly Table[];
  readonly goals: readonly Goal[];
  /** Every single measurement. */
  readonly measurements: unknown;
}

/** Prints the report, and sets the exit code if a goal was missed. */
export function printReport(report: Report, asJson: boolean): void {
  const goals = report.goals.map((goal) => ({ ...goal, met: goal.value <= goal.atMost }));
  if (goals.some((goal) => !goal.met)) process.exitCode = 1;
  // Without this, Node.js 26 sometimes spins in the clean-up of its handles, and never ends.
  process.once("beforeExit", () => process.exit());
  if (asJson) {
    console.log(JSON.stringify({ ...report, goals }));
    return;
  }
  for (const line of report.setting) console.log(line);
  for (const one of [report, ...(report.more ?? [])]) {
    console.log("");
    for (const line of table(one)) console.log(line);
  }
  console.log("");
  for (const { met, name, value, atMost, unit } of goals) {
    console.log(`${met ? "PASS" : "FAIL"} ${name}: ${withUnit(value, unit)} (at most ${withUnit(atMost, unit)})`);
  }
}

/** Reports progress on standard error, so that standard output has only the report. */
export function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

function withUnit(value: number, unit: Goal["unit"]): string {
  switch (unit) {
    case "×":
      return `${value.toFixed(2)} × the floor`;
    case "× other":
      return `${value.toFixed(2)} × the other kubelet`;
    case "× few":
      return `${value.toFixed(2)} × that with few`;
    case "× without":
      return `${value.toFixed(2)} × that without`;
    case "× before":
      return `${value.toFixed(2)} × the program before`;
    case "× emptyDirs":
      return `${value.toFixed(2)} × that of emptyDirs`;
    case "ms":
      return `${Math.round(value)} ms`;
    case "%":
      return `${value.toFixed(1)} % of a core`;
    case "KiB/s":
      return `${value.toFixed(1)} KiB/s`;
  }
}

function table({ columns, rows }: Table): string[] {
  const texts = rows.map((row) => row.map((cell) => (typeof cell === "number" ? String(Math.round(cell)) : cell)));
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...texts.map((row) => row[index]?.length ?? 0)),
  );
  const isNumber = (index: number): boolean => rows.every((row) => typeof row[index] === "number");
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => (isNumber(index) ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(columns), line(widths.map((width) => "-".repeat(width))), ...texts.map(line)];
}
