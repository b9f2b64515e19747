import { didYouMean } from "../base/did-you-mean.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { catalogue, type CatalogueEntry, entriesOf } from "../journal/catalogue.ts";
import { type Paint, printable, wrap } from "../journal/text.ts";
import { ownProgram } from "./own-command.ts";
import type { Terminal } from "./terminal.ts";

/**
 * `podwright explain [NAME…]`: the meaning of names in the journal, statuses and errors, and what to do about them. Needs no
 * engine.
 * @throws PodwrightError (bad input) for an unknown name, once the others are explained
 */
export function explainCommand(
  terminal: Terminal,
  names: readonly string[],
  options: { readonly json?: true },
): ExitCode {
  if (names.length === 0) {
    printNames(terminal, options.json === true);
    return ExitCode.done;
  }
  const found = names.map((name) => ({ name, entries: entriesOf(name) }));
  const entries = found.flatMap((each) => each.entries);
  if (options.json === true) terminal.print(JSON.stringify(entries, undefined, 2));
  else if (entries.length > 0) {
    terminal.print(entries.map((entry) => explainText(entry, terminal.paint, terminal.columns)).join("\n\n"));
  }
  const unknown = found.find((each) => each.entries.length === 0);
  if (unknown !== undefined) throw unknownName(unknown.name);
  return ExitCode.done;
}

function printNames(terminal: Terminal, json: boolean): void {
  if (json) {
    terminal.print(JSON.stringify(catalogue(), undefined, 2));
    return;
  }
  for (const [kind, entries] of Map.groupBy(catalogue(), (entry) => entry.kind)) {
    const names = [...new Set(entries.map(({ name }) => printable(name)))].join(" ");
    terminal.print(
      `${terminal.paint.strong(kind)}\n${wrap(names, terminal.columns - 2)
        .map((line) => `  ${line}`)
        .join("\n")}`,
    );
  }
}

function explainText({ name, kind, means, remedy }: CatalogueEntry, paint: Paint, columns: number): string {
  const width = Math.max(40, columns - 2);
  const lines = wrap(means, width).map((line) => `  ${line}`);
  if (remedy !== undefined) {
    lines.push(...wrap(remedy, width - 2).map((line, index) => `  ${index === 0 ? paint.caution("→") : " "} ${line}`));
  }
  return [`${paint.strong(printable(name))}  ${paint.faint(kind)}`, ...lines].join("\n");
}

function unknownName(name: string): PodwrightError {
  const near = didYouMean(
    name,
    catalogue().map((entry) => entry.name),
  );
  const remedy = near === undefined ? `'${ownProgram()} explain' lists all names` : `did you mean ${near}?`;
  return new PodwrightError(ExitCode.badInput, `unknown name ${JSON.stringify(name)}`, { remedy });
}
