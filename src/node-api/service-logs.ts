import { errorMessage } from "../base/errors.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { CommandOutput } from "../ports/command-output.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";
import { hostFile, hostLogs, type LogFiles } from "./host-logs.ts";
import { journalArguments, type LogQuery, logQuery, LogQueryError } from "./log-query.ts";

export interface ServiceLogDependencies {
  readonly files: LogFiles;
  readonly commandOutput: CommandOutput;
  /** `/var/log` */
  readonly logsDirectory: string;
}

/** Time limit of journalctl for one request. */
const journalLimitMs = 30_000;
/** Maximum output read from journalctl about known units. */
const maxUnitBytes = 1024 * 1024;

/**
 * `/logs/?query=…` (enableSystemLogQuery): logs of services from the journal, or, for services unknown to the journal,
 * from files below /var/log named after them.
 * @returns undefined for a request without a query
 * @throws ApiError
 */
export async function serviceLogs(
  deps: ServiceLogDependencies,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<ApiResponse | undefined> {
  const asked = readQuery(query);
  if (asked === undefined) return undefined;
  if (asked.file !== undefined) return await queriedFile(deps, asked.file);
  return { ...plain(200, ""), body: output(deps, asked, signal) };
}

function readQuery(query: URLSearchParams): LogQuery | undefined {
  try {
    return logQuery(query);
  } catch (error) {
    if (!(error instanceof LogQueryError)) throw error;
    throw new ApiError(error.status, `${error.message}\n`, { cause: error });
  }
}

async function queriedFile({ files, logsDirectory }: ServiceLogDependencies, file: string): Promise<ApiResponse> {
  try {
    return await hostLogs(files, logsDirectory, file.split("/"));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const problem = `query: Invalid value: ${JSON.stringify(file)}: no such file below ${logsDirectory}\n`;
    throw new ApiError(406, problem, { cause: error });
  }
}

async function* output(
  deps: ServiceLogDependencies,
  { services, options }: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<string | Uint8Array> {
  const units = await journalUnits(deps, signal);
  const inFiles = services.filter((service) => !units.includes(`${service}.service`));
  if (inFiles.length === 0) {
    try {
      const limits = { timeoutMs: journalLimitMs, signal };
      yield* deps.commandOutput("journalctl", journalArguments(services, options), limits);
    } catch (error) {
      signal.throwIfAborted();
      yield `\nerror: journal output not available: ${errorMessage(error)}\n`;
    }
    return;
  }
  if (Object.keys(options).length > 0) {
    yield `\noptions present and query resolved to log files for ${inFiles.join(", ")}\ntry without specifying options\n`;
    return;
  }
  for (const service of inFiles) yield* fileOf(deps, service);
}

/** The journal's units; none on a machine without a journal. */
async function journalUnits({ commandOutput }: ServiceLogDependencies, signal: AbortSignal): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    const limits = { timeoutMs: journalLimitMs, signal };
    for await (const piece of commandOutput("journalctl", ["--field", "_SYSTEMD_UNIT"], limits)) {
      pieces.push(piece);
      size += piece.length;
      if (size > maxUnitBytes) break;
    }
  } catch {
    signal.throwIfAborted();
    return "";
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** The first existing file of `foo`, `foo.log` and `foo/foo.log`. */
async function* fileOf(
  { files, logsDirectory }: ServiceLogDependencies,
  service: string,
): AsyncGenerator<string | Uint8Array> {
  for (const path of [[service], [`${service}.log`], [service, `${service}.log`]]) {
    const found = await hostFile(files, logsDirectory, path);
    if (found !== undefined) {
      yield* found;
      return;
    }
  }
  yield `\nlog not found for ${service}\n`;
}
