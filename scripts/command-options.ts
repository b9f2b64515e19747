/** Command line options of scripts: one list defines what is accepted, and the text of `--help`. */
import { parseArgs } from "node:util";

/** An option of a command. */
export interface CommandOption {
  /** The name of its value; undefined: it has none. */
  readonly value?: string;
  readonly help: string;
}

/** The options of a command, by their names without dashes. */
export type CommandOptions = Readonly<Record<string, CommandOption>>;

/** An invalid command line. The message says what is allowed. */
export class UsageError extends Error {}

const help: CommandOption = { help: "print this help" };

/**
 * Parses the command line: the value of each option, empty for one without.
 * @throws UsageError
 */
export function readOptions<Name extends string>(
  given: Readonly<Record<Name, CommandOption>>,
  args: readonly string[],
): ReadonlyMap<Name | "help", string> {
  const known: CommandOptions = { ...given, help };
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { value }]) => [
      name,
      {
        type: value === undefined ? ("boolean" as const) : ("string" as const),
        ...(name === "help" && { short: "h" }),
      },
    ]),
  );
  const found = new Map<Name | "help", string>();
  for (const token of parseArgs({ args: [...args], options, strict: false, tokens: true }).tokens) {
    if (token.kind !== "option") throw new UsageError(`unexpected argument "${args[token.index]}"`);
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (option === undefined) throw new UsageError(`unknown option ${token.rawName}`);
    if (option.value === undefined && token.value !== undefined) {
      throw new UsageError(`${token.rawName} takes no value`);
    }
    if (option.value !== undefined && isMissing(token.value)) {
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${option.value}`);
    }
    if (found.has(token.name as Name)) throw new UsageError(`${token.rawName} is repeated`);
    found.set(token.name as Name | "help", token.value ?? "");
  }
  return found;
}

/** An option in place of a value means that the value was forgotten. */
function isMissing(value: string | undefined): boolean {
  return value === undefined || value === "" || value.startsWith("--");
}

/** A line about the command, its usage, and a line for each option. */
export function helpText(command: string, purpose: string, given: CommandOptions): string {
  const lines = Object.entries({ ...given, help }).map(
    ([name, { value, help: text }]) => [`--${name}${value === undefined ? "" : ` ${value}`}`, text] as const,
  );
  const width = Math.max(...lines.map(([option]) => option.length));
  return [
    purpose,
    "",
    `usage: ${command} [OPTION…]`,
    "",
    ...lines.map(([option, text]) => `  ${option.padEnd(width)}  ${text}`),
  ].join("\n");
}

/**
 * A numeric option; undefined if absent.
 * @throws UsageError unless it is an integer from 1 to `most`
 */
export function wholeNumber<Name extends string>(
  values: ReadonlyMap<Name, string>,
  name: Name,
  most: number,
): number | undefined {
  const text = values.get(name);
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text);
  throw new UsageError(`--${name} must be a whole number from 1 to ${most}, not "${text}"`);
}

/**
 * Runs a command with its command line; exit code 2 for an invalid one. Ends silently when its output is closed, as in
 * `… | head`.
 */
export async function runCommand(name: string, run: (args: readonly string[]) => Promise<number>): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  try {
    process.exitCode = await run(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n${name} --help lists all options`);
    process.exitCode = 2;
  }
}
