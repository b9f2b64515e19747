import { parseTime } from "../base/time.ts";

/** The requested part of the node's logs (KEP-2258): of services by name, or one file below /var/log. */
export interface LogQuery {
  readonly services: readonly string[];
  /** Undefined: a query for services. */
  readonly file: string | undefined;
  readonly options: LogQueryOptions;
}

export interface LogQueryOptions {
  /** Wall clock ms. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
  readonly tailLines?: number;
  /** 0 is this boot, -1 the one before. */
  readonly boot?: number;
  /** A regular expression. */
  readonly pattern?: string;
}

/** A query that is unparsable (400) or contradictory (406), with every problem. */
export class LogQueryError extends Error {
  readonly status: 400 | 406;
  constructor(status: 400 | 406, problems: readonly string[]) {
    super(problems.length === 1 ? problems.join("") : `[${problems.join(", ")}]`);
    this.name = "LogQueryError";
    this.status = status;
  }
}

const maxServices = 4;
const maxServiceLength = 256;
const maxTailLines = 100_000;

/** @returns undefined for a request without a query, i.e. for a path. @throws LogQueryError */
export function logQuery(query: URLSearchParams): LogQuery | undefined {
  if (!query.has("query")) return undefined;
  const asked = query.getAll("query");
  const files = asked.filter((each) => /[/\\]/.test(each)).map((each) => each.replaceAll("\\", "/"));
  const services = asked.filter((each) => !/[/\\]/.test(each) && each.trim() !== "");
  const problems: string[] = [];
  if (files.length + services.length === 0) problems.push(invalid("query", asked.join(","), "query cannot be empty"));
  const options = readOptions(query, problems);
  if (problems.length > 0) throw new LogQueryError(400, problems);
  const [file] = files;
  problems.push(...serviceProblems(services), ...optionProblems(options));
  if (files.length > 0 && services.length > 0) {
    problems.push(invalid("query", asked.join(","), "cannot specify a file and service"));
  } else if (files.length > 1) {
    problems.push(invalid("query", files.join(","), "cannot specify more than one file"));
  } else if (file !== undefined && Object.keys(options).length > 0) {
    problems.push(invalid("query", file, "cannot specify file with options"));
  }
  if (problems.length > 0) throw new LogQueryError(406, problems);
  return { services, file, options };
}

function readOptions(query: URLSearchParams, problems: string[]): LogQueryOptions {
  const time = (name: string): number | undefined => {
    const text = query.get(name) ?? "";
    const value = text === "" ? undefined : parseTime(text);
    if (text !== "" && value === undefined) problems.push(invalid(name, text, "invalid time format"));
    return value;
  };
  const integer = (name: string): number | undefined => {
    const text = query.get(name) ?? "";
    if (text === "") return undefined;
    if (!/^[+-]?\d{1,15}$/.test(text)) problems.push(invalid(name, text, "must be a whole number"));
    return Number(text);
  };
  const pattern = query.get("pattern") ?? "";
  const [sinceMs, untilMs] = [time("sinceTime"), time("untilTime")];
  const [tailLines, boot] = [integer("tailLines"), integer("boot")];
  return {
    ...(sinceMs !== undefined && { sinceMs }),
    ...(untilMs !== undefined && { untilMs }),
    ...(tailLines !== undefined && { tailLines }),
    ...(boot !== undefined && { boot }),
    ...(pattern !== "" && { pattern }),
  };
}

/** Names become program arguments, so nothing in them may have a special meaning. */
function* serviceProblems(services: readonly string[]): Generator<string> {
  for (const service of services) {
    if (service.length > maxServiceLength) {
      yield invalid("query", service.slice(0, 32), `length must be less than ${maxServiceLength}`);
    }
    if (/[^a-zA-Z\-_.:0-9@]/.test(service)) yield invalid("query", service, "input contains unsupported characters");
    if (service === "." || service === "..") yield invalid("query", service, "input is not a name");
  }
  if (services.length > maxServices) {
    yield `query: Too many: ${services.length}: must have at most ${maxServices} items`;
  }
}

function* optionProblems({ sinceMs, untilMs, tailLines, boot, pattern }: LogQueryOptions): Generator<string> {
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    yield invalid("untilTime", new Date(untilMs).toISOString(), "must be after `sinceTime`");
  }
  if (boot !== undefined && boot > 0) yield invalid("boot", boot, "must be less than 1");
  if (tailLines !== undefined && (tailLines < 0 || tailLines > maxTailLines)) {
    yield invalid("tailLines", tailLines, `must be between 0 and ${maxTailLines}, inclusive`);
  }
  if (pattern !== undefined && !isExpression(pattern)) {
    yield invalid("pattern", pattern, "is not a regular expression");
  }
}

/** Quoted text, an escaped character, a named group, and flags, alone or of a group, as Go and journalctl have them. */
const notOfJavaScript =
  /\\Q(?<quoted>[^]*?)(?:\\E|$)|(?<escaped>\\[^])|\(\?P<|\(\?[imsU]*(?:-[imsU]+)?(?<flagsEnd>[:)])/gu;

/** Whether Go would accept it, as far as JavaScript can tell: the search itself is journalctl's. */
function isExpression(pattern: string): boolean {
  const translated = pattern.replaceAll(notOfJavaScript, (text, ...parts) => {
    const { quoted, escaped, flagsEnd } = parts.at(-1) as Readonly<Record<string, string | undefined>>;
    if (escaped !== undefined) return escaped;
    if (quoted !== undefined) return quoted === "" ? "" : "q";
    if (flagsEnd !== undefined) return flagsEnd === ")" ? "" : "(?:";
    return text.replace("P", "");
  });
  try {
    return new RegExp(translated).source !== "";
  } catch {
    return false;
  }
}

function invalid(field: string, value: string | number, problem: string): string {
  return `${field}: Invalid value: ${JSON.stringify(value)}: ${problem}`;
}

/** The arguments of journalctl. Values that begin with a dash stay values. */
export function journalArguments(services: readonly string[], options: LogQueryOptions): string[] {
  const { sinceMs, untilMs, tailLines, boot, pattern } = options;
  // The zone is explicit: --utc affects only the output, and times without a zone are in the node's own.
  const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return [
    "--utc",
    "--no-pager",
    "--output=short-precise",
    ...(sinceMs === undefined ? [] : [`--since=${time(sinceMs)}`]),
    ...(untilMs === undefined ? [] : [`--until=${time(untilMs)}`]),
    ...(tailLines === undefined ? [] : [`--lines=${tailLines}`]),
    ...services.map((service) => `--unit=${service}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : [`--boot=${boot}`]),
  ];
}
