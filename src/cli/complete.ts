import type { Command, Option } from "commander";
import type { ClaimView, PodView } from "../server/local-api.ts";
import { isSelectedBy, podLabel } from "../server/pod-selector.ts";
import { claimLabel } from "./claim-label.ts";

/** A completion that the shell may insert. */
export interface Candidate {
  readonly text: string;
  /** One clause; undefined: the text is enough. */
  readonly about?: string | undefined;
}

/** The command line before the word at the cursor. `words` are those after the command's name. */
interface Position {
  readonly command: Command;
  readonly words: readonly string[];
  readonly options: readonly Option[];
}

/** Lists what the engine of a state directory has; called only for names of pods, containers and claims. */
export interface Asked {
  readonly pods: (stateDirectory: string | undefined) => Promise<readonly PodView[]>;
  readonly claims: (stateDirectory: string | undefined) => Promise<readonly ClaimView[]>;
}

/**
 * Completes a command line from the program's definition. There are no candidates for files: shells complete those
 * themselves.
 * @param given the words after `podwright`; the last one is at the cursor, and may be empty. Bash splits `--option=value` into three
 */
export async function complete(program: Command, given: readonly string[], asked: Asked): Promise<Candidate[]> {
  const { words, current, prefix } = atCursor(given);
  const isValue = prefix !== undefined;
  const [name, ...rest] = words;
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  const named = commands.map((command) => ({ text: command.name(), about: command.summary() }));
  if (name === undefined) {
    return startingWith(current, current.startsWith("-") ? optionNames(help.visibleOptions(program)) : named);
  }
  if (name === "help") return rest.length === 0 ? startingWith(current, named) : [];
  if (name === "kubelet") return isValue ? [] : await kubeletFlags(rest.at(-1), current);
  const command = commands.find((candidate) => candidate.name() === name);
  if (command === undefined || rest.includes("--")) return [];
  const position: Position = { command, words: rest, options: help.visibleOptions(command) };
  const pending = position.options.find((option) => takesValue(option) && isNamed(option, rest.at(-1)));
  if (pending !== undefined) {
    const values = startingWith(current, await valuesOf(pending, position, asked));
    return values.map(({ text, about }) => ({ text: `${prefix ?? ""}${text}`, about }));
  }
  if (isValue) return [];
  if (current.startsWith("-")) return startingWith(current, optionNames(position.options));
  return startingWith(current, await operandsOf(position, asked));
}

