import { createInterface } from "node:readline";
import type { Terminal } from "./terminal.ts";

/** Standard input and output, or a test's. */
interface Streams {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Asks a person a question; undefined: nobody is at a terminal. */
export async function agrees(
  terminal: Pick<Terminal, "interactive">,
  question: string,
  { input, output }: Streams = { input: process.stdin, output: process.stdout },
): Promise<boolean | undefined> {
  if (!terminal.interactive || input.isTTY !== true) return undefined;
  const asking = createInterface({ input, output });
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
