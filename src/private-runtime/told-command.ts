import type { ProcessInfo } from "../ports/processes.ts";

const longest = 160;

/**
 * A process's command as a person would write it, at most 160 characters: without the interpreter's own options, which
 * would hide what it runs.
 */
export function toldCommand({ arguments: [program = "", ...rest] }: Pick<ProcessInfo, "arguments">): string {
  const script = /(?:^|\/)node$/u.test(program) ? rest.findIndex((word) => !word.startsWith("-")) : 0;
  const text = [program, ...rest.slice(Math.max(script, 0))].join(" ");
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}
