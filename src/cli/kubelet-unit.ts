/** The part of a service's unit that says how its program is started. */
export interface UnitCommand {
  /** `ExecStart=` as it is written, without the program: variables are not expanded. */
  readonly parameters: string;
  readonly environment: Readonly<Record<string, string>>;
  /** In the order of reading; a later one counts more. One with `optional` may be missing. */
  readonly environmentFiles: readonly { readonly path: string; readonly optional: boolean }[];
}

/**
 * Reads what `systemctl cat` prints of a service: the unit and its drop-ins, in the order in which they apply (systemd.unit(5),
 * systemd.exec(5)).
 * @returns undefined when it starts nothing
 */
export function unitCommand(text: string): UnitCommand | undefined {
  let command: string | undefined;
  let environment: Record<string, string> = {};
  let files: UnitCommand["environmentFiles"] = [];
  let section = "";
  for (const line of text.replaceAll(/\\\n\s*/gu, " ").split("\n")) {
    section = /^\[(.*)\]$/u.exec(line.trim())?.[1] ?? section;
    const [, key, value = ""] = /^(\w+)\s*=\s*(.*?)\s*$/u.exec(line) ?? [];
    if (section !== "Service") continue;
    if (key === "ExecStart") command = value === "" ? undefined : value;
    else if (key === "Environment") environment = value === "" ? {} : { ...environment, ...assignmentsIn(value) };
    else if (key === "EnvironmentFile") files = value === "" ? [] : [...files, environmentFile(value)];
  }
  if (command === undefined) return undefined;
  const parameters = command.replace(/^[@:+!|-]*\S+\s*/u, "");
  return { parameters, environment, environmentFiles: files };
}

function assignmentsIn(value: string): Record<string, string> {
  return Object.fromEntries(unquotedWords(value).flatMap((word) => assignment(word) ?? []));
}

function assignment(word: string): [[string, string]] | undefined {
  const at = word.indexOf("=");
  return at < 1 ? undefined : [[word.slice(0, at), word.slice(at + 1)]];
}

function environmentFile(value: string): UnitCommand["environmentFiles"][number] {
  return value.startsWith("-") ? { path: value.slice(1), optional: true } : { path: value, optional: false };
}

/** What an environment file assigns. */
export function environmentIn(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => !/^\s*(?:[#;]|$)/u.test(line));
  const entries = lines.flatMap((line) => {
    const [, name, value = ""] = /^\s*([A-Za-z_]\w*)=(.*?)\s*$/u.exec(line) ?? [];
    return name === undefined ? [] : [[name, value.replace(/^(["'])(.*)\1$/u, "$2")] as const];
  });
  return Object.fromEntries(entries);
}

/** The words that the program gets: `$NAME` is as many as its value has, `${NAME}` is part of one. */
export function expanded(parameters: string, environment: Readonly<Record<string, string>>): string[] {
  return unquotedWords(parameters).flatMap((word) => {
    const alone = /^\$(\w+)$/u.exec(word)?.[1];
    if (alone !== undefined) return unquotedWords(environment[alone] ?? "");
    return word.replaceAll(/\$\{(\w+)\}/gu, (_all, name: string) => environment[name] ?? "");
  });
}

/** Splits at blanks outside of quotes, and takes those away. */
function unquotedWords(text: string): string[] {
  const words = text.match(/(?:[^\s"']|"(?:[^"\\]|\\.)*"|'[^']*')+/gu) ?? [];
  return words.map((word) => {
    return word.replaceAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/gu, (_all, double: string | undefined, single: string) => {
      return double?.replaceAll(/\\(.)/gu, "$1") ?? single;
    });
  });
}
