import { ExitCode, PodwrightError } from "../base/errors.ts";
import { fileProblem } from "../base/file-problem.ts";
import { messageAsTyped, remedyAsTyped } from "./own-command.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Prints an error: `podwright: <message>` and a line with the remedy. An error of the file system is worded as one. Any other is a
 * defect; its stack is shown with PODWRIGHT_DEBUG=1.
 */
export function printError(terminal: Terminal, error: unknown, debug = false): void {
  const { warnPaint } = terminal;
  const worded = error instanceof PodwrightError ? error : fileProblem(error, process.getuid?.() === 0);
  if (worded !== undefined) {
    const lines = messageAsTyped(worded.message).split("\n");
    for (const line of lines) terminal.warn(`${warnPaint.bad("podwright:")} ${line}`);
    if (worded.remedy !== undefined) terminal.warn(`  ${warnPaint.faint("→")} ${remedyAsTyped(worded.remedy)}`);
  } else {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    terminal.warn(`${warnPaint.bad("podwright:")} a bug in podwright: ${message}`);
    const remedy = "run it again with PODWRIGHT_DEBUG=1 and report its output";
    if (!debug) terminal.warn(`  ${warnPaint.faint("→")} ${remedy}`);
  }
  if (debug && error instanceof Error) terminal.warn(stackOf(error));
}

export function printWarning(terminal: Terminal, warning: Error): void {
  terminal.warn(`${terminal.warnPaint.caution("podwright: warning:")} ${messageAsTyped(warning.message)}`);
}

/** Commander's message about a command line, in podwright's words. */
export function commandLineError(text: string): string {
  return text
    .replace(/^error: /u, "podwright: ")
    .replace(/command-argument value ('.*?') is invalid for argument '(.*?)'\./u, "$1 is no valid $2.");
}

/** Errors of files are the machine's: {@link ExitCode.environment}. Others than those and PodwrightError are defects: {@link ExitCode.failed}. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof PodwrightError) return error.exitCode;
  return fileProblem(error, true)?.exitCode ?? ExitCode.failed;
}

function stackOf(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by ${stackOf(error.cause)}` : stack;
}
