import type { Command, Option } from "commander";
import type { PodView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";

/** What a shell may put at the cursor. */
export interface Candidate {
  readonly text: string;
  /** One clause; undefined: the text says it. */
  readonly about?: string | undefined;
}

/** What the words before the one at the cursor ask for. */
interface Position {
  readonly command: Command;
  /** After the command's name, without the word at the cursor. */
  readonly words: readonly string[];
}

/**
 * Completes a command line from the program's own definition. Where a file is asked for there are no candidates: shells
 * complete those by themselves.
 * @param words after `podwright`; the last is the one at the cursor, perhaps empty
 * @param pods asked when the name of a pod or of a container is wanted
 */
export async function complete(
  program: Command,
  words: readonly string[],
  pods: (stateDirectory: string | undefined) => Promise<readonly PodView[]>,
): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  const [name, ...rest] = words.slice(0, -1);
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  if (name === undefined) {
    const named = commands.map((command) => ({ text: command.name(), about: command.summary() }));
    return startingWith(current, current.startsWith("-") ? optionNames(help.visibleOptions(program)) : named);
  }
  if (name === "kubelet") return startingWith(current, await kubeletFlags());
  const command = commands.find((candidate) => candidate.name() === name);
  if (command === undefined || rest.includes("--")) return [];
  const position: Position = { command, words: rest };
  const options = help.visibleOptions(command);
  const pending = options.find((option) => takesValue(option) && isNamed(option, rest.at(-1)));
  if (pending !== undefined) return startingWith(current, await valuesOf(pending, position, pods));
  if (current.startsWith("-")) return startingWith(current, optionNames(options));
  return startingWith(current, await operandsOf(position, options, pods));
}

function startingWith(current: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.filter(({ text }) => text.startsWith(current));
}

function optionNames(options: readonly Option[]): Candidate[] {
  return options.flatMap(({ long, description }) =>
    typeof long === "string" ? [{ text: long, about: description }] : [],
  );
}

async function kubeletFlags(): Promise<Candidate[]> {
  // As the catalogue: only who asks for it loads it.
  const { kubeletHelp } = await import("../config/flags.ts");
  return [...kubeletHelp().matchAll(/^ {2}(--[\w-]+) +(.*)$/gmu)].map(([, text = "", about]) => ({ text, about }));
}

function takesValue(option: Option): boolean {
  return option.required || option.optional;
}

function isNamed({ long, short }: Option, word: string | undefined): boolean {
  return word !== undefined && (word === long || word === short);
}

async function valuesOf(
  option: Option,
  { command, words }: Position,
  pods: Parameters<typeof complete>[2],
): Promise<Candidate[]> {
  if (option.argChoices !== undefined) return option.argChoices.map((text) => ({ text }));
  if (option.long !== "--container" && option.long !== "--target") return [];
  return containersOf(await podsFor(words, pods), operands(words, command.options)[0]);
}

async function operandsOf(
  { command, words }: Position,
  options: readonly Option[],
  pods: Parameters<typeof complete>[2],
): Promise<Candidate[]> {
  const given = operands(words, options);
  const { registeredArguments } = command;
  const argument = registeredArguments[given.length] ?? registeredArguments.findLast(({ variadic }) => variadic);
  if (argument === undefined) return [];
  if (argument.argChoices !== undefined) return argument.argChoices.map((text) => ({ text }));
  switch (argument.name()) {
    case "pod":
      return (await podsFor(words, pods)).map((pod) => ({ text: podLabel(pod), about: pod.phase }));
    case "container":
      return containersOf(await podsFor(words, pods), given[0]);
    case "name": {
      const { catalogue } = await import("../journal/catalogue.ts");
      return catalogue().map(({ name, kind }) => ({ text: name, about: kind }));
    }
    default:
      return [];
  }
}

function containersOf(pods: readonly PodView[], selector: string | undefined): Candidate[] {
  const pod = pods.find((view) =>
    [podLabel(view), `${view.namespace}/${view.name}`, view.uid].includes(selector ?? ""),
  );
  return pod?.containers.map(({ name, state }) => ({ text: name, about: state })) ?? [];
}

/** The words that are neither options nor their values. */
function operands(words: readonly string[], options: readonly Option[]): string[] {
  return words.filter((word, index) => {
    const before = options.find((option) => isNamed(option, words[index - 1]));
    return !word.startsWith("-") && !(before !== undefined && takesValue(before));
  });
}

async function podsFor(words: readonly string[], pods: Parameters<typeof complete>[2]): Promise<readonly PodView[]> {
  const flag = words.indexOf("--state-dir");
  return await pods(flag < 0 ? undefined : words[flag + 1]);
}
