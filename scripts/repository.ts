/** This repository, for scripts that pack it. */
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";

export const root = dirname(import.meta.dirname);

const maxOutputBytes = 64 * 1024 * 1024;

/** Runs a program at the repository's root, and returns what it prints, without blanks around it. @throws when it fails */
export async function output(
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const env = { ...process.env, ...environment };
  const { stdout } = await promisify(execFile)(program, words, { cwd: root, env, maxBuffer: maxOutputBytes });
  return stdout.trim();
}

/**
 * What all that is packed is dated with, in seconds since the Unix epoch: SOURCE_DATE_EPOCH, else the time of the commit.
 * @throws Error when SOURCE_DATE_EPOCH is no number
 */
export async function sourceEpoch(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined && !/^\d+$/u.test(given)) throw new Error(`SOURCE_DATE_EPOCH is no number: ${given}`);
  return Number(given ?? (await output("git", ["log", "-1", "--format=%ct"])));
}
