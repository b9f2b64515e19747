import { ExitCode } from "../base/errors.ts";
import { printable } from "../journal/text.ts";
import type { GarbageItem, GarbageReport } from "../server/local-api.ts";
import type { CommandContext } from "./context.ts";
import { formatTable, plural } from "./format.ts";
import type { Painter } from "./terminal.ts";

export interface GcOptions {
  readonly preview?: true;
  readonly json?: true;
}

/**
 * `podwright gc`: removes unused images and dead containers, as the node does when it needs space; `--preview` only lists
 * them. Exit code 1 if something could not be removed.
 */
export async function gcCommand({ engine, terminal }: CommandContext, options: GcOptions): Promise<ExitCode> {
  const isPreview = options.preview === true;
  const report = isPreview ? await engine.previewGarbage() : await engine.collectGarbage();
  if (options.json === true) terminal.print(JSON.stringify(report, undefined, 2));
  else terminal.print(garbageLines(report, isPreview, terminal.paint).join("\n"));
  for (const failure of report.failures) terminal.warn(`${terminal.warnPaint.bad("✗")} ${printable(failure)}`);
  return report.failures.length > 0 ? ExitCode.failed : ExitCode.done;
}

/** A table of removals, then of kept items with reasons, and a summary. */
export function garbageLines(report: GarbageReport, isPreview: boolean, paint: Painter): string[] {
  const goes = report.items.filter(({ stays }) => stays === undefined);
  const rows = [...goes, ...report.items.filter(({ stays }) => stays !== undefined)].map((item) => [
    item.kind,
    printable(item.pod === undefined ? item.name : `${item.pod} ${item.name}`),
    item.bytes === undefined ? "-" : formatBytes(item.bytes),
    item.stays === undefined ? (isPreview ? "would be removed" : "removed") : `stays: ${printable(item.stays)}`,
  ]);
  const table = rows.length === 0 ? [] : [...formatTable([["KIND", "NAME", "SIZE", ""], ...rows], paint), ""];
  const note = report.imagesStay === undefined ? [] : [printable(report.imagesStay)];
  return [...table, ...note, summary(goes, report, isPreview)];
}

function summary(goes: readonly GarbageItem[], { freedBytes }: GarbageReport, isPreview: boolean): string {
  const count = (kind: GarbageItem["kind"]): number => goes.filter((item) => item.kind === kind).length;
  const bytes = goes.reduce((sum, item) => sum + (item.bytes ?? 0), 0);
  const parts = [
    plural(count("image"), "image"),
    plural(count("container"), "dead container"),
    plural(count("sandbox"), "sandbox").replace(/xs$/u, "xes"),
  ].join(", ");
  if (isPreview) return `${parts} would be removed: at most ${formatBytes(bytes)}, because images share layers`;
  if (freedBytes === undefined) return `${parts} removed`;
  // What containers wrote is theirs alone. A runtime may still be deleting it.
  const written = goes.reduce((sum, item) => sum + (item.kind === "container" ? (item.bytes ?? 0) : 0), 0);
  const freed = `; ${freedBytes < written ? "at least " : ""}${formatBytes(freedBytes)} freed on the image file system`;
  return `${parts} removed${freed}`;
}

/** `512 B`, `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
