/** The command of a service's unit. */
export interface UnitCommand {
  /** `ExecStart=` as written, without the program: variables are not expanded. */
  readonly parameters: string;
  readonly environment: Readonly<Record<string, string>>;
  /** In reading order; later ones take precedence. An optional one may be missing. */
  readonly environmentFiles: readonly { readonly path: string; readonly optional: boolean }[];
}

/**
 * Parses the output of `systemctl cat`: a unit and its drop-ins, in the order in which they apply (systemd.unit(5),
 * systemd.exec(5)).
 * @returns undefined if the unit starts nothing
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
  const [program = ""] = command.match(word) ?? [];
  const parameters = command.slice(program.length).trimStart();
  return { parameters, environment, environmentFiles: files };
}

function assignmentsIn(value: string): Record<string, string> {
  return Object.fromEntries(unquotedWords(value.replaceAll("%%", "%")).flatMap((each) => assignment(each) ?? []));
}

function assignment(text: string): [[string, string]] | undefined {
  const at = text.indexOf("=");
  return at < 1 ? undefined : [[text.slice(0, at), text.slice(at + 1)]];
}

function environmentFile(value: string): UnitCommand["environmentFiles"][number] {
  return value.startsWith("-") ? { path: value.slice(1), optional: true } : { path: value, optional: false };
}

/** The assignments of an environment file. */
export function environmentIn(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => !/^\s*(?:[#;]|$)/u.test(line));
  const entries = lines.flatMap((line) => {
    const [, name, value = ""] = /^\s*([A-Za-z_]\w*)=(.*?)\s*$/u.exec(line) ?? [];
    return name === undefined ? [] : [[name, value.replace(/^(["'])(.*)\1$/u, "$2")] as const];
  });
  return Object.fromEntries(entries);
}

/** The words that the program receives: `$NAME` alone expands to several words, `${NAME}` within one. */
export function expanded(parameters: string, environment: Readonly<Record<string, string>>): string[] {
  return unquotedWords(parameters).flatMap((each) => {
    const alone = /^\$(\w+)$/u.exec(each)?.[1];
    if (alone !== undefined) return unquotedWords(environment[alone] ?? "");
    return each
      .replaceAll("%%", "%")
      .replaceAll(/\$\$|\$\{(\w+)\}/gu, (_all, name: string | undefined) =>
        name === undefined ? "$" : (environment[name] ?? ""),
      );
  });
}

/** A run of characters without unquoted blanks. */
const word = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+/gsu;
const partOfWord = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:[^"'\\]|\\.)+)/gsu;

/** Splits at unquoted blanks, and resolves quotes and escapes (systemd.syntax(7), "Quoting"). */
function unquotedWords(text: string): string[] {
  return (text.match(word) ?? []).map((each) =>
    each.replaceAll(partOfWord, (_all, ...parts: (string | undefined)[]) => {
      return unescaped(parts.slice(0, 3).find((part) => part !== undefined) ?? "");
    }),
  );
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", s: " " };

function unescaped(text: string): string {
  return text.replaceAll(/((?:\\x[0-9a-f]{2})+)|\\(.)/gisu, (_all, bytes: string | undefined, escape: string) => {
    return bytes === undefined
      ? (escapes[escape] ?? escape)
      : Buffer.from(bytes.replaceAll(/\\x/giu, ""), "hex").toString();
  });
}
