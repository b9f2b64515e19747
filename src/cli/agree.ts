import { createInterface } from "node:readline";
import type { Terminal } from "./terminal.ts";

/** Asks a person a question; without one at a terminal the answer is no. */
export async function agrees(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.interactive || !process.stdin.isTTY) return false;
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  const answer = Promise.withResolvers<string>();
  asking.question(`${question} [y/N] `, answer.resolve);
  asking.once("close", () => answer.resolve(""));
  asking.once("SIGINT", () => asking.close());
  try {
    return /^y(?:es)?$/iu.test((await answer.promise).trim());
  } finally {
    asking.close();
  }
}
