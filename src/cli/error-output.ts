import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Prints an error: `podwright: <message>` and a line with the remedy. Any other error is a defect; its stack is shown
 * with PODWRIGHT_DEBUG=1.
 */
export function printError(terminal: Terminal, error: unknown, debug = false): void {
  const { warnPaint } = terminal;
  if (error instanceof PodwrightError) {
    for (const line of error.message.split("\n")) terminal.warn(`${warnPaint.bad("podwright:")} ${line}`);
    if (error.remedy !== undefined) terminal.warn(`  ${warnPaint.faint("→")} ${error.remedy}`);
  } else {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    terminal.warn(`${warnPaint.bad("podwright:")} a bug in podwright: ${message}`);
    const remedy = "run it again with PODWRIGHT_DEBUG=1 and report its output";
    if (!debug) terminal.warn(`  ${warnPaint.faint("→")} ${remedy}`);
  }
  if (debug && error instanceof Error) terminal.warn(stackOf(error));
}

export function printWarning(terminal: Terminal, warning: Error): void {
  terminal.warn(`${terminal.warnPaint.caution("podwright: warning:")} ${warning.message}`);
}

/** Errors other than PodwrightError are defects: {@link ExitCode.failed}. */
export function exitCodeOf(error: unknown): ExitCode {
  return error instanceof PodwrightError ? error.exitCode : ExitCode.failed;
}

function stackOf(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by ${stackOf(error.cause)}` : stack;
}