/** What a word of a shell's line means: bash and zsh pass it on as it was typed, with its quotes and `~`. */
export function shellWordMeant(word: string, home: string | undefined): string {
  const inHome = home !== undefined && word.startsWith("~/") ? `${home}${word.slice(1)}` : word;
  return inHome.replaceAll(/\\(.)|["']/gsu, "$1");
}

/**
 * Splits the words at the cursor. `--option=value` at the cursor counts as two words, as if written with a blank.
 */
function atCursor(given: readonly string[]): {
  readonly words: readonly string[];
  readonly current: string;
  /** Part of the shell's word before a value after an equals sign; undefined: the cursor is not at such a value. */
  readonly prefix: string | undefined;
} {
  const current = given.at(-1) ?? "";
  const before = joined(given.slice(0, -1));
  const option = before.at(-1) ?? "";
  // Bash: `--option` and `=` at the cursor, or `--option`, `=` and a value at the cursor.
  if (current === "=" && option.startsWith("--")) return { words: before, current: "", prefix: "" };
  if (/^--[^=]+=$/u.test(option)) return { words: [...before.slice(0, -1), option.slice(0, -1)], current, prefix: "" };
  const [, name, value = ""] = /^(--[^=]+)=(.*)$/su.exec(current) ?? [];
  if (name === undefined) return { words: before, current, prefix: undefined };
  return { words: [...before, name], current: value, prefix: `${name}=` };
}

/** Joins the options that bash splits at equals signs. */
function joined(given: readonly string[]): string[] {
  const words: string[] = [];
  for (const [index, word] of given.entries()) {
    const isPart = word === "=" || given[index - 1] === "=";
    if (isPart && words.at(-1)?.startsWith("--") === true) words.push(`${words.pop()}${word}`);
    else words.push(word);
  }
  return words;
}

function startingWith(current: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.filter(({ text }) => text.startsWith(current));
}

function optionNames(options: readonly Option[]): Candidate[] {
  return options.flatMap(({ long, description }) =>
    typeof long === "string" ? [{ text: long, about: description }] : [],
  );
}

async function kubeletFlags(before: string | undefined, current: string): Promise<Candidate[]> {
  // Loaded lazily, as the catalogue below.
  const { shownFlags } = await import("../config/flags.ts");
  const { own, ofFields } = shownFlags();
  const flags = [...own, ...ofFields];
  if (flags.some(({ name, takesValue: takes }) => takes && name === before)) return [];
  return startingWith(
    current,
    flags.map(({ name, text }) => ({ text: name, about: text })),
  );
}

function takesValue(option: Option): boolean {
  return option.required || option.optional;
}

function isNamed({ long, short }: Option, word: string | undefined): boolean {
  return word !== undefined && (word === long || word === short);
}

async function valuesOf(option: Option, position: Position, asked: Asked): Promise<Candidate[]> {
  const { command, words, options } = position;
  if (option.argChoices !== undefined) return option.argChoices.map((text) => ({ text }));
  if (option.long !== "--container" && option.long !== "--target") return [];
  const pods = await asked.pods(stateDirectoryIn(words));
  return containersOf(pods, operands(words, options)[0], option.long === "--target" ? "joined" : useOf(command));
}

async function operandsOf({ command, words, options }: Position, asked: Asked): Promise<Candidate[]> {
  const given = operands(words, options);
  const { registeredArguments } = command;
  const argument = registeredArguments[given.length] ?? registeredArguments.findLast(({ variadic }) => variadic);
  if (argument === undefined) return [];
  if (argument.argChoices !== undefined) return argument.argChoices.map((text) => ({ text }));
  switch (argument.name()) {
    case "pod":
      return (await asked.pods(stateDirectoryIn(words))).map((pod) => ({ text: podLabel(pod), about: pod.phase }));
    case "claim": {
      const claims = given[0] === "ls" ? [] : await asked.claims(stateDirectoryIn(words));
      return claims.map((claim) => ({ text: claimLabel(claim), about: claim.phase }));
    }
    case "container":
      return containersOf(await asked.pods(stateDirectoryIn(words)), given[0], useOf(command));
    case "name": {
      const { catalogue } = await import("../journal/catalogue.ts");
      return catalogue().map(({ name, kind }) => ({ text: name, about: kind }));
    }
    default:
      return [];
  }
}

/** What a container is named for: its output, which it keeps, or its processes. */
type Use = "read" | "entered" | "joined";

function useOf(command: Command): Use {
  return command.name() === "logs" ? "read" : "entered";
}

/** The regular containers come first: they are meant most often. */
function containersOf(pods: readonly PodView[], selector = "", use: Use = "read"): Candidate[] {
  const pod = pods.find((view) => isSelectedBy(view, selector));
  if (pod === undefined) return [];
  const { containers, initContainers, ephemeralContainers } = pod;
  // An ephemeral container cannot be another one's target.
  const others = use === "joined" ? initContainers : [...initContainers, ...ephemeralContainers];
  const running = others.filter(({ state }) => state === "running");
  const meant = [...containers, ...(use === "read" ? others : running)];
  return meant.map(({ name, state }) => ({ text: name, about: state }));
}

/** The words that are neither options nor option values. */
function operands(words: readonly string[], options: readonly Option[]): string[] {
  return words.filter((word, index) => {
    const before = options.find((option) => isNamed(option, words[index - 1]));
    return !word.startsWith("-") && !(before !== undefined && takesValue(before));
  });
}

function stateDirectoryIn(words: readonly string[]): string | undefined {
  const flag = "--state-dir";
  const at = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  return at < 0 ? undefined : words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1);
}
